"""Continuous batching, seen from the calls an engine makes to its runner."""

from collections.abc import Callable

import pytest

from service.engine.runners import Runner
from service.errors import NotReady, Overloaded
from service.metrics import Metrics
from service.text.sampling import Sampling
from tests.service.engine.scripted import Call, Run, ScriptedRunner, engine, made_engine
from tests.service.serving import eventually

_SCRIPT = b"0123456789" * 60


def _at(number: int, action: Callable[[], object]) -> Callable[[int], None]:
    """Do something in the middle of one run."""

    def during(run: int) -> None:
        if run == number:
            action()

    return during


def test_requests_submitted_together_run_together() -> None:
    runner = ScriptedRunner(_SCRIPT)
    calls = [Call(max_tokens=20) for _ in range(3)]
    with engine(runner, chunk=8, first=3) as started:
        started.submit([call.job for call in calls])
        assert [call.result().text for call in calls] == [_SCRIPT[:20].decode()] * 3
    assert runner.runs == [Run((0, 1, 2), steps, False) for steps in (3, 8, 8, 1)]


def test_the_steps_of_all_rows_are_counted() -> None:
    metrics = Metrics()
    calls = [Call(max_tokens=20) for _ in range(3)]
    with engine(ScriptedRunner(_SCRIPT), metrics=metrics) as started:
        started.submit([call.job for call in calls])
        for call in calls:
            call.result()
    names = ("evenkeel_steps_total", "evenkeel_rows_per_run_sum", "evenkeel_rows_per_run_count")
    found = [metrics.registry.get_sample_value(name, {"model": "scripted"}) for name in names]
    assert found == [3 * 20, 3 * 4, 4]


def test_a_job_has_waited_until_its_first_run_and_no_longer() -> None:
    call = Call(max_tokens=40)
    with engine(ScriptedRunner(_SCRIPT)) as started:
        started.submit([call.job])
        call.result()
    first_run_s, first_output_s = call.job.first_run_s, call.job.first_output_s
    assert first_run_s is not None
    assert first_output_s is not None
    assert call.job.arrived_s < first_run_s < first_output_s


def test_who_comes_during_a_chunk_is_counted_as_waiting_before_it_ends() -> None:
    metrics, counted = Metrics(), []

    def join() -> None:
        started.submit([late.job])
        name = "evenkeel_requests_waiting"
        counted.append(metrics.registry.get_sample_value(name, {"model": "scripted"}))

    early, late = Call(), Call()
    with engine(ScriptedRunner(_SCRIPT, during=_at(0, join)), metrics=metrics) as started:
        started.submit([early.job])
        late.result()
    assert counted == [1]


def test_a_request_joins_between_two_chunks_and_starts_with_a_short_one() -> None:
    early, late = Call(max_tokens=30), Call(max_tokens=10)
    runner = ScriptedRunner(_SCRIPT, during=_at(2, lambda: started.submit([late.job])))
    with engine(runner, chunk=8, first=3) as started:
        started.submit([early.job])
        assert late.result().text == "0123456789"
        assert early.result().text == _SCRIPT[:30].decode()
    assert [run.slots for run in runner.runs] == [(0,), (0,), (0,), (0, 1), (0, 1), (0,)]
    assert [run.steps for run in runner.runs] == [3, 8, 8, 3, 7, 1]


def test_who_gave_way_to_a_first_byte_goes_on_after_it() -> None:
    early, late = Call(max_tokens=20), Call(max_tokens=20)
    runner = ScriptedRunner(_SCRIPT, width=1, during=_at(1, lambda: started.submit([late.job])))
    with engine(runner, chunk=8, first=3) as started:
        started.submit([early.job])
        assert early.result().text == late.result().text == _SCRIPT[:20].decode()
    first, its_rest, late_rest = [3, 8], [8, 1], [8, 8, 1]
    assert [run.steps for run in runner.runs] == [*first, 3, *its_rest, *late_rest]


@pytest.mark.parametrize("streamed", [True, False])
def test_an_answer_that_is_not_streamed_is_handed_over_once(streamed: bool) -> None:
    call = Call(max_tokens=30, streamed=streamed, logprobs=0)
    with engine(ScriptedRunner(_SCRIPT), chunk=8, first=3) as started:
        started.submit([call.job])
        result = call.result()
    assert (result.text, result.tokens) == (_SCRIPT[:30].decode(), _SCRIPT[:30])
    assert len(result.pieces) == (5 if streamed else 1)


def test_a_finished_request_makes_room_for_the_next() -> None:
    runner = ScriptedRunner(_SCRIPT, width=2)
    calls = [Call(max_tokens=5 * (i + 1)) for i in range(5)]
    with engine(runner) as started:
        started.submit([call.job for call in calls])
        for i, call in enumerate(calls):
            assert call.result().text == _SCRIPT[: 5 * (i + 1)].decode()
    assert {slot for run in runner.runs for slot in run.slots} == {0, 1}
    assert sum(len(run.slots) * run.steps for run in runner.runs) == 5 + 10 + 15 + 20 + 25


def test_a_long_prompt_leaves_nobody_out_of_a_chunk() -> None:
    writers = [Call(max_tokens=500) for _ in range(3)]
    reader = Call(prompt=b"p" * 10_000, max_tokens=1)
    runner = ScriptedRunner(_SCRIPT, during=_at(1, lambda: started.submit([reader.job])))
    with engine(runner, chunk=8, first=3) as started:
        started.submit([call.job for call in writers])
        results = [call.result() for call in writers]
        assert reader.result().text == "0"
    assert max(run.steps for run in runner.runs) <= 8
    writing = [run for run in runner.runs if 0 in run.slots]
    assert sum(run.slots == (0, 1, 2, 3) for run in writing) == len(writing) - 2 > 50
    for result in results:  # every chunk brought every neighbour a piece
        assert [len(piece.text) for piece in result.pieces] == [run.steps for run in writing]


def test_a_first_byte_beside_a_long_prompt_waits_for_one_chunk() -> None:
    reader, late = Call(prompt=b"p" * 10_000, max_tokens=1), Call(max_tokens=5)
    seen: list[bool] = []

    def during(run: int) -> None:
        if run == 20:
            started.submit([late.job])
        seen.append(late.job.started)

    runner = ScriptedRunner(_SCRIPT, during=during)
    with engine(runner, chunk=8, first=3) as started:
        started.submit([reader.job])
        assert late.result().text == "01234"
        reader.result()
    assert runner.runs[20].slots == (0,)
    assert runner.runs[21].slots == (0, 1)
    assert seen.index(True) == 22  # it had its first byte before the next chunk began


def test_a_full_queue_takes_all_jobs_of_a_request_or_none() -> None:
    refused: list[Overloaded] = []
    waiting = [Call(max_tokens=2) for _ in range(2)]
    more = [Call(max_tokens=2) for _ in range(2)]

    def fill() -> None:
        started.submit([call.job for call in waiting])
        with pytest.raises(Overloaded) as caught:
            started.submit([call.job for call in more])
        refused.append(caught.value)

    runner = ScriptedRunner(_SCRIPT, width=1, during=_at(0, fill))
    with engine(runner, queue=3) as started:
        first = Call(max_tokens=3)
        started.submit([first.job])
        for call in (first, *waiting):
            assert call.result().finish_reason == "length"
        started.submit([more[0].job])
        assert more[0].result().text == "01"
    assert refused[0].status == 503
    assert refused[0].retry_after_s == 1
    assert more[1].pieces.empty()


def test_a_cancelled_request_is_out_of_the_next_chunk() -> None:
    leaver, stayer = Call(max_tokens=100), Call(max_tokens=100)

    def leave() -> None:
        leaver.job.cancelled = True

    runner = ScriptedRunner(_SCRIPT, during=_at(3, leave))
    with engine(runner) as started:
        started.submit([leaver.job, stayer.job])
        assert stayer.result().written == 100
    assert [run.slots for run in runner.runs[:5]] == [(0, 1)] * 4 + [(1,)]
    assert all(run.slots == (1,) for run in runner.runs[4:])


def test_a_request_cancelled_in_the_queue_never_runs() -> None:
    runner = ScriptedRunner(_SCRIPT, width=1)
    calls = [Call(max_tokens=10) for _ in range(3)]
    calls[1].job.cancelled = True
    with engine(runner) as started:
        started.submit([call.job for call in calls])
        for call in calls[::2]:
            call.result()
    assert sum(run.steps for run in runner.runs) == 20
    assert calls[1].pieces.empty()


def test_a_request_cancelled_in_the_queue_makes_room_in_it() -> None:
    gone, late = Call(max_tokens=5), Call(max_tokens=5)

    def during(run: int) -> None:
        if run == 1:
            started.submit([gone.job])
        if run == 2:
            gone.job.cancelled = True
        if run == 4:
            started.submit([late.job])

    runner = ScriptedRunner(_SCRIPT, width=1, during=during)
    with engine(runner, queue=1) as started:
        first = Call(max_tokens=100)
        started.submit([first.job])
        assert first.result().finish_reason == "length"
        assert late.result().text == "01234"


def test_a_cancelled_request_frees_its_slot_during_the_replay_of_its_end() -> None:
    leaver = Call(max_tokens=100, stops=(b"34",), wants_state=True)  # its 3 is of the chunk before
    last = Call(max_tokens=3)

    def leave() -> None:
        leaver.job.cancelled = True
        started.submit([last.job])

    runner = ScriptedRunner(_SCRIPT, width=1, during=_at(2, leave))
    with engine(runner, chunk=2, first=2) as started:
        started.submit([leaver.job])
        assert last.result().text == "012"
    assert [run.steps for run in runner.runs[3:]] == [2, 1]  # of the last alone


def test_only_a_chunk_with_a_row_that_asks_for_it_takes_the_filtered_graph() -> None:
    runner = ScriptedRunner(_SCRIPT)
    with engine(runner, chunk=8, first=3) as started:
        calls = [Call(max_tokens=30), Call(max_tokens=11, sampling=Sampling(top_k=3))]
        started.submit([call.job for call in calls])
        for call in calls:
            call.result()
    assert [run.filtered for run in runner.runs] == [True, True, False, False, False]


def test_stopping_ends_what_runs_and_what_waits() -> None:
    runner = ScriptedRunner(_SCRIPT, width=1)
    endless = [Call(prompt=b"p" * 10**6), Call(prompt=b"p" * 10**6)]
    with engine(runner, problem=lambda: "its engine has ended") as started:
        started.submit([call.job for call in endless])
    for call in endless:
        error = call.result().pieces[-1].error
        assert isinstance(error, NotReady)
    with pytest.raises(NotReady, match="the service is stopping"):  # which no reload mends
        started.submit([Call().job])


def test_an_engine_that_breaks_leaves_nobody_waiting(caplog: pytest.LogCaptureFixture) -> None:
    def break_() -> None:
        raise RuntimeError("out of memory")

    runner = ScriptedRunner(_SCRIPT, width=1, during=_at(1, break_))
    with engine(runner) as started:
        calls = [Call(max_tokens=50) for _ in range(3)]
        started.submit([call.job for call in calls])
        for call in calls:
            assert call.result().pieces[-1].error is not None
        assert eventually(lambda: not started.ready)
        with pytest.raises(NotReady):
            started.submit([Call().job])
    assert "out of memory" in caplog.text


@pytest.mark.parametrize("verdict", [False, RuntimeError("no golden vectors")])
def test_an_engine_whose_model_is_not_attested_takes_nothing(verdict: object) -> None:
    asked: list[Runner] = []

    def attest(runner: Runner) -> bool:
        asked.append(runner)
        if isinstance(verdict, Exception):
            raise verdict
        return False

    runner = ScriptedRunner(_SCRIPT)
    refusing = made_engine(runner, attest=attest)
    refusing.start()
    try:
        assert eventually(lambda: asked == [runner])
        for jobs in ([Call().job], []):  # of which there are none where nothing is to run
            with pytest.raises(NotReady, match="the model has not been attested"):
                refusing.submit(jobs)
    finally:
        refusing.stop()
    assert runner.runs == []
