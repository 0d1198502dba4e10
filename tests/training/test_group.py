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

    def is_initialized(self) -> bool:
        return True

    def get_world_size(self) -> int:
        return 2

    def get_rank(self) -> int:
        return self.rank

    def all_reduce(self, tensor: Tensor) -> None:
        tensor += tensor + 10  # what the other has

    def all_gather(self, parts: list[Tensor], mine: Tensor) -> None:
        assert torch.equal(mine, _BATCH[self.rank :: 2])
        for rank, part in enumerate(parts):
            part.copy_(_BATCH[rank::2])


@pytest.fixture(params=[0, 1])
def group(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Group:
    monkeypatch.setattr("training.group.distributed", _Two(request.param))
    return Group(torch.device("cpu"))


def test_rows_that_are_gathered_are_in_the_order_they_were_parted_from(group: Group) -> None:
    (gathered,) = group.gather(group.part([_BATCH]))
    assert torch.equal(gathered, _BATCH)


def test_an_average_is_the_mean_of_both(group: Group) -> None:
    tensor = torch.tensor([2.0, 4.0])
    group.average([tensor])
    assert tensor.tolist() == [7, 9]
