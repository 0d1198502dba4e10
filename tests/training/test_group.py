"""What processes that train together share, as each of them sees it."""

import pytest
import torch
from torch import Tensor

from training.group import Group

_BATCH = torch.arange(12.0).reshape(6, 2)


class _Two:
    """torch.distributed in one of two processes, whose rows are every second of the batch."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.first: list[float] = []  # what the first has to say

    def is_initialized(self) -> bool:
        return True

    def get_world_size(self) -> int:
        return 2

    def get_rank(self) -> int:
        return self.rank

    def all_reduce(self, tensor: Tensor) -> None:
        tensor += tensor + 10  # what the other has

    def broadcast(self, tensor: Tensor, source: int) -> None:
        assert source == 0
        if self.rank == 0:
            assert tensor.tolist() == self.first
        tensor.copy_(torch.tensor(self.first))

    def all_gather(self, parts: list[Tensor], mine: Tensor) -> None:
        assert torch.equal(mine, _BATCH[self.rank :: 2])
        for rank, part in enumerate(parts):
            part.copy_(_BATCH[rank::2])


@pytest.fixture(params=[0, 1])
def two(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> _Two:
    two = _Two(request.param)
    monkeypatch.setattr("training.group.distributed", two)
    return two


@pytest.fixture
def group(two: _Two) -> Group:
    return Group(torch.device("cpu"))


def test_rows_that_are_gathered_are_in_the_order_they_were_parted_from(group: Group) -> None:
    (gathered,) = group.gather(group.part([_BATCH]))
    assert torch.equal(gathered, _BATCH)


def test_an_average_is_the_mean_of_both(group: Group) -> None:
    tensors = [torch.tensor([2.0, 4.0]), torch.tensor([6.0])]
    group.average(iter(tensors))
    assert [tensor.tolist() for tensor in tensors] == [[7, 9], [11]]


def test_what_the_first_says_is_done_by_all(group: Group, two: _Two) -> None:
    two.first = [1.0, 2.5]
    mine = [(True, 2.5), (False, 9.0)][group.rank]
    assert group.first_says(*mine) == (True, 2.5)


@pytest.mark.parametrize("apart", ["nobody", "the other", "this one", "both"])
def test_all_agree_where_nobody_is_apart_from_the_first(
    group: Group, two: _Two, monkeypatch: pytest.MonkeyPatch, apart: str
) -> None:
    two.first = [7.0]
    other = apart in ("the other", "both")
    this = group.rank > 0 and apart in ("this one", "both")  # the first is not apart from itself
    monkeypatch.setattr(two, "all_reduce", lambda t: t.add_(other))
    assert group.agrees(8 if this else 7) is not (this or other)
