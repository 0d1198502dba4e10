"""Language models as a kind that is served."""

import numpy as np

from service.frames import Frame
from service.kind import ServiceKind
from service.text import routes, schemas, tokenizer
from service.text.completion import TextEdge
from service.text.described import BytesWritten, Distribution
from service.text.model import TextModel
from service.text.online import TextOpening, TextSaid, follow

TEXT = ServiceKind(
    name="language",
    model=TextModel,
    edge=TextEdge,
    routers=(routes.router, tokenizer.router),
    least={routes.PATH: schemas.least},
    opening=TextOpening,
    said=TextSaid,
    frame=Frame("bytes", np.dtype("u1")),
    answers=(Distribution, BytesWritten),
    follow=follow,
)
