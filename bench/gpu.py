"""The exactness of the slots runner on a GPU: `python -m bench.gpu` (`make gpu-check`).

Attests every model on the provider, then asks whether a row's bits depend on its neighbours: the
same row alone in every slot, and among rows that do something else. Writes JSON to docs/results.
`--provider cpu` rehearses the same code where there is no GPU.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bench import machine
from service.artifact import Arrays, Artifact, ArtifactError, load_artifacts
from service.attestation import attest
from service.language import Sampling
from service.noise import UniformStream
from service.runtime import Runner, choose_runtime, make_runner
from service.settings import Settings

STEPS = 100
_SEED = 7


def main() -> int:
    """0 if every model was attested and no row moved with its neighbours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--provider", choices=("cuda", "cpu"), default="cuda")
    provider = parser.parse_args().provider
    try:
        runtime = choose_runtime(Settings(provider=provider, runner="slots"))
    except ArtifactError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    rows: list[dict[str, Any]] = []
    for artifact in load_artifacts(Settings().artifacts).values():
        runner = make_runner(artifact, runtime)
        verdict = attest(artifact, runner)
        differing, compared = neighbours(artifact, runner)
        print(
            f"{artifact.name}: attested {verdict.ok}, max error {verdict.max_error:.2g} (bound "
            f"{verdict.bound:.2g}); {differing} of {compared:,} row-steps moved with neighbours"
        )
        rows.append(
            {
                "model": artifact.name,
                "attestation": verdict.describe(),
                "row_steps": compared,
                "differing_row_steps": differing,
            }
        )
    device = _device(provider)
    content = {"device": device, "runtime": runtime.fingerprint, "machine": machine.describe()}
    name = f"{'gpu' if provider == 'cuda' else 'rehearsal'}-{device.replace(' ', '-').lower()}"
    path = Path("docs", "results", f"{name}.json")
    path.write_text(json.dumps(content | {"models": rows}, indent=2) + "\n")
    print(f"written to {path}")
    return 0 if all(r["attestation"]["ok"] and not r["differing_row_steps"] for r in rows) else 1


def neighbours(artifact: Artifact, runner: Runner) -> tuple[int, int]:
    """Row-steps whose logits moved with the slot or the other slots' work, and all compared."""
    alone = _run(artifact, runner, [0])["logits"][:, 0]
    differing = compared = 0
    for slot in range(runner.width):
        outputs = _run(artifact, runner, [slot])["logits"][:, 0]
        differing += int((outputs != alone).any(-1).sum())
        compared += STEPS
    everyone = list(range(runner.width))
    among = _run(artifact, runner, everyone)["logits"][:, 0]
    differing += int((among != alone).any(-1).sum())
    return differing, compared + STEPS


def _run(artifact: Artifact, runner: Runner, slots: list[int]) -> Arrays:
    """The first of `slots` writes with the same uniforms every time, the others with their own."""
    for slot in slots:
        runner.load(slot, artifact.initial_state())
    uniforms = [UniformStream(_SEED + place).take(0, STEPS) for place in range(len(slots))]
    shape = (STEPS, len(slots))
    steps = {
        "forced": np.zeros(shape, np.int64),
        "force": np.zeros(shape, bool),
        "uniform": np.stack(uniforms, axis=1),
    }
    row = {name: np.stack([value] * len(slots)) for name, value in Sampling().row().items()}
    return runner.run(slots, steps, row, filtered=False)


def _device(provider: str) -> str:
    if provider == "cpu":
        return "cpu"
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    return subprocess.run(query, check=True, capture_output=True, text=True).stdout.split("\n")[0]


if __name__ == "__main__":
    sys.exit(main())
