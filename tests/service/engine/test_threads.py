"""How many threads a model gets: as many as make it faster."""

from pathlib import Path

import pytest

from service.artifact import Artifact, load_artifact
from service.engine.runtime import Runner, Runtime
from service.engine.threads import fastest_runner
from tests.service.serving import running, settings

_RUNTIME = Runtime("cpu", "scan", 0, 4)


class Watch:
    """Says how long the runner of the first, second, ... measurement takes."""

    def __init__(self, *seconds: float) -> None:
        self._left = list(seconds)
        self.runners: list[Runner] = []

    def __call__(self, artifact: Artifact, runner: Runner) -> float:
        self.runners.append(runner)
        return self._left.pop(0)


@pytest.mark.parametrize(
    ("cores", "seconds", "threads"),
    [
        (1, (1.0,), 1),
        (2, (1.0, 0.7), 2),
        (2, (1.0, 1.4), 1),
        (2, (1.0, 0.99), 1),  # not worth a core
        (6, (1.0, 0.7, 0.5, 0.4), 6),
        (64, (1.0, 0.7, 0.6, 0.9), 4),
    ],
)
def test_threads_are_added_while_they_make_it_faster(
    artifacts: Path, cores: int, seconds: tuple[float, ...], threads: int
) -> None:
    artifact, watch = load_artifact(artifacts / "letters"), Watch(*seconds)
    runner, runtime = fastest_runner(artifact, _RUNTIME, cores=cores, step_s=watch)
    assert runtime.threads == threads
    assert runner is watch.runners[-1 if threads == cores else -2]
    assert len(watch.runners) == len(seconds)


def test_a_measured_model_says_its_threads_and_answers_as_any_other(artifacts: Path) -> None:
    request = {"prompt": "a", "max_tokens": 40, "seed": 3}
    with running(settings(artifacts, threads=1)) as one:
        expected = one.text(**request)
        assert one.client.get("/v1/models/letters").json()["threads"] == 1
    with running(settings(artifacts, threads=0)) as measured:
        assert measured.text(**request) == expected
        for model in measured.client.get("/health").json()["models"].values():
            assert model["threads"] >= 1
