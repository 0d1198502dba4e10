// A line of ink: text in, offsets of a pen out, as service/ink/line.py and contract/ending.py have
// it. A hand is a moment {state, seed, drawn, context, height}: recurrent state, the character that
// stays in sight, and how high the pen is over the baseline. Offsets are dx, dy, pen up, n times.
import { bases } from "./letters.js";
import { Refusal } from "./model.js";
import { InkNoise } from "./noise.js";
import { clamp, median } from "./numbers.js";
import { filled } from "./tensors.js";

const MOST_POINTS_PER_CHARACTER = 40; // a line that takes so many has lost its way
const MOST_POINTS_MORE = 100;
const USUAL_POINTS_PER_CHARACTER = 10;
// The first move of a line that goes on from another covers the space between two words as well.
export const SPACE_UNITS = 4;
const PAST_INK_UNITS = 2; // a dot or a bar of the last letter lies nearer than a next letter
const KAPPA_AT_END = [-1, 1.5]; // the window's centres at the end of a text, or just past it
const POINTS_OF_BASELINE = 60; // how many of the last points say where it has got to

/** What the window leaves behind stays in its sight, a space before the line. */
const inSight = (text, { context }) => (context ? `${context} ${text}` : text);

/** The row inputs of the graph for a text that was `written`, from a moment. */
export function rowOf(text, hand, { longest_text: longest, characters, end }, bias) {
  const symbols = Array.from(bases(inSight(text, hand)), (base) => characters.indexOf(base) + 1);
  if (symbols.length > longest) {
    throw new Refusal(`text has ${text.length} characters; a line has fewer`, "text");
  }
  const row = filled("int64", [1, longest + 1], end);
  row.data.set(symbols.map(BigInt));
  return { text: row, length: filled("int64", [1], symbols.length), bias: filled("float32", [1], bias) };
}

/** T steps of one row; `forced` has the offsets to be read, if they are not to be drawn. */
export function stepInputs({ uniforms, normals }, forced = null) {
  const steps = uniforms.length;
  return {
    forced: { dtype: "float32", shape: [steps, 1, 3], data: forced ?? new Float32Array(3 * steps) },
    force: filled("bool", [steps, 1], forced ? 1 : 0),
    uniform: { dtype: "float32", shape: [steps, 1], data: uniforms },
    normal: { dtype: "float32", shape: [steps, 1, 2], data: normals },
  };
}

/** How far the end of the ink is above the baseline, by where its last arcs stand. */
function heightOf(ink) {
  let y = 0;
  const all = Array.from({ length: ink.length / 3 }, (_, i) => (y += ink[3 * i + 1]));
  const last = all.slice(-POINTS_OF_BASELINE);
  if (last.length < 3) return 0;
  const inner = last.slice(1, -1);
  const lowest = inner.filter((low, i) => low < last[i] && low <= last[i + 2]);
  return last.at(-1) - (lowest.length ? median(lowest) : Math.min(...last));
}

const withKappa = (state, change) => ({
  ...state,
  kappa: { ...state.kappa, data: state.kappa.data.map(change) },
});

/** The hand that wrote `ink`, the text in sight, and was then in `state`. */
function handAfter(before, text, ink, state, drawn) {
  return {
    state: withKappa(state, (kappa) => kappa - (text.length - 1)),
    seed: before.seed,
    drawn: before.drawn + drawn,
    context: text.at(-1),
    height: heightOf(ink),
  };
}

/** The same with its text written out, wherever the window has got to: its writer says so. */
const atEnd = (hand) => ({
  ...hand,
  state: withKappa(hand.state, (kappa) => clamp(kappa, ...KAPPA_AT_END)),
});

/** A hand the model will make up. */
export const fresh = (model, seed) => ({
  state: model.runner.initial(), seed, drawn: 0, context: "", height: 0,
});

/** The hand that wrote a text in these offsets: the state after reading both. */
export async function handThatWrote(model, text, ink) {
  const start = fresh(model, 0);
  const points = ink.length / 3;
  const still = { uniforms: new Float32Array(points).fill(0.5), normals: new Float32Array(2 * points) };
  const row = rowOf(text, start, model.manifest.alphabet, 0);
  const { state } = await model.runner.run({ state: start.state, steps: stepInputs(still, ink), row });
  return atEnd(handAfter(start, text, ink, state, 0));
}

/** When a text is over: past its end, the pen has moved on to the right of all that was written. */
export class Ending {
  #x = 0;
  #right = 0;

  /** Take in an offset. */
  follow(dx) {
    this.#x += dx;
    this.#right = Math.max(this.#right, this.#x);
  }

  /** Whether an offset, drawn past the text, is no ink any more. */
  leaves(dx) {
    return this.#x + dx > this.#right + PAST_INK_UNITS;
  }
}

/** A line as `Model.run` wants it: drawn until its text is over. */
export class InkLine {
  reason = null; // why it ended: "stop", or "length" when it lost its way
  character = 0; // the one being written
  points = 0;
  #ending = new Ending();
  #ink = []; // all offsets as they were drawn
  #shown = []; // those since the last piece, as they are shown
  #characters = [];

  constructor(text, hand, model, bias) {
    [this.text, this.hand, this.model, this.state] = [text, hand, model, hand.state];
    this.sight = inSight(text, hand);
    this.row = rowOf(text, hand, model.manifest.alphabet, bias);
    this.noise = new InkNoise(hand.seed);
    this.most = MOST_POINTS_PER_CHARACTER * text.length + MOST_POINTS_MORE;
  }

  /** Steps it could still use. */
  get wanted() {
    return this.reason ? 0 : this.most - this.points;
  }

  /** Steps it will likely use. */
  get expected() {
    return USUAL_POINTS_PER_CHARACTER * this.text.length - this.points;
  }

  /** Its next inputs. */
  inputs(steps) {
    this.before = { state: this.state, points: this.points };
    const noise = this.noise.take(this.hand.drawn + this.points, steps);
    return { state: this.state, steps: stepInputs(noise), row: this.row };
  }

  /** Take the state after, and outputs `(T, 1, ...)`, up to the end of the text. */
  take({ state, outputs }) {
    this.state = state;
    for (const [t, past] of outputs.ended.data.entries()) {
      const offset = [...outputs.drawn.data.subarray(3 * t, 3 * t + 3)];
      if (past && this.#ending.leaves(offset[0])) {
        this.reason = "stop";
        return;
      }
      this.#ending.follow(offset[0]);
      this.#add(offset);
      const character = Number(outputs.character.data[t]) - (this.sight.length - this.text.length);
      this.character = clamp(character, 0, this.text.length - 1);
      this.#characters.push(this.character);
    }
    if (this.wanted === 0) this.reason = "length";
  }

  #add(offset) {
    this.#ink.push(...offset);
    const { context, height } = this.hand;
    if (!this.points && context) {
      // From the end of the hand's ink, wherever that was, to the beginning of this line.
      const [dx, dy, up] = offset;
      this.#shown.push(clamp(dx - SPACE_UNITS, 0, SPACE_UNITS), dy + height, up);
    } else this.#shown.push(...offset);
    this.points += 1;
  }

  /** The offsets since the last piece, and the character the window was at for each. */
  piece() {
    const offsets = Float32Array.from(this.#shown.splice(0));
    return { offsets, characters: this.#characters.splice(0) };
  }

  /** The hand for the next line: the same, or the one that was made up for this line. */
  async after() {
    const { hand, model, points } = this;
    if (hand.context) return { ...hand, drawn: hand.drawn + points };
    // The last run went past the end: again up to there, read and not drawn.
    let { state } = this.before;
    const rest = Float32Array.from(this.#ink.slice(3 * this.before.points));
    if (rest.length) {
      const noise = this.noise.take(hand.drawn + this.before.points, rest.length / 3);
      ({ state } = await model.runner.run({ state, steps: stepInputs(noise, rest), row: this.row }));
    }
    const after = handAfter(hand, this.sight, this.#ink, state, points);
    // The window of a line that was cut off stands before texts that come later.
    return this.reason === "length" ? atEnd(after) : after;
  }
}
