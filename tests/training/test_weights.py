"""Weights that a model is lent: it has its own again, whenever a signal comes."""

import signal
from collections.abc import Iterable, Iterator

import pytest
import torch
from torch import Tensor, nn

from training.weights import Weights


class _Halfway(dict[str, Tensor]):
    """Tensors by name. A signal comes when the first has been taken."""

    def items(self) -> Iterator[tuple[str, Tensor]]:  # type: ignore[override]
        for number, item in enumerate(super().items()):
            if number == 1:
                signal.raise_signal(signal.SIGINT)
            yield item


@pytest.mark.parametrize("comes", ["as they are lent", "as they are given back"])
def test_a_signal_leaves_a_model_its_own_weights(
    monkeypatch: pytest.MonkeyPatch, comes: str
) -> None:
    """Those a training saves then are what it goes on from."""
    weights = Weights(nn.Linear(2, 2), blend=0.0)
    own = weights.copied(weights.parameters)
    others = {name: torch.zeros_like(tensor) for name, tensor in own.items()}
    if comes == "as they are lent":
        others = _Halfway(others)
    else:
        whole = Weights.copied

        def copied(weights: Weights, names: Iterable[str]) -> dict[str, Tensor]:
            return _Halfway(whole(weights, names))

        monkeypatch.setattr(Weights, "copied", copied)
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), weights.swapped_in(others):
            pass
    finally:
        signal.signal(signal.SIGINT, usual)
    monkeypatch.undo()
    found = weights.copied(weights.parameters)
    assert all(torch.equal(tensor, own[name]) for name, tensor in found.items())


def test_the_best_weights_stay_what_they_were_and_so_do_their_running_statistics() -> None:
    """Those of batch norm go on being learned, in place."""
    model = nn.BatchNorm1d(3)
    weights = Weights(model, blend=0.0)
    weights.best = weights.averaged_model()
    kept = {name: tensor.clone() for name, tensor in weights.best.items()}
    model(torch.arange(12.0).view(4, 3))
    with torch.no_grad():
        model.weight.mul_(2)
    weights.average_in(100, 0.5)
    now = weights.averaged_model()
    for name in ("running_mean", "running_var", "weight"):
        assert torch.equal(weights.best[name], kept[name]), name
        assert not torch.equal(now[name], kept[name]), name
