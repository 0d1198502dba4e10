"""The documents tell of everything there is, and of nothing that is gone."""

import argparse
import importlib
import inspect
import json
import math
import pkgutil
import re
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter
from pydantic import BaseModel

import service
from clients.command import main as evenkeel
from contract.manifests import read_manifest
from export.__main__ import _parser as export_parser
from lab import paper
from lab.__main__ import _parser as lab_parser
from lab.measured import page
from service.http.described import Answer
from service.settings import Settings
from service.state import Edge, _Origin

_ROOT = Path(__file__).parents[1]
_PAGES = sorted([_ROOT / "README.md", _ROOT / "CHANGELOG.md", *(_ROOT / "docs").glob("*.md")])
_CODE = ("contract", "models", "training", "export", "service", "lab", "bench", "clients")
_FOLDERS = (*_CODE, "tests", "docs")
_PARSERS = {"export": export_parser, "lab": lab_parser}
# Which part of docs/api.md tells of a request, or of all that a module of the service checks.
_TOLD_IN = {
    "StyleRequest": "/v1/styles",
    "WorkRequest": "POST /v1/completions",
    "service.text.schemas": "POST /v1/completions",
    "service.text.tokenizer": "Tokens",
    "service.ink.schemas": "POST /v1/handwriting",
    "service.reader.schemas": "POST /v1/read",
    "ReaderOpening": "/v1/online",
    "ReaderSaid": "/v1/online",
    "service.text.online": "/v1/online",
    "service.ink.online": "/v1/online",
    "service.http.messages": "/v1/online",
    "service.http.online": "/v1/online",
}


def _text(name: str) -> str:
    return (_ROOT / name).read_text()


def _every_page() -> str:
    return "\n".join(path.read_text() for path in _PAGES)


def _code(text: str) -> str:
    """What stands in a document as code, in blocks or within a line, a line each."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.S | re.M)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    return "\n".join([*blocks, *re.findall(r"`([^`]+)`", rest)])


def _part(text: str, heading: str) -> str:
    """A second-level part of a document by its heading."""
    return dict(re.findall(r"^## `?(.*?)`?\n(.*?)(?=^## |\Z)", text, re.S | re.M))[heading]


def _rows(text: str) -> list[list[str]]:
    """The cells of every line of every table; an escaped `|` ends none."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[c.strip() for c in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines]


def _service_modules() -> Iterator[object]:
    for module in pkgutil.walk_packages(service.__path__, "service."):
        yield importlib.import_module(module.name)


def _routes() -> set[str]:
    """Method and path of every route that a router of the service has; names of parameters do not
    count."""
    routers = [r for m in _service_modules() for r in vars(m).values() if isinstance(r, APIRouter)]
    found = set()
    for route in (route for router in routers for route in router.routes):
        for method in (getattr(route, "methods", None) or {"WEBSOCKET"}) - {"HEAD"}:
            found.add(f"{method} {re.sub('{.*?}', '{}', route.path)}")
    return found


def _requests() -> dict[str, set[str]]:
    """The fields of all requests that a part of docs/api.md has to tell of."""
    fields: dict[str, set[str]] = {}
    for module in _service_modules():
        for model in vars(module).values():
            if _is_request(model) and model.__module__ == module.__name__:
                part = _TOLD_IN.get(model.__name__) or _TOLD_IN.get(module.__name__)
                assert part, f"which part of docs/api.md tells of {model}?"
                fields.setdefault(part, set()).update(model.model_fields)
    return fields


def _is_request(found: object) -> bool:
    """Of the pydantic classes of the service all but answers, settings and what tokens hold."""
    if not inspect.isclass(found) or not issubclass(found, BaseModel):
        return False
    return bool(found.model_fields) and not issubclass(found, (Answer, Edge, Settings, _Origin))


def _fields_told(part: str) -> set[str]:
    """What stands in the first column of the tables of fields."""
    told: set[str] = set()
    inside = False
    for first, *_ in _rows(_part(_text("docs/api.md"), part)):
        inside = first == "field" or (inside and first != "route")
        told |= set(re.findall(r"`(\w+)`", first)) if inside else set()
    return told


def _verbs(command: str) -> set[str]:
    actions = _PARSERS[command]()._actions
    choices = [a.choices for a in actions if isinstance(a, argparse._SubParsersAction)]
    return set(choices[0])


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", _text("Makefile"), re.M))


def test_every_setting_stands_with_its_default_and_meaning() -> None:
    expected = []
    for name, info in Settings.model_fields.items():
        default = "none" if info.default is None else f"`{info.default}`"
        expected.append([f"`EVENKEEL_{name.upper()}`", default, info.description])
    part = _part(_text("docs/commands.md"), "Settings of the service")
    assert _rows(part)[2:] == expected


def test_every_route_is_told_and_none_that_is_gone() -> None:
    told = set()
    for method, path in re.findall(r"`(GET|POST) (/[^`]*)`", _text("docs/api.md")):
        told.add(f"{method} {re.sub('{.*?}', '{}', path)}")
    assert "WEBSOCKET /v1/online" in _routes()
    assert told == _routes() - {"WEBSOCKET /v1/online"} | {"GET /"}


def test_no_document_tells_of_a_path_that_is_gone() -> None:
    paths = {route.partition(" ")[2] for route in _routes()}
    told = re.findall(r"/v1/[\w/{}.]*[\w}]", _code(_every_page()))
    assert len(told) > 10
    assert {re.sub("{.*?}", "{}", path) for path in told} <= paths


@pytest.mark.parametrize("part", sorted(set(_TOLD_IN.values())))
def test_every_field_of_a_request_is_told_and_none_that_is_gone(part: str) -> None:
    told, fields = _fields_told(part), _requests()[part]
    keys = set(re.findall(r'"(\w+)"', _part(_text("docs/api.md"), part)))  # of a field's own fields
    assert told <= fields
    assert fields <= told | keys


@pytest.mark.parametrize("command", sorted(_PARSERS))
def test_every_verb_is_told_and_none_that_is_gone(command: str) -> None:
    table = set(re.findall(rf"\| `\S+ -m {command} (\w+)", _text("docs/commands.md")))
    assert table == _verbs(command)
    anywhere = re.findall(rf"-m {command} ([a-z]\S*)", _every_page())
    assert {verb.rstrip("`,.:);") for verb in anywhere} <= _verbs(command)


def test_every_verb_of_the_command_is_told_and_none_that_is_gone() -> None:
    verbs = {command.callback.__name__ for command in evenkeel.registered_commands}
    assert set(re.findall(r"^\| `evenkeel (\w+)", _text("docs/commands.md"), re.M)) == verbs
    anywhere = re.findall(r"(?:^|[|(] )evenkeel ([a-z]+)", _code(_every_page()), re.M)
    assert set(anywhere) <= verbs


def test_every_make_target_is_told_and_none_that_is_gone() -> None:
    table = set(re.findall(r"^\| `make ([a-z-]+)`", _text("docs/commands.md"), re.M))
    assert table == _targets()
    anywhere = re.findall(r"(?:^|[ (])make ([a-z][a-z-]+)", _code(_every_page()), re.M)
    assert set(anywhere) <= _targets()


def test_every_variable_told_is_read_somewhere() -> None:
    files = [*_ROOT.glob("docker-compose*.yml"), *(p for f in _CODE for p in _paths(f, "py"))]
    read = {f"EVENKEEL_{name.upper()}" for name in Settings.model_fields}
    read |= set(re.findall(r"EVENKEEL_[A-Z_]+", "\n".join(path.read_text() for path in files)))
    assert set(re.findall(r"EVENKEEL_[A-Z_]*[A-Z]", _every_page())) <= read


def _paths(folder: str, suffix: str) -> Iterator[Path]:
    return (_ROOT / folder).rglob(f"*.{suffix}")


def test_every_module_that_is_to_be_run_exists() -> None:
    modules = re.findall(r"python -m ([\w.]+)", _every_page())
    assert "export" in modules
    for module in modules:
        path = _ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module


@pytest.mark.parametrize("path", _PAGES, ids=lambda path: path.name)
def test_every_file_named_exists(path: Path) -> None:
    place = rf"(?:^|[ (])((?:{'|'.join(_FOLDERS)})/[\w./*-]*)"
    named = re.findall(place, _code(path.read_text("utf-8")), re.M)
    gone = [name for name in named if not list(_ROOT.glob(name.rstrip("/.")))]
    assert gone == []


@pytest.mark.parametrize("path", _PAGES, ids=lambda path: path.name)
def test_every_link_leads_somewhere_and_is_shown_as_it_is_named(path: Path) -> None:
    assert _dead_links(path.read_text("utf-8"), path) == []
    # Markdown shows __main__ as a bold "main".
    assert re.findall(r"\[[^]`]*__[^]]*\]\(", path.read_text("utf-8")) == []


def _dead_links(text: str, path: Path) -> list[str]:
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    return [link for link in links if "://" not in link and not _leads(link, path)]


def _leads(link: str, path: Path) -> bool:
    name, _, anchor = link.partition("#")
    target = path.parent / name if name else path
    return target.exists() and (not anchor or anchor in _anchors(target.read_text()))


def _anchors(text: str) -> set[str]:
    """The headings as links spell them."""
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("path", _PAGES, ids=lambda path: path.name)
def test_every_table_has_as_many_cells_in_each_row(path: Path) -> None:
    assert _ragged(path.read_text("utf-8")) == []


def _ragged(text: str) -> list[str]:
    """The rows of tables with more or fewer cells than the row above."""
    found, above = [], 0
    for line in text.splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        if above and cells and cells != above:
            found.append(line)
        above = cells
    return found


def test_the_page_of_results_is_what_the_results_say() -> None:
    assert _text("docs/measured.md") == page.page(_ROOT), "run `make report`"


def test_every_shipped_model_stands_on_the_page_of_results_with_its_report() -> None:
    names = _artifacts_in_git()
    if not names:
        pytest.skip("this is no git repository")
    measured = _text("docs/measured.md")
    assert {row[0].strip("`") for row in _rows(_part(measured, "Models"))[2:]} == names
    assert set(re.findall("^### `(.*)`$", _part(measured, "Parity"), re.M)) == names


def _artifacts_in_git() -> set[str]:
    if shutil.which("git") is None:
        return set()
    command = ["git", "ls-files", "artifacts/*/manifest.json"]
    listed = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True).stdout
    return {Path(line).parent.name for line in listed.splitlines()}


def test_every_goal_of_speed_stands_on_the_page_of_results() -> None:
    runs = [
        json.loads(path.read_text()) for path in (_ROOT / page.RESULTS / "bench").glob("*.json")
    ]
    wanted = {goal["name"] for run in runs for goal in run["goals"]}
    assert "streamed, first byte, p99 at 95% of capacity" in wanted
    assert {row[0] for row in _rows(_part(_text("docs/measured.md"), "Goals"))[2:]} == wanted


def test_the_table_beside_the_paper_is_what_the_results_say() -> None:
    assert _text("docs/paper.md") == paper.page(_ROOT), "run `make report`"


def test_a_changed_result_changes_the_page(tmp_path: Path) -> None:
    for name in ("docs/results", "artifacts"):
        for path in (_ROOT / name).rglob("*.json"):
            (tmp_path / path.relative_to(_ROOT).parent).mkdir(parents=True, exist_ok=True)
            (tmp_path / path.relative_to(_ROOT)).write_text(path.read_text())
    assert page.page(tmp_path) == page.page(_ROOT)
    step = tmp_path / "docs/results/bench/step.json"
    content = json.loads(step.read_text())
    for row in content["rows"]["step"]:
        row["us_median"] += 1
    step.write_text(json.dumps(content))
    assert page.page(tmp_path) != page.page(_ROOT)


def test_readme_shows_the_six_rows_and_no_figure_of_its_own() -> None:
    readme, measured = _text("README.md"), _text("docs/measured.md")
    table = next(part for part in measured.split("\n\n") if part.startswith("| what | measured"))
    assert len(table.splitlines()) == 2 + 6
    assert table in readme
    figures = [bold for bold in re.findall(r"\*\*(.*?)\*\*", readme) if re.search(r"\d", bold)]
    assert len(figures) >= 4
    told = "".join(_part(measured, part) for part in ("In six rows", "Models", "Goals"))
    assert [figure for figure in figures if figure not in told] == []


def _measured(section: str, table: str, **row: Any) -> Callable[[str], float]:
    """The median of a column over the rows of a table of docs/results/bench that are so."""
    content = json.loads(_text(f"docs/results/bench/{section}.json"))["rows"][table]
    rows = [r for r in content if row.items() <= r.items()]
    return lambda column: statistics.median(r[column] for r in rows)


def test_how_many_replicas_it_takes_follows_from_what_was_measured() -> None:
    told = " ".join(_part(_text("docs/scaling.md"), "How many for how many").split())
    streams = {"clients": 32, "streamed": True, "lengths": "fixed"}
    exact, int8, plain = (
        _measured("http", "load", target=name, **streams)("bytes_per_s")
        for name in ("service", "service-int8", "plain")
    )
    step = {"model": "shakespeare", "threads": 2}
    whole, folded = (
        _measured("step", "step", side=side, **step)("us_median") for side in ("served", "folded")
    )
    graph = 1e6 / _measured("http", "in_process", rows=32)("bytes_per_s")
    rest = 1e6 / exact - graph
    folded_bytes_per_s = 1e6 / (rest + graph * folded / whole)

    def people(bytes_per_s: float) -> float:
        return bytes_per_s / 25 * 0.7

    def replicas(crowd: float, bytes_per_s: float) -> str:
        number = math.ceil(crowd / math.floor(people(bytes_per_s)))
        return f"{number:,}, {2 * number:,}"

    assert f"{exact:,.0f} bytes/s streamed" in told
    assert f"**{math.floor(people(exact))} a replica**" in told
    assert f"{graph:.1f} µs of it, the graph; {rest:.1f} µs are the rest" in told
    assert f"{folded:.0f} µs in place of {whole:.0f}" in told
    assert f"{people(folded_bytes_per_s):.0f} people a replica" in told
    assert f"{int8:,.0f} bytes/s: {math.floor(people(int8))} people a replica" in told
    for crowd in (1e3, 1e5, 1e6):
        sides = (replicas(crowd, side) for side in (exact, folded_bytes_per_s, int8))
        assert " | ".join(sides) in told
    assert f"{plain:,.0f} bytes/s for 32 clients" in told
    assert f"{math.ceil(1e6 / people(plain)):,} replicas for 10^6" in told
    line_ms = _measured("step", "line", threads=1)("ms_median")
    assert f"{line_ms:.0f} ms of a core alone" in told
    assert f"= {12e3 / line_ms * 0.7:.0f} pens a core" in told
    waiting = _measured("memory", "waiting")("mb_per_1000_waiting")
    two = _measured("memory", "resident", models=["shakespeare", "handwriting"])("resident_mb")
    assert f"waits takes {waiting:.0f} kB; two models {two:.0f} MB" in told


def test_a_step_on_a_gpu_stands_beside_what_was_measured() -> None:
    told = " ".join(_part(_text("docs/gpu.md"), "A step").split())
    took_us: dict[tuple[str, int], list[float]] = {}
    for row in json.loads(_text("docs/results/gpu-step.json"))["rows"]:
        took_us.setdefault((row["side"], row["chunk"]), []).append(row["p50_us"])

    def times(side: str, chunk: int) -> str:
        pairs = zip(took_us[side, chunk], took_us["served", chunk], strict=True)
        ratios = [ours / us if side == "cuda graph" else us / ours for us, ours in pairs]
        return f"{min(ratios):.1f} to {max(ratios):.1f} times"

    assert f"in a chunk the served step takes {times('cuda graph', 32)} as long" in told
    assert f"alone {times('cuda graph', 1)}" in told
    assert f"{times('eager', 32)} as fast in a chunk as PyTorch without" in told
    cpu_us = _measured("step", "step", model="lstm-512", threads=2, side="served")("us_median")
    assert f"[{cpu_us:.0f} µs](measured.md)" in told


@pytest.mark.parametrize("name", ["docs/paper.md", "lab/tasks/reader/README.md"])
def test_beside_errors_on_babi_it_is_told_what_of_the_test_stands_in_training(name: str) -> None:
    (case,) = json.loads(_text("docs/results/lab/reader.json"))["cases"].values()
    asked, repeated = case["data"]["test"], case["data"]["repeated"]
    told = " ".join(_text(name).split())
    assert f"{sum(repeated.values()):,} of the {asked:,} test questions" in told
    assert f"{repeated['qa4']} of the 1,000 of `qa4`" in told


def test_readme_has_the_checksum_of_the_text_shakespeare_learned() -> None:
    manifest = read_manifest(_ROOT / "artifacts" / "shakespeare")
    assert manifest.provenance["data"]["sha256"] in _text("README.md")


def test_a_broken_table_and_a_dead_link_are_found() -> None:
    assert _ragged("| a | b |\n|---|---|\n| 1 | 2 \\| 3 |\n| max |x| | 2 |") == ["| max |x| | 2 |"]
    links = "[a](docs/api.md) [b](docs/gone.md) [c](docs/api.md#the-rest) [d](docs/api.md#gone)"
    assert _dead_links(links, _ROOT / "README.md") == ["docs/gone.md", "docs/api.md#gone"]
