"""A third kind of model: an LN-RNN over real numbers whose next value is a Gaussian.

`register` makes it known to every stage; no line outside this folder knows of it.
"""

from contract.manifests import MANIFESTS
from export.kinds import KINDS as EXPORTED
from service.kinds import KINDS as SERVED
from tests.kinds.waves.contract import WaveManifest
from tests.kinds.waves.export import WaveExport
from tests.kinds.waves.service import WAVES
from tests.kinds.waves.training import WaveTraining
from training.kinds import KINDS as TRAINED


def register() -> None:
    """Put one object into each stage."""
    MANIFESTS["waves"] = WaveManifest
    TRAINED["waves"] = WaveTraining()
    EXPORTED["waves"] = WaveExport()
    SERVED["waves"] = WAVES
