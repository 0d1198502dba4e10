// From offsets in model units to points on the page, in whatever portions they come, as
// service/ink/pen.py has it.
import { clamp, median } from "./numbers.js";

// A model that knows offsets alone cannot see the ruled line, and climbs or sinks along it. A writer
// looks where the last letters stand, and comes back towards the line whenever the pen is lifted.
const ARCS_SEEN = 9; // the lowest places of so many arcs; descenders are the fewer
const ARCS_NEEDED = 5;
const GAIN = 0.4; // of the distance that is made good at one lift
const MOST_UNITS = 0.8; // a lift; a small letter is about three units high

/** A pen at the origin of line number `line` of a page, moved by offsets, kept on the line. */
export class LinePen {
  #stroke = []; // the heights of its last three points at most
  #lows = [];
  #x = 0;
  #y = 0;

  constructor(layout, line) {
    [this.layout, this.origin] = [layout, layout.origin(line)];
  }

  /** Follow offsets `(n, 3)`, one number after the other; points [x, y, up] in px. */
  move(offsets) {
    const points = [];
    for (let i = 0; i < offsets.length; i += 3) {
      const up = offsets[i + 2] > 0.5;
      this.#x += offsets[i];
      this.#y += offsets[i + 1];
      const [left, base] = this.origin;
      // The model's y points up, the page's down.
      const { pxPerUnit } = this.layout;
      points.push([left + this.#x * pxPerUnit, base - this.#y * pxPerUnit, offsets[i + 2]]);
      this.#look(up);
      if (up) this.#comeBack();
    }
    return points;
  }

  /** Remember where an arc of the stroke was lowest, its ends included. */
  #look(up) {
    this.#stroke = [...this.#stroke.slice(-2), this.#y];
    const [earlier, before, here] = [Infinity, Infinity, ...this.#stroke].slice(-3);
    if (before < earlier && before <= here) this.#lows.push(before);
    if (up && here < before) this.#lows.push(here);
    this.#lows = this.#lows.slice(-ARCS_SEEN);
    if (up) this.#stroke = [];
  }

  /** Move the pen, which is off the paper, towards the line the last letters should be on. */
  #comeBack() {
    if (this.#lows.length < ARCS_NEEDED) return;
    const step = clamp(-GAIN * median(this.#lows), -MOST_UNITS, MOST_UNITS);
    this.#y += step;
    this.#lows = this.#lows.map((low) => low + step);
  }
}

/** The strokes [[x, y], ...] of points, each ended by the pen's leaving the paper or by the end. */
export function strokesOf(points) {
  const strokes = [[]];
  for (const [x, y, up] of points) {
    strokes.at(-1).push([x, y]);
    if (up > 0.5) strokes.push([]);
  }
  return strokes.filter((stroke) => stroke.length);
}
