"""Steps that follow one another on a device, with one copy each way for all of them.

Shapes: T steps, B rows that run, W slots.
"""

from collections.abc import Collection, Iterator

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from contract.golden import Arrays
from contract.manifest import Ports
from service.engine.bundle import Bundle
from service.engine.jobs import length

# A step goes from one set of the state's buffers to the other, and the next one back.
State = tuple[Bundle, Bundle]


class Stretch:
    """At most so many steps, each of which has inputs and outputs in a place of its own.

    A device is told of all of them at once and waited for at the last: waiting for each, and
    copying what each reads and writes, took a third of a step on a GPU (docs/gpu.md).
    """

    def __init__(self, ports: Ports, width: int, device: str, most: int) -> None:
        self.most = most
        # Places read either set of the state's buffers in turn. A stretch begins at the first or
        # the second of them, wherever the state is; so there is one more than there are steps.
        each, once = [(p, most + 1) for p in ports.step], [(p, 1) for p in ports.row]
        self._inputs = Bundle([*each, *once], width, device)
        self._outputs = Bundle([(p, most + 1) for p in ports.output], width, device)
        self._runs: dict[bool, tuple[ort.InferenceSession, list[_Place]]] = {}

    def bind(
        self,
        session: ort.InferenceSession,
        *,
        filtered: bool,
        state: State,
        absent: Collection[str],
        graph_ids: Iterator[int],
    ) -> None:
        """Have a session run here, which reads no input that is `absent`; each place is captured as
        a CUDA graph of its own number."""
        places = [
            _Place(self._binding(session, place, state, absent), next(graph_ids))
            for place in range(self.most + 1)
        ]
        self._runs[filtered] = (session, places)

    def _binding(
        self, session: ort.InferenceSession, place: int, state: State, absent: Collection[str]
    ) -> ort.IOBinding:
        before, after = state[place % 2], state[1 - place % 2]
        binding = session.io_binding()
        for name in before.host:
            binding.bind_input(name, *before.place(name))
            binding.bind_output(f"{name}_after", *after.place(name))
        for name, array in self._inputs.host.items():
            if name not in absent:
                binding.bind_input(name, *self._inputs.place(name, min(place, len(array) - 1)))
        for name in self._outputs.host:
            binding.bind_output(name, *self._outputs.place(name, place))
        return binding

    def run(
        self, side: int, slots: NDArray[np.integer], steps: Arrays, row: Arrays, *, filtered: bool
    ) -> Arrays:
        """Steps `(T, B, ...)` of some slots, T at most `most`, from the state on a side of the two;
        it is on the other one after an odd number. Their outputs, `(T, B, ...)`."""
        total = length(steps)
        these = slice(side, side + total)
        for name, array in steps.items():
            self._inputs.host[name][these, slots] = array
        for name, array in row.items():
            self._inputs.host[name][0, slots] = array
        self._inputs.send()
        session, places = self._runs[filtered]
        for place in places[side : side + total - 1]:
            session.run_with_iobinding(place.binding, place.go_on)
        last = places[side + total - 1]
        session.run_with_iobinding(last.binding, last.wait)
        self._outputs.fetch()
        return {name: array[these, slots] for name, array in self._outputs.host.items()}

    def give_up(self) -> None:
        """Have the step under way end with an error, after an operator, and whatever comes next."""
        for place in (place for _, places in self._runs.values() for place in places):
            place.wait.terminate = place.go_on.terminate = True


class _Place:
    """A place's binding, and how to run it: with or without waiting for the device."""

    def __init__(self, binding: ort.IOBinding, graph_id: int) -> None:
        self.binding = binding
        self.wait, self.go_on = ort.RunOptions(), ort.RunOptions()
        for options in (self.wait, self.go_on):
            options.add_run_config_entry("gpu_graph_id", str(graph_id))
        self.go_on.add_run_config_entry("disable_synchronize_execution_providers", "1")
