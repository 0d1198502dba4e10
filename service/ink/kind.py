"""Handwriting models as a kind that is served."""

import numpy as np

from service.frames import Frame
from service.ink import routes, schemas, styles
from service.ink.described import Mixture, PointsWritten
from service.ink.line import InkEdge
from service.ink.model import InkModel
from service.ink.online import InkOpening, InkSaid, follow
from service.kind import ServiceKind

INK = ServiceKind(
    name="handwriting",
    model=InkModel,
    edge=InkEdge,
    routers=(routes.router, styles.router),
    least={routes.PATH: schemas.least},
    opening=InkOpening,
    said=InkSaid,
    frame=Frame("point", np.dtype("<f4")),
    answers=(Mixture, PointsWritten),
    follow=follow,
)
