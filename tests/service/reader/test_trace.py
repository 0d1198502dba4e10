"""The points of InkML traces, told in every way that the standard has, and as programs write it."""

import numpy as np
import pytest

from service.errors import InvalidRequest
from service.reader.inkml import from_inkml

_XY = "<channel name='X'/><channel name='Y'/>"
_FORCE = "<channel name='F'/>"

Stroke = list[list[float]]


def _points(trace: str, channels: str = _XY) -> Stroke:
    """Those of the one trace of a document."""
    format_ = f"<traceFormat>{channels}</traceFormat>"
    (stroke,) = from_inkml(f"<ink>{format_}<trace>{trace}</trace></ink>")
    return stroke


def test_the_example_of_the_standard_is_read() -> None:
    """From its section on traces, where a table has the coordinates."""
    rare = "<intermittentChannels><channel name='A'/><channel name='B'/></intermittentChannels>"
    trace = """1125 18432,'23'43,"7"-8,3-5,7 -3,6 2,6 8,3 6 T,2 4 *T,3 6,3-6 F F"""
    x = [1125, 1148, 1178, 1211, 1251, 1297, 1349, 1404, 1461, 1521, 1584]
    y = [18432, 18475, 18510, 18540, 18567, 18596, 18633, 18676, 18723, 18776, 18823]
    assert _points(trace, _XY + rare) == np.transpose([x, y]).tolist()


def _as_differences(stroke: Stroke) -> str:
    """A trace with a third channel as word processors write it: a point as it is, one by how far it
    is from that, and all others by how much further than before."""
    places = np.array([[*point, 24_575] for point in stroke])
    steps = np.diff(places, axis=0)
    rows = [*places[:1].tolist(), *steps[:1].tolist(), *np.diff(steps, axis=0).tolist()]
    told = [" ".join(map(str, row)).replace(" -", "-") for row in rows]
    for row, mark in zip(range(1, len(rows)), "'\"", strict=False):
        told[row] = "".join(f"{mark}{value}" for value in rows[row])
    return ",".join(told)


@pytest.mark.parametrize("length", [1, 2, 3, 9])
def test_differences_are_added_up(length: int) -> None:
    random = np.random.default_rng(length)
    stroke = random.integers(-300, 300, (length, 2)).cumsum(axis=0).tolist()
    assert _points(_as_differences(stroke), _XY + _FORCE) == stroke


def test_a_mark_holds_for_its_channel_until_the_next() -> None:
    assert _points("10 20,'1 21,2 22,!30'3,31 4") == [
        [10, 20],
        [11, 21],
        [13, 22],
        [30, 25],
        [31, 29],
    ]


def test_a_star_says_the_same_again() -> None:
    """A place, how far it is to the next, or how much further than before."""
    assert _points("""1 2,* 3,'4*,*'6,"5*,**,**""") == [
        [1, 2], [1, 3], [5, 3], [9, 9], [18, 15], [32, 21], [51, 27],
    ]  # fmt: skip


@pytest.mark.parametrize("written", ["{:+e}", "{:+G}", "{:e}", "{:+}"])
def test_a_number_may_have_a_sign_that_it_needs_not_and_an_exponent(written: str) -> None:
    stroke = [[1.5e-7, -2.5], [-3e-9, 1.25e7]]
    trace = ",".join(" ".join(map(written.format, point)) for point in stroke)
    assert _points(trace) == stroke
    assert _points(trace.replace(" +", "+").replace(" -", "-")) == stroke


def test_spaces_may_stand_behind_marks_and_signs_and_before_no_value() -> None:
    assert _points("1 2,' 3 '- 4,\" - 1\n\"\t5") == [[1, 2], [4, -2], [6, -1]]
    switches = "<channel name='A' type='boolean'/><channel name='B' type='boolean'/>"
    assert _points("TF1-2T, F T3 4?", switches + _XY + _FORCE) == [[1, -2], [3, 4]]


@pytest.mark.parametrize(
    "trace",
    ["'1 2", '1 2,"3"4', "* 2", "1 ?", "1 T", "1 #F", "1 2,'* 3", "9e307 0,'9e307'0,9e307 0",
     "1 ''2", "1 '", "1 --2", "1 -"],
)  # fmt: skip
def test_what_tells_no_place_is_refused(trace: str) -> None:
    with pytest.raises(InvalidRequest, match="inkml has a point "):
        _points(trace)


@pytest.mark.parametrize("turned", [1, -1])
def test_a_document_of_a_pen_that_tells_its_force_and_of_a_mouse_is_read(turned: int) -> None:
    formats = [f"<traceFormat>{channels}</traceFormat>" for channels in (_XY + _FORCE, _XY)]
    told = "".join(formats[::turned])
    ink = "<trace>1 2 99,3 4 99</trace><trace>5 6,7 8</trace>"
    assert from_inkml(f"<ink>{told}{ink}</ink>") == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    for numbers in ("1", "1 2 3 4"):
        with pytest.raises(InvalidRequest, match=r"a point of \d numbers"):
            from_inkml(f"<ink>{told}<trace>{numbers}</trace></ink>")


@pytest.mark.parametrize("value", ["'", "T", "1 ", "1-"])
def test_a_point_has_no_more_characters_than_are_looked_at_in_one_go(value: str) -> None:
    """A document of one point kept everybody from the interpreter while its values were parted."""
    with pytest.raises(InvalidRequest, match=r"a point of [\d,]{7,9} characters; at most 8,192"):
        _points(f"1 2,3 4{value * 400_000}5")
    assert _points(f"1{' ' * 400_000}2") == [[1, 2]]


def test_what_a_format_says_beside_its_channels_is_no_number_of_a_point() -> None:
    beside = f"<annotation>of a pen</annotation>{_XY}"
    assert _points("1 2,3 4", beside) == [[1, 2], [3, 4]]
    with pytest.raises(InvalidRequest, match="a point of 3 numbers in a format of 2"):
        _points("1 2 3", beside)
