// Paper that a person writes on: strokes from pointer events, on a ruled line.
import { draw } from "./elements.js";
import { curve, distance } from "./ink.js";

const HEIGHT_PX = 200;
export const BASELINE_PX = 130;
const WIDTH_PX = 640; // until it is known how much room there is
const MARGIN_PX = 20;
// What the service takes at most; nobody writes a few words with more.
const MOST_STROKES = 200;
export const MOST_POINTS = 8000;
// Only a pen that stands still is left out: the service judges a hand by its rhythm too.
const LEAST_PX = 0.3;

export class Pad {
  strokes = []; // [[[x, y], ...], ...] in px of the pad
  #svg;
  #path = null; // of the stroke being drawn
  #pointer = null;

  /** `heard` has point(place, up) for each point as it is drawn, changed(), full() for a stroke that has no
   *  room, and cancelled() for the last one, which nobody meant to write. */
  constructor(svg, heard) {
    this.#svg = svg;
    this.heard = heard;
    svg.addEventListener("pointerdown", (event) => this.#down(event));
    svg.addEventListener("pointermove", (event) => this.#move(event));
    svg.addEventListener("pointerup", (event) => this.#up(event));
    // The browser takes it for a palm, or for a gesture of the system.
    svg.addEventListener("pointercancel", ({ pointerId }) => pointerId === this.#pointer && heard.cancelled());
    this.rule(WIDTH_PX);
  }

  /** An empty page of a width in px. */
  rule(width) {
    this.#svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT_PX}`);
    this.#svg.style.maxWidth = `${width}px`;
    const ends = { x1: MARGIN_PX, x2: width - MARGIN_PX };
    const line = draw("line", { ...ends, y1: BASELINE_PX, y2: BASELINE_PX, class: "rule" });
    this.shade = draw("g", { class: "shade" });
    const invitation = draw("text", { x: MARGIN_PX + 4, y: BASELINE_PX - 10, class: "invitation" });
    invitation.append("Write here");
    this.#svg.replaceChildren(line, this.shade, invitation);
  }

  get width() {
    return this.#svg.viewBox.baseVal.width;
  }

  get points() {
    return this.strokes.reduce((sum, stroke) => sum + stroke.length, 0);
  }

  undo() {
    this.#lift();
    this.strokes.pop();
    [...this.#svg.querySelectorAll("path")].at(-1)?.remove();
    this.heard.changed();
  }

  clear() {
    this.#lift();
    this.strokes = [];
    for (const path of this.#svg.querySelectorAll("path")) path.remove();
    this.heard.changed();
  }

  #place({ clientX, clientY }) {
    const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(
      this.#svg.getScreenCTM().inverse(),
    );
    return [x, y].map((value) => Math.round(value * 100) / 100);
  }

  #down(event) {
    const full = this.strokes.length >= MOST_STROKES || this.points >= MOST_POINTS;
    if (this.#pointer !== null || event.button !== 0) return;
    if (full) return this.heard.full();
    this.#pointer = event.pointerId;
    this.#svg.setPointerCapture(event.pointerId); // the stroke goes on beyond the edge
    this.#svg.querySelector(".invitation")?.remove();
    this.#path = draw("path");
    this.#svg.append(this.#path);
    this.strokes.push([]);
    this.#add([event]);
    event.preventDefault(); // no text is selected, no other gesture begins
  }

  #move(event) {
    if (event.pointerId !== this.#pointer) return;
    // Between two frames a pen reports more places than events.
    const moves = event.getCoalescedEvents?.() ?? [];
    this.#add(moves.length ? moves : [event]);
  }

  /** Add the places of events to the stroke, and draw it once: as a whole, which takes long if it is long. */
  #add(events) {
    const stroke = this.strokes.at(-1);
    for (const place of events.map((event) => this.#place(event))) {
      const near = stroke.length && distance(stroke.at(-1), place) < LEAST_PX;
      if (near || this.points >= MOST_POINTS) continue;
      stroke.push(place);
      this.heard.point(place, false);
    }
    this.#path.setAttribute("d", curve(stroke));
  }

  /** The stroke being drawn, if one is, goes on no more. */
  #lift() {
    this.#pointer = this.#path = null;
  }

  #up(event) {
    if (event.pointerId !== this.#pointer) return;
    this.#lift();
    this.heard.point(this.strokes.at(-1).at(-1), true);
    this.heard.changed();
  }
}
