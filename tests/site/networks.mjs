// Models of the site whose networks are a few sums, the same as in networks.py: what they are asked to compute,
// and what they answer. Numbers in arrays go as base64 of their bytes.
import { attest } from "./site/golden.js";
import { handwriting } from "./site/ink.js";
import { Model } from "./site/model.js";
import { OnlineInk } from "./site/online.js";
import { checkSample } from "./site/sample.js";
import { filled, sizeOf } from "./site/tensors.js";
import { completion, completions } from "./site/text.js";

const never = new AbortController().signal;
const packed = ({ data }) => Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
const unpacked = (text) => new Uint8Array(Buffer.from(text, "base64"));
const allPacked = (tensors) => Object.fromEntries(Object.entries(tensors).map(([name, t]) => [name, packed(t)]));

/** Throws, as onnxruntime does, for a tensor that is not what its port says behind the axes of a batch. */
function fit(tensors, ports, ...axes) {
  for (const { name, dtype, shape } of ports.filter(({ name }) => tensors[name])) {
    const [given, wanted] = [tensors[name], [...axes, ...shape]];
    const fits = given.dtype === dtype && String(given.shape) === String(wanted) && given.data.length === sizeOf(wanted);
    if (!fits) throw new Error(`${name}: ${given.data.length} of ${given.dtype} [${given.shape}]`);
  }
}

/** A model whose runner is a network, and what it was asked to run, in order. */
function modelOf(manifest, network) {
  const model = new Model({ manifest, digest: "0".repeat(64) }, null);
  const runs = [];
  const initial = () =>
    Object.fromEntries(manifest.ports.state.map(({ name, dtype, shape }) => [name, filled(dtype, [1, ...shape], 0)]));
  const run = async ({ state, steps, row }) => {
    fit(state, manifest.ports.state, 1);
    fit(steps, manifest.ports.step, steps.force.data.length, 1);
    fit(row, manifest.ports.row, 1);
    runs.push({ state: allPacked(state), steps: allPacked(steps), row: allPacked(row) });
    return network(state, steps, row);
  };
  [model.runner, model.runtime] = [{ initial, run }, "any"];
  return { model, runs };
}

/** As much of onnxruntime as makes a session of a graph that computes nothing but zeros; `made` hears of what. */
export function nothing({ ports: { state, output } }, made = () => {}) {
  const zeros = (dtype, dims) => ({ type: dtype, dims, data: filled(dtype, dims, 0).data });
  const run = async ({ force: { dims: [steps, rows] } }) => Object.fromEntries([
    ...state.map(({ name, dtype, shape }) => [`${name}_after`, zeros(dtype, [rows, ...shape])]),
    ...output.map(({ name, dtype, shape }) => [name, zeros(dtype, [steps, rows, ...shape])]),
  ]);
  const create = async (...given) => {
    made(...given);
    return { inputNames: ["force"], run };
  };
  return { InferenceSession: { create }, Tensor: class { constructor(_, __, dims) { this.dims = dims; } } };
}

/** The verdict on a network that says 4 of whatever it is forced to emit, and otherwise too, unless it `leaks` what it
 *  was given. */
export function leaking({ leaks }) {
  const one = (number) => ({ dtype: "float64", shape: [1, 1], data: Float64Array.of(number) });
  const vectors = {
    steps: { forced: one(3), force: one(1) }, rows: {}, truth: { said: one(4) }, exact: {}, bounds: { said: 1 },
    trainingError: 0, plainRows: [0],
  };
  const run = async ({ steps: { forced, force } }) => {
    const [emitted, said] = [forced.data.slice(), forced.data.slice().fill(4)];
    for (const [t, given] of forced.data.entries()) if (!force.data[t]) [emitted[t], said[t]] = [7, leaks ? given : 4];
    return { state: { emitted: one(emitted.at(-1)) }, outputs: { said: { ...forced, data: said } } };
  };
  return attest(vectors, { initial: () => ({}), run }, "emitted");
}

/** How a job of a thousand runs ends, none of which waits for anything, when word comes that it is stopped, and
 *  whether that was before its end. */
export async function interrupted() {
  let runs = 0;
  const model = new Model({ manifest: {} }, null);
  model.runner = { run: async () => (runs += 1) };
  const job = { get wanted() { return 1000 - runs; }, expected: 1000, inputs: () => null, take: () => {} };
  const stopper = new AbortController();
  setImmediate(() => stopper.abort());
  const run = async () => {
    for await (const _ of model.run(job, stopper.signal));
  };
  return { end: await run().catch(({ name }) => name), early: runs < 1000 };
}

/** Adds up what it emitted, a byte a step. */
function text({ drawn, total }, { forced, force, uniform }) {
  const steps = force.data.length;
  const [next, logits] = [filled("int64", [steps, 1], 0), filled("float32", [steps, 1, 256], 0)];
  let [last, sum] = [Number(drawn.data[0]), Number(total.data[0])];
  for (let t = 0; t < steps; t += 1) {
    sum = (31 * sum + last + 7) % 1009;
    for (let v = 0; v < 256; v += 1) logits.data[256 * t + v] = ((sum * (v + 1) * 7919) % 1000) / 100;
    last = force.data[t] ? Number(forced.data[t]) : Math.floor(uniform.data[t] * 1000 + sum) % 256;
    next.data[t] = BigInt(last);
  }
  const state = { drawn: filled("int64", [1], last), total: filled("int64", [1], sum) };
  return { state, outputs: { next, logits } };
}

/** Moves on by its noise, a quarter of a character a step; where it is to be very neat it never comes to an end. */
function ink({ point, kappa }, { forced, force, uniform, normal }, { length, bias }) {
  const steps = force.data.length;
  const [drawn, mixture] = [filled("float32", [steps, 1, 3], 0), filled("float32", [steps, 1, 49], 0)];
  const [character, ended] = [filled("int64", [steps, 1], 0), filled("bool", [steps, 1], 0)];
  let [last, at] = [point.data, kappa.data[0]];
  for (let t = 0; t < steps; t += 1) {
    for (let i = 0; i < 49; i += 1) mixture.data[49 * t + i] = ((i * i + 3 * i) % 11) - 5 + last[i % 3] / 4;
    at += bias.data[0] < 5 ? 0.25 : 0;
    const mine = [4 * uniform.data[t] - 1, (Math.trunc(2 * normal.data[2 * t]) || 0) / (1 + bias.data[0]), Number(uniform.data[t] > 0.75)];
    last = Float32Array.from(force.data[t] ? forced.data.subarray(3 * t, 3 * t + 3) : mine);
    drawn.data.set(last, 3 * t);
    character.data[t] = BigInt(Math.floor(at));
    ended.data[t] = Number(at >= Number(length.data[0]));
  }
  const after = Float32Array.of(at, at + 0.5);
  const state = {
    point: { dtype: "float32", shape: [1, 3], data: last },
    kappa: { dtype: "float32", shape: [1, 2], data: after },
  };
  return { state, outputs: { drawn, mixture, character, ended } };
}

/** The events of a completion that goes on from a moment, if one is given, its answer in one, what the network was
 *  asked, and where the completion ended. */
export async function completed({ manifest, moment, body }) {
  const { model, runs } = modelOf(manifest, text);
  const tensor = (number) => ({ dtype: "int64", shape: [1], data: BigInt64Array.of(BigInt(number)) });
  const told = moment && {
    ...moment, state: { drawn: tensor(moment.drawn_last), total: tensor(moment.total) },
    undecided: unpacked(moment.undecided),
  };
  const asked = told ? { ...body, state: model.keep(told) } : body;
  const events = [];
  for await (const event of completions(model, asked, never)) events.push(event);
  const { seed, drawn, state, undecided } = model.moment(events.at(-2).choices[0].state) ?? {};
  const after = state && { seed, drawn, state: allPacked(state), undecided: packed({ data: undecided }) };
  return { runs: runs.splice(0), events, whole: await completion(model, asked, never), after };
}

const styled = (manifest, network) => {
  const { model, runs } = modelOf(manifest, network);
  const one = (shape, start) => ({ dtype: "float32", shape, data: Float32Array.from({ length: shape[0] }, (_, i) => start + i) });
  model.styles = {};
  for (const [i, { id }] of (manifest.styles ?? []).entries()) {
    model.styles[`${id}.point`] = one([3], i);
    model.styles[`${id}.kappa`] = one([2], -i);
  }
  return { model, runs };
};

/** The pages of requests, one after the other, or how they begin if they are streamed, and what the network was asked
 *  for each; "the last" style is that of the page before. */
export async function penned({ manifest, bodies }) {
  const { model, runs } = styled(manifest, ink);
  const pages = [];
  for (const body of bodies) {
    const style = body.style === "the last" ? pages.at(-1).page.style : body.style;
    const page = await handwriting(model, { ...body, style, format: "json" }, never);
    pages.push({ page: body.stream ? (await page.next()).value : page, runs: runs.splice(0) });
  }
  return pages;
}

/** What a session answers to the points of a pen, and what the network was asked. */
export async function followed({ manifest, opening, points }) {
  const { model, runs } = styled(manifest, ink);
  const online = await OnlineInk.of(model, opening);
  const answers = [];
  for (const point of points) answers.push(await online.answer({ point }));
  return { answers, runs };
}

/** How much of a sample comes out the same that has been changed: of a text the last letters, of ink the first points,
 *  each `moved`, and a point more at its end. */
export async function sampled({ manifest, request, ending, moved = [] }) {
  const isText = manifest.kind === "language";
  const { model } = styled(manifest, isText ? text : ink);
  const answer = await (isText ? completion : handwriting)(model, request, never);
  if (ending) answer.choices[0].text = answer.choices[0].text.slice(0, -ending.length) + ending;
  if (!isText) {
    const points = answer.lines[0].strokes.flat();
    for (const [i, [dx, dy]] of moved.entries()) [points[i][0], points[i][1]] = [points[i][0] + dx, points[i][1] + dy];
    answer.lines.at(-1).strokes.at(-1).push([0, 0]);
  }
  model.entry.drawn = { request, answer, runtime: "theirs" };
  return checkSample(model, never);
}
