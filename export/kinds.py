"""The kinds of model that can be exported."""

from typing import Any

from contract.kinds import Kinds
from export.ink.kind import InkExport
from export.kind import ExportKind
from export.reader.kind import ReaderExport
from export.text.kind import TextExport

KINDS: Kinds[ExportKind[Any]] = Kinds(
    {kind.name: kind for kind in (TextExport(), InkExport(), ReaderExport())}
)
