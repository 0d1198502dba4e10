// Where the pen is expected next, point by point, as service/ink/online.py has it.
import { handIn } from "./ink.js";
import { requireLine, written } from "./letters.js";
import { SPACE_UNITS, rowOf, stepInputs } from "./line.js";
import { anySeed, requireKnown } from "./model.js";
import { InkNoise } from "./noise.js";
import { clamp } from "./numbers.js";

const FIELDS = ["model", "text", "bias", "style", "seed", "line_height", "origin"];
const LOG_SIGMA = [-4, 4];
const STEEPEST_TILT = 5;
const HEAVIEST = 6; // Gaussians that are shown; the others weigh next to nothing

const rounded = (x, digits) => Number(x.toFixed(digits));

/** Pen points on a page in, the mixture of the next point out; the page has y down. */
export class OnlineInk {
  #at;
  #ahead = false; // whether a point that nobody has seen stands in the state
  #steps = 0;

  /** A session in the hand its opening asks for. Throws a `Refusal`. */
  static async of(model, opening) {
    requireKnown(opening, FIELDS);
    const { text = "", bias = 0, style, seed = anySeed(), line_height: height = 64, origin } = opening;
    const { alphabet } = model.manifest;
    const line = written(text, `${alphabet.characters}\n`).replaceAll("\n", " "); // of one line alone
    requireLine(line);
    const { hand } = await handIn(model, style, seed);
    const row = rowOf(line, hand, alphabet, bias);
    return new OnlineInk(model, hand, row, height / model.manifest.ink.units_per_line, origin);
  }

  constructor(model, hand, row, pxPerUnit, origin) {
    [this.model, this.state, this.row] = [model, hand.state, row];
    this.scale = [pxPerUnit, -pxPerUnit];
    this.noise = new InkNoise(hand.seed);
    // The hand's pen is still at the end of what it wrote last, a space before this line.
    const before = hand.context ? [-SPACE_UNITS, hand.height] : [0, 0];
    this.#at = origin && origin.map((x, axis) => x + before[axis] * this.scale[axis]);
  }

  /** The mixture of the point after this one [x, y, up], means in px. */
  async answer({ point: [x, y, up] }) {
    const place = [x, y];
    const offset = this.#at ? place.map((to, axis) => (to - this.#at[axis]) / this.scale[axis]) : [0, 0];
    this.#at = place;
    const outputs = await this.#read(Float32Array.of(...offset, up > 0 ? 1 : 0));
    const raw = outputs.mixture.data.slice(-(outputs.mixture.shape.at(-1)));
    const character = Number(outputs.character.data.at(-1));
    return { ...this.#mixture(raw), character, step: this.#steps };
  }

  /** Read what came `(3,)`; the last output tells of what comes after it. */
  async #read(sent) {
    const pending = this.model.manifest.ports.state[0].name;
    // Before the first point stands what the state begins with.
    const known = this.#ahead ? [] : [...sent];
    const seen = { [pending]: { dtype: "float32", shape: [1, 3], data: sent } };
    if (this.#ahead) this.state = { ...this.state, ...seen };
    const count = known.length / 3 + 1;
    const steps = stepInputs(this.noise.take(this.#steps, count), Float32Array.of(...known, 0, 0, 0));
    steps.force.data[count - 1] = 0;
    const { state, outputs } = await this.model.runner.run({ state: this.state, steps, row: this.row });
    this.state = state;
    this.#ahead = true;
    this.#steps += count;
    return outputs;
  }

  /** Raw outputs `(6M + 1,)` as numbers on the page (Graves 2013, eq. 18-22). */
  #mixture([penUp, ...rest]) {
    const count = rest.length / 6;
    const part = (n) => rest.slice(n * count, (n + 1) * count);
    const most = Math.max(...part(0));
    const weights = part(0).map((logit) => Math.exp(logit - most));
    const total = weights.reduce((a, b) => a + b);
    const [means, logSigmas, tilts] = [[part(1), part(2)], [part(3), part(4)], part(5)];
    const order = weights.map((_, m) => m).sort((a, b) => weights[b] - weights[a]).slice(0, HEAVIEST);
    return {
      pen_up: 1 / (1 + Math.exp(-penUp)),
      mixture: order.map((m) => ({
        weight: weights[m] / total,
        mean: means.map((mean, axis) => rounded(this.#at[axis] + mean[m] * this.scale[axis], 2)),
        sigma: logSigmas.map((log) => rounded(Math.exp(clamp(log[m], ...LOG_SIGMA)) * this.scale[0], 3)),
        // The page's y points down, which turns the tilt round.
        rho: -Math.tanh(clamp(tilts[m], -STEEPEST_TILT, STEEPEST_TILT)),
      })),
    };
  }
}
