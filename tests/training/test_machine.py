"""Which kernels training takes on which machine."""

import platform
from collections.abc import Iterator

import pytest
import torch

from training.machine import use_fast_float32


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = torch.backends.mkldnn.matmul.fp32_precision
    torch.backends.mkldnn.matmul.fp32_precision = "none"
    yield
    torch.backends.mkldnn.matmul.fp32_precision = before


@pytest.mark.parametrize(
    ("machine", "amx", "set_"),
    [
        ("x86_64", False, True), ("AMD64", False, True), ("x86_64", True, False),
        ("aarch64", False, False), ("arm64", False, False),
    ],
)  # fmt: skip
def test_float32_stays_float32(
    monkeypatch: pytest.MonkeyPatch, machine: str, amx: bool, set_: bool
) -> None:
    """The setting allows bfloat16, which only x86 without AMX does not take it for."""
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_tile": amx})
    use_fast_float32()
    assert (torch.backends.mkldnn.matmul.fp32_precision == "bf16") == set_
