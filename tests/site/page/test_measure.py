"""How soon the site writes, and how much it fetches: printed, and kept with `--record`."""

import json
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.site.page.conftest import Shelf, SiteVisit

_RESULT = Path(__file__).parents[3] / "docs" / "results" / "site.json"
_ROUNDS = 3
_GOALS = {"first_stroke_s": 3.0, "line_of_30_s": 1.0, "fetched_mb": 16.0}
# Presses Write as soon as it may be pressed, and notes when the first stroke stands on the sheet.
_PRESS_AND_WATCH = """addEventListener("DOMContentLoaded", () => {
  const look = () => {
    const start = document.querySelector("#write-start");
    if (!window.pressed && start?.ariaDisabled === "false") {
      window.pressed = true;
      document.querySelector("#write-seed").value = 7;
      start.click();
    }
    if (document.querySelector("#write-sheet path")) window.firstStrokeMs = performance.now();
    else requestAnimationFrame(look);
  };
  look();
})"""
_WRITE = """async (body) => {
  const { reach } = await import(new URL("device/device.js", document.baseURI));
  const began = performance.now();
  const answer = await reach(body.text ? "/v1/handwriting" : "/v1/completions",
    { method: "POST", body: JSON.stringify(body) });
  const { usage } = await answer.json();
  return { ms: performance.now() - began, steps: usage.points ?? usage.completion_tokens };
}"""
_LINE = {
    "model": "handwriting",
    "text": "Steady as she goes, all hands!",
    "seed": 7,
    "format": "json",
}
_TEXT = {"model": "shakespeare", "prompt": "ROMEO:", "max_tokens": 500, "seed": 7}


def _share_of_a_core() -> float:
    """How much of a core this process gets: other work on the machine makes all times longer."""
    began_s, used_s = time.perf_counter(), time.process_time()
    while time.perf_counter() - began_s < 1:
        pass
    return (time.process_time() - used_s) / (time.perf_counter() - began_s)


def _used_s() -> float:
    """Seconds of processor time that the browser has used: what other work hardly changes."""
    times = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return sum(used.user + used.system for used in times)


def _visit(browser: Any) -> dict[str, float]:
    """The figures of one first visit."""
    shelf, context = Shelf(), browser.new_context()
    page = context.new_page()
    page.add_init_script(_PRESS_AND_WATCH)
    share = _share_of_a_core()
    visit = SiteVisit(page, shelf.origin)
    used_s = _used_s()
    visit.go("write")
    visit.until("() => window.firstStrokeMs")
    used_s = _used_s() - used_s
    first_s = page.evaluate("window.firstStrokeMs") / 1000
    fetched = sum(shelf.sent.values())
    visit.wait_done("write")
    page.evaluate(_WRITE, _TEXT)  # fetches its model, and warms up
    line, text = (
        min((page.evaluate(_WRITE, b) for _ in range(3)), key=lambda m: m["ms"])
        for b in (_LINE, _TEXT)
    )
    assert visit.errors == []
    context.close()
    shelf.close()
    return {
        "first_stroke_s": round(first_s, 2),
        "first_stroke_cpu_s": round(used_s, 2),
        "line_of_30_s": round(line["ms"] / 1000, 3),
        "us_a_point": round(1000 * line["ms"] / line["steps"]),
        "us_a_byte": round(1000 * text["ms"] / text["steps"]),
        "fetched_mb": round(fetched / 1e6, 2),
        "share_of_a_core": round(share, 2),
    }


def test_the_goals(browser: Any, request: pytest.FixtureRequest, capsys: Any) -> None:
    assert len(_LINE["text"]) == 30
    rounds = [_visit(browser) for _ in range(_ROUNDS)]
    best = {name: min(figures[name] for figures in rounds) for name in rounds[0]}
    result = {
        "command": "make site-check",
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "chromium": browser.version,
            "onnxruntime-web": _onnxruntime_web(),
            "python": platform.python_version(),
            "playwright": version("playwright"),
        },
        "goals": {name: {"goal": goal, "best": best[name], "met": best[name] <= goal}
                  for name, goal in _GOALS.items()},
        "rounds": rounds,
    }  # fmt: skip
    with capsys.disabled():
        for number, figures in enumerate(rounds, start=1):
            print(
                f"\nvisit {number}: " + ", ".join(f"{n} {v:g}" for n, v in figures.items()), end=""
            )
        print()
    if request.config.getoption("--record"):
        _RESULT.write_text(json.dumps(result, indent=1) + "\n")
    # What other work on a machine cannot change; times are printed, and kept.
    assert best["fetched_mb"] <= _GOALS["fetched_mb"]


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    return next(line.partition(": ")[2] for line in lines if line.startswith("model name"))


def _onnxruntime_web() -> str:
    index = Path(__file__).parents[3] / "build" / "site" / "device" / "ort" / "NOTICE"
    return index.read_text().split()[1].rstrip(",")
