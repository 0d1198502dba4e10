"""An artifact folder, checked before anything is served from it.

Its files are plain ones: no links, symbolic or hard, which could lead to what is not of the
artifact or change behind its back, and no pipes or devices. A folder may be a symbolic link
(`current`) to one beside it. Files that the manifest does not list are never opened. onnxruntime
opens none at all: it is given what was read and had the right hash, so that a file that changes
later changes nothing of what serves.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

import numpy as np

from contract.golden import Arrays, Golden, read_tensors
from contract.manifest import DERIVED, GOLDEN, MANIFEST, WEIGHTS, Graphs, Manifest
from contract.manifests import LARGEST_MANIFEST_BYTES, parse_manifest
from service.graph import read_graph
from service.harmless import check_graph

_LONGEST_REASON = 400
# Exported ones have some 30 kB, as their weights are elsewhere; reading 1 MB takes a second.
_LARGEST_GRAPH_BYTES = 1 << 20
_LARGEST_WEIGHTS_BYTES = 4 << 30
_LARGEST_FILE_BYTES = 64 << 20
# Bounds are a few times the rounding of float32, 1e-4 of what an output varies by. Above this they
# would let other models pass.
_LOOSEST = 0.01
# What the system says of what it cannot give or read just now: no fault of a file.
_PASSING = {
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN),
    *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT),
}


class ArtifactError(Exception):
    """A folder that cannot be served: something is missing, cut short or altered."""


class NotGiven(ArtifactError):
    """The system would not read it, or give what it takes, just then; it may a moment later, though
    nothing changes."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A checked folder; `digest` identifies the content of all its files together."""

    folder: Path
    manifest: Manifest
    golden: Golden
    digest: str

    @property
    def name(self) -> str:
        return self.manifest.name

    def initial_state(self) -> Arrays:
        """The state of one row before its first step."""
        return {p.name: np.full(p.shape, p.initial, p.dtype) for p in self.manifest.ports.state}

    def weights(self) -> dict[str, bytes]:
        """What its graphs take their weights from, by name. Raises `ArtifactError`."""
        return {name: self.read(name) for name in (WEIGHTS, DERIVED) if name in self.manifest.files}

    def read(self, name: str) -> bytes:
        """One of its files, which must not have changed. Raises `ArtifactError`."""
        return _read_listed(self.folder, self.manifest, name, _LARGEST_WEIGHTS_BYTES)

    def tensors(self, name: str) -> Arrays:
        """All tensors of one of its safetensors files, which must not have changed. Raises
        `ArtifactError`."""
        try:
            return read_tensors(self.read(name))
        except ValueError as error:
            raise ArtifactError(f"{self.folder}: {name}: {_short(error)}") from error


def load_artifact(folder: Path) -> Artifact:
    """Read and check one folder. Raises `ArtifactError` naming the file and the reason."""
    if not folder.resolve().is_relative_to(folder.parent.resolve()):
        raise ArtifactError(f"{folder} is a link to {folder.resolve()}, not in {folder.parent}")
    manifest = _read_manifest(folder / MANIFEST)
    sizes = {name: _check_file(folder / name, sha) for name, sha in manifest.files.items()}
    runners = manifest.graphs
    for graphs, scan in ((runners.scan, True), (runners.step, False), (runners.cuda, False)):
        if graphs is not None:
            _check_graphs(folder, manifest, graphs, sizes, scan=scan)
    try:
        content = _read_listed(folder, manifest, GOLDEN, _LARGEST_FILE_BYTES)
        golden = Golden.parse(content, GOLDEN)
        _check_golden(golden, manifest)
    except ValueError as error:
        raise ArtifactError(f"{folder}: {_short(error)}") from error
    return Artifact(folder, manifest, golden, manifest.digest)


def artifact_folders(root: Path) -> list[Path]:
    """The folders in `root` that hold an artifact. Raises `ArtifactError` when there is none."""
    folders, place = [], root
    with suppress(OSError):  # no folder, none that may be read, or no current one any more
        place = root.absolute()
        # Of what nobody can tell, as of a mount that is dead, `Path.glob` has an error for all.
        folders = sorted(p for p in root.iterdir() if os.path.exists(p / MANIFEST))
    if not folders:
        raise ArtifactError(
            f"{place} holds no artifact; EVENKEEL_ARTIFACTS says where they are, and `make serve` "
            "builds one in artifacts/"
        )
    return folders


def _read_manifest(path: Path) -> Manifest:
    content = _read(path, LARGEST_MANIFEST_BYTES)
    try:
        return parse_manifest(content)
    except ValueError as error:
        raise ArtifactError(f"{path}: {_short(error)}") from error


def _read_listed(folder: Path, manifest: Manifest, name: str, largest_bytes: int) -> bytes:
    """A file that had the hash of the manifest: it may have become another since."""
    content = _read(folder / name, largest_bytes)
    found = hashlib.sha256(content).hexdigest()
    _check_hash(folder / name, found, manifest.files[name])
    return content


def _check_file(path: Path, expected: str) -> int:
    """Check a file's content against the hash of the manifest; its size in bytes."""
    weights = path.name in (WEIGHTS, DERIVED)
    with _open(path, _LARGEST_WEIGHTS_BYTES if weights else _LARGEST_FILE_BYTES) as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.tell()
    _check_hash(path, found, expected)
    return size


def _check_hash(path: Path, found: str, expected: str) -> None:
    if found != expected:
        raise ArtifactError(
            f"{path} has sha256 {found[:12]}…, the manifest says {expected[:12]}…; "
            f"the file was cut short or altered"
        )


def _check_graphs(
    folder: Path, manifest: Manifest, graphs: Graphs, sizes: dict[str, int], *, scan: bool
) -> None:
    weights = {name: sizes[name] for name in (WEIGHTS, DERIVED) if name in sizes}
    for options, name in graphs.files().items():
        content = _read_listed(folder, manifest, name, _LARGEST_GRAPH_BYTES)
        try:
            graph, filtered = read_graph(content), options == "filtered"
            check_graph(graph, manifest, weights, scan=scan, filtered=filtered)
        except ValueError as error:
            raise ArtifactError(f"{folder / name}: {_short(error)}") from error


def _check_golden(golden: Golden, manifest: Manifest) -> None:
    """Raises `ValueError` for vectors that the graphs cannot run, or that would prove nothing."""
    ports = manifest.ports
    drawn = [p for p in ports.output if p.name in golden.exact]
    computed = [p for p in ports.output if p.name in golden.truth]
    for what, arrays, expected, leading in (
        ("steps", golden.steps, ports.step, 2),
        ("rows", golden.rows, ports.row, 1),
        ("exact outputs", golden.exact, drawn, 2),
        ("true outputs", {n: a.astype("f4") for n, a in golden.truth.items()}, computed, 2),
    ):
        given = {name: (str(a.dtype), a.shape[leading:]) for name, a in arrays.items()}
        if given != {p.name: (p.dtype, p.shape) for p in expected}:
            raise ValueError(f"{GOLDEN}: {what} are not those of the graphs")
    if unknown := {p.name for p in ports.output} - {p.name for p in (*drawn, *computed)}:
        raise ValueError(f"{GOLDEN} does not say what {', '.join(sorted(unknown))} must be")
    if manifest.filters and not golden.filtered.any():
        raise ValueError(f"{GOLDEN} has no row that asks for symbols to be left out")
    for name, bound in golden.bounds.items():
        if not bound <= _LOOSEST * (spread := golden.truth[name].std(dtype="f8")):
            raise ValueError(
                f"{GOLDEN}: the bound of {name} is {bound:.3g}; it must be at most {_LOOSEST} of "
                f"how much that varies, {spread:.3g}"
            )


@contextmanager
def _open(path: Path, largest_bytes: int) -> Iterator[BufferedReader]:
    """A plain file, opened without waiting for it. Raises `ArtifactError` for anything else."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
                raise ArtifactError(f"{path} is a link, or no plain file; only copies are served")
            if facts.st_size > largest_bytes:
                raise ArtifactError(f"{path} has {facts.st_size} bytes, more than {largest_bytes}")
            yield file
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} is missing") from error
    except OSError as error:
        kind = NotGiven if error.errno in _PASSING else ArtifactError
        raise kind(f"{path} cannot be read: {error.strerror}") from error


def _read(path: Path, largest_bytes: int) -> bytes:
    with _open(path, largest_bytes) as file:
        # A buffer comes before what is read into it: the largest is more than some machines have.
        return file.read(min(largest_bytes, os.fstat(file.fileno()).st_size))


def _short(reason: object) -> str:
    """A reason for the log and `/health`; what it quotes from a file can be of any length."""
    return str(reason)[:_LONGEST_REASON]
