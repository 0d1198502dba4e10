"""Readers as a kind that is served."""

from service.kind import ServiceKind
from service.reader import routes
from service.reader.described import ReadSoFar
from service.reader.model import ReaderEdge, ServedReader
from service.reader.online import follow
from service.reader.schemas import ReaderOpening, ReaderSaid

READER = ServiceKind(
    name="reader",
    model=ServedReader,
    edge=ReaderEdge,
    routers=(routes.router,),
    opening=ReaderOpening,
    said=ReaderSaid,
    answers=(ReadSoFar,),
    follow=follow,
)
