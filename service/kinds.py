"""The kinds of model that can be served."""

from contract.kinds import Kinds
from service.ink.kind import INK
from service.kind import ServiceKind
from service.reader.kind import READER
from service.text.kind import TEXT

KINDS: Kinds[ServiceKind] = Kinds({kind.name: kind for kind in (TEXT, INK, READER)})
