// A completion: bytes in, text out, as service/text/completion.py has it. A token is a byte.
import { LEAST_UNIFORM, UniformStream } from "./noise.js";
import { filled } from "./tensors.js";
import { TextStream, decode, joined } from "./utf8.js";

const VOCABULARY = 256;
// Temperature 0: the next float32 below the best logit becomes improbable beyond float32.
const GREEDY = 2 ** 60;
const LEAST_TEMPERATURE = 1e-6;

/** The row inputs of the graph. */
function rowOf(temperature) {
  const inverse = temperature === 0 ? GREEDY : 1 / Math.max(temperature, LEAST_TEMPERATURE);
  return {
    inverse_temperature: filled("float32", [1], inverse),
    logit_bias: filled("float32", [1, VOCABULARY], 0),
  };
}

/** Force the bytes there are, draw for the rest: T steps of one row. */
function stepInputs(forced, uniforms) {
  const shape = [uniforms.length, 1];
  const tokens = filled("int64", shape, 0);
  const force = filled("bool", shape, 0);
  tokens.data.set(Array.from(forced, BigInt));
  force.data.fill(1, 0, forced.length);
  return { forced: tokens, force, uniform: { dtype: "float32", shape, data: uniforms } };
}

/** What the model thought of a byte before temperature, in nats, and its favourite: `logits (V,)`. */
function logprobsOf(logits, token) {
  let best = 0;
  for (let byte = 1; byte < logits.length; byte += 1) if (logits[byte] > logits[best]) best = byte;
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - logits[best]), 0);
  const of = (byte) => logits[byte] - logits[best] - Math.log(sum);
  return { token, logprob: of(token), top: [best, of(best)] };
}

/**
 * One completion. It goes on from a moment {state, seed, drawn, undecided}: recurrent state, and the
 * bytes that were not text yet. `take` is called after each run of `inputs` until `wanted` is 0.
 */
export class Completion {
  written = 0; // bytes of its own
  text = ""; // since the last piece
  entries = []; // log-probabilities of the bytes of `text`, and after them of those held back

  constructor({ prompt, maxTokens, temperature, moment }) {
    [this.prompt, this.maxTokens, this.temperature] = [prompt, maxTokens, temperature];
    [this.moment, this.state, this.row] = [moment, moment.state, rowOf(temperature)];
    this.uniforms = new UniformStream(moment.seed);
    this.stream = new TextStream();
    this.read = 0; // steps done
    // If a prompt comes between, what was undecided can only be what it looks like now.
    this.text = prompt.length ? decode(moment.undecided) : this.stream.push(moment.undecided);
  }

  /** Steps it could still use. */
  get wanted() {
    return this.prompt.length + this.maxTokens - this.read;
  }

  get expected() {
    return this.wanted;
  }

  /** How many uniforms have been used since the seed began. */
  get drawn() {
    return this.moment.drawn + Math.max(0, this.read - this.prompt.length);
  }

  /** Its next inputs. */
  inputs(steps) {
    // Of symbols that tie at temperature 0, the least uniform draws the first.
    const uniforms = new Float32Array(steps).fill(LEAST_UNIFORM);
    const known = this.prompt.subarray(this.read, this.read + steps);
    const free = steps - known.length;
    if (free && this.temperature > 0) uniforms.set(this.uniforms.take(this.drawn, free), known.length);
    return { state: this.state, steps: stepInputs(known, uniforms), row: this.row };
  }

  /** Take the state after, and outputs `(T, 1, ...)`. */
  take({ state, outputs }) {
    const tokens = Uint8Array.from(outputs.next.data, Number);
    const skip = Math.min(tokens.length, Math.max(0, this.prompt.length - this.read));
    for (let t = skip; t < tokens.length; t += 1) {
      const logits = outputs.logits.data.subarray(t * VOCABULARY, (t + 1) * VOCABULARY);
      this.entries.push(logprobsOf(logits, tokens[t]));
    }
    this.state = state;
    this.read += tokens.length;
    this.written += tokens.length - skip;
    this.text += this.stream.push(tokens.subarray(skip));
  }

  /** What became final since the last piece; at the end all of it, unless it is to be gone on with. */
  piece({ last, goesOn }) {
    if (last && !goesOn) this.text += this.stream.flush();
    const held = Math.min(this.entries.length, this.stream.undecided.length);
    const entries = this.entries.splice(0, this.entries.length - (last ? 0 : held));
    const text = this.text;
    this.text = "";
    return { text, entries };
  }

  /** Where it stands, to go on from. */
  after() {
    const { seed } = this.moment;
    return { state: this.state, seed, drawn: this.drawn, undecided: joined(this.stream.undecided) };
  }
}
