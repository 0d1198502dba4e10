// The pen: points are queued as they come and drawn at the pace of a hand, in an SVG element.
import { draw } from "./elements.js";
import { curveTo, distance, dot, firstPart, isSame, moveTo, segment } from "./ink.js";

const POINTS_PER_S = 60;
// A lifted pen is not worth watching, only the leap to a new line is a little longer.
const SHORT_MOVE_S = 0.05;
const LONG_MOVE_S = 0.2;
const LONG_MOVE_PX = 150;
// After a pause of the page, a hidden tab for one, the pen goes on instead of leaping.
const LONGEST_FRAME_S = 0.1;

const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Pen {
  #sheet;
  #queue = []; // points to come: {at: [x, y], up, line, character}
  #stroke = []; // points of the stroke being drawn, the last one where the pen is
  #path = null; // the element of its last part, all of one width
  #settled = ""; // the path data of that so far
  #thinner = null; // and by how many steps it is thinner; null before there is a curve
  #part = 0; // how much of the way to the first point of the queue is done
  #place = null; // the last point reached, on paper or above it
  #ended = false;
  #frame = 0;
  #then = 0;
  #drained;
  #tip = draw("circle", { class: "tip", visibility: "hidden" });

  /** `sheet` takes the strokes; `pace()` is the speed, 1 a hand's; `reached` hears each point. */
  constructor(sheet, { nib, pace, reached = () => {} }) {
    this.#sheet = sheet;
    this.nib = nib;
    this.pace = pace;
    this.reached = reached;
    this.#tip.setAttribute("r", Math.max(3, nib.width * 1.6));
    sheet.append(this.#tip);
    this.drained = new Promise((resolve) => (this.#drained = resolve));
  }

  /** Points of one event: [[x, y, up], ...] and what they belong to. */
  push(points, line, character) {
    for (const [x, y, up] of points) {
      const [last, at] = [this.#queue.at(-1), [x, y]];
      // A point where the pen already is has no direction; only that it lifts may be news.
      if (last && !last.up && isSame(last.at, at)) last.up = up > 0.5;
      else this.#queue.push({ at, up: up > 0.5, line, character });
    }
    this.#wake();
  }

  /** A line is over: whatever was last written, the pen leaves the paper. */
  lift() {
    const last = this.#queue.at(-1);
    if (last) last.up = true;
    this.#wake();
  }

  /** No more points will come. */
  end() {
    this.#ended = true;
    this.lift();
  }

  /** Leave the ink as it is. */
  stop() {
    this.#queue = [];
    this.#ended = true;
    this.#finish();
  }

  #wake() {
    if (this.#frame) return;
    this.#then = performance.now();
    this.#frame = requestAnimationFrame((now) => this.#step(now));
  }

  #step(now) {
    this.#frame = 0;
    const pace = still.matches ? Infinity : this.pace();
    let left = Math.min(Math.max(0, now - this.#then) / 1000, LONGEST_FRAME_S) * pace;
    if (Number.isNaN(left)) left = Infinity; // no time at any speed
    this.#then = now;
    while (this.#ready() && left > 0) {
      const cost = this.#cost();
      const missing = (1 - this.#part) * cost;
      if (left < missing) this.#part += left / cost;
      else this.#arrive();
      left -= missing;
    }
    this.#show();
    if (this.#ready()) this.#frame = requestAnimationFrame((next) => this.#step(next));
    else if (this.#ended) this.#finish();
  }

  /** The curve to a point depends on the one after it, unless the pen leaves the paper there. */
  #ready() {
    return this.#queue.length > 1 || Boolean(this.#queue[0]?.up);
  }

  /** Seconds that the way to the next point takes. */
  #cost() {
    if (this.#stroke.length) return 1 / POINTS_PER_S;
    const far = this.#place && distance(this.#place, this.#queue[0].at) > LONG_MOVE_PX;
    return far ? LONG_MOVE_S : SHORT_MOVE_S;
  }

  /** The curve to the next point; if it is of another width, a path of its own begins there. */
  #leg() {
    const next = this.#queue[0];
    const after = next.up ? undefined : this.#queue[1].at;
    const places = [this.#stroke.at(-2), this.#stroke.at(-1), next.at, after];
    const thinner = this.nib.step(...places);
    if (thinner !== this.#thinner) {
      if (this.#thinner !== null) {
        this.#path.setAttribute("d", this.#settled);
        this.#begin(this.#stroke.at(-1));
      }
      this.#thinner = thinner;
      if (this.nib.thinning) this.#path.setAttribute("stroke-width", this.nib.widthAt(thinner));
    }
    return segment(...places);
  }

  #arrive() {
    this.#part = 0;
    const point = this.#queue[0];
    if (!this.#stroke.length) {
      this.#thinner = null;
      this.#begin(point.at);
    } else {
      const leg = this.#leg(); // which may settle what was there, and begin another path
      this.#settled += curveTo(leg);
    }
    this.#stroke.push(point.at);
    this.#place = point.at;
    this.#queue.shift();
    if (point.up) this.#raise();
    this.reached(point.line, point.character);
  }

  #begin(place) {
    this.#settled = moveTo(place);
    this.#path = draw("path", { d: this.#settled });
    this.#sheet.insertBefore(this.#path, this.#tip);
  }

  #raise() {
    this.#path.setAttribute("d", this.#stroke.length > 1 ? this.#settled : dot(this.#stroke[0]));
    this.#stroke = [];
    this.#path = null;
  }

  #show() {
    let place = this.#place;
    if (this.#path) {
      const way = this.#part ? firstPart(this.#leg(), this.#part) : null;
      this.#path.setAttribute("d", this.#settled + (way ? curveTo(way) : ""));
      place = way?.at(-1) ?? place;
    } else if (place && this.#queue.length) {
      const [from, to] = [place, this.#queue[0].at];
      place = from.map((x, i) => x + (to[i] - x) * this.#part);
    }
    if (!place) return;
    this.#tip.setAttribute("cx", place[0]);
    this.#tip.setAttribute("cy", place[1]);
    this.#tip.classList.toggle("lifted", !this.#path);
    this.#tip.setAttribute("visibility", still.matches ? "hidden" : "visible");
  }

  #finish() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (this.#path) this.#raise();
    this.#tip.remove();
    this.#drained();
  }
}
