"""OpenTelemetry spans reach a collector and say of a request what its record says."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from pydantic import ValidationError

import service.settings
from service.http.record import Record
from service.metrics import Work
from service.traces import Traces
from tests.service.serving import Service, running, settings
from tests.service.writing import InkService

_TRACE, _PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class _Collector(ThreadingHTTPServer):
    """Keeps the spans it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[Any] = []
        self.name = ""

    def keep(self, body: bytes) -> None:
        for part in ExportTraceServiceRequest.FromString(body).resource_spans:
            facts = {fact.key: fact.value.string_value for fact in part.resource.attributes}
            self.name = facts["service.name"]
            self.spans += [span for scope in part.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, _Collector)
        self.server.keep(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Collector]:
    with _Collector() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield server
        server.shutdown()
        thread.join()


@contextmanager
def _traced(artifacts: Path) -> Iterator[Service]:
    """What it does has been sent when it has stopped."""
    with running(settings(artifacts, traces=True)) as service:
        yield service


def _facts(span: Any) -> dict[str, Any]:
    return {f.key: getattr(f.value, f.value.WhichOneof("value")) for f in span.attributes}


def test_a_stream_is_a_span_with_its_queue_its_chunks_and_its_encoding(
    artifacts: Path, collector: _Collector
) -> None:
    body = {"model": "letters", "max_tokens": 40, "stream": True, "prompt": "ab"}
    head = {"traceparent": f"00-{_TRACE}-{_PARENT}-01", "X-Request-Id": "mine"}
    with _traced(artifacts) as service:
        service.client.post("/v1/completions", json=body, headers=head)
    (request,) = collector.named("POST /v1/completions")
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (_TRACE, _PARENT)
    assert _facts(request) == {
        "http.request.method": "POST",
        "http.route": "/v1/completions",
        "http.response.status_code": 200,
        "gen_ai.request.model": "letters",
        "gen_ai.usage.input_tokens": 2,
        "gen_ai.usage.output_tokens": 40,
        "evenkeel.request": "mine",
    }
    parts = [collector.named(name) for name in ("queue", "generate", "encode")]
    queue, generate, encode = (part for (part,) in parts)
    assert {span.parent_span_id for span in (queue, generate, encode)} == {request.span_id}
    assert _facts(generate) == {"finish": "length", "read": 2, "written": 40}
    moments = [request.start_time_unix_nano, queue.start_time_unix_nano]
    moments += [queue.end_time_unix_nano, generate.end_time_unix_nano, encode.end_time_unix_nano]
    assert moments == sorted(moments)
    assert generate.start_time_unix_nano == queue.end_time_unix_nano
    assert encode.start_time_unix_nano == generate.end_time_unix_nano
    assert encode.end_time_unix_nano == request.end_time_unix_nano
    chunks = [event.time_unix_nano for event in request.events]
    assert len(chunks) >= 2
    assert chunks == sorted(chunks)
    assert generate.start_time_unix_nano < chunks[0]
    assert chunks[-1] <= request.end_time_unix_nano
    assert collector.name == "evenkeel"


def test_a_refusal_is_a_span_with_an_error_and_probes_are_none(
    artifacts: Path, collector: _Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    with _traced(artifacts) as service:
        service.post(model="nobody")
        service.client.get("/livez")
    (refused,) = collector.spans
    assert (refused.status.code, refused.status.message) == (2, "model_not_found")
    assert _facts(refused)["http.response.status_code"] == 404
    assert refused.kind == Span.SPAN_KIND_SERVER
    assert collector.name == "mine"


def test_every_line_of_ink_is_a_span(inks: Path, collector: _Collector) -> None:
    with _traced(inks) as service:
        InkService(service.app, service.client).write(text="ab\ncd", seed=1)
    assert len(collector.named("generate")) >= 2
    assert len(collector.named("queue")) == len(collector.named("generate"))


def test_of_thousands_of_jobs_the_first_are_spans(collector: _Collector) -> None:
    """They are made on the event loop: those of a page of 16,000 draws kept others for 0.65 s."""
    traces, record = Traces(), Record("it", "POST", "/v1/handwriting", total_s=4.0)
    at_s = record.began_s
    record.works += [Work("pen", "stop", 1, n, at_s, at_s, at_s, at_s + n) for n in range(1000)]
    traces.add(record)
    traces.close()
    assert [_facts(span)["written"] for span in collector.named("generate")] == [*range(128)]
    assert len(collector.named("queue")) == 128
    (request,), (encode,) = collector.named("POST /v1/handwriting"), collector.named("encode")
    assert _facts(request)["gen_ai.usage.output_tokens"] == 499_500
    assert encode.start_time_unix_nano - request.start_time_unix_nano == pytest.approx(999e9)


def test_what_never_ran_was_in_the_queue_until_it_ended(collector: _Collector) -> None:
    traces, record = Traces(), Record("it", "POST", "/v1/completions", total_s=4.0)
    arrived_s, ended_s = record.began_s + 1, record.began_s + 3
    record.works.append(Work("letters", "abort", 0, 0, arrived_s, None, None, ended_s))
    traces.add(record)
    traces.close()
    lengths = {s.name: s.end_time_unix_nano - s.start_time_unix_nano for s in collector.spans}
    expected = {"queue": 2e9, "generate": 0, "encode": 1e9, "POST /v1/completions": 4e9}
    assert lengths == pytest.approx(expected, abs=1000)


def test_a_collector_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", place)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "5")
        monkeypatch.setattr("service.traces._LAST_WORDS_S", 0.2)
        traces = Traces()
        traces.add(Record("it", "POST", "/v1/completions", total_s=4.0))
        began_s = time.monotonic()
        traces.close()
        assert time.monotonic() - began_s < 4  # the exporter would have waited for five
        left = set(threading.enumerate()) - before
        assert left  # which still wait, and would keep a process that ends from ending
        assert all(thread.daemon for thread in left)
        # Whom nobody answers tries again after times at random, and a test of strategies hears of
        # whoever draws one.
        asked, _ = silent.accept()
        with asked:
            asked.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    for thread in threading.enumerate():
        if thread.name.startswith("OtelBatch"):
            thread.join(20)
            assert not thread.is_alive()


def test_traces_without_their_packages_are_a_bad_setting(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service.settings, "distributions", lambda name: iter(()))
    assert settings(artifacts).traces is False
    with pytest.raises(ValidationError, match="comes with the role traces"):
        settings(artifacts, traces=True)
