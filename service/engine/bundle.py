"""Arrays that a device and its host exchange, as one copy."""

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
    step (docs/gpu.md): all ports go in one, and those of steps that follow one another with them.
    `host` has an array `(times, width, ...)` by port.
    """

    def __init__(self, ports: Sequence[tuple[Port, int]], width: int, device: str) -> None:
        """Room for each port so many times, each time `width` rows of it, on a `device` of
        onnxruntime's."""
        blank = [(p.name, n, np.full((width, *p.shape), p.initial, p.dtype)) for p, n in ports]
        apart = [-(-array.nbytes // _ALIGNED) * _ALIGNED for _, _, array in blank]
        ends = list(accumulate(n * size for (_, n, _), size in zip(blank, apart, strict=True)))
        self._bytes = np.zeros(ends[-1], np.uint8)
        self.host: Arrays = {}
        self._offsets: dict[str, range] = {}
        for (name, times, array), size, end in zip(blank, apart, ends, strict=True):
            begin, strides = end - times * size, (size, *array.strides)
            view = np.ndarray((times, *array.shape), array.dtype, self._bytes.data, begin, strides)
            view[:] = array
            self.host[name] = view
            self._offsets[name] = range(begin, end, size)
        self._device = ort.OrtValue.ortvalue_from_numpy(self._bytes, device, 0)
        self._where = device

    def place(self, name: str, time: int = 0) -> tuple[str, int, Any, tuple[int, ...], int]:
        """Where a port is the `time`-th time, as `IOBinding.bind_input` and `bind_output` want
        it."""
        array, offset = self.host[name][time], self._offsets[name][time]
        address = self._device.data_ptr() + offset
        return self._where, 0, array.dtype.type, array.shape, address

    def send(self) -> None:
        """What is on the host to the device."""
        self._device.update_inplace(self._bytes)

    def fetch(self) -> None:
        """What is on the device to the host."""
        self._bytes[:] = self._device.numpy()
