"""The pen that writes, the pad a person writes on, and where the model expects a pen."""

from typing import Any

import pytest

from tests.page.conftest import Open
from tests.page.taken import numbers
from tests.page.visit import Visit

# A pen with a hundred points to write: how many it has written by its first frame or two.
_WRITTEN = """async ({ pace, late_ms }) => {
  const names = ["pen", "nib"].map((name) => import(`/static/${name}.js`));
  const [{ Pen }, { Nib }] = await Promise.all(names);
  let [frames, written] = [0, 0];
  window.requestAnimationFrame = (step) =>
    frames++ || setTimeout(() => step(performance.now() + late_ms));
  const sheet = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const nib = new Nib({ width: 2, lineHeight: 64 });
  const pen = new Pen(sheet, { nib, pace: () => pace, reached: () => (written += 1) });
  pen.push(Array.from({ length: 100 }, (_, i) => [3 * i, i % 2, 0]), 0, 0);
  pen.end();
  await new Promise((seen) => setTimeout(seen, 100));
  return written;
}"""
_EXPECTATION = """async (points) => {
  const { answerBy } = await import("/static/service.js");
  const { Expectation } = await import("/static/expect.js");
  const [sent, shown] = [[], []];
  const socket = { readyState: WebSocket.OPEN, send: (said) => sent.push(JSON.parse(said)) };
  socket.close = () => (socket.closed = true);
  answerBy({ openOnline: () => socket });
  const made = new Expectation({ model: "any" }, 5, (...told) => shown.push(told));
  socket.onopen();
  for (const [x, y, up] of points) made.point([x, y], Boolean(up));
  return { sent, shown, closed: Boolean(socket.closed) };
}"""
_ELLIPSES = """async (mixture) => {
  const { ellipses } = await import("/static/expect.js");
  const of = (e, name) => e.getAttribute(name);
  return ellipses(mixture).map((e) => [+of(e, "rx"), +of(e, "ry"), of(e, "transform")]);
}"""


def test_who_wants_no_motion_waits_for_no_pen(site: str, opened: Open) -> None:
    slow = {"pace": 0.001, "late_ms": 0}
    with opened(site, "lab", reduced_motion="reduce") as visit:
        assert visit.page.evaluate(_WRITTEN, slow) == 100
    with opened(site, "lab") as visit:
        assert visit.page.evaluate(_WRITTEN, slow) < 10


def test_a_pen_that_was_out_of_sight_goes_on_and_does_not_leap(site: str, opened: Open) -> None:
    with opened(site, "lab") as visit:
        written = visit.page.evaluate(_WRITTEN, {"pace": 1, "late_ms": 5000})
    assert 0 < written < 10


def _press(visit: Visit, x: float, y: float, button: str = "left") -> tuple[float, float]:
    """Set the mouse on the pad; where that is on the screen."""
    visit["#draw-live"].uncheck()
    visit.page.evaluate(
        "addEventListener('pointerdown', (event) => (window.pointer = event.pointerId), true)"
    )
    box = visit["#draw-pad"].bounding_box()
    at = box["x"] + x, box["y"] + y
    visit.page.mouse.move(*at)
    visit.page.mouse.down(button=button)
    return at


def _send(visit: Visit, kind: str, at: tuple[float, float], other: int = 0, times: int = 0) -> None:
    """An event of the pen that is down, or of another, with places between two frames."""
    visit.page.evaluate(
        """([kind, [x, y], other, times]) => {
          const pointerId = window.pointer + other;
          const at = (n) => ({ clientX: x + 9 * n, clientY: y + 5 * n, pointerId, bubbles: true });
          const events = Array.from({ length: times }, (_, n) => at(n + 1));
          const between = events.map((place) => new PointerEvent(kind, place));
          const event = new PointerEvent(kind, { ...at(times || 1), coalescedEvents: between });
          document.querySelector("#draw-pad").dispatchEvent(event);
        }""",
        [kind, at, other, times],
    )


def _points(visit: Visit) -> list[int]:
    """How many points each stroke on the pad has; a dot has one."""
    return [1 + data.count("C") for data in visit.ink("#draw-pad")]


def test_another_button_draws_nothing(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "draw") as visit:
        _press(visit, 60, 60, "right")
        assert _points(visit) == []


def test_every_place_between_two_frames_is_on_the_paper(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "draw") as visit:
        _send(visit, "pointermove", _press(visit, 60, 60), times=3)
        assert _points(visit) == [4]


def test_a_stroke_is_drawn_once_however_many_places_there_are(
    handwriting: str, opened: Open
) -> None:
    """A mouse may tell of a thousand places a second, and a long stroke takes long to draw."""
    with opened(handwriting, "draw") as visit:
        at = _press(visit, 60, 60)
        visit.page.evaluate(
            """() => {
              window.drawn = 0;
              const watcher = new MutationObserver((changes) => (window.drawn += changes.length));
              const what = { subtree: true, attributeFilter: ["d"] };
              watcher.observe(document.querySelector("#draw-pad"), what);
            }"""
        )
        _send(visit, "pointermove", at, times=50)
        assert visit.page.evaluate("window.drawn") == 1
        assert _points(visit) == [51]


def test_a_second_finger_adds_nothing_to_a_stroke(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "draw") as visit:
        _send(visit, "pointermove", _press(visit, 60, 60), other=1)
        assert _points(visit) == [1]


def test_a_stroke_that_the_browser_takes_back_is_gone(handwriting: str, opened: Open) -> None:
    """It was a palm, for one."""
    with opened(handwriting, "draw") as visit:
        _press(visit, 60, 60)
        visit.page.mouse.up()
        at = _press(visit, 90, 60)
        _send(visit, "pointercancel", at, other=1)
        _send(visit, "pointermove", at, times=1)
        assert _points(visit) == [1, 2]
        _send(visit, "pointercancel", at)
        _send(visit, "pointermove", at)
        assert _points(visit) == [1]


def test_a_stroke_goes_on_beyond_the_edge_of_the_paper(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "draw") as visit:
        x, y = _press(visit, 100, 100)
        visit.page.mouse.move(x + 20, y + 160)
        visit.page.mouse.up()
        (stroke,) = visit.ink("#draw-pad")
    assert numbers(stroke)[-2:] == pytest.approx([120, 260], abs=1)


def test_after_a_lift_the_next_point_is_told_however_near(site: str, opened: Open) -> None:
    near = [[0, 0, 0], [1, 0, 0], [1, 0, 1], [2, 0, 0], [9, 0, 0]]
    with opened(site, "lab") as visit:
        told = visit.page.evaluate(_EXPECTATION, near)
    points = [message["point"] for message in told["sent"][1:]]
    assert points == [[0, 0, 0], [1, 0, 1], [2, 0, 0], [9, 0, 0]]


def test_a_service_far_behind_the_pen_is_followed_no_more(site: str, opened: Open) -> None:
    with opened(site, "lab") as visit:
        for count, behind in ((401, False), (402, True)):
            told = visit.page.evaluate(_EXPECTATION, [[9 * i, 0, 0] for i in range(count)])
            assert told["closed"] == behind
            assert told["shown"] == ([[[], None]] if behind else [])


def test_what_is_expected_lies_as_its_covariance_does(site: str, opened: Open) -> None:
    def one(sigma: list[float], rho: float, weight: float = 0.5) -> dict[str, Any]:
        return {"weight": weight, "mean": [7, 8], "sigma": sigma, "rho": rho}

    mixture = [one([3, 1], 0), one([1, 3], 0), one([2, 2], 0.5), one([2, 2], 0, 0.01)]
    with opened(site, "lab") as visit:
        across, down, aslant = visit.page.evaluate(_ELLIPSES, mixture)
        assert len(visit.page.evaluate(_ELLIPSES, 20 * mixture[:1])) == 8
    assert across == [6, 2, "translate(7 8) rotate(0)"]
    assert down == [6, 2, "translate(7 8) rotate(90)"]
    assert aslant[:2] == pytest.approx([2 * 6**0.5, 2 * 2**0.5])
    assert aslant[2] == "translate(7 8) rotate(45)"


_STROKES = """async (points) => {
  const names = ["pen", "nib"].map((name) => import(`/static/${name}.js`));
  const [{ Pen }, { Nib }] = await Promise.all(names);
  const sheet = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const nib = new Nib({ width: 2, lineHeight: 64 });
  const pen = new Pen(sheet, { nib, pace: () => 1 });
  pen.push(points, 0, 0);
  pen.end();
  const began = performance.now();
  await pen.drained;
  const data = [...sheet.querySelectorAll("path")].map((path) => path.getAttribute("d"));
  return { data, took_ms: performance.now() - began };
}"""


def test_a_pen_that_lifts_where_it_stands_is_lifted(site: str, opened: Open) -> None:
    points = [[0, 0, 0], [9, 0, 0], [9, 0, 1], [20, 0, 0], [29, 0, 1]]
    with opened(site, "lab") as visit:
        assert len(visit.page.evaluate(_STROKES, points)["data"]) == 2


def test_a_pen_leaves_a_dot_where_it_only_touches_and_leaps_to_the_next_line(
    site: str, opened: Open
) -> None:
    with opened(site, "lab") as visit:
        drawn = visit.page.evaluate(_STROKES, [[600, 5, 1], [5, 90, 1]])
    assert drawn["data"] == ["M600,5 L600,5", "M5,90 L5,90"]
    assert drawn["took_ms"] < 5000


def test_a_hand_that_is_laid_down_beside_the_pen_draws_nothing(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting, "draw") as visit:
        at = _press(visit, 60, 60)
        _send(visit, "pointerdown", at, other=1)
        _send(visit, "pointermove", at, other=-1, times=3)  # than the one that came last
        assert _points(visit) == [4]


def test_a_slow_pen_is_followed_px_by_px(handwriting: str, opened: Open) -> None:
    """The service judges a hand by its rhythm too."""
    with opened(handwriting, "draw") as visit:
        x, y = _press(visit, 60, 60)
        for step in range(1, 6):
            visit.page.mouse.move(x + step, y)
        visit.page.mouse.up()
        assert _points(visit) == [6]


def test_paper_takes_no_more_points_than_the_service(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "draw") as visit:
        visit.page.route("**/v1/read", lambda route: None)  # which is never answered
        for _ in range(17):
            _send(visit, "pointermove", _press(visit, 60, 60), times=520)
            visit.page.mouse.up()
        assert sum(_points(visit)) == 8000
        _press(visit, 60, 60)
        assert "The paper is full" in visit.text("#draw-error")
