"""A third kind of model: an LN-RNN over real numbers whose next value is a Gaussian.

`registered` makes it known to every stage; no line outside this folder knows of it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from contract.manifests import MANIFESTS
from export.kinds import KINDS as EXPORTED
from service.kinds import KINDS as SERVED
from tests.kinds.waves.contract import WaveManifest
from tests.kinds.waves.export import WaveExport
from tests.kinds.waves.service import WAVES
from tests.kinds.waves.training import WaveTraining
from training.kinds import KINDS as TRAINED


@contextmanager
def registered() -> Iterator[None]:
    """One object in each stage, until this ends: other tests go through all kinds there are."""
    stages: tuple[tuple[dict[str, Any], Any], ...] = (
        (MANIFESTS, WaveManifest), (TRAINED, WaveTraining()), (EXPORTED, WaveExport()),
        (SERVED, WAVES),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for kinds, kind in stages:
            patch.setitem(kinds, "waves", kind)
        yield
