"""Checkpoints as one safetensors file each: tensors, and JSON in its header. Nothing is pickled."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as tensors_in
from safetensors.torch import save_file
from torch import Tensor

from contract.files import forget_unfinished, replacing, to_disk
from training.machine import memory_shortage

_KEY = "evenkeel"
_SIZE_BYTES = 8  # of safetensors, before its header
_LONGEST_REASON = 200
# What safetensors writes to before it has a file's own name, and leaves if it is killed.
_BEGUN = ".tmp??????"
# Tables of which every run of a version and kind has every setting.
_WHOLE = {"model", "batch", "training"}


def save(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write both or nothing: a full disk, an interruption or a loss of power leaves the old file as
    it was, and what a process that was killed had begun beside it is gone; of a file that is no
    link, in whose folder nobody else writes one.

    Raises `OSError` naming the file when it cannot be written.
    """
    flat = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    forget_unfinished(path)  # first: each is as large as a checkpoint, and the disk may be full
    for left in () if path.is_symlink() else path.parent.glob(_BEGUN):
        left.unlink(missing_ok=True)
    with replacing(path) as temporary:
        save_file(flat, temporary, metadata={_KEY: json.dumps(facts)})
        to_disk(temporary)


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `save` wrote. Raises `ValueError` for a file that is cut short or something else; want
    of memory stays what it is."""
    with _reading(path):
        content = path.read_bytes()  # by its name it opens no file of which that is no UTF-8
        tensors = tensors_in(content)
        return tensors, _facts(content[_SIZE_BYTES : _SIZE_BYTES + _size_of_header(content)])


def facts_of(path: Path) -> dict[str, Any]:
    """The facts alone of what `save` wrote, without its tensors. Raises as `load` does."""
    with _reading(path), path.open("rb") as file:
        header = _size_of_header(file.read(_SIZE_BYTES))
        # Of a file that is none, this may be more than there is memory for.
        return _facts(file.read(min(header, path.stat().st_size)))


def _size_of_header(content: bytes) -> int:
    return int.from_bytes(content[:_SIZE_BYTES], "little")


def _facts(header: bytes) -> dict[str, Any]:
    return dict(json.loads(json.loads(header).get("__metadata__", {})[_KEY]))


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (KeyError, ValueError) as error:
        raise ValueError(f"{path} is not a checkpoint of this project") from error
    except Exception as error:  # safetensors raises its own type for a truncated file
        if memory_shortage(error):  # which is no fault of the file
            raise
        raise ValueError(f"{path} cannot be read: {error}") from error


@contextmanager
def understanding(path: Path) -> Iterator[None]:
    """Turn errors of reading a run or an artifact into a `ValueError` that names it: something that
    this version writes is missing from it, or is of another form. Want of memory stays what it is.
    """
    try:
        yield
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RuntimeError,
        SafetensorError,
        TypeError,
        ValueError,
    ) as error:
        if memory_shortage(error):
            raise
        missing = " is missing" if isinstance(error, KeyError) else ""
        reason = " ".join(str(error).split())[:_LONGEST_REASON]  # of weights it may be pages long
        raise ValueError(
            f"{path} is of another version or was altered: {reason}{missing}"
        ) from error


def require_same(path: Path, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Raise `ValueError` where the facts of the run whose checkpoint is there are not ours."""
    if theirs != ours:
        apart = told_apart(theirs, ours)
        raise ValueError(f"{path} is of {apart}; choose another --out or remove it")


def told_apart(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """In words, how the facts of a run that is there differ from ours: in the values of settings,
    which are named, or in which settings there are, as two versions of this project differ."""
    there, here = _flat(theirs), _flat(ours)
    versions: list[str] = []
    if there.get("kind") == here.get("kind"):
        versions = [name for name in there.keys() ^ here.keys() if name.split(".")[0] in _WHOLE]
    changed = [
        name
        for name in sorted(there.keys() | here.keys())
        if name not in versions and (name not in there or there[name] != here.get(name))
    ]
    settings = f"a run with other settings ({', '.join(changed)})"
    if not versions:
        return settings
    known = (f"{'with' if name in there else 'without'} {name}" for name in sorted(versions))
    return f"another version, {', '.join(known)}" + (f", and of {settings}" if changed else "")


def _flat(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts by name, those of a table as `table.name`."""
    flat: dict[str, Any] = {}
    for name, told in facts.items():
        table = isinstance(told, Mapping)
        flat |= {f"{name}.{key}": value for key, value in told.items()} if table else {name: told}
    return flat


def group(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors under `prefix.`, without it."""
    start = f"{prefix}."
    return {name.removeprefix(start): t for name, t in tensors.items() if name.startswith(start)}


def prefixed(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The reverse of `group`."""
    return {f"{prefix}.{name}": t for name, t in tensors.items()}
