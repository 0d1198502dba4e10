// A line that would run past its margin, made narrower as it is written, as service/ink/squeeze.py
// has it.
import { AVERAGE, widthOf } from "./breaking.js";
import { clamp } from "./numbers.js";

// Average characters: when so many have been written, how wide they were counts for as much as how
// wide they were expected to be.
const TRUSTED = 8;
const NARROWEST = 0.5; // of its width; what still runs on is held between the margin and the edge

/** Where the points of a line go from left to right, in whatever portions they come. */
export class Squeeze {
  #before = [0];
  #character = 0;
  // From here on a px of the pen is so much of one on the page: the pen's x, the page's, and the
  // share, which is 1 to the left of the first.
  #turns = [];

  constructor(layout, text) {
    for (const character of text) this.#before.push(this.#before.at(-1) + widthOf(character) / AVERAGE);
    this.advance = layout.advance * layout.pxPerUnit;
    [this.left, this.right] = [layout.margin, layout.width - layout.margin];
    this.spare = Math.max(layout.margin - layout.nib / 2, 0);
    this.farthest = this.left;
  }

  /** Where a pen at `x` is on the page, while the window is at a character. */
  place(x, character) {
    if (character > this.#character) {
      this.#character = character;
      this.#turn();
    }
    this.farthest = Math.max(this.farthest, x);
    return this.#within(this.#at(x));
  }

  /** Begin a character: what is left is as wide as it may be. */
  #turn() {
    const done = this.#before[this.#character];
    const left = this.#before.at(-1) - done;
    const pace = (TRUSTED + (this.farthest - this.left) / this.advance) / (TRUSTED + done);
    const here = this.#at(this.farthest);
    const share = clamp((this.right - here) / (left * pace * this.advance), NARROWEST, 1);
    if (share !== (this.#turns.at(-1)?.share ?? 1)) {
      this.#turns.push({ begin: this.farthest, page: here, share });
    }
  }

  #at(x) {
    const turn = this.#turns.findLast(({ begin }) => x >= begin);
    return turn ? turn.page + turn.share * (x - turn.begin) : x;
  }

  /** Nothing is drawn beyond the edge, however lost the pen is. */
  #within(x) {
    const beyond = x - this.right;
    return beyond <= 0 ? x : this.right + (this.spare * beyond) / (this.spare + beyond);
  }
}
