"""The exactness of the slots runner on a GPU: `python -m bench.gpu` (`make gpu-check`).

Attests every model on the provider, makes the parity report's comparisons with training there, and
asks whether a row's bits depend on its neighbours: alone in every slot, and among rows that do
something else. Writes JSON to docs/results. (Structure is the graph's own; `make parity` has it.)
`--provider cpu` rehearses the same code where there is no GPU.
"""

import argparse
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from export.text.sampling import sampling
from numpy.typing import NDArray

from bench import gpu_ink
from contract.manifest import Finding
from contract.noise import UniformStream
from export.convert import load_model, read_artifact
from export.parity.served import bits_per_byte, log_softmax
from export.results import machine
from export.text import numbers
from export.text.golden import draw, training_logits
from service.artifact import Arrays, Artifact, ArtifactError, load_artifacts
from service.attestation import attest
from service.engine.runtime import Runner, choose_runtime, make_runner
from service.settings import Settings
from service.text.completion import Sampling

STEPS = 100
_SEED = 7


def main() -> int:
    """0 if every model was attested, every bound holds and no row moved with its neighbours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--provider", choices=("cuda", "cpu"), default="cuda")
    provider = parser.parse_args().provider
    try:
        runtime = choose_runtime(Settings(provider=provider, runner="slots"))
    except ArtifactError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    rows: list[dict[str, Any]] = []
    broken = 0
    for artifact in load_artifacts(Settings().artifacts).values():
        runner = make_runner(artifact, runtime)
        verdict = attest(artifact, runner)
        is_ink = artifact.manifest.kind == "handwriting"
        differing, compared = (gpu_ink.neighbours if is_ink else neighbours)(artifact, runner)
        print(
            f"{artifact.name}: attested {verdict.ok}, max error {verdict.max_error:.2g} (bound "
            f"{verdict.bound:.2g}); {differing} of {compared:,} row-steps moved with neighbours"
        )
        findings = (gpu_ink.parity if is_ink else parity)(artifact, runner)
        for finding in findings:
            print(f"  {finding.line()}")
        broken += sum(not f.holds for f in findings) + differing + (not verdict.ok)
        rows.append(
            {
                "model": artifact.name,
                "parity": [asdict(f) | {"holds": f.holds} for f in findings],
                "attestation": verdict.describe(),
                "row_steps": compared,
                "differing_row_steps": differing,
            }
        )
    device = _device(provider)
    content = {"device": device, "runtime": runtime.fingerprint, "machine": machine()}
    name = f"{'gpu' if provider == 'cuda' else 'rehearsal'}-{device.replace(' ', '-').lower()}"
    path = Path("docs", "results", f"{name}.json")
    path.write_text(json.dumps(content | {"models": rows}, indent=2) + "\n")
    print(f"written to {path}")
    return 1 if broken else 0


def parity(artifact: Artifact, runner: Runner) -> list[Finding]:
    """Rounding, log-probability, sampling and score, all slots at once against training mode."""
    model = load_model(artifact.folder, read_artifact(artifact.folder))
    sample = draw(model, STEPS, runner.width, _SEED)
    tokens, uniforms = sample.tokens.numpy(), sample.uniforms.numpy()
    slots = list(range(runner.width))
    read = _run(artifact, runner, slots, uniforms, tokens)["logits"]
    draws = _run(artifact, runner, slots, uniforms)["next"]
    # After its first difference a row writes another text: only the first can be a tie.
    before = np.cumsum(draws != tokens, axis=0) - (draws != tokens)
    findings, _ = numbers.rounding(model, tokens, read)
    trained = log_softmax(training_logits(model, sample.tokens).numpy())
    bits = [bits_per_byte(values, tokens) for values in (trained, log_softmax(read))]
    score = Finding(
        "score", abs(bits[0] - bits[1]), numbers.MAX_BITS_PER_BYTE_ERROR,
        f"|difference| in bits per byte over {tokens.size:,} bytes",
    )  # fmt: skip
    drawn = sampling(np.where(before > 0, tokens, draws), tokens, uniforms, read)
    return [*findings, drawn, score]


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


def _run(
    artifact: Artifact,
    runner: Runner,
    slots: list[int],
    uniforms: NDArray[np.float32] | None = None,
    forced: NDArray[np.int64] | None = None,
) -> Arrays:
    """Let `slots` write from their beginning, or read `forced (T, B)`; outputs `(T, B, ...)`.

    Without uniforms `(T, B)` the first of them always gets the same, the others their own.
    """
    for slot in slots:
        runner.load(slot, artifact.initial_state())
    if uniforms is None:
        streams = [UniformStream(_SEED + place).take(0, STEPS) for place in range(len(slots))]
        uniforms = np.stack(streams, axis=1)
    steps = {
        "forced": np.zeros(uniforms.shape, np.int64) if forced is None else forced,
        "force": np.full(uniforms.shape, forced is not None),
        "uniform": uniforms,
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
