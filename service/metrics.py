"""What the service counts, for Prometheus. Names are the usual ones of serving engines.

What vLLM counts too is told again under its name, from the same numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 2.5, 5, 10, 30)
_SECONDS_OF_A_BYTE = (2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 0.1)
_ROWS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 128)
# vLLM's name of a series, by the attribute of `Metrics` that means the same.
VLLM_NAMES = {
    "running": "vllm:num_requests_running",
    "waiting": "vllm:num_requests_waiting",
    "tokens_in": "vllm:prompt_tokens",
    "tokens_out": "vllm:generation_tokens",
    "finished": "vllm:request_success",
    "first_byte_s": "vllm:time_to_first_token_seconds",
    "total_s": "vllm:e2e_request_latency_seconds",
    "inter_token_s": "vllm:request_time_per_output_token_seconds",
    "queue_s": "vllm:request_queue_time_seconds",
}
_VLLM_LABELS = {"model": "model_name", "reason": "finished_reason"}
S = TypeVar("S", Counter, Gauge, Histogram)


class Share:
    """What one engine has of a gauge: while a model drains, the one in its place has some too."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge, self._mine = gauge, 0

    def set(self, mine: int) -> None:
        """So much is its share now."""
        self._gauge.inc(mine - self._mine)
        self._mine = mine


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """The series of one model's engine."""

    running: Share
    waiting: Share
    rows_per_run: Histogram
    steps: Counter
    faults: Counter


@dataclass(frozen=True, slots=True)
class Work:
    """A job that has ended: by `stop` or `length`, by an `error`, or by `abort` where its client
    left. `read` and `written` are what it read and wrote; times are of `time.perf_counter`."""

    model: str
    reason: str
    read: int
    written: int
    arrived_s: float
    first_run_s: float | None
    first_output_s: float | None
    ended_s: float


class Metrics:
    """All series of one service, in a registry of its own so that tests can have several."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._add_counts()
        self._add_times()
        self.registry.register(_Vllm(self))
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)

    def _add_counts(self) -> None:
        make = self._make
        self.running = make(Gauge, "requests_running", "Requests in a slot")
        self.waiting = make(Gauge, "requests_waiting", "Requests in the queue")
        self.rows = make(Histogram, "rows_per_run", "Rows of one chunk", buckets=_ROWS)
        self.steps = make(Counter, "steps", "Row-steps computed, prompts included")
        self.faults = make(Counter, "engine_faults", "Runs that failed")
        self.tokens_in = make(Counter, "prompt_tokens", "Bytes read, of ink characters")
        self.tokens_out = make(Counter, "generation_tokens", "Bytes written, of ink points")
        self.finished = make(
            Counter,
            "requests_finished",
            "Accepted requests ended: stop, length, abort, error",
            ("model", "reason"),
        )
        self.reloads = make(
            Counter, "reloads", "Models loaded while serving: ok, failed", ("model", "outcome")
        )
        self.of_fallbacks = make(
            Counter, "fallback_state_tokens", "State tokens accepted that a fallback had signed"
        )
        self.rejected = make(Counter, "requests_rejected", "Requests refused", ("status",))
        self.ended = make(
            Counter,
            "http_requests",
            "HTTP requests and WebSocket sessions ended, with the code of their error or abort",
            ("path", "status", "code"),
        )

    def _add_times(self) -> None:
        def make(name: str, text: str, buckets: tuple[float, ...] = _SECONDS) -> Histogram:
            return self._make(Histogram, name, text, buckets=buckets)

        self.first_byte_s = make("time_to_first_token_seconds", "Arrival to first byte")
        self.total_s = make("request_seconds", "Arrival to last byte")
        mean = "Mean time between bytes of a request"
        self.inter_token_s = make("inter_token_seconds", mean, _SECONDS_OF_A_BYTE)
        self.queue_s = make("queue_seconds", "Arrival to the first run")

    def _make(
        self,
        kind: type[S],
        name: str,
        text: str,
        labels: tuple[str, ...] = ("model",),
        **more: Any,
    ) -> S:
        return kind(f"evenkeel_{name}", text, labels, registry=self.registry, **more)

    def of_engine(self, model: str) -> EngineMetrics:
        """The series of the engine that runs `model`."""
        return EngineMetrics(
            Share(self.running.labels(model)),
            Share(self.waiting.labels(model)),
            self.rows.labels(model),
            self.steps.labels(model),
            self.faults.labels(model),
        )

    def count(self, work: Work) -> None:
        """A job that has ended; only one that came to its own end says how long they take."""
        model = work.model
        self.finished.labels(model, work.reason).inc()
        self.tokens_in.labels(model).inc(work.read)
        self.tokens_out.labels(model).inc(work.written)
        if work.first_run_s is not None:
            self.queue_s.labels(model).observe(work.first_run_s - work.arrived_s)
        if work.first_output_s is not None:
            self.first_byte_s.labels(model).observe(work.first_output_s - work.arrived_s)
        if work.reason in ("abort", "error"):
            return
        self.total_s.labels(model).observe(work.ended_s - work.arrived_s)
        if work.first_output_s is not None and work.written > 1:
            mean_s = (work.ended_s - work.first_output_s) / (work.written - 1)
            self.inter_token_s.labels(model).observe(mean_s)


class _Vllm(Collector):
    """Our series under vLLM's names and labels, made when they are asked for."""

    def __init__(self, metrics: Metrics) -> None:
        self._families = {name: getattr(metrics, ours) for ours, name in VLLM_NAMES.items()}

    def collect(self) -> Iterator[Metric]:
        for name, series in self._families.items():
            for ours in series.collect():
                theirs = Metric(name, ours.documentation, ours.type)
                theirs.samples = [_renamed(s, ours.name, name) for s in ours.samples]
                yield theirs


def _renamed(sample: Sample, ours: str, theirs: str) -> Sample:
    labels = {_VLLM_LABELS.get(label, label): value for label, value in sample.labels.items()}
    return sample._replace(name=theirs + sample.name.removeprefix(ours), labels=labels)
