// Asks the site's modules: `node answers.mjs` reads lines of JSON, {question, cases, arguments}, and writes a line
// for each, with an answer for each case. Numbers in arrays go as base64 of their bytes, so that no bit is lost.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { InkNoise, UniformStream } from "./site/noise.js";
import { brokenForcing, forcingRuns } from "./site/forcing.js";
import { attest, judge, readGolden, replay } from "./site/golden.js";
import { handwriting, stored } from "./site/ink.js";
import { breakText, widthOf } from "./site/breaking.js";
import { fold, unwritable } from "./service/web/fold.js";
import { InkLine, fresh } from "./site/line.js";
import { LineMarks } from "./site/marks.js";
import { Model, Refusal } from "./site/model.js";
import { OnlineInk } from "./site/online.js";
import { median, round } from "./site/numbers.js";
import { Session } from "./site/session.js";
import { Store } from "./site/store.js";
import { answer } from "./site/routes.js";
import { slantOf } from "./site/slant.js";
import { offsetsOf } from "./site/strokes.js";
import { completion } from "./site/text.js";
import { Runner } from "./site/runner.js";
import { completed, followed, interrupted, leaking, nothing, penned, sampled } from "./networks.mjs";
import { asked as routes, failing, heard, listless, revisited, shell, stopped, served, unstarted, worked } from "./browser.mjs";
import { serve } from "./serving.mjs";
import * as drawn from "./drawn.mjs";
import * as shown from "./shown.mjs";
import { Squeeze } from "./site/squeeze.js";
import { filled, takeRows, takeSteps } from "./site/tensors.js";
import { TextOffsets, TextStream } from "./site/utf8.js";

const packed = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("base64");
const unpacked = (text) => new Uint8Array(Buffer.from(text, "base64"));
const never = new AbortController().signal;

function noise({ seed, choice, first, count }) {
  const ink = new InkNoise(seed, choice).take(first, count);
  const uniforms = new UniformStream(seed, choice).take(first, count);
  return { uniforms: packed(uniforms), ink: packed(ink.uniforms), normals: packed(ink.normals) };
}

function utf8({ undecided, portions, between }) {
  const stream = new TextStream();
  const offsets = new TextOffsets(unpacked(undecided), between);
  const told = portions.map(unpacked).map((portion) => ({
    text: stream.push(portion),
    undecided: packed(stream.undecided),
    offsets: Array.from(portion, (byte) => offsets.of(byte)),
  }));
  return { told, rest: stream.flush() };
}

/** Golden outputs changed in one place of one tensor, judged. */
function golden({ folder, name, place, by }) {
  const vectors = readGolden(new Uint8Array(readFileSync(join(folder, "golden.safetensors"))));
  const rows = vectors.plainRows;
  const all = Object.entries({ ...vectors.truth, ...vectors.exact });
  const outputs = Object.fromEntries(all.map(([port, tensor]) => [port, takeRows(tensor, rows, 1)]));
  const { data } = outputs[name];
  data[place] = typeof data[place] === "bigint" ? data[place] + BigInt(by ?? 0) : data[place] + (by ?? NaN);
  return judge(vectors, outputs, rows);
}

/** The verdict on a runner that knows the golden outputs and counts steps in its state, or forgets. */
function replayed({ folder, forgets }) {
  const vectors = readGolden(new Uint8Array(readFileSync(join(folder, "golden.safetensors"))));
  const right = Object.entries({ ...vectors.truth, ...vectors.exact });
  const judged = forgets ? attest : replay; // whose verdict is known before anything is forced
  return judged(vectors, {
    initial: () => 0,
    run: async ({ state, steps }) => {
      const after = state + Object.values(steps)[0].shape[0];
      const told = ([port, tensor]) => [port, takeSteps(takeRows(tensor, vectors.plainRows, 1), state, after)];
      return { state: forgets ? 0 : after, outputs: Object.fromEntries(right.map(told)) };
    },
  });
}

/** The verdict on golden vectors of a single step that come out as they are `off`, how often they were run, and
 *  their last rows alone. */
async function single({ off }) {
  const one = (...numbers) => ({ dtype: "float64", shape: [1, 3], data: Float64Array.of(...numbers) });
  const vectors = {
    steps: { forced: one(1, 2, 3) }, rows: {}, truth: { a: one(0, 4, 0), b: one(0, 5, 0) }, exact: {},
    bounds: { a: 1, b: 2 }, trainingError: 0.5, plainRows: [1],
  };
  let runs = 0;
  const run = async () => {
    runs += 1;
    const [a, b] = [4, 5].map((right) => ({ dtype: "float64", shape: [1, 1], data: Float64Array.of(right + off) }));
    return { state: {}, outputs: { a, b } };
  };
  const verdict = await replay(vectors, { initial: () => ({}), run });
  const tensor = { dtype: "int64", shape: [2, 3, 2], data: BigInt64Array.from({ length: 12 }, (_, i) => BigInt(i)) };
  const rows = [0, 1].map((axis) => Array.from(takeRows(tensor, [axis], axis).data, Number));
  return { verdict, runs, rows };
}

/** What is said of a network whose state is `off` by so much, where it should be nothing. */
const almost = ({ off }) => {
  const tensor = (number) => ({ data: Float64Array.of(number), shape: [1, 1] });
  const [run, found] = [{ force: tensor(0), forced: tensor(0) }, (number) => ({ emitted: tensor(0), h: tensor(number) })];
  return brokenForcing(Array(7).fill(run), [0, 0, off, 0, 0, 0, 0].map(found), "emitted");
};

/** The runs of the golden steps of an artifact, and what is said of a network that adds up what it
 *  emitted: one that is `deaf`, one that `never` draws, or one that reads what it may not, where it `leaks` or
 *  only `late`, behind its first step. */
function forcing({ folder, fault }) {
  const { steps } = readGolden(new Uint8Array(readFileSync(join(folder, "golden.safetensors"))));
  const runs = forcingRuns(steps);
  const found = runs.map(({ force, forced }) => {
    const size = forced.data.length / forced.shape[0];
    const each = Array.from({ length: size }, () => ({ total: 0, pending: 0 }));
    for (const [i, given] of Array.from(forced.data, Number).entries()) {
      const row = each[i % size];
      const heeds = force.data[Math.floor((i * force.data.length) / forced.data.length)];
      const reads = fault === "leaks" || (fault === "late" && i >= size);
      row.total += row.pending + (reads && !heeds ? given : 0);
      row.pending = fault !== "deaf" && (heeds || fault === "never") ? given : 7 + row.total;
    }
    const told = (name) => ({ data: each.map((row) => row[name]) });
    return { emitted: told("pending"), total: told("total") };
  });
  const packedRuns = runs.map((run) => Object.fromEntries(Object.entries(run).map(([n, t]) => [n, packed(t.data)])));
  return { runs: packedRuns, broken: brokenForcing(runs, found, "emitted") };
}

const unknown = ({ texts, ...writes }) => texts.map((text) => unwritable(text, writes));

const lines = ({ text, room }) => breakText(text, room);

const widths = (characters) => Array.from(characters, widthOf);

/** The marks of a line that comes in two portions. */
function marks({ text, offsets, points, characters, unit }) {
  const [line, half] = [new LineMarks(text, { pxPerUnit: unit }), points.length >> 1];
  for (const part of [[0, half], [half]]) {
    line.follow(Float32Array.from(offsets.slice(...part).flat()), points.slice(...part), characters.slice(...part));
  }
  return line.drawn();
}

const slant = (offsets) => slantOf(offsets.flat());

/** Where a pen's points go, from left to right. */
const squeezed = ({ layout, text, xs, characters }) => {
  const squeeze = new Squeeze(layout, text);
  return xs.map((x, i) => squeeze.place(x, characters[i]));
};

const described = (manifest) => new Model({ manifest, digest: "any", bytes: 0 }, null).describe();
const previews = (manifest) => stored({ name: manifest.name, manifest }).map(({ preview }) => preview);

/** What a caller's strokes become, or why they do not. */
function strokes({ strokes, text }) {
  try {
    return { offsets: packed(offsetsOf(strokes, text)) };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { refused: error.message };
  }
}

/** What a session computes of messages it has all at once, and what it tells. */
async function session({ messages, stops, fails }) {
  const [computed, heard] = [[], []];
  const answer = async (message) => {
    computed.push(message);
    if (message === fails) throw new Error("no such point");
    return message;
  };
  const told = (message) => {
    heard.push(message);
    if (message === stops) online.stop();
  };
  const online = new Session({ open: async () => ({ answer }), told, failed: () => heard.push("failed") });
  for (const message of ["opening", ...messages]) online.hear(message);
  await new Promise(setImmediate);
  return { computed, heard };
}

/** The text of a packed file of which `bytes` arrived, or why there is none; over `plain` HTTP browsers
 *  have no hashes, the network may be `lost`, what keeps files `full` or `forbidden`. */
async function fetched({ text, sha256, bytes, plain, lost, full, forbidden }) {
  const refused = () => Promise.reject(new DOMException("No."));
  if (full) globalThis.caches = { open: async () => ({ match: async () => {}, put: refused }) };
  if (forbidden) globalThis.caches = { open: refused };
  if (plain) Object.defineProperty(globalThis, "crypto", { value: {} });
  const packed = gzipSync(text).subarray(0, bytes);
  const fail = () => Promise.reject(new TypeError("as this browser puts it"));
  const body = lost === "midway" ? new ReadableStream({ pull: fail }) : packed;
  globalThis.fetch = () => (lost === "at once" ? fail() : Promise.resolve(new Response(body)));
  const store = new Store(new URL("http://127.0.0.1/"), () => {});
  return store.get({ path: "model.gz", bytes, sha256 }).then((all) => ({ text: Buffer.from(all).toString() }), ({ message }) => ({ error: message }));
}

/** The bytes that are told of while a file is fetched in two parts, which the browser may have unpacked itself. */
async function counted({ text, unpacked }) {
  const [packed, told] = [gzipSync(text), []];
  const sent = unpacked ? Buffer.from(text) : packed;
  const parts = [sent.subarray(0, sent.length / 2), sent.subarray(sent.length / 2)];
  globalThis.fetch = async () => new Response(ReadableStream.from(parts));
  const store = new Store(new URL("http://127.0.0.1/"), (bytes) => told.push(bytes));
  const sha256 = createHash("sha256").update(text).digest("hex");
  await store.get({ path: "model.gz", bytes: packed.length, sha256 });
  return { told, bytes: packed.length };
}

/** What is answered by a page whose one model proves itself a little later. */
async function routed(request) {
  let proved = false;
  const attested = new Promise((resolve) => setTimeout(resolve, 20)).then(() => (proved = true));
  return answer(new Map([["it", { attested, describe: () => ({ id: "it", proved }) }]]), request, never);
}

/** The weights that runners asked for at once were made with, by a runtime that keeps what is given for all
 *  sessions in one place and empties that when it has made one. */
async function together(names) {
  const given = new Map();
  const create = async (graph, { externalData }) => {
    for (const { path, data } of externalData) given.set(path, data);
    await new Promise(setImmediate); // it compiles
    const weights = given.get("model.safetensors") ?? null;
    given.clear();
    return { inputNames: [], run: async () => ({ weights: { type: "string", dims: [], data: weights } }) };
  };
  const ports = { state: [], output: [{ name: "weights" }] };
  const made = names.map(async (name) => {
    const runner = await Runner.of({ InferenceSession: { create } }, ports, name, { "model.safetensors": name });
    return (await runner.run({})).outputs.weights.data;
  });
  return Promise.all(made);
}

/** What a runner of `rows` rows gives to onnxruntime and takes from it, and the state that it begins with; the run
 *  before has failed. */
async function ran({ rows }) {
  const fed = [];
  const Tensor = class { constructor(type, data, dims) { Object.assign(this, { type, data: [...data], dims }); } };
  const told = (...data) => ({ type: "float32", dims: [data.length], data });
  const run = async (feeds) => {
    fed.push(Object.entries(feeds).map(([name, { type, data, dims }]) => [name, type, data, dims]));
    if (fed.length === 1) throw new Error("out of memory");
    return { h_after: told(1), h: told(2), drawn: told(3, 4) };
  };
  const session = { inputNames: ["h", "x", "scale"], run };
  const ports = {
    state: [{ name: "h", dtype: "float32", shape: [2], initial: 0.5 }], output: [{ name: "drawn" }],
  };
  const runner = await Runner.of({ InferenceSession: { create: async () => session }, Tensor }, ports, null, {});
  const tensor = (...data) => ({ dtype: "float32", shape: [1, data.length], data: Float32Array.from(data) });
  const asked = { state: runner.initial(rows), steps: { x: tensor(5, 6) }, row: { scale: tensor(7), left_out: tensor(8) } };
  const [lost, found] = await Promise.all([runner.run(asked).catch(({ message }) => message), runner.run(asked)]);
  return { fed: fed.at(-1), lost, found };
}

/** Why a page or a session is refused, and which field is wrong; of the model there is the manifest alone, and a
 *  hand that it makes up. */
async function refused({ manifest, page, opening }) {
  const model = { manifest, name: manifest.name, runner: { initial: () => ({}) }, moment: () => undefined };
  const asked = page ? handwriting(model, page, never) : OnlineInk.of(model, opening);
  return asked.then(() => null, ({ message, param = null }) => [message, param]);
}

/** How many points a line may take, and why it ends when they are drawn and its text is not over. */
function lost({ manifest, text }) {
  const model = { manifest, runner: { initial: () => ({}) } };
  const line = new InkLine(text, fresh(model, 0), model, 1);
  const most = line.wanted;
  const [ended, drawn] = [new Uint8Array(most), new Float32Array(3 * most)].map((data) => ({ data }));
  line.take({ state: {}, outputs: { ended, drawn, character: ended } });
  return [most, line.wanted, line.reason];
}

/** How often a model is opened that cannot be had twice, how many runs a job has that is stopped in its first, and
 *  from which place of its randomness another seed goes on; and what is said of a figure at its bound. */
async function tried() {
  let [opened, runs] = [0, 0];
  const parity = [{ value: 1, bound: 1 }, { value: 2, bound: 1 }];
  const entry = { bytes: 0, manifest: { name: "it", parity } };
  const model = new Model(entry, () => Promise.reject(new Error(`lost ${(opened += 1)}`)));
  for (const _ of [1, 2]) await model.load().catch(() => {});
  model.runner = { run: async () => (runs += 1) };
  const job = { get wanted() { return 3 - runs; }, expected: 3, inputs: () => null, take: () => {} };
  const stopper = new AbortController();
  const run = async () => {
    for await (const _ of model.run(job, stopper.signal)) stopper.abort();
  };
  const end = await run().catch(({ name }) => name);
  const token = model.keep({ seed: 3, drawn: 40 });
  const moments = [undefined, 4].map((seed) => model.moment(token, seed));
  return { opened, runs, end, moments, holds: model.describe().parity.map(({ holds }) => holds) };
}

/** What is said of a model before and after it has been opened with a graph that computes nothing but zeros, and of
 *  a request for it. */
async function zeroed({ folder }) {
  const read = (name) => readFileSync(join(folder, name));
  const manifest = JSON.parse(read("manifest.json"));
  const ort = { env: { versions: { web: "1.2" } }, ...nothing(manifest) };
  const golden = new Uint8Array(read("golden.safetensors"));
  const open = async () => ({ ort, graph: null, weights: {}, golden });
  const model = new Model({ manifest, digest: "0123456789abcdef0", bytes: 1_250_000 }, open);
  const said = () => (({ pending, runtime, attestation }) => ({ pending, runtime, ok: attestation?.ok }))(model.describe());
  const [before, loading] = [said(), model.load().catch((error) => error)];
  const [meanwhile, error] = [said(), await loading];
  const heard = await Promise.race([model.attested.then(() => true), new Promise(setImmediate)]);
  return { before, meanwhile, after: said(), status: error.status, body: error.body(), heard, fingerprint: model.fingerprint };
}

/** How often a model replays its golden vectors that is asked to, and what is said of a sample of which it writes
 *  nothing, where it `loads` for this or was there before. */
async function checked({ loads }) {
  let replayed = 0;
  const attest = async () => (model.verdict = { ok: true, replayed: (replayed += 1) });
  const choices = [{ text: "ink" }];
  const model = {
    attest, load: async () => loads && attest(), verdict: null, run: async function* () {},
    runner: { initial: () => ({}) }, manifest: { kind: "language" },
    entry: { drawn: { request: { prompt: "", seed: 1 }, answer: { choices }, runtime: "any" } },
  };
  if (!loads) await attest();
  const request = { method: "POST", path: "/v1/models/it/attest" };
  return (await answer(new Map([["it", model]]), request, never)).body;
}

/** What a stream tells of a text that a pen writes with a point a letter and one more, `dx` units from the one
 *  before, so many in a run; it is never lifted. */
async function lettered({ manifest, text, dx = 0, run: points = 1 }) {
  const one = (number) => ({ data: Float32Array.of(number) });
  const run = async function* (job) {
    for (let at = 0; job.wanted; at += 1) {
      const [past, away] = [at >= text.length, at > text.length];
      const drawn = { data: Float32Array.of(away ? 9999 : dx, 0, 0) };
      const outputs = { ended: one(Number(past)), drawn, character: one(at) };
      job.take({ state: {}, outputs });
      if (at % points === points - 1 || !job.wanted) yield;
    }
  };
  const model = { manifest, name: manifest.name, runner: { initial: () => ({}) }, run };
  const [told, body] = [[], { text, style: "made-up", seed: 1, format: "json", stream: true }];
  for await (const { points, character } of await handwriting(model, body, never)) {
    if (points) told.push({ points, character });
  }
  return told;
}

async function opened(folder, web) {
  const ort = await import(join(web, "dist/ort.wasm.bundle.min.mjs"));
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmBinary = readFileSync(join(web, "dist/ort-wasm-simd-threaded.wasm")).buffer;
  const read = (name) => new Uint8Array(readFileSync(join(folder, name)));
  const manifest = JSON.parse(readFileSync(join(folder, "manifest.json")));
  const styles = manifest.kind === "handwriting" ? read("styles.safetensors") : undefined;
  const files = {
    ort,
    graph: read("model.onnx"),
    weights: { "model.safetensors": read("model.safetensors") },
    golden: read("golden.safetensors"),
    styles,
  };
  const model = new Model({ manifest, digest: "0".repeat(64), bytes: 0 }, () => files);
  await model.load();
  return model;
}

async function asked(model, body, last) {
  if (body === "describe") return model.describe();
  if (body.points) return onward(model, body);
  if (body.state === "the last") body.state = last.choices[0].state;
  return model.manifest.kind === "language" ? completion(model, body, never) : handwriting(model, body, never);
}

async function onward(model, { points, ...opening }) {
  const online = await OnlineInk.of(model, opening);
  const answers = [];
  for (const point of points) answers.push(await online.answer({ point }));
  return answers;
}

/** What a model says to requests, one after the other. */
async function requests(cases, folder, web) {
  const model = await opened(folder, web);
  const answers = [];
  for (const body of cases) answers.push(await asked(model, body, answers.at(-1)));
  return answers;
}

const QUESTIONS = {
  noise, utf8, golden, lines, widths, squeezed, marks, slant, previews, strokes, fold, unknown, round, median,
  session, lost, refused, replayed, routed, forcing, together, tried, checked, lettered, completed, penned, followed,
  sampled, single, almost, zeroed, ran, routes, described, leaking, interrupted,
};
/** Those for which something stands in for a browser, which stays there, or for which a module is to be new. */
const BROWSED = {
  fetched, counted, failing, unstarted, stopped, heard, worked, revisited, shell, listless, served, ...shown, ...drawn,
};

async function answersTo({ question, cases, arguments: given }) {
  if (question === "requests") return requests(cases, ...given);
  return Promise.all(cases.map(QUESTIONS[question] ?? BROWSED[question]));
}

await serve(new URL(import.meta.url), answersTo, ({ question }) => question in BROWSED);
