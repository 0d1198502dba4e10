"""Strokes out of W3C InkML (https://www.w3.org/TR/InkML/), as handwriting tools write it."""

import re
from collections.abc import Iterator
from itertools import islice
from xml.etree import ElementTree

from service.errors import InvalidRequest
from service.reader.schemas import MOST_POINTS
from service.reader.trace import points

_NAMESPACE = "{http://www.w3.org/2003/InkML}"
_XML_ID = "{http://www.w3.org/XML/1998/namespace}id"
# After comments and instructions, if anywhere; what is passed over is not looked at again.
_DOCUMENT_TYPE = re.compile(r"\ufeff?(?>\s+|<!--.*?-->|<\?.*?\?>)*+<!DOCTYPE", re.DOTALL)
# It is put before every name that is of it, and a document has room for 100,000. Looked for before
# the parser has a tag: it does so with all names of one before it tells of any.
_LONGEST_NAMESPACE = 128
_TOO_MANY = f"{{{_LONGEST_NAMESPACE + 1}}}"
_LONG_NAMESPACE = re.compile(  # begins with letters, which are found ten times as fast as a space
    rf"""xmlns(?<=\sxmlns)[^\s=]*+\s*+=\s*+(?:"[^"]{_TOO_MANY}|'[^']{_TOO_MANY})"""
)
_MOST_ELEMENTS = 50_000  # a tree of more is let go of in one go, for which all others wait
_PORTION = 32 * 1024  # characters, which take some milliseconds
_MOST_OF_NAME = 40  # characters that are told of what is no ink
_MOST_CHANNELS = 64  # of all that a document names, those that its format may be among


def from_inkml(document: str) -> list[list[list[float]]]:
    """The strokes of a document, `[x, y]` of every point, in order.

    A trace is a list of points, numbers each, X and Y among the channels that its format names,
    turned where they grow to the left or upwards; what other channels say is passed over. Where the
    pen is up, or a trace is only defined, there is no ink. Raises `InvalidRequest` for anything
    else: hexadecimal numbers, entities.
    """
    root = _root(document)
    most_more = _drop_intermittent(root)
    named = (c.get("name", "") for c in root.iter() if _tag(c) == "channel")
    channels = list(islice(named, _MOST_CHANNELS)) or ["X", "Y"]
    # A document may name a format more than once.
    width = next((i for i in range(1, len(channels)) if channels[i] in channels[:i]), len(channels))
    if not {"X", "Y"}.issubset(channels[:width]):
        raise InvalidRequest("inkml has no channels X and Y", "inkml")
    x, y = channels.index("X"), channels.index("Y")
    right, down = _signs(root, x, y)
    widths = _widths(root, width, most_more)
    strokes = _joined([(trace, points(_told(trace), x, y, widths)) for trace in _traces(root)])
    return [[[right * x, down * y] for x, y in stroke] for stroke in strokes]


def _signs(root: ElementTree.Element, x: int, y: int) -> tuple[int, int]:
    """1 for a channel that grows to the right or downwards, -1 for one that grows the other way,
    of X and Y. Raises `InvalidRequest` for formats that differ in that or in where X and Y are:
    which of them is that of a trace is not looked at; and where X and Y are in two units."""
    signs, units = set[tuple[int, int]](), set[str | None]()
    for channels in _formats(root):
        names = [channel.get("name") for channel in channels]
        if (names.index("X"), names.index("Y")) != (x, y):
            raise InvalidRequest("inkml has formats that differ in where X and Y are", "inkml")
        right, down = (-1 if channels[place].get("orientation") == "-ve" else 1 for place in (x, y))
        signs.add((right, down))
        units |= {channels[place].get("units") for place in (x, y)}
    if len(units - {None}) > 1:
        raise InvalidRequest("inkml has X and Y in units that differ", "inkml")
    if len(signs) > 1:
        raise InvalidRequest("inkml has formats that differ in where X and Y grow", "inkml")
    return signs.pop() if signs else (1, 1)


def _widths(root: ElementTree.Element, width: int, most_more: int) -> range:
    """How many values a point may have, as a format says: of a pen that tells its force they are
    more than of a mouse."""
    widths = [width, *map(len, _formats(root))]
    return range(min(widths), max(widths) + most_more + 1)


def _formats(root: ElementTree.Element) -> Iterator[list[ElementTree.Element]]:
    """The channels of each format that has X and Y among them."""
    for element in root.iter():
        if _tag(element) == "traceFormat":
            channels = [c for c in islice(element, _MOST_CHANNELS) if _tag(c) == "channel"]
            if {"X", "Y"}.issubset(c.get("name") for c in channels):
                yield channels


class _Builder(ElementTree.TreeBuilder):
    """Raises `InvalidRequest` for more elements than are taken."""

    def __init__(self) -> None:
        super().__init__()
        self._elements = 0

    def start(self, tag: str, attrs: dict[str, str]) -> ElementTree.Element:
        """An element begins."""
        self._elements += 1
        if self._elements > _MOST_ELEMENTS:
            raise InvalidRequest(f"inkml has more than {_MOST_ELEMENTS:,} elements", "inkml")
        return super().start(tag, attrs)


def _root(document: str) -> ElementTree.Element:
    if _DOCUMENT_TYPE.match(document):
        raise InvalidRequest("inkml has a document type, which ink needs none of", "inkml")
    if _LONG_NAMESPACE.search(document):
        most = _LONGEST_NAMESPACE
        raise InvalidRequest(f"inkml has a namespace of over {most} characters", "inkml")
    parser = ElementTree.XMLParser(target=_Builder())
    try:
        for begin in range(0, len(document), _PORTION):  # others have the interpreter between two
            parser.feed(document[begin : begin + _PORTION])
        root: ElementTree.Element = parser.close()
        return root
    except ElementTree.ParseError as error:
        raise InvalidRequest(f"inkml is no XML: {error}", "inkml") from error


def _drop_intermittent(root: ElementTree.Element) -> int:
    """How many values a point may have after those of the channels that it always has."""
    most = 0
    for element in root.iter():
        if _tag(element) == "intermittentChannels":
            most = max(most, len(element))
            element.clear()
    return most


def _traces(root: ElementTree.Element) -> list[ElementTree.Element]:
    """Those with ink in them."""
    for element in root.iter():
        if _tag(element) == "definitions":
            element.clear()
    down = (t for t in root.iter() if _tag(t) == "trace" and t.get("type") != "penUp")
    traces = [trace for trace in down if len(trace) or (trace.text or "").strip()]
    if not traces:
        other = root.tag.rpartition("}")[2]
        of_another = f": it is <{other[:_MOST_OF_NAME]}>, not <ink>" if other != "ink" else ""
        raise InvalidRequest(f"inkml has no trace of a pen that is down{of_another}", "inkml")
    if any(len(trace) for trace in traces):
        raise InvalidRequest("inkml has a trace with an element in it", "inkml")
    # Before any of them is read: a document has room for many more than are taken.
    if (count := sum(_told(t).count(",") + 1 for t in traces)) > MOST_POINTS:
        raise InvalidRequest(f"inkml has {count:,} points; at most {MOST_POINTS:,}", "inkml")
    return traces


def _joined(
    traces: list[tuple[ElementTree.Element, list[list[float]]]],
) -> list[list[list[float]]]:
    """The points of each stroke, whether it is one trace or several that continue each other."""
    strokes: list[list[list[float]]] = []
    by_id: dict[str, list[list[float]]] = {}
    for trace, found in traces:
        stroke = None
        if trace.get("continuation") in ("middle", "end"):
            stroke = by_id.get(trace.get("priorRef", "").removeprefix("#"))
        if stroke is None:
            stroke = []
            strokes.append(stroke)
        stroke += found
        if name := trace.get(_XML_ID) or trace.get("id"):
            by_id[name] = stroke
    return strokes


def _tag(element: ElementTree.Element) -> str:
    return element.tag.removeprefix(_NAMESPACE)


def _told(trace: ElementTree.Element) -> str:
    """Its points, without the comma that may come after the last."""
    return (trace.text or "").strip().strip(",")
