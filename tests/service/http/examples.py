"""The examples of `/openapi.json`, and how their answers are recorded from the shipped models:

.venv/bin/python -m tests.service.http.examples
"""

import json
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from tests.service.serving import Service, running, settings

_ROOT = Path(__file__).parents[3]
_LONGEST_TEXT, _LONGEST_LIST = 100, 3
_SHOWN_EVENTS = 2  # at either end of a stream

Example = dict[str, Any]


def files() -> dict[Path, dict[str, dict[str, Example]]]:
    """Every file of examples: by route, by name."""
    return {
        p: json.loads(p.read_text()) for p in sorted((_ROOT / "service").rglob("examples.json"))
    }


def administrator(service: Service) -> TestClient:
    """Somebody on the service's own machine, who may change what it serves."""
    client = TestClient(service.app, client=("127.0.0.1", 1))
    client.portal = service.client.portal  # one event loop for both
    return client


def ask(client: TestClient, route: str, example: Example, state: str, **names: str) -> Any:
    """The answer to an example, some of its names replaced; `state` is a token that is good."""
    method, path = route.split(" ")
    parameters = {n: names.get(v, v) for n, v in example.get("parameters", {}).items()}
    body = example.get("body")
    if body is not None:
        body = {n: names.get(v, v) if isinstance(v, str) else v for n, v in body.items()}
        body |= {"state": state} if "state" in body else {}
    asked = {n: v for n, v in parameters.items() if f"{{{n}}}" not in path}
    return client.request(method, path.format(**parameters), params=asked, json=body)


def shortened(content: Any) -> Any:
    """As much of an answer as shows what it is."""
    if isinstance(content, str):
        return content if len(content) <= _LONGEST_TEXT else content[: _LONGEST_TEXT - 1] + "…"
    if isinstance(content, list):
        return [shortened(item) for item in content[:_LONGEST_LIST]]
    if isinstance(content, dict):
        return {name: shortened(value) for name, value in content.items()}
    return content


def events(stream: str) -> list[dict[str, str]]:
    """The fields of every event of a stream."""
    blocks = stream.removesuffix("\n\n").split("\n\n")
    return [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]


def _shown_stream(stream: str) -> str:
    shown = events(stream)
    if len(shown) > 2 * _SHOWN_EVENTS:
        shown = shown[:_SHOWN_EVENTS] + shown[-_SHOWN_EVENTS:]
    for event in shown:
        if event["data"] != "[DONE]":
            event["data"] = json.dumps(shortened(json.loads(event["data"])), ensure_ascii=False)
    return "".join(f"id: {event['id']}\ndata: {event['data']}\n\n" for event in shown)


def _record(client: TestClient, route: str, example: Example, state: str) -> None:
    answer = ask(client, route, example, state)
    kind = answer.headers["content-type"].partition(";")[0]
    example |= {"status": answer.status_code, "kind": kind}
    if kind == "application/json":
        example["answer"] = shortened(answer.json())
    elif kind == "text/event-stream":
        example["answer"] = _shown_stream(answer.text)
    elif kind != "image/png":
        example["answer"] = shortened(answer.text)


def main() -> None:
    """Ask the shipped models for every answer again."""
    with running(settings(_ROOT / "artifacts", allow_unproved=False)) as service:
        client = administrator(service)
        state = service.choice(model="shakespeare", max_tokens=1, return_state=True)["state"]
        for path, routes in files().items():
            for route, examples in routes.items():
                for example in examples.values():
                    moved = "state_policy" in example.get("body", {})
                    token = service.moved("shakespeare", state) if moved else state
                    _record(client, route, example, token)
            path.write_text(json.dumps(routes, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
