"""Strokes out of InkML: the documents of other tools as well as our own."""

import time
import tracemalloc

import numpy as np
import pytest
from pydantic import ValidationError

from service.errors import InvalidRequest
from service.ink.inkml import NAMESPACE, to_inkml
from service.reader import inkml
from service.reader.inkml import from_inkml
from service.reader.schemas import ReadRequest

_OTHER = """<?xml version="1.0"?>
<inkml:ink xmlns:inkml="http://www.w3.org/2003/InkML">
  <inkml:traceFormat>
    <inkml:channel name="T" type="integer"/><inkml:channel name="Y"/><inkml:channel name="X"/>
  </inkml:traceFormat>
  <inkml:annotation type="truth">hi</inkml:annotation>
  <inkml:traceGroup>
    <inkml:trace>0 2 1, 10 4 3,20 6.5 -5e1</inkml:trace>
    <inkml:traceGroup><inkml:trace id="t2"> 30 8 7 </inkml:trace></inkml:traceGroup>
  </inkml:traceGroup>
</inkml:ink>"""


def _read(document: str) -> list[list[list[float]]]:
    """The strokes of a document, which are the same with the namespace of InkML."""
    strokes = from_inkml(document)
    assert from_inkml(document.replace("<ink>", f"<ink xmlns='{NAMESPACE}'>")) == strokes
    return strokes


def test_what_this_service_writes_it_reads() -> None:
    strokes = [np.array([[1.25, 2.0], [3.5, -4.0]]), np.array([[5.0, 6.0]])]
    assert from_inkml(to_inkml(strokes, "a < b")) == [s.tolist() for s in strokes]


def test_channels_are_found_by_name_and_traces_in_groups() -> None:
    assert from_inkml(_OTHER) == [[[1, 2], [3, 4], [-50, 6.5]], [[7, 8]]]


def test_what_only_speaks_of_a_document_type_is_read() -> None:
    said = "<!-- a <!DOCTYPE ink> --><?a <!DOCTYPE ink> ?>"
    document = f"{said}<ink>{said}<annotation><![CDATA[<!DOCTYPE ink>]]></annotation>"
    assert _read(f"{document}<trace>1 2</trace></ink>") == [[[1, 2]]]


@pytest.mark.parametrize("before", ["<!---->", "<?a?>", " "])
def test_what_stands_before_a_document_is_looked_at_once(before: str) -> None:
    begun = time.process_time()
    assert _read(before * 100_000 + "<ink><trace>1 2</trace></ink>") == [[[1, 2]]]
    assert time.process_time() - begun < 2


def test_a_format_named_twice_is_one_format() -> None:
    channels = '<traceFormat><channel name="X"/><channel name="Y"/></traceFormat>'
    assert _read(f"<ink>{channels * 2}<trace>1 2</trace></ink>") == [[[1, 2]]]


def test_where_the_pen_is_up_and_in_definitions_there_is_no_ink() -> None:
    hover = '<trace type="penUp">8 8, 9 9</trace><trace type="penDown">1 2</trace>'
    defined = "<definitions><traceGroup><trace>5 6</trace></traceGroup></definitions>"
    assert _read(f"<ink>{defined}{hover}</ink>") == [[[1, 2]]]
    unknown = hover.replace("penDown", "indeterminate")  # whatever a tablet without that writes
    assert _read(f"<ink>{unknown}</ink>") == [[[1, 2]]]


def test_what_a_pen_tells_now_and_then_and_switches_of_it_are_passed_over() -> None:
    channels = "<channel name='S' type='boolean'/><channel name='X'/><channel name='Y'/>"
    rare = "<intermittentChannels><channel name='F'/><channel name='B'/></intermittentChannels>"
    traces = "<trace>T 1 2, F 3 4 0.5, ? 5 6 0.5 T</trace>"
    document = f"<ink><traceFormat>{channels}{rare}</traceFormat>{traces}</ink>"
    assert _read(document) == [[[1, 2], [3, 4], [5, 6]]]


def test_as_much_may_be_told_now_and_then_as_any_of_the_formats_says() -> None:
    rare = "<intermittentChannels>{}</intermittentChannels>".format
    more, fewer = rare("<channel name='F'/><channel name='B'/>"), rare("<channel name='F'/>")
    for formats in (fewer + more, more + fewer):
        assert _read(f"<ink>{formats}<trace>1 2 0.5 T</trace></ink>") == [[[1, 2]]]
    with pytest.raises(InvalidRequest, match="a point of 5 numbers in a format of 2"):
        _read(f"<ink>{formats}<trace>1 2 0.5 T 1</trace></ink>")


def test_a_document_is_no_longer_than_a_million_characters() -> None:
    document = "\u00e9" * 1_000_000
    assert ReadRequest(inkml=document).inkml == document
    with pytest.raises(ValidationError, match="at most 1000000 characters"):
        ReadRequest(inkml=document + " ")


@pytest.mark.parametrize("last", ["0 0", "0 0,", "0 0, "], ids=ascii)
def test_a_document_may_have_as_many_points_as_a_request(last: str) -> None:
    """Whether or not there is a comma after the last."""
    (stroke,) = _read(f"<ink><trace>{'0 0,' * 19_999}{last}</trace></ink>")
    assert len(stroke) == 20_000


def test_a_point_may_have_as_many_channels_as_there_may_be_among_which_to_look() -> None:
    channels = "".join(f"<channel name='{name}'/>" for name in [*range(62), "X", "Y"])
    told = " ".join(map(str, range(64)))
    assert _read(f"<ink>{channels}<trace>{told}</trace></ink>") == [[[62, 63]]]


def test_a_trace_that_goes_on_from_none_that_is_there_is_a_stroke() -> None:
    lost = (
        "<trace continuation='end' priorRef='#a'>3 4</trace><trace continuation='end'>5 6</trace>"
    )
    assert _read(f"<ink><trace>1 2</trace>{lost}</ink>") == [[[1, 2]], [[3, 4]], [[5, 6]]]


def test_a_trace_that_goes_on_is_one_stroke() -> None:
    first = '<trace xml:id="a" continuation="begin">1 2</trace><trace>9 9</trace>'
    rest = '<trace id="b" continuation="middle" priorRef="#a">3 4</trace>'
    rest += '<trace continuation="end" priorRef="#b">5 6</trace>'
    assert _read(f"<ink>{first}{rest}</ink>") == [[[1, 2], [3, 4], [5, 6]], [[9, 9]]]


@pytest.mark.parametrize(
    "traces", ["", '<trace type="penUp">1 2</trace>', "<trace/>" * 40_000], ids=len
)
def test_a_document_without_ink_is_told_to_have_none(traces: str) -> None:
    with pytest.raises(InvalidRequest, match=r"inkml has no trace of a pen that is down$"):
        _read(f"<ink>{traces}</ink>")


def test_another_kind_of_drawing_is_called_by_its_name() -> None:
    with pytest.raises(InvalidRequest, match=r"it is <svg>, not <ink>$"):
        _read('<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>')
    with pytest.raises(InvalidRequest, match=f"it is <{'a' * 40}>, not <ink>$"):
        _read(f"<{'a' * 1000}/>")


def test_a_sign_parts_two_numbers() -> None:
    trace = "1-2,-.5-3.25, 4. -5,6e-1-7"
    assert _read(f"<ink><trace>{trace}</trace></ink>") == [
        [[1, -2], [-0.5, -3.25], [4, -5], [0.6, -7]]
    ]


@pytest.mark.parametrize("number", ["nan", "-inf", "1e999"])
def test_a_coordinate_that_is_no_finite_number_is_told_with_its_point(number: str) -> None:
    with pytest.raises(InvalidRequest, match=f"inkml has a point '{number} 2'"):
        _read(f"<ink><trace>{number} 2</trace></ink>")


@pytest.mark.parametrize("other", ["YX", "XTY", "TXY"])
def test_formats_that_have_x_and_y_in_other_places_are_refused(other: str) -> None:
    """Which of them is that of a trace is not looked at, and its ink would be turned over."""
    formats = "".join(
        f"<traceFormat>{''.join(f'<channel name={name!r}/>' for name in names)}</traceFormat>"
        for names in ("XY", other)
    )
    with pytest.raises(InvalidRequest, match="formats"):
        _read(f"<ink>{formats}<trace>1 2</trace></ink>")


def test_a_document_of_nothing_but_channels_is_refused_at_once() -> None:
    channels = "".join(f"<channel name='{i:x}'/>" for i in range(47_000))
    began_s = time.thread_time()  # what others do is not counted
    with pytest.raises(InvalidRequest):
        _read(f"<ink>{channels}<trace>1 2</trace></ink>")
    assert time.thread_time() - began_s < 1  # it took 13 s


@pytest.mark.parametrize(
    "document",
    [
        "",
        "no ink",
        "<ink><trace>1 2</ink>",
        '<ink><channel name="X"/><trace>1</trace></ink>',
        "<ink><channel name='X'/><channel name='T'/><channel name='X'/><channel name='Y'/>"
        "<trace>1 2</trace></ink>",
        "<ink><channel name='X'/><channel name='X'/><channel name='Y'/><trace>1 2</trace></ink>",
        "<ink><trace>1_0 2</trace></ink>",
        "<ink><trace>1 \N{ARABIC-INDIC DIGIT TWO}</trace></ink>",
        "<ink><trace>" + "0 0," * 20_000 + "0 0</trace></ink>",
    ],
    ids=lambda document: document[:40],
)
def test_what_is_no_ink_is_refused(document: str) -> None:
    with pytest.raises(InvalidRequest):
        _read(document)


@pytest.mark.parametrize(
    ("x", "y", "first"),
    [("", "", [1, 2]), ("+ve", "+ve", [1, 2]), ("+ve", "-ve", [1, -2]), ("-ve", "-ve", [-1, -2])],
)
def test_a_channel_that_grows_the_other_way_is_turned(x: str, y: str, first: list[int]) -> None:
    told = [f' orientation="{way}"' if way else "" for way in (x, y)]
    channels = f'<channel name="X"{told[0]}/><channel name="Y"{told[1]}/>'
    document = f"<ink><traceFormat>{channels}</traceFormat><trace>1 2</trace></ink>"
    assert _read(document) == [[first]]


def test_formats_that_grow_different_ways_are_refused() -> None:
    formats = (
        f'<traceFormat><channel name="X"/><channel name="Y" orientation="{way}"/></traceFormat>'
        for way in ("+ve", "-ve")
    )
    with pytest.raises(InvalidRequest, match="where X and Y grow"):
        _read(f"<ink>{''.join(formats)}<trace>1 2</trace></ink>")


@pytest.mark.parametrize(
    ("x", "y", "fits"), [("cm", "cm", True), ("cm", "", True), ("cm", "mm", False)]
)
def test_ink_that_is_squeezed_by_its_units_is_refused(x: str, y: str, fits: bool) -> None:
    told = [f' units="{unit}"' if unit else "" for unit in (x, y)]
    channels = f'<channel name="X"{told[0]}/><channel name="Y"{told[1]}/>'
    document = f"<ink><traceFormat>{channels}</traceFormat><trace>1 2</trace></ink>"
    if fits:
        assert _read(document) == [[[1, 2]]]
        return
    with pytest.raises(InvalidRequest, match="units that differ"):
        _read(document)


@pytest.mark.parametrize(
    "trace", ["1 1, 5 50<b/>, 99 9", "<annotation>a</annotation>1 1, 5 50", "1 1<b/>"]
)
def test_points_behind_an_element_are_not_lost_without_a_word(trace: str) -> None:
    with pytest.raises(InvalidRequest, match="an element in it"):
        _read(f"<ink><trace>1 2</trace><trace>{trace}</trace></ink>")


def test_a_document_is_read_in_portions_whatever_stands_at_their_ends() -> None:
    """One call for a million characters kept everybody from the interpreter."""
    points = ", ".join(f"{i} {i / 8}" for i in range(4000))
    assert len(points) > 1.5 * inkml._PORTION
    for before in range(8):
        document = f"<ink><annotation>{'ä€𝄞' * before}</annotation><trace>{points}</trace></ink>"
        (stroke,) = _read(document)
        assert stroke == [[i, i / 8] for i in range(4000)]


def test_a_tree_of_more_elements_than_are_taken_is_refused_as_soon_as_they_are_seen() -> None:
    few, many = "<b/>" * (inkml._MOST_ELEMENTS - 2), "<b/>" * (inkml._MOST_ELEMENTS - 1)
    assert _read(f"<ink>{few}<trace>1 2</trace></ink>") == [[[1, 2]]]
    with pytest.raises(InvalidRequest, match="more than 50,000 elements"):
        _read(f"<ink>{many}<trace>1 2</trace> and this is no XML <")


@pytest.mark.parametrize(
    "told", [" xmlns='{}'", ' xmlns:a="{}"', "\nxmlns:a-b\t=\n'{}'"], ids=ascii
)
def test_a_namespace_may_have_128_characters(told: str) -> None:
    document = f"<ink><b{told}/><trace>1 2</trace></ink>"
    assert _read(document.format("u" * 128)) == [[[1, 2]]]
    with pytest.raises(InvalidRequest, match="a namespace of over 128 characters"):
        _read(document.format("u" * 129))


@pytest.mark.parametrize("length", [128, 30_000], ids=str)
@pytest.mark.parametrize("document", ["<ink><b{0}{1}/></ink>", "<ink{0}><b{1}/></ink>"], ids=ascii)
def test_a_document_takes_little_memory_whatever_its_names_are_of(
    document: str, length: int
) -> None:
    """A namespace stands before each name that is of it: half a megabyte took 1.7 GB."""
    names = "".join(f" a:b{i:x}=''" for i in range(1000))
    document = document.format(f" xmlns:a='{'u' * length}'", names)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRequest):  # without ink, at least
            from_inkml(document)
        assert tracemalloc.get_traced_memory()[1] < 100 * len(document)
    finally:
        tracemalloc.stop()


def test_what_looks_like_a_long_namespace_is_looked_at_once() -> None:
    for part in (" xmlns", " xmlns:", "xmlns=", " xmlns='", " xmlns = '"):
        begun = time.process_time()
        with pytest.raises(InvalidRequest):
            from_inkml(f"<ink>{part * (900_000 // len(part))}</ink>")
        assert time.process_time() - begun < 2
