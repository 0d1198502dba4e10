"""Draws a digit in the terminal, stroke by stroke at batch 1, with onnxruntime alone:
`python -m lab.tasks.draw.draw` after `python -m lab export draw`.

Shapes: Z latent, P pixels.
"""

import argparse
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

EXPORTED = Path("runs", "lab-exported", "draw", "layer-seed-0")
_SHADES = " .:-=+*#%@"
_NUMBERS = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
Array = NDArray[np.float32]


def strokes(folder: Path, noise: Array) -> Iterator[tuple[Array, Array]]:
    """The picture `(P,)` and the frame `(3,)` after every stroke, `noise (T, Z)` to them: one run
    of the graph for each, the states of one handed to the next."""
    session = ort.InferenceSession(folder / "decoder.onnx", providers=["CPUExecutionProvider"])
    states = {
        put.name: np.zeros((1, *put.shape[1:]), _NUMBERS[put.type])
        for put in session.get_inputs()
        if put.name != "noise"
    }
    wanted = ["picture", "frame", *(f"{name}_after" for name in states)]
    for z in noise:
        inputs = {"noise": z[np.newaxis, np.newaxis], **states}
        picture, frame, *after = session.run(wanted, inputs)
        states = dict(zip(states, after, strict=True))
        yield picture[0, 0], frame[0, 0]


def latent_of(folder: Path) -> int:
    """Z of an exported decoder."""
    session = ort.InferenceSession(folder / "decoder.onnx", providers=["CPUExecutionProvider"])
    return int(next(put for put in session.get_inputs() if put.name == "noise").shape[-1])


def as_text(picture: Array) -> str:
    """A picture in characters, every second line of it: a character is twice as high as wide."""
    side = round(len(picture) ** 0.5)
    shades = np.rint(picture.reshape(side, side)[::2] * (len(_SHADES) - 1)).astype(int)
    return "\n".join("".join(_SHADES[shade] for shade in line) for line in shades)


def main(arguments: list[str] | None = None) -> int:
    """Draw one digit; the exit code is 0, or 1 where no decoder was exported."""
    parser = argparse.ArgumentParser(prog="python -m lab.tasks.draw.draw", description=__doc__)
    parser.add_argument("--model", type=Path, default=EXPORTED, help="folder of decoder.onnx")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args(arguments)
    if options.steps < 1 or options.seed < 0:
        parser.error("--steps is 1 or more, and --seed 0 or more")
    if not (options.model / "decoder.onnx").exists():
        print(
            f"{options.model} has no decoder.onnx; run `python -m lab export draw`", file=sys.stderr
        )
        return 1
    random = np.random.default_rng(options.seed)
    noise = random.standard_normal((options.steps, latent_of(options.model))).astype(np.float32)
    for number, (picture, frame) in enumerate(strokes(options.model, noise), 1):
        x, y, width = frame
        print(f"stroke {number}, {width:.1f} pixels wide around ({x:.1f}, {y:.1f})")
        print(as_text(picture))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # whoever reads it may have seen enough
    sys.exit(main())
