"""Sheets of paper in mm: where lines stand on them, their rules, and the PDF that has them all."""

import io
import re
import zlib
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from service.ink.paper import rules
from service.ink.pdf import to_pdf
from service.ink.schemas import PageOptions
from service.ink.svg import to_svg
from tests.service.writing import InkService

_MM = 96 / 25.4
_SVG = "{http://www.w3.org/2000/svg}"
_LINES = "\n".join(f"line {number}" for number in range(40))
_STREAM = re.compile(rb"stream\n(.*?)\nendstream", re.DOTALL)
_NUMBER = re.compile(rb"-?\d+\.?\d*")


def _pages(pdf: bytes) -> list[list[list[float]]]:
    """Of each page of a PDF the places its curves begin at, in points from the lower left."""
    pages = []
    for packed in _STREAM.findall(pdf):
        scale, *turn, down, left, top = map(
            float, _NUMBER.findall(content := zlib.decompress(packed))[:6]
        )
        assert (scale, turn, down) == (0.75, [0, 0], -0.75)
        begins = re.findall(rb"(\S+) (\S+) m\n", content)
        pages.append([[float(x) * scale + left, float(y) * down + top] for x, y in begins])
    return pages


@pytest.mark.parametrize(
    ("page", "mm"),
    [("a4", (210, 297)), ("a5", (148, 210)), ("letter", (215.9, 279.4)),
     ({"width": 100, "height": 50.5}, (100, 50.5))],
    ids=str,
)  # fmt: skip
def test_a_pdf_has_sheets_of_the_size_that_was_asked_for(
    ink: InkService, page: Any, mm: tuple[float, float]
) -> None:
    answer = ink.post(text="on paper", seed=1, page=page, margin=10, format="pdf", line_height=40)
    assert answer.headers["content-type"] == "application/pdf"
    assert b"/Title (on paper)" in answer.content
    (box,) = re.findall(rb"/MediaBox \[([^\]]+)\]", answer.content)
    assert [float(n) for n in box.split()] == pytest.approx(
        [0, 0, *(n * 72 / 25.4 for n in mm)], abs=1e-3
    )


def test_a_text_goes_on_on_the_next_sheet(ink: InkService) -> None:
    body = {"text": _LINES, "seed": 2, "page": "a5", "margin": 20, "line_height": 50}
    told = ink.write(**body)
    per_sheet = int((210 - 40) * _MM // 50)
    assert told["pages"] == -(-40 // per_sheet) > 3
    assert told["height"] == pytest.approx(told["pages"] * 210 * _MM)
    for number, line in enumerate(told["lines"]):
        sheet, place = divmod(number, per_sheet)
        top = sheet * 210 * _MM + 20 * _MM + place * 50
        heights = [y for stroke in line["strokes"] for _, y in stroke]
        assert top - 75 < np.median(heights) < top + 125
    pages = _pages(ink.post(**body, format="pdf").content)
    strokes = [len(line["strokes"]) for line in told["lines"]]
    assert [len(page) for page in pages] == [
        sum(strokes[first : first + per_sheet]) for first in range(0, 40, per_sheet)
    ]
    begins = [stroke[0] for line in told["lines"] for stroke in line["strokes"]]
    expected = [(x * 0.75, (210 * _MM - y % (210 * _MM)) * 0.75) for x, y in begins]
    found = [tuple(place) for page in pages for place in page]
    inside = [20 < y < 580 for _, y in expected]  # what crosses an edge stays on its own sheet
    for one, other, counts in zip(found, expected, inside, strict=True):
        assert not counts or one == pytest.approx(other, abs=0.02)


def test_the_pages_of_a_pdf_are_those_that_its_tree_lists_and_each_tells_the_tree() -> None:
    """As PDF asks of them; a reader that keeps to it opens no others."""
    layout = PageOptions(page="a5", line_height=50).layout(14.0, 2.0)
    pdf = to_pdf([[np.array([[10.0, 20.0]])]] * 40, layout)
    objects = dict(re.findall(rb"\n(\d+) 0 obj\n(.*?)\nendobj", pdf, re.DOTALL))
    (tree,) = (number for number, told in objects.items() if b"/Type /Pages" in told)
    pages = [number for number, told in objects.items() if re.search(rb"/Type /Page\b", told)]
    assert len(pages) == len(layout.sheets(40)) > 2
    kids = b" ".join(b"%s 0 R" % number for number in pages)
    assert b"/Kids [%s]/Count %d" % (kids, len(pages)) in objects[tree]
    assert all(b"/Parent %s 0 R" % tree in objects[number] for number in pages)
    drawn = [re.findall(rb"/Contents (\d+) 0 R", objects[number]) for number in pages]
    assert all(b"stream" in objects[content] for (content,) in drawn)
    assert len({content for (content,) in drawn}) == len(pages)
    # Which a page must have, if only none (PDF 1.7, 7.7.3.3).
    assert all(b"/Resources <<>>" in objects[number] for number in pages)


@pytest.mark.parametrize("thinning", [0.0, 0.8])
def test_a_pdf_has_the_curves_of_the_drawing(thinning: float) -> None:
    layout = PageOptions(thinning=thinning).layout(14.0, 2.0)
    strokes = [np.array([[10.0, 20.0], [40, 30], [42, 35], [90, 20]]), np.array([[50.0, 60.0]])]
    (packed,) = _STREAM.findall(to_pdf([strokes], layout))
    told = re.findall(r"^(.*) ([mlc])$", zlib.decompress(packed).decode(), re.MULTILINE)
    paths = " ".join(re.findall(r' d="([^"]*)"', to_svg(strokes, layout, 1)))
    drawn = re.findall(r"([MLC])([^MLC]*)", paths)
    assert [operator.upper() for _, operator in told] == [command for command, _ in drawn]
    for (ours, _), (_, theirs) in zip(told, drawn, strict=True):
        numbers = np.array(theirs.replace(",", " ").split(), float)
        assert np.array(ours.split(), float) == pytest.approx(numbers, abs=0.006)


def test_a_pdf_without_sheets_is_one_page_as_high_as_its_lines(ink: InkService) -> None:
    body = {"text": "one\ntwo", "seed": 3, "width": 400}
    pdf = ink.post(**body, format="pdf").content
    assert re.findall(rb"/MediaBox \[([^\]]+)\]", pdf) == [b"0 0 300 144"]
    assert len(_pages(pdf)) == 1
    assert pdf == ink.post(**body, format="pdf").content
    assert ink.events(**body, format="pdf")[-1]["drawing"]


@pytest.mark.parametrize(("lines", "least"), [(250, 9000), (400, 10_000)])
def test_a_page_too_large_for_a_reader_of_pdf_has_larger_units(lines: int, least: float) -> None:
    """Those of PDF take 14,400 of them for a side at most."""
    layout = PageOptions(width=400, line_height=100).layout(14.0, 2.0)
    pdf = to_pdf([[np.array([[200.0, 70 + 100 * number]])] for number in range(lines)], layout)
    (box,) = re.findall(rb"/MediaBox \[([^\]]+)\]", pdf)
    (unit,) = re.findall(rb"/UserUnit (\d+)", pdf)
    wide, high = (float(length) for length in box.split()[2:])
    assert (wide * int(unit), high * int(unit)) == pytest.approx(
        (300, (100 + 100 * lines) * 0.75), abs=0.01
    )
    assert least < high <= 14_400
    scale, *_ = map(float, _NUMBER.findall(content := zlib.decompress(_STREAM.findall(pdf)[0])))
    assert scale * int(unit) == pytest.approx(0.75)
    assert len(re.findall(rb"(\S+) (\S+) m\n", content)) == lines


def test_a_dot_and_a_short_colour_are_drawn() -> None:
    layout = PageOptions(color="#f00").layout(14.0, 2.0)
    pdf = to_pdf([[np.array([[10.0, 20.0]])]], layout)
    (packed,) = _STREAM.findall(pdf)
    assert b"1.0 0.0 0.0 RG" in zlib.decompress(packed).replace(b"1 0 0 RG", b"1.0 0.0 0.0 RG")
    assert re.search(rb"10\.?0* 20\.?0* m\n10\.?0* 20\.?0* l\nS", zlib.decompress(packed))


def test_a_pdf_has_the_rules_of_each_sheet_in_their_colour_and_its_title() -> None:
    layout = PageOptions(page="a5", paper="squared", line_height=50).layout(14.0, 2.0)
    pdf, sheets = (
        to_pdf([[np.array([[10.0, 20.0]])]] * 30, layout, "an even keel"),
        rules(layout, 30),
    )
    for packed, expected in zip(_STREAM.findall(pdf), sheets, strict=True):
        content = zlib.decompress(packed)
        drawn = re.findall(rb"(\S+) (\S+) m\n(\S+) (\S+) l\nS", content)[: len(expected)]
        assert np.array(drawn, float) == pytest.approx(expected, abs=1e-3)
        colors = np.array(re.findall(rb"(\S+) (\S+) (\S+) RG\n", content), float) * 255
        assert colors.round().tolist() == [[0xB8, 0xC5, 0xD6], [0x1B, 0x2A, 0x49]]
        assert content.index(b"1 J\n") < content.index(b"1 j\n") < content.index(b" m\n")
    assert b"/Title (an even keel)" in pdf


def test_a_dot_after_a_thin_stroke_is_as_wide_as_was_asked_for() -> None:
    layout = PageOptions(stroke_width=5, thinning=0.8).layout(14.0, 2.0)
    fast, dot = np.array([[10.0, 20.0], [90, 20]]), np.array([[10.0, 20.0]])
    (packed,) = _STREAM.findall(to_pdf([[fast, dot]], layout))
    *_, thin, last = (float(w) for w in re.findall(rb"(\S+) w\n", zlib.decompress(packed)))
    assert thin < 3 < last == 5


def test_ink_is_as_wide_as_it_was_asked_for_and_not_as_the_rules_are() -> None:
    layout = PageOptions(stroke_width=5, paper="ruled").layout(14.0, 2.0)
    (packed,) = _STREAM.findall(to_pdf([[np.array([[10.0, 20.0], [20, 30]])]], layout))
    widths = re.findall(rb"(\S+) w\n", zlib.decompress(packed))
    assert [float(width) for width in widths] == [0.75, 5]


def test_a_sheet_has_all_lines_that_it_is_just_high_enough_for() -> None:
    page = {"width": 100, "height": 68.1}  # of three lines of 12.7 mm and two margins
    layout = PageOptions(page=page, margin=15, line_height=48).layout(14.0, 2.0)
    assert [len(numbers) for numbers in layout.sheets(7)] == [3, 3, 1]


def test_what_mm_lack_of_a_px_by_their_digits_is_not_missed() -> None:
    """42.7 mm are a line of 12.7 and two margins, and 0.529167 are 2 px."""
    exact = {"page": {"width": 100, "height": 42.7}, "margin": 15, "line_height": 48}
    assert [*PageOptions(**exact).layout(14.0, 2.0).sheets(2)] == [range(1), range(1, 2)]
    assert PageOptions(width=164, margin=0.529167)
    for less in (exact | {"margin": 15.002}, {"width": 164, "margin": 0.532}):
        with pytest.raises(ValueError, match=r"and 47 of the height; |leave 159 px of the width; "):
            PageOptions(**less)


def test_a_sheet_may_have_no_margins_and_room_for_one_line() -> None:
    page = {"width": 50, "height": 50.8}  # two inches of 96 px
    layout = PageOptions(page=page, margin=0, line_height=192).layout(14.0, 2.0)
    assert (layout.margin_px, len(layout.sheets(3))) == (0, 3)
    with pytest.raises(ValueError, match=r"a line of 192\.5"):
        PageOptions(page=page, margin=0, line_height=192.5)


@pytest.mark.parametrize("size", [None, "a5"])
@pytest.mark.parametrize(("paper", "apart"), [("ruled", 50.0), ("squared", 25.0)])
def test_lines_stand_on_the_rules(size: Any, paper: Any, apart: float) -> None:
    layout = PageOptions(page=size, paper=paper, line_height=50).layout(14.0, 2.0)
    sheets = rules(layout, 30)
    assert len(sheets) == len(layout.sheets(30))
    for page, (numbers, found) in enumerate(zip(layout.sheets(30), sheets, strict=True), 1):
        rows = sorted({y for _, y, _, end in found if y == end})
        assert {(x, to) for x, y, to, end in found if y == end} == {(0, layout.width_px)}
        assert np.diff(rows) == pytest.approx(apart)
        assert rows[0] >= (page - 1) * layout.sheet_px(30)
        for line in numbers:
            assert min(abs(row - layout.origin_px(line)[1]) for row in rows) < 1e-6
        columns = sorted({x for x, _, end, _ in found if x == end})
        bottom_px = page * layout.sheet_px(30)
        heights = {(y, round(end, 9)) for x, y, to, end in found if x == to}
        if paper == "ruled":
            assert not columns
            assert rows[-1] <= bottom_px - layout.margin_px
            continue
        # Squares cover all of the sheet and no other, and one begins where lines do.
        assert heights == {((page - 1) * layout.sheet_px(30), round(bottom_px, 9))}
        assert np.diff(columns) == pytest.approx(apart)
        assert min(abs(column - layout.margin_px) for column in columns) < 1e-6
        assert columns[0] < apart < columns[-1] < layout.width_px <= columns[-1] + apart
        assert rows[-1] < bottom_px <= rows[-1] + apart


def test_rules_are_in_drawings_and_in_no_ink(ink: InkService) -> None:
    body = {"text": "ruled", "seed": 4}
    plain = ElementTree.fromstring(ink.post(**body).content)
    ruled = ElementTree.fromstring(ink.post(**body, paper="ruled").content)
    assert len([*ruled.iter(f"{_SVG}path")]) == len([*plain.iter(f"{_SVG}path")]) + 1
    for format_ in ("inkml", "hpgl", "gcode"):
        assert (
            ink.post(**body, format=format_, paper="squared").content
            == ink.post(**body, format=format_).content
        )
    assert (
        ink.post(**body, format="pdf", paper="ruled").content
        != ink.post(**body, format="pdf").content
    )


def test_a_png_may_have_no_ground(ink: InkService) -> None:
    body = {"text": "a dot", "seed": 3, "format": "png", "width": 300}
    white, clear = (
        np.array(Image.open(io.BytesIO(ink.post(**body, ground=ground).content)).convert("RGBA"))
        for ground in ("white", "transparent")
    )
    assert (white[..., 3] == 255).all()
    assert clear[0, 0, 3] == 0
    assert (clear[..., 3] == 255).any()


@pytest.mark.parametrize("page", ["a5", {"width": 91.7, "height": 43}], ids=str)
def test_an_image_is_placed_as_large_as_its_sheets_are(ink: InkService, page: Any) -> None:
    """Programs that print an image which does not say how large its px are make of a sheet a third
    more: they take them for points."""
    body = {"text": "to\nsize", "seed": 3, "line_height": 64, "margin": 10, "page": page}
    image = Image.open(io.BytesIO(ink.post(**body, format="png").content))
    image.load()  # all of it, and the check sums
    told = ink.write(**body)
    mm = [px / dpi * 25.4 for px, dpi in zip(image.size, image.info["dpi"], strict=True)]
    assert mm == pytest.approx([told[side] / _MM for side in ("width", "height")], abs=0.3)


def test_a_page_in_px_is_what_it_was_and_its_margin_may_be_given(ink: InkService) -> None:
    body = {"text": "here", "seed": 5, "width": 500}
    answer = ink.write(**body)
    assert (answer["width"], answer["height"]) == (500, 128)
    assert "pages" not in answer
    moved = ink.write(**body, margin=20)
    left, other = (a["lines"][0]["strokes"][0][0][0] for a in (answer, moved))
    assert other - left == pytest.approx(20 * _MM - 32, abs=0.02)


@pytest.mark.parametrize(
    "body",
    [
        {"page": "a3"},
        {"page": {"width": 42, "height": 100}},
        {"page": {"width": 100, "height": 1001}},
        {"page": {"width": 100}},
        {"page": "a4", "width": 800},
        {"page": "a5", "margin": 60},
        {"page": {"width": 100, "height": 40}, "line_height": 64},
        {"margin": -1},
        {"margin": 90},
        {"paper": "blotting"},
        {"ground": "red"},
    ],
    ids=str,
)
def test_paper_that_there_is_not_is_refused(ink: InkService, body: dict[str, Any]) -> None:
    assert ink.post(text="a", **body).status_code == 400


def test_margins_without_a_page_leave_a_width_alone(ink: InkService) -> None:
    told = {body["margin"]: ink.post(text="a", **body).json()["error"]["message"] for body in (
        {"margin": 200}, {"margin": 60, "page": "a5"},
        {"margin": 70, "page": {"width": 100, "height": 100}},
    )}  # fmt: skip
    assert "leave 0 px of the width" in told[200]
    assert "inf" not in told[200]
    assert re.search(r"px of the width and \d+ of the height", told[60])
    assert "leave 0 px of the width and 0 of the height" in told[70]
