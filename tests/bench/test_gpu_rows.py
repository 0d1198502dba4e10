"""Rows of a GPU: each is of the provider, the recipe and the load that it names."""

import argparse
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from torch import nn

from bench import gpu_http, gpu_step, gpu_training
from bench.gpu_training import GpuTrainingRow
from bench.rows import Load, LoadRow, Window, summarise
from bench.target import SERVERS, Target
from export.results import machine
from service.engine.runtime import Runtime


def test_a_server_of_each_provider_has_every_load_in_each_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, seconds_of = list[str](), set[float]()

    @contextmanager
    def launch(name: str, *, settings: dict[str, str]) -> Iterator[Target]:
        started.append(settings["EVENKEEL_PROVIDER"])
        yield Target(name, 1, server=SERVERS[name])

    def opened(url: str) -> Any:
        return nullcontext(io.StringIO(json.dumps({"data": [{"runtime": started[-1]}]})))

    def load(target: Target, *, clients: int, seconds: float, streamed: bool) -> LoadRow:
        seconds_of.add(seconds)
        asked = Load(target.name, "closed", clients, None, streamed, "fixed")
        return summarise(asked, [], Window(0.0, 1.0), 0.0)

    monkeypatch.setattr(gpu_http, "choose_runtime", lambda _: None)
    monkeypatch.setattr(gpu_http, "launch", launch)
    monkeypatch.setattr(gpu_http, "unproxied", SimpleNamespace(open=opened))
    monkeypatch.setattr(gpu_http.http, "load", load)
    gpu_http.main(["--out", str(tmp_path / "new"), "--seconds", "2.5"])
    content = json.loads((tmp_path / "new" / "gpu-http.json").read_text())
    rows = content["rows"]
    assert content["machine"] == machine()
    assert content["command"].startswith("python -m bench.gpu_http --out ")
    assert [(row["runtime"], row["clients"], row["streamed"]) for row in rows] == [
        *product(("cuda", "cpu"), (1, 32), (False, True))
    ] * 2
    assert seconds_of == {2.5}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_each_recipe_is_trained_on_what_is_told_and_with_its_own_rows_too(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a CPU needs is no result of a GPU."""
    asked, found = list[tuple[Any, ...]](), list[GpuTrainingRow]()

    def measure(recipe: str, *given: Any) -> Iterator[GpuTrainingRow]:
        asked.append((recipe, *given))
        found.append(GpuTrainingRow(recipe, given[-1] or 64, "graph", 1.0, 2.0, len(found), 3))
        return iter(found[-1:])

    monkeypatch.setattr(gpu_training, "measure", measure)
    monkeypatch.setattr(gpu_training, "on_device", argparse.ArgumentParser.parse_args)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "the one there is")
    out = tmp_path / "new"
    told = ["--device", device, "--out", str(out), "--updates", "3", "--handwriting", "pens"]
    gpu_training.main([*told, "--rows", "7"])
    recipes = (("shakespeare", "pydoc"), ("handwriting", "pens"))
    assert asked == [(*recipe, 3, device, rows) for recipe in recipes for rows in (None, 7)]
    assert [file.name for file in out.glob("*")] == ["gpu-training.json"] * (device == "cuda")
    if device == "cuda":
        content = json.loads((out / "gpu-training.json").read_text("utf-8"))
        assert (content["device"], content["machine"]) == ("the one there is", machine())
        assert content["rows"] == [asdict(row) for row in found]


def test_pytorch_on_a_gpu_has_no_more_to_do_than_what_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Usual options leave the filters of the sampler out; and what is served is on that GPU."""
    filtered, providers = list[bool](), list[str]()
    sample = SimpleNamespace(
        symbols=SimpleNamespace(shape=(4, 2)), drawn=lambda: {}, rows=lambda: {}
    )

    class Runner:
        def __init__(self, _: object, runtime: Runtime) -> None:
            providers.append(runtime.provider)

        def load(self, *_: object) -> None: ...

        def run(self, *_: object, filtered: bool) -> None:
            seen.append(filtered)

    def step(_: nn.Module, *, filtered: bool) -> None:
        seen.append(filtered)

    seen = filtered
    kind = SimpleNamespace(sample=lambda *_, **__: sample, step=step)
    monkeypatch.setattr(gpu_step, "KINDS", {"k": kind})
    monkeypatch.setattr(gpu_step, "load_model", lambda *_: nn.Identity())
    monkeypatch.setattr(gpu_step, "SlotRunner", Runner)
    monkeypatch.setattr(gpu_step, "_Loop", lambda *_: SimpleNamespace(eager=lambda: None))
    monkeypatch.setattr(gpu_step, "_WARM_UP", 0)
    artifact: Any = SimpleNamespace(
        name="m", folder=None, manifest=SimpleNamespace(kind="k"), initial_state=dict
    )
    list(gpu_step.measure(artifact, 2, 4, 4, "cpu"))
    assert seen == [False, False]
    gpu_step._served(artifact, cast(Any, sample), "cuda")
    assert providers == ["cpu", "cuda"]
