"""People at work on a running service, for Locust.

`docker compose --profile load up` runs it against the service of the compose file; by hand:
`locust --locustfile bench/locustfile.py --headless --host http://127.0.0.1:8000 --users 32
--run-time 60s --html load-report/report.html`. The image has this file alone, so it imports nothing
of the project. Users send their next request when they have an answer: a closed loop.
"""

import random
import time

from locust import FastHttpUser, between, task

MODEL = "shakespeare"
PROMPT = "ROMEO:"
BYTES = 200
SHORTEST, LONGEST = 16, 400
LINE = "What is served is what was trained."


class Writer(FastHttpUser):
    """Asks for text whole and streamed, and now and then for a line of handwriting."""

    wait_time = between(0.0, 0.1)
    connection_timeout = network_timeout = 60.0

    @task(4)
    def completion(self) -> None:
        """200 bytes at once."""
        self.client.post("/v1/completions", json=_body(BYTES), name="completion, 200 bytes")

    @task(4)
    def mixed(self) -> None:
        """16 to 400 bytes at once."""
        size = random.randint(SHORTEST, LONGEST)
        self.client.post("/v1/completions", json=_body(size), name="completion, 16 to 400 bytes")

    @task(4)
    def streamed(self) -> None:
        """200 bytes as they are written. Locust times the head of the answer; events are ours."""
        began_s = time.perf_counter()
        body = _body(BYTES) | {"stream": True}
        with self.client.post(
            "/v1/completions", json=body, name="stream, head", stream=True, catch_response=True
        ) as response:
            if response.status_code != 200:
                response.failure(f"status {response.status_code}")
                return
            # It waits for as many bytes as it is asked for: one, to know when the first one came.
            received = next(response.iter_content(1, decode_content=False), b"")
            first_s = time.perf_counter()
            received += b"".join(response.iter_content(1024, decode_content=False))
            if b"data: [DONE]" not in received or b'"error"' in received:
                response.failure("the stream broke off")
                return
            response.success()
        self._count("stream, first event", first_s - began_s, 0)
        self._count("stream, 200 bytes", time.perf_counter() - began_s, len(received))

    @task(1)
    def handwriting(self) -> None:
        """A line as SVG."""
        body = {"text": LINE, "seed": random.getrandbits(31)}
        self.client.post("/v1/handwriting", json=body, name="handwriting, a line")

    def _count(self, name: str, seconds: float, size: int) -> None:
        self.environment.events.request.fire(
            request_type="SSE", name=name, response_time=seconds * 1e3, response_length=size,
            exception=None, context={},
        )  # fmt: skip


def _body(size: int) -> dict[str, object]:
    seed = random.getrandbits(31)
    return {"model": MODEL, "prompt": PROMPT, "max_tokens": size, "seed": seed}
