// Where lines of handwriting stand on a page, as service/ink/layout.py has it.
import { AVERAGE, LEAST_ROOM } from "./breaking.js";
import { Refusal } from "./model.js";

const MARGIN = 0.5; // of a line height
const ABOVE_BASELINE = 0.7; // of a line height; the rest is for descenders
// Of the width between margins: no hand keeps to its average advance, and what few lines are longer
// still ends within the margin.
const ROOM = 0.93;
const LARGEST_PAGE_PX = 16_000_000;

/** A page, and how large the model's units are on it. */
export class Layout {
  /** For a request, in `units` of the model; a character is `advance` of them wide. */
  constructor(body, units, advance) {
    const { width = 800, line_height: lineHeight = 64, stroke_width: nib = 2 } = body;
    const { color = "#1b2a49", thinning = 0 } = body;
    Object.assign(this, { width, lineHeight, nib, color, thinning });
    this.pxPerUnit = lineHeight / units.units_per_line;
    this.margin = lineHeight * MARGIN;
    this.advance = advance;
    const [between, character] = [width - 2 * this.margin, advance * this.pxPerUnit];
    this.room = Math.floor((AVERAGE * (between * ROOM)) / character); // as `widthOf` has it
    if (this.room < LEAST_ROOM) {
      throw new Refusal(
        `the margins leave ${Math.floor(Math.max(between, 0))} px of the width, too few for two characters, ` +
          `which take ${Math.ceil(((LEAST_ROOM / AVERAGE) * character) / ROOM)} in this hand`,
        "line_height",
      );
    }
  }

  /** The height of a page of `lines` lines, in px. */
  height(lines) {
    return Math.ceil(2 * this.margin + lines * this.lineHeight);
  }

  /** The left end of the baseline of line number `line`, from 0; y points down. */
  origin(line) {
    return [this.margin, this.margin + (line + ABOVE_BASELINE) * this.lineHeight];
  }

  /** Throws a `Refusal` for more lines than a page may have. */
  check(lines) {
    const area = this.width * this.height(lines);
    if (area <= LARGEST_PAGE_PX) return;
    const [told, most] = [area, LARGEST_PAGE_PX].map((n) => n.toLocaleString("en"));
    throw new Refusal(`text has ${lines} lines, a page of ${told} px; at most ${most}`, "text");
  }
}
