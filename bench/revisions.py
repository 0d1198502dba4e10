"""What changes to a served graph bought: an artifact as it was at several commits, by turns.

`python -m bench.revisions artifacts/handwriting 3ab0e07 36f596f HEAD`. The graphs are run by
onnxruntime itself: what serves them has moved on, and would refuse artifacts of other formats.
Inputs are zeros, of which every graph here computes as much as of any other.
"""

import argparse
import io
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch

from bench import floor
from bench.peers.launch import end_in_order
from bench.sides import CHUNK_STEPS, Side
from bench.step import compare, thread_counts
from export.parity.served import session_options

_CHUNKS = 6
_LENGTHS = {"T": CHUNK_STEPS, "B": 1}
_TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare the revisions; the last stands as `served`."""
    parser = argparse.ArgumentParser(prog="python -m bench.revisions", description=__doc__)
    parser.add_argument("artifact", help="its folder, in the working copy")
    parser.add_argument("revisions", nargs="+", metavar="REVISION", help="commits that have it")
    parser.add_argument("--rounds", type=int, default=15, help="of turns [15]")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        places = {r: extract(options.artifact, r, Path(folder, r)) for r in options.revisions}
        for threads in thread_counts():
            for row in compare(
                Path(options.artifact).name, threads, sides(places, threads),
                _CHUNKS * CHUNK_STEPS, options.rounds,
            ):  # fmt: skip
                print(row.line())


def extract(artifact: str, revision: str, folder: Path) -> Path:
    """An artifact as it was committed, in a new folder."""
    packed = subprocess.run(
        ["git", "archive", "--format=zip", revision, artifact], check=True, capture_output=True
    ).stdout
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:  # tarfile's filters are Python 3.11.4's
        archive.extractall(folder)
    return folder / artifact


def sides(places: Mapping[str, Path], threads: int) -> dict[str, Side]:
    """The plain Scan of each, and the floor under the last, which PyTorch reads."""
    torch.set_num_threads(threads)
    *earlier, last = places.items()
    found = {revision: _scan(place, threads) for revision, place in earlier}
    found["served"] = _scan(last[1], threads)
    size_bytes = (last[1] / "model.safetensors").stat().st_size
    reader, run = floor.reads(size_bytes, _CHUNKS * CHUNK_STEPS)
    found["floor"] = Side(run, f"{size_bytes / 1e6:.2f} MB of weights, torch.{reader}", "nothing")
    return found


def _scan(folder: Path, threads: int) -> Side:
    path = folder / "model.onnx"
    options = session_options(threads=threads)
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = {
        given.name: np.zeros([_LENGTHS.get(d, d) for d in given.shape], _TYPES[given.type])
        for given in session.get_inputs()
    }

    def run() -> None:
        for _ in range(_CHUNKS):
            session.run(None, feeds)

    return Side(run, f"{_nodes(path)} nodes a step", "nothing")


def _nodes(path: Path) -> int:
    graph = onnx.load(path, load_external_data=False).graph
    (scan,) = (node for node in graph.node if node.op_type == "Scan")
    (body,) = (a.g for a in scan.attribute if a.name == "body")
    return len(body.node)


if __name__ == "__main__":
    end_in_order(main)
