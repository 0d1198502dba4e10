// One model on this device: fetched when it is first wanted, and it writes nothing before it has
// proved itself. Its answers look like those of the service.
import { readSafetensors } from "../service/web/safetensors.js";
import { attest, readGolden } from "./golden.js";
import { Runner } from "./runner.js";
import { MARKS } from "./shapes.js";

const LEAST_STEPS = 8; // of the first run of a request, so that something is soon to be seen
const STEPS = 32; // of the others: some 20 ms, in which the worker hears nothing

/** What a request did wrong, and the status the service would answer it with. */
export class Refusal extends Error {
  constructor(message, param = null, status = 400) {
    super(message);
    [this.param, this.status] = [param, status];
  }

  body() {
    const type = this.status < 500 ? "invalid_request_error" : "server_error";
    return { error: { message: this.message, type, param: this.param, code: null } };
  }
}

/** Throws a `Refusal` for what the service may do and nothing here would heed. */
export function requireKnown(body, known) {
  const other = Object.keys(body).find((name) => !known.includes(name));
  if (other) throw new Refusal(`this page has no ${other}; the service does`, other);
}

const channel = new MessageChannel();
const resumed = [];
channel.port1.onmessage = () => resumed.shift()();

/** Let whatever has arrived be heard; a timer would take 4 ms. */
const breathe = () =>
  new Promise((resolve) => {
    resumed.push(resolve);
    channel.port2.postMessage(null);
  });

export class Model {
  #loading = null;
  #moments = new Map(); // by token
  verdict = null;
  runner = null;

  /** `entry` is that of the build's index; `open` loads its graph, weights and golden vectors. */
  constructor(entry, open) {
    [this.entry, this.manifest, this.name] = [entry, entry.manifest, entry.manifest.name];
    this.open = open;
    this.attested = new Promise((resolve) => (this.settled = resolve));
  }

  /** Ready to write. Throws if it cannot be loaded or is not what was trained. */
  async load() {
    this.#loading ??= this.#load();
    await this.#loading.catch((error) => {
      this.#loading = null; // a network comes back
      throw error;
    });
    if (!this.verdict.ok) throw new Refusal(`Not attested here: ${this.verdict.detail}`, null, 503);
  }

  async #load() {
    const { ort, graph, weights, golden, styles } = await this.open(this.entry);
    this.runtime = `wasm-ort${ort.env.versions.web}`;
    this.styles = styles && readSafetensors(styles).tensors;
    this.golden = readGolden(golden);
    this.runner = await Runner.of(ort, this.manifest.ports, graph, weights);
    await this.attest();
    this.settled();
  }

  /** Replay the golden vectors, and see whether it emits what it is forced to. */
  async attest() {
    this.verdict = await attest(this.golden, this.runner, this.manifest.ports.state[0].name);
    return this.verdict;
  }

  /** Run a job to its end, a yield after each run. A job has `inputs` and `take`, and says how many
   *  steps are `wanted` at most, and `expected`. */
  async *run(job, signal) {
    for (let most = LEAST_STEPS; job.wanted > 0; most = STEPS) {
      const steps = Math.min(most, job.wanted, Math.max(LEAST_STEPS, job.expected));
      job.take(await this.runner.run(job.inputs(steps)));
      yield;
      await breathe();
      signal.throwIfAborted();
    }
  }

  /** A moment as a token, which is good until the page is left. */
  keep(moment) {
    const token = `${this.name}/${this.#moments.size + 1}`;
    this.#moments.set(token, moment);
    return token;
  }

  /** The moment of a token, from another seed if one is given; undefined if it is none of these. */
  moment(token, seed) {
    const moment = this.#moments.get(token);
    return moment && seed !== undefined ? { ...moment, seed, drawn: 0 } : moment;
  }

  get fingerprint() {
    return `${this.entry.digest.slice(0, 16)}-${this.runtime}`;
  }

  /** The entry of `/v1/models`. */
  describe() {
    const { kind, parameters, hyperparameters, provenance, ink, parity } = this.manifest;
    const mb = (this.entry.bytes / 1e6).toFixed(1);
    return {
      id: this.name,
      kind,
      parameters,
      layer_normalizations: this.manifest.layer_normalizations,
      hyperparameters,
      provenance,
      digest: this.entry.digest,
      runtime: this.runtime ?? "WebAssembly",
      system_fingerprint: this.runtime && this.fingerprint,
      parity: parity.map((finding) => ({ ...finding, holds: finding.value <= finding.bound })),
      unproved: null,
      attestation: this.verdict,
      pending: this.#loading ? null : `Not attested yet: its ${mb} MB have not been fetched.`,
      ink,
      writes: ink && { characters: this.manifest.alphabet.characters, marks: MARKS },
    };
  }
}

/** A seed for who gives none. */
export const anySeed = () => Number(crypto.getRandomValues(new BigUint64Array(1))[0] >> 11n);
