"""What the service counts, for Prometheus. Names are the usual ones of serving engines."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_ROWS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 128)


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """The series of one model's engine."""

    running: Gauge
    waiting: Gauge
    rows_per_run: Histogram
    steps: Counter
    faults: Counter


class Metrics:
    """All series of one service, in a registry of its own so that tests can have several."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def make(kind: type, name: str, text: str, labels: tuple[str, ...], **more: object):  # type: ignore[no-untyped-def]
            return kind(f"evenkeel_{name}", text, labels, registry=self.registry, **more)

        model = ("model",)
        self.running = make(Gauge, "requests_running", "Requests in a slot", model)
        self.waiting = make(Gauge, "requests_waiting", "Requests in the queue", model)
        self.rows = make(Histogram, "rows_per_run", "Rows of one chunk", model, buckets=_ROWS)
        self.steps = make(Counter, "steps", "Row-steps computed, prompts included", model)
        self.faults = make(Counter, "engine_faults", "Runs that failed", model)
        self.tokens_in = make(Counter, "prompt_tokens", "Bytes of prompts", model)
        self.tokens_out = make(Counter, "generation_tokens", "Bytes generated", model)
        self.finished = make(Counter, "requests_finished", "Requests ended", ("model", "reason"))
        self.rejected = make(Counter, "requests_rejected", "Requests refused", ("status",))
        self.first_byte_s = make(
            Histogram,
            "time_to_first_token_seconds",
            "Arrival to first byte",
            model,
            buckets=_SECONDS,
        )
        self.total_s = make(
            Histogram, "request_seconds", "Arrival to last byte", model, buckets=_SECONDS
        )
        self.inter_token_s = make(
            Histogram,
            "inter_token_seconds",
            "Mean time between bytes of a request",
            model,
            buckets=(2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 0.1),
        )
        self.queue_s = make(
            Histogram, "queue_seconds", "Arrival to the first run", model, buckets=_SECONDS
        )

    def of_engine(self, model: str) -> EngineMetrics:
        """The series of the engine that runs `model`."""
        return EngineMetrics(
            self.running.labels(model),
            self.waiting.labels(model),
            self.rows.labels(model),
            self.steps.labels(model),
            self.faults.labels(model),
        )
