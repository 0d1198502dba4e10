// How wide a stroke is: where the pen was fast it is thinner, as in the service's own drawings
// (service/ink/nib.py).
import { distance } from "./ink.js";

// Line heights a point: what stored hands make on average. There half of the thinning is seen.
const USUAL_SPEED = 0.07;
const STEPS = 16; // widths told apart

export class Nib {
  /** `width` and `lineHeight` in px; `thinning` is the share of the width that speed can take. */
  constructor({ width, thinning = 0, lineHeight }) {
    Object.assign(this, { width, thinning, usual: USUAL_SPEED * lineHeight });
  }

  /** How many steps thinner the way from `b` to `c` is, in a stroke `a b c d` of which `a` and `d`
   *  may be missing. */
  step(a, b, c, d) {
    if (!this.thinning) return 0;
    const here = distance(b, c);
    const speed = ((a ? distance(a, b) : here) + 2 * here + (d ? distance(c, d) : here)) / 4;
    return Math.floor((STEPS * speed) / (speed + this.usual) + 0.5);
  }

  /** The width of a path that is so many steps thinner, in px. */
  widthAt(step) {
    return Math.round(100 * this.width * (1 - (this.thinning * step) / STEPS)) / 100;
  }
}
