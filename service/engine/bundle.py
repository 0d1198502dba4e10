"""Arrays that a device and its host exchange with every step, as one copy."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import onnxruntime as ort

from contract.golden import Arrays
from contract.manifest import Port

_ALIGNED = 256  # bytes: as CUDA aligns an allocation, so what kernels may count on


class Bundle:
    """The arrays of several ports in one piece of a device's memory, and the same on the host.

    A copy to or from a GPU is waited for whatever its size, and ten of them took longer than the
    step (docs/gpu.md): all ports go in one. `host` has an array `(width, ...)` by port, `places`
    what `IOBinding.bind_input` and `bind_output` want.
    """

    def __init__(self, ports: Sequence[Port], width: int, device: str) -> None:
        blank = {p.name: np.full((width, *p.shape), p.initial, p.dtype) for p in ports}
        ends = list(accumulate(-(-a.nbytes // _ALIGNED) * _ALIGNED for a in blank.values()))
        self._bytes = np.zeros(ends[-1], np.uint8)
        self._device = ort.OrtValue.ortvalue_from_numpy(self._bytes, device, 0)
        self.host: Arrays = {}
        self.places: dict[str, tuple[str, int, Any, tuple[int, ...], int]] = {}
        for (name, array), begin in zip(blank.items(), [0, *ends], strict=False):
            view = self._bytes[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
            view[:] = array
            self.host[name] = view
            address = self._device.data_ptr() + begin
            self.places[name] = (device, 0, array.dtype.type, array.shape, address)

    def send(self) -> None:
        """What is on the host to the device."""
        self._device.update_inplace(self._bytes)

    def fetch(self) -> None:
        """What is on the device to the host."""
        self._bytes[:] = self._device.numpy()
