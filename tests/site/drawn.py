"""What the service drew when the site was built: a sample of each model, for the site to draw
again, and the pictures of stored hands. `python -m tests.site.drawn FOLDER` writes both.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.service.serving import running, settings

_ARTIFACTS = Path(__file__).parents[2] / "artifacts"
_PATIENCE_S = 60.0  # other work on the machine is no reason to be refused
# Of each kind: where a sample is asked for, and the request but for the model.
_SAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "language": (
        "/v1/completions",
        {"prompt": "ROMEO:", "max_tokens": 1000, "temperature": 0.8, "seed": 7},
    ),
    "handwriting": (
        "/v1/handwriting",
        {"text": "What is served is what was trained.", "seed": 7, "format": "json"},
    ),
}


def draw(folder: Path) -> None:
    """Write `NAME.json` of every model that the site has, and `previews/NAME/HAND.svg`."""
    folder.mkdir(parents=True, exist_ok=True)
    with running(settings(_ARTIFACTS, max_wait_s=_PATIENCE_S)) as service:
        for model in service.client.get("/v1/models").json()["data"]:
            if model["kind"] in _SAMPLES:
                path, body = _SAMPLES[model["kind"]]
                request = body | {"model": model["id"]}
                answer = service.client.post(path, json=request)
                answer.raise_for_status()
                sample = {"runtime": model["runtime"], "request": request, "answer": answer.json()}
                (folder / f"{model['id']}.json").write_text(json.dumps(sample))
        for style in service.client.get("/v1/styles").json()["data"]:
            picture = service.client.get(style["preview"])
            picture.raise_for_status()
            previews = folder / "previews" / style["model"]
            previews.mkdir(parents=True, exist_ok=True)
            (previews / f"{style['id']}.svg").write_text(picture.text)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
