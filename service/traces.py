"""OpenTelemetry spans of requests, made from their records once they have ended. Wants the packages
of the role `traces`.

`OTEL_*` variables say where spans go, how many, and what the service is called.
"""

import threading

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from service.http.record import MOST_JOBS, Record

_LAST_WORDS_S = 1.0


class Traces:
    """Turns records into spans: the request, and in it the queue, the work and the encoding.

    They are sent in batches, by a thread.
    """

    def __init__(self) -> None:
        resource = Resource.create({SERVICE_NAME: "evenkeel"})
        self._provider = TracerProvider(
            resource=resource.merge(OTELResourceDetector().detect()), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("evenkeel")

    def close(self) -> None:
        """Send what has not been sent, unless nobody takes it in a second."""
        # The exporter waits for a collector, and tries again, for as long as ten.
        last = threading.Thread(target=self._provider.shutdown, daemon=True)
        last.start()
        last.join(_LAST_WORDS_S)

    def add(self, record: Record) -> None:
        """A request that has ended."""
        ended_s = record.began_s + record.total_s
        parent = TraceContextTextMapPropagator().extract({"traceparent": record.parent or ""})
        request = self._tracer.start_span(
            f"{record.method} {record.path}",
            parent,
            SpanKind.SERVER,
            _attributes(record),
            start_time=_ns(record, record.began_s),
        )
        for piece_s in record.pieces_s:
            request.add_event("chunk", timestamp=_ns(record, piece_s))
        if record.error is not None:
            request.set_status(Status(StatusCode.ERROR, record.error))
        inside = set_span_in_context(request, parent)
        for work in record.works[:MOST_JOBS]:
            ran_s = work.ended_s if work.first_run_s is None else work.first_run_s
            self._part(record, inside, "queue", work.arrived_s, ran_s)
            facts: dict[str, AttributeValue] = {
                "finish": work.reason,
                "read": work.read,
                "written": work.written,
            }
            self._part(record, inside, "generate", ran_s, work.ended_s, facts)
        if record.works:
            last_s = max(record.began_s, *(work.ended_s for work in record.works))
            self._part(record, inside, "encode", last_s, ended_s)
        request.end(_ns(record, ended_s))

    def _part(
        self,
        record: Record,
        inside: Context,
        name: str,
        from_s: float,
        to_s: float,
        facts: dict[str, AttributeValue] | None = None,
    ) -> None:
        span = self._tracer.start_span(
            name, inside, attributes=facts, start_time=_ns(record, from_s)
        )
        span.end(_ns(record, to_s))


def _ns(record: Record, at_s: float) -> int:
    """A time of `time.perf_counter` as one of the calendar."""
    return record.began_ns + round((at_s - record.began_s) * 1e9)


def _attributes(record: Record) -> dict[str, AttributeValue]:
    """By the names that OpenTelemetry has for them, where it has some."""
    return {
        "http.request.method": record.method,
        "http.route": record.path,
        "http.response.status_code": record.status,
        "gen_ai.request.model": record.model,
        "gen_ai.usage.input_tokens": sum(work.read for work in record.works),
        "gen_ai.usage.output_tokens": sum(work.written for work in record.works),
        "evenkeel.request": record.id,
    }
