"""What is measured is what its result says, whoever measures it."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from bench import in_process
from bench.peers.launch import end_in_order, launch
from bench.target import BYTES, MODEL, PROMPT, Server
from contract.golden import Arrays
from service.settings import Settings

_FILES = Server(("http.server", "{port}", "--bind", "127.0.0.1"), health="/LICENSE")


def test_a_server_has_the_settings_of_a_measurement_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENKEEL_KEYS", "keys.toml")
    monkeypatch.setenv("EVENKEEL_SLOTS", "2")
    asked = {"EVENKEEL_SLOTS": "3", "EVENKEEL_LOG_LEVEL": "info"}
    with launch("files", server=_FILES, artifacts=tmp_path, settings=asked) as target:
        had = psutil.Process(target.pid).environ()
    assert had.get("EVENKEEL_KEYS") is None
    assert asked.items() <= had.items()
    # A peer has the very model that the service has.
    folders = had["EVENKEEL_ARTIFACTS"], had["PEER_ARTIFACT"]
    assert folders == (str(tmp_path), str(tmp_path / MODEL))
    assert had["EVENKEEL_PORT"] == had["PEER_PORT"] == str(target.port)
    # Nor does it report to its maker.
    assert (had["BENTOML_DO_NOT_TRACK"], had["ORT_DISABLE_TELEMETRY"]) == ("true", "1")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_was_launched_ends_with_whoever_measures_it(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Also where the signal comes twice, as from a shell or `make` and from the terminal."""
    program = (
        "import signal, time\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # these tests may run under `nohup`
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # or in the background
        "from bench.peers import launch\n"
        "from bench.target import Server\n"
        "def end(process, usual=launch.end):\n"
        f"    signal.raise_signal({int(number)})\n"
        "    usual(process)\n"
        "launch.end = end\n"
        "def measure():\n"
        f"    with launch.launch('files', server={_FILES!r}) as target:\n"
        "        print(target.pid, flush=True)\n"
        "        time.sleep(60)\n"
        "launch.end_in_order(measure)\n"
    )
    command, told = [sys.executable, "-c", program], tmp_path / "told"
    with (
        told.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as measuring,
    ):
        assert measuring.stdout is not None
        pid = int(measuring.stdout.readline())
        measuring.send_signal(number)
    left = psutil.pid_exists(pid)
    if left:
        os.kill(pid, signal.SIGKILL)
    assert (left, measuring.returncode) == (False, 128 + number)
    assert told.read_text().endswith("\n\ninterrupted\n")


@pytest.mark.parametrize(
    ("ends", "code", "told"),
    [("", 1, b""), ("signal.raise_signal(signal.SIGINT)", 128 + signal.SIGINT, b"\ninterrupted\n")],
    ids=["whole", "interrupted"],
)
def test_a_reader_who_has_enough_ends_a_measurement_without_a_word(
    ends: str, code: int, told: bytes
) -> None:
    """As of `python -m bench … | head -1`, and of `| tee`, which the same Ctrl-C ends."""
    program = (
        "import signal\n"
        "from bench.peers.launch import end_in_order\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def measure():\n"
        "    print('a row')\n"
        f"    {ends}\n"
        "end_in_order(measure)\n"
    )
    read, written = os.pipe()
    os.close(read)
    buffered = os.environ | {"PYTHONUNBUFFERED": ""}  # or nothing would be left for the end
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, env=buffered, stdout=written, stderr=subprocess.PIPE)
    os.close(written)
    assert (ended.returncode, ended.stderr) == (code, told)


def test_a_signal_that_is_ignored_ends_no_measurement() -> None:
    """As under `nohup`, or in the background of a shell."""
    program = (
        "import signal\n"
        "from bench.peers.launch import end_in_order\n"
        "ignored = signal.SIGINT, signal.SIGTERM, signal.SIGHUP\n"
        "for number in ignored:\n"
        "    signal.signal(number, signal.SIG_IGN)\n"
        "def measure():\n"
        "    for number in ignored:\n"
        "        signal.raise_signal(number)\n"
        "    print('a row')\n"
        "end_in_order(measure)\n"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "a row\n", "")


def test_a_server_that_does_not_start_is_told_of_in_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def measure() -> None:
        with launch("files", server=Server(("json.tool", "--nothing")), artifacts=tmp_path):
            pytest.fail("it serves nothing")

    with pytest.raises(SystemExit) as ended:
        end_in_order(measure)
    *_, why, line = capfd.readouterr().err.splitlines()
    assert ended.value.code == 1
    assert "unrecognized arguments" in why
    assert line == "error: files ended with 2 before it was ready"


def test_every_command_that_measures_ends_in_order() -> None:
    """Peers are servers, and end as these do."""
    folders = Path("bench"), Path("tests/reliability"), Path("tests/scale")
    texts = {path: path.read_text("utf-8") for f in folders for path in f.rglob("*.py")}
    begun = {path for path, text in texts.items() if 'if __name__ == "__main__":' in text}
    assert {p.name for p in begun if "\n    end_in_order(" not in texts[p]} == {
        "plain_peer.py", "litserve_peer.py", "faulty.py",
    }  # fmt: skip


def test_in_process_chunks_are_those_of_the_server(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_process, "_LEAST_S", 0)
    monkeypatch.setenv("EVENKEEL_CHUNK_STEPS", "5")
    usual = Settings.model_fields["chunk_steps"].default
    assert in_process.InProcess(artifacts, "letters").measure(1).chunk == usual


def test_completions_in_process_are_timed_warm_and_whole(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three rows of 200 bytes in a quarter of a second, until there were 1.5 s of them; one row has
    a short chunk first."""
    monkeypatch.setattr(in_process, "_SETTLE_S", 0)
    monkeypatch.setattr(in_process, "usable_cores", lambda: 3)
    session, ran = in_process.InProcess(artifacts, "letters"), list[list[int]]()

    times = iter([9.0, 0.375, 0.25, 0.125, 0.25, 0.25, 0.25])

    def run(rows: int, chunks: list[Arrays], row: Arrays) -> float:
        ran.append([len(chunk["force"]) for chunk in chunks])
        return next(times, 1.0)

    monkeypatch.setattr(session, "_run", run)
    first, chunk = (Settings.model_fields[n].default for n in ("first_chunk_steps", "chunk_steps"))
    told = session.measure(3)
    assert told == in_process.InProcessRow("letters", 3, 3, chunk, chunk, 6, 250.0, 2400.0)
    assert sum(ran[0]) == len(PROMPT) + BYTES
    assert set(ran[0][:-1]) == {chunk}
    assert session.measure(1).first_chunk == ran[-1][0] == first
    assert set(ran[-1][1:-1]) == {chunk}


def test_a_run_in_process_is_timed_with_the_states_that_it_begins_from(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row from its own, by the graph that a request with usual options takes."""
    session = in_process.InProcess(artifacts, "letters")
    now_s, did = [0.0], list[tuple[Any, ...]]()

    def passes(seconds: float, *what: Any) -> None:
        now_s[0] += seconds
        did.append(what)

    runner = SimpleNamespace(
        load=lambda slot, state: passes(1.0, "load", slot),
        run=lambda slots, *_, filtered: passes(10.0, "run", list(slots), filtered),
    )
    monkeypatch.setattr(session, "_runner", runner)
    monkeypatch.setattr(in_process, "time", SimpleNamespace(perf_counter=lambda: now_s[0]))
    assert session._run(3, [{}, {}], {}) == 23.0
    loads = [("load", slot) for slot in range(3)]
    assert did == [*loads, *[("run", [0, 1, 2], False)] * 2]
