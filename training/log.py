"""The log of a run: a line of JSON for every validation."""

import json
from pathlib import Path
from typing import Any

from contract.files import forget_unfinished, write_whole

LOG = "log.jsonl"
_FIGURES = ("update", "epoch", "train_loss", "validation_loss")


def read_rows(log: Path) -> list[dict[str, Any]]:
    """The rows of a log, without a last line that a full disk or a lost machine has cut. Raises
    `ValueError` that names the file for a row that is none."""
    try:
        whole = log.read_text("utf-8").splitlines(keepends=True)
        rows = [json.loads(line) for line in whole if line.endswith("\n")]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{log} is no log of a run: {error}") from error
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not all(
            isinstance(row.get(name), int | float) for name in _FIGURES
        ):
            raise ValueError(f"{log} is no log of a run: row {number} lacks a figure")
    return rows


def forget_rows_after(log: Path, update: int) -> None:
    """Remove the rows after an update, whose work will be done and logged again: a log may be ahead
    of the checkpoint, or there may be no checkpoint yet. What a process that was killed had begun
    beside the log is gone as well."""
    kept = (row for row in read_rows(log) if row["update"] <= update)
    forget_unfinished(log)
    write_whole(log, "".join(json.dumps(row) + "\n" for row in kept))
