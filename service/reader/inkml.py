"""Strokes out of W3C InkML (https://www.w3.org/TR/InkML/), as handwriting tools write it."""

from itertools import islice
from xml.etree import ElementTree

from service.errors import InvalidRequest
from service.reader.schemas import MOST_POINTS

_NAMESPACE = "{http://www.w3.org/2003/InkML}"
_MOST_CHANNELS = 64  # of all that a document names, those that its format may be among


def from_inkml(document: str) -> list[list[list[float]]]:
    """The traces of a document, `[x, y]` of every point, in order.

    A trace is a list of points, numbers each, X and Y among the channels that its format names.
    Where the pen is up, or a trace is only defined, there is no ink. Raises `InvalidRequest` for
    anything else: differences, hexadecimal numbers, entities.
    """
    if "<!DOCTYPE" in document:
        raise InvalidRequest("inkml has a document type, which ink needs none of", "inkml")
    try:
        root = ElementTree.fromstring(document)
    except (ElementTree.ParseError, ValueError) as error:
        raise InvalidRequest(f"inkml is no XML: {error}", "inkml") from error
    named = (c.get("name", "") for c in root.iter() if _tag(c) == "channel")
    channels = list(islice(named, _MOST_CHANNELS)) or ["X", "Y"]
    # A document may name a format more than once; all its traces have the first.
    width = next((i for i in range(1, len(channels)) if channels[i] in channels[:i]), len(channels))
    if not {"X", "Y"}.issubset(channels[:width]):
        raise InvalidRequest("inkml has no channels X and Y", "inkml")
    x, y = channels.index("X"), channels.index("Y")
    for element in root.iter():
        if _tag(element) == "definitions":
            element.clear()
    traces = [t.text or "" for t in root.iter() if _tag(t) == "trace" and t.get("type") != "penUp"]
    # Before any of them is read: a document has room for many more than are taken.
    if (points := sum(t.count(",") + 1 for t in traces)) > MOST_POINTS:
        raise InvalidRequest(f"inkml has {points:,} points; at most {MOST_POINTS:,}", "inkml")
    return [_points(trace, x, y, width) for trace in traces if trace.strip()]


def _tag(element: ElementTree.Element) -> str:
    return element.tag.removeprefix(_NAMESPACE)


def _points(trace: str, x: int, y: int, width: int) -> list[list[float]]:
    points = []
    for written in trace.strip().strip(",").split(","):
        try:
            if "_" in written or not written.isascii():  # Python's own ways to write a number
                raise ValueError(written)
            numbers = [float(number) for number in written.split()]
        except ValueError as error:
            raise InvalidRequest(f"inkml has a point {written[:20]!r}", "inkml") from error
        if len(numbers) != width:
            raise InvalidRequest(
                f"inkml has a point of {len(numbers)} numbers in a format of {width}", "inkml"
            )
        points.append([numbers[x], numbers[y]])
    return points
