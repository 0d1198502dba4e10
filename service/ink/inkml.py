"""Strokes as W3C InkML (https://www.w3.org/TR/InkML/), which handwriting tools exchange."""

from collections.abc import Sequence
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from service.ink.curve import DECIMALS
from service.ink.svg import xml_text

NAMESPACE = "http://www.w3.org/2003/InkML"
_XML_ID = "{http://www.w3.org/XML/1998/namespace}id"
_PAGE = "page"


def to_inkml(strokes: Sequence[NDArray[np.float64]], text: str) -> str:
    """An InkML document: one trace per stroke `(k, 2)` in px, y down, and the text written."""
    # The namespace as a plain attribute: ElementTree's own way would set a prefix for everybody.
    ink = ElementTree.Element("ink", {"xmlns": NAMESPACE})
    definitions = ElementTree.SubElement(ink, "definitions")
    page = ElementTree.SubElement(definitions, "context", {_XML_ID: _PAGE})
    trace_format = ElementTree.SubElement(page, "traceFormat")
    for name in "XY":
        ElementTree.SubElement(trace_format, "channel", {"name": name, "type": "decimal"})
    ElementTree.SubElement(ink, "annotation", {"type": "truth"}).text = xml_text(text)
    for stroke in strokes:
        trace = ElementTree.SubElement(ink, "trace", {"contextRef": f"#{_PAGE}"})
        trace.text = _points(stroke)
    document: bytes = ElementTree.tostring(ink, encoding="UTF-8", xml_declaration=True)
    return document.decode()


def _points(stroke: NDArray[np.float64]) -> str:
    """The points of a stroke `(k, 2)` as a trace: channels apart by space, points by comma."""
    return ", ".join(f"{x:.{DECIMALS}f} {y:.{DECIMALS}f}" for x, y in stroke.tolist())
