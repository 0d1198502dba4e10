// The worker in which everything is computed, so that the page never stutters: it answers what the
// page would ask the service, from models it fetches when they are first wanted.
import * as ort from "./ort/ort.js";
import { Model } from "./model.js";
import { answer, follow } from "./routes.js";
import { Session } from "./session.js";
import { Store } from "./store.js";

const base = new URL("../", import.meta.url);
const fetched = { loaded: 0, total: 0 }; // bytes since nothing was being fetched
let opening = 0; // models
const store = new Store(base, (bytes) => {
  for (const [of, count] of Object.entries(bytes)) fetched[of] += count;
  postMessage({ fetched });
});

// One thread wants no special headers, and is what every browser can do.
ort.env.wasm.numThreads = 1;
let runtime = null;

/** onnxruntime's WebAssembly, fetched like any other file. */
async function loadRuntime(file) {
  runtime ??= store.get(file).then(({ buffer }) => (ort.env.wasm.wasmBinary = buffer));
  await runtime.catch((error) => {
    runtime = null;
    throw error;
  });
}

/** The bytes of files, and the runtime beside them. */
async function fetchAll(files) {
  opening += 1;
  try {
    // None is left to arrive when the bytes are counted from nothing again.
    const all = await Promise.allSettled([loadRuntime(index.runtime), ...files.map((f) => store.get(f))]);
    const failed = all.find(({ status }) => status === "rejected");
    if (failed) throw failed.reason;
    return all.slice(1).map(({ value }) => value);
  } finally {
    opening -= 1;
    if (!opening) Object.assign(fetched, { loaded: 0, total: 0 });
    postMessage({ fetched });
  }
}

/** What a model needs to run, by what it is. */
async function open({ files, manifest }) {
  const bytes = await fetchAll(Object.values(files));
  const named = Object.fromEntries(Object.keys(files).map((name, i) => [name, bytes[i]]));
  const { [manifest.graphs.scan.plain]: graph, "golden.safetensors": golden, ...rest } = named;
  const { "styles.safetensors": styles, ...weights } = rest;
  return { ort, graph, weights, golden, styles };
}

const load = (model) =>
  model.load().catch((error) => postMessage({ trouble: `${model.name}: ${error.message}`, of: model.name }));

const index = await fetch(new URL("models/index.json", base))
  .then((answer) => answer.json())
  .catch(() => {
    postMessage({ unready: "The list of models cannot be fetched; load the page again." });
    return new Promise(() => {}); // nothing can be asked of this worker
  });
const models = new Map(index.models.map((entry) => [entry.manifest.name, new Model(entry, open)]));
for (const { name, attested } of models.values()) attested.then(() => postMessage({ trouble: "", of: name }));
const filesOf = ({ files }) => Object.values(files);
store.tidy([index.runtime, ...index.models.flatMap(filesOf)]);

// --- What the page says -----------------------------------------------------------------------

const running = new Map(); // by id: what stops an answer, or hears a message of a session

/** Answer a request {id, path, method, body} in messages {id, ...}: a head, contents, an end. */
async function request({ id, ...asked }) {
  const controller = new AbortController();
  running.set(id, { stop: () => controller.abort() });
  try {
    const { status, body, events } = await answer(models, asked, controller.signal);
    postMessage({ id, status, streams: Boolean(events) });
    for await (const event of events ?? [body]) postMessage({ id, content: event });
    postMessage({ id, end: true });
  } catch (error) {
    // Whoever stopped it listens no more; in the words of the service otherwise.
    postMessage({ id, content: { error: { message: error.message } } });
    postMessage({ id, end: true });
  } finally {
    running.delete(id);
  }
}

/** A session {id} hears messages one by one. */
function session({ id }) {
  const online = new Session({
    open: (opening) => follow(models, opening),
    told: (content) => postMessage({ id, content }),
    failed: () => {
      postMessage({ id, end: true });
      running.delete(id);
    },
  });
  const stop = () => {
    online.stop();
    running.delete(id);
  };
  running.set(id, { hear: (message) => online.hear(message), stop });
}

addEventListener("message", ({ data }) => {
  if (data.wants) [...models.values()].filter(({ manifest }) => manifest.kind === data.wants).forEach(load);
  if (data.asks) request(data.asks);
  if (data.opens) session(data.opens);
  if (data.says) running.get(data.says.id)?.hear(data.says.message);
  if (data.stops) running.get(data.stops)?.stop();
});
postMessage({ ready: true });
