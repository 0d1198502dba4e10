"""What processes that train together share, as each of them sees it."""

import os
import signal
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from training.group import Group, among_others
from training.machine import Terminated, terminated_as_interrupted

_BATCH = torch.arange(12.0).reshape(6, 2)


class _Two:
    """torch.distributed in one of two processes, whose rows are every second of the batch."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.everyone = [_BATCH[0::2], _BATCH[1::2]]  # what both have

    def is_initialized(self) -> bool:
        return True

    def get_world_size(self) -> int:
        return 2

    def get_rank(self) -> int:
        return self.rank

    def all_reduce(self, tensor: Tensor) -> None:
        tensor += tensor + 10  # what the other has

    def all_gather(self, parts: list[Tensor], mine: Tensor) -> None:
        assert torch.equal(mine, self.everyone[self.rank])
        for part, one in zip(parts, self.everyone, strict=True):
            part.copy_(one)

    def say(self, *both: tuple[float, ...]) -> None:
        self.everyone = [torch.tensor(one, dtype=torch.float64) for one in both]


@pytest.fixture(params=[0, 1])
def two(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> _Two:
    two = _Two(request.param)
    monkeypatch.setattr("training.group.distributed", two)
    return two


@pytest.fixture(autouse=True)
def _interrupted_by_ctrl_c() -> Iterator[None]:
    """Whatever another's library has made of SIGINT, or a shell whose job this is."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def group(two: _Two) -> Group:
    return Group(torch.device("cpu"))


def test_rows_that_are_gathered_are_in_the_order_they_were_parted_from(group: Group) -> None:
    (gathered,) = group.gather(group.part([_BATCH]))
    assert torch.equal(gathered, _BATCH)


def test_rows_of_a_resumed_run_lie_as_in_one_that_was_not_interrupted(group: Group) -> None:
    """The product of a matrix whose rows are not side by side has other bits."""
    (part,) = group.part([_BATCH])
    assert part.is_contiguous()


def test_an_average_is_the_mean_of_both(group: Group) -> None:
    tensors = [torch.tensor([2.0, 4.0]), torch.tensor([6.0])]
    group.average(iter(tensors))
    assert [tensor.tolist() for tensor in tensors] == [[7, 9], [11]]


def test_what_the_first_says_is_done_by_all(group: Group, two: _Two) -> None:
    two.say((1.0, 2.5, 0.0), (0.0, 9.0, 0.0))
    mine = [(True, 2.5), (False, 9.0)][group.rank]
    assert group.first_says(*mine) == (True, 2.5)
    group.interrupt_if_told()  # nobody was


@pytest.mark.parametrize("apart", [False, True])
def test_all_agree_where_nobody_is_apart_from_the_first(
    group: Group, two: _Two, apart: bool
) -> None:
    two.say((7.0,), (7.0 + apart,))
    assert group.agrees(7 + (apart and group.rank)) is not apart


@pytest.mark.parametrize(
    ("sent", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
@pytest.mark.parametrize("whom", [0, 1])
def test_who_is_interrupted_waits_until_all_are(
    group: Group, two: _Two, sent: signal.Signals, kind: type[KeyboardInterrupt], whom: int
) -> None:
    """Alone in the midst of an update, it would be waited for for ever."""
    two.say(*((0.0, 1.0, float(sent) * (whom == rank)) for rank in (0, 1)))
    waited = list[bool]()

    def train() -> None:
        with terminated_as_interrupted(), group.together():
            if group.rank == whom:
                os.kill(os.getpid(), sent)
            group.interrupt_if_told()  # the other does not know yet
            group.first_says(False, 1.0)
            waited.append(True)
            group.interrupt_if_told()

    with pytest.raises(kind) as ended:
        train()
    assert waited
    assert ended.type is kind


def test_an_interruption_that_no_update_follows_ends_what_comes_after(group: Group) -> None:
    done = list[bool]()

    def validate() -> None:
        with group.together():
            os.kill(os.getpid(), signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        validate()
    assert done


def test_processes_save_together_unless_one_of_them_failed(group: Group) -> None:
    assert group.shares(None)
    assert group.shares(Terminated())
    assert not group.shares(OSError("no space left on device"))


def test_who_trains_alone_saves_whatever_befell_it() -> None:
    assert Group(torch.device("cpu")).shares(OSError())


def test_another_process_that_has_ended_is_told_in_a_line() -> None:
    told = r"or one has ended; .*\(Connection reset\)$"
    with pytest.raises(ConnectionError, match=told), among_others():
        raise RuntimeError("Connection reset. This is typically caused by a bug.\nGLHF!")
    with pytest.raises(torch.OutOfMemoryError), among_others():
        raise torch.OutOfMemoryError("of this one")
