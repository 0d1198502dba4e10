// What `answers.mjs` asks of the modules that stand between a page and its worker, its files and its network,
// in place of a browser.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { nothing } from "./networks.mjs";
import { answer } from "./site/routes.js";
import { Store } from "./site/store.js";

/** Waits until something is so. */
const until = (is) =>
  new Promise((resolve) => {
    const look = () => (is() ? resolve() : setTimeout(look, 1));
    look();
  });

/** The page's way to a worker that only notes what it is `asked`, and how that worker says something; in a browser
 *  that makes no answer of JSON by itself, as Safari before 17. */
async function deviceOf(asked) {
  Response.json = undefined;
  globalThis.Worker = class extends EventTarget {
    constructor() {
      super();
      globalThis.worker = this;
    }
    postMessage = (message) => asked.push(message);
  };
  const device = await import("./site/device.js");
  return { device, say: (data) => worker.dispatchEvent(Object.assign(new Event("message"), { data })) };
}

/** What the page hears of a worker that says it cannot compute, or fails without a word. */
export async function failing({ says }) {
  const told = [];
  const { device, say } = await deviceOf([]);
  device.listen({ fetched: () => {}, trouble: (message) => told.push(message) });
  const nothing = new Response('{"error":{"message":"nothing"}}');
  const waited = new Promise((resolve) => setTimeout(resolve, 1000, nothing));
  const answer = Promise.race([device.reach("/v1/models"), waited]);
  if (says) say(says);
  else worker.dispatchEvent(new Event("error"));
  const response = await answer;
  return { status: response.status, message: (await response.json()).error.message, told };
}

/** What the page at an address says, in a class, whose errors are those `of` elements or of a script itself, that is
 *  `from` some address; something may be `said` by then. */
export function unstarted({ address, of, from, said }) {
  const [window, verdict] = [new EventTarget(), { textContent: "Asking", className: "" }];
  const context = {
    window, URL, location: new URL(address), document: { getElementById: () => verdict },
    addEventListener: (...given) => window.addEventListener(...given),
  };
  runInNewContext(readFileSync("service/web/unstarted.js", "utf8"), context);
  if (said) verdict.textContent = said;
  const error = Object.assign(new Event("error"), { filename: from });
  if (of) Object.defineProperty(error, "target", { value: { localName: of, src: from } });
  window.dispatchEvent(error);
  return [verdict.textContent, verdict.className];
}

/** What comes of a request whose task was stopped before it was made, and what a worker is asked then. */
export async function stopped() {
  const asked = [];
  const { device, say } = await deviceOf(asked);
  const answer = device.reach("/v1/models", { signal: AbortSignal.abort() }).catch(({ name }) => name);
  say({ ready: true });
  const waited = new Promise((resolve) => setTimeout(resolve, 100, "nothing"));
  return { came: await Promise.race([answer, waited]), asked };
}

/** What the page makes of what a worker says: a refusal, a stream to its end, one that is stopped on its way
 *  and a session that is closed; and what the worker is told to stop. */
export async function heard() {
  const asked = [];
  globalThis.WebSocket ??= { CONNECTING: 0, OPEN: 1, CLOSED: 3 }; // node 20 has none
  const { device, say } = await deviceOf(asked);
  say({ ready: true });
  const stopper = new AbortController();
  const [refused, whole, cut] = [{}, {}, { signal: stopper.signal }].map((how) => device.reach("/v1/any", how));
  say({ id: 1, status: 404 });
  say({ id: 1, content: { error: "none" } });
  for (const id of [2, 3]) say({ id, status: 200, streams: true });
  for (const id of [2, 3]) say({ id, content: { of: id } });
  say({ id: 2, end: true });
  const [events, troubles] = [[], []];
  const sessionOf = (name) =>
    Object.assign(device.openOnline(), {
      onopen: () => events.push([name, "open"]),
      onmessage: ({ data }) => events.push([name, JSON.parse(data)]),
      onclose: () => events.push([name, "close"]),
    });
  sessionOf("closed").close();
  stopper.abort();
  for (const last of [{ content: { of: 3 } }, { end: true }]) say({ id: 3, ...last }); // before it has heard of it
  const { status } = await refused;
  const ends = await Promise.all([whole, cut].map(async (one) => (await one).text().catch(({ name }) => name)));
  const later = new AbortController();
  const sent = device.reach("/v1/any", { method: "POST", body: '{"a":1}', signal: later.signal });
  say({ id: 5, status: 200 });
  say({ id: 5, content: {} });
  say({ id: 5, end: true });
  await sent;
  later.abort(); // what has ended is not stopped
  const session = sessionOf("open");
  await new Promise(setImmediate);
  session.send('{"point":[1,2,0]}');
  say({ id: 6, content: { step: 1 } });
  say({ id: 6, end: true });
  say({ id: 6, content: { step: 2 } });
  device.listen({ fetched: () => {}, trouble: (...told) => troubles.push(told) });
  say({ trouble: "", of: "it" });
  await new Promise(setImmediate);
  const asks = asked.flatMap(({ asks, says }) => asks ?? says ?? []);
  return { status, ends, stops: asked.flatMap(({ stops }) => stops ?? []), events, troubles, asks: asks.slice(-2) };
}

/** What a worker fetches, forgets and says that is asked for the models of a kind, and for a session that is
 *  stopped before it is opened and one that is not; nothing but the list of models is to be had. */
export async function worked({ index, kept, wants }) {
  const [told, fetched, there] = [[], [], new Set(kept.map((path) => `${new URL(".", import.meta.url)}${path}`))];
  let hear = null;
  const keys = async () => [...there].map((url) => ({ url }));
  const shelf = { keys, match: async () => {}, delete: async (url) => there.delete(url) };
  const list = ({ href }) => href?.endsWith("/models/index.json");
  Object.assign(globalThis, {
    caches: { open: async () => shelf },
    postMessage: (message) => told.push(structuredClone(message)),
    addEventListener: (_, listener) => (hear = (data) => listener({ data })),
    fetch: async (address) => {
      if (list(address)) return Response.json(index);
      fetched.push(address.split("/").at(-1));
      return new Response("", { status: 404 });
    },
  });
  await import("./site/worker.js");
  hear({ wants });
  for (const id of [8, 9]) hear({ opens: { id } });
  for (const _ of [1, 2]) hear({ stops: 9 }); // as a page does whose session has ended
  for (const id of [8, 9]) hear({ says: { id, message: { model: "nobody" } } });
  const troubles = () => told.filter(({ of }) => of);
  const each = index.models.filter(({ manifest }) => manifest.kind === wants).length;
  await until(() => troubles().length === each && told.some(({ end }) => end));
  const totals = told.flatMap(({ fetched }) => fetched?.total ?? []);
  hear({ wants }); // which is fetched anew, where it was lost before
  await until(() => troubles().length === 2 * each);
  const left = [...there].map((url) => url.split("/").at(-1));
  return { fetched, totals, left, troubles: told.flatMap(({ of }) => of ?? []), ended: told.flatMap(({ id }) => id ?? []) };
}

/** What a worker says that has no list of models. */
export async function listless() {
  const told = [];
  const lost = () => Promise.reject(new TypeError("as this browser puts it"));
  Object.assign(globalThis, { postMessage: (message) => told.push(message), fetch: lost });
  import("./site/worker.js");
  await Promise.race([until(() => told.length), new Promise((resolve) => setTimeout(resolve, 1000))]);
  return told;
}

/** What visits, one after the other, have of a site whose files a browser keeps: `files` are their texts by
 *  path, `spoilt` those that the browser has not kept well since the visit before. */
export async function revisited({ visits }) {
  const [there, told, shelves] = [new Map(), [], new Set()];
  const shelf = {
    match: async (address) => there.get(address)?.clone(),
    put: async (address, response) => there.set(address, response),
    delete: async (address) => there.delete(address),
    keys: async () => [...there.keys()].map((url) => ({ url })),
  };
  globalThis.caches = { open: async (name) => (shelves.add(name), shelf) };
  for (const { files, spoilt = [] } of visits) {
    const fetched = [];
    globalThis.fetch = async (address) => {
      fetched.push(new URL(address).pathname.slice(1));
      return new Response(gzipSync(files[fetched.at(-1)]));
    };
    const wanted = Object.entries(files).map(([path, text]) => {
      return { path, bytes: 0, sha256: createHash("sha256").update(text).digest("hex") };
    });
    const isSpoilt = (url) => spoilt.includes(new URL(url).pathname.slice(1));
    for (const url of [...there.keys()].filter(isSpoilt)) there.set(url, new Response("?"));
    const store = new Store(new URL("http://127.0.0.1/"), () => {});
    await store.tidy(wanted);
    const got = await Promise.all(wanted.map((file) => store.get(file).catch(() => null)));
    told.push({ fetched, came: got.map((bytes) => bytes && Buffer.from(bytes).toString()), kept: there.size, shelves: [...shelves] });
  }
  return told;
}

/** What the service worker of a build with these `files` fetches past the browser's cache when it is installed,
 *  which `caches` there are when it has taken over, and who answers each of what is `asked`. */
export async function shell({ scope, files, caches: names, asked }) {
  const [listeners, shelves, fresh] = [{}, new Map(names.map((name) => [name, new Set()])), []];
  const bare = (address) => address.replace(/\?.*/, "");
  const open = async (name) => {
    const there = shelves.get(name) ?? shelves.set(name, new Set()).get(name);
    return {
      addAll: async (requests) => {
        for (const { url, cache } of requests) {
          there.add(url);
          fresh.push(cache === "reload");
        }
      },
      match: async (request, { ignoreSearch } = {}) => {
        const address = request.url ?? request;
        return there.has(ignoreSearch ? bare(address) : address) ? "kept" : undefined;
      },
    };
  };
  class Request {
    constructor(path, options) {
      Object.assign(this, options, { url: new URL(path, scope).href });
    }
  }
  const source = readFileSync("site/sw.js", "utf8").replace("FILES = []", `FILES = ${JSON.stringify(files)}`);
  runInNewContext(source, {
    Request, registration: { scope }, skipWaiting: () => {}, clients: { claim: async () => {} },
    caches: { open, keys: async () => [...shelves.keys()], delete: async (name) => shelves.delete(name) },
    fetch: async () => "fetched", addEventListener: (name, listener) => (listeners[name] = listener),
  });
  for (const name of ["install", "activate"]) await new Promise((waitUntil) => listeners[name]({ waitUntil }));
  const answers = asked.map(([method, url]) => {
    return new Promise((respondWith) => {
      listeners.fetch({ request: { method, url }, respondWith });
      respondWith(null); // who has not been answered by now is left to the browser
    });
  });
  return { fresh: fresh.every(Boolean), caches: [...shelves.keys()], answers: await Promise.all(answers) };
}

/** What requests are answered where there are two models, one of which cannot be loaded; of a stream only how many
 *  events it has, and of what was stopped the name of its error. */
export async function asked({ method, path, body }) {
  const style = { id: "ada", description: "clear" };
  const alphabet = { characters: "ho", longest_text: 9, end: 0 };
  const ink = { units_per_line: 10, units_per_character: 2 };
  const manifest = { name: "a pen", kind: "language", styles: [style], alphabet, ink };
  const lost = () => Promise.reject(body?.stop ? new DOMException("stopped", "AbortError") : new TypeError("no memory"));
  const model = (name, load) => ({
    name, manifest, load, attested: Promise.resolve(), describe: () => ({ id: name }), fingerprint: "any",
    runner: { initial: () => ({}) }, run: async function* (job, signal) { signal.throwIfAborted(); },
  });
  const models = new Map([["a pen", model("a pen", async () => {})], ["lost", model("lost", lost)]]);
  const told = await answer(models, { method, path, body }, new AbortController().signal).catch(({ name }) => name);
  if (!told.events) return told;
  let count = 0;
  for await (const _ of told.events) count += 1;
  return { ...told, events: count };
}

/** What a worker says to a request for a model, whose graph computes nothing but zeros, and what that was made of:
 *  `files` are the texts of its files by name, but for its golden vectors. */
export async function served({ folder, files, asks }) {
  const [told, made] = [[], []];
  const manifest = JSON.parse(readFileSync(`${folder}/manifest.json`));
  const all = { ...files, "golden.safetensors": readFileSync(`${folder}/golden.safetensors`) };
  const fileOf = (name) => {
    const sha256 = createHash("sha256").update(all[name]).digest("hex");
    return { path: `${name}.gz`, bytes: gzipSync(all[name]).length, sha256 };
  };
  const entry = { manifest, digest: "0".repeat(64), files: Object.fromEntries(Object.keys(all).map((name) => [name, fileOf(name)])) };
  all.runtime = "the runtime";
  let hear = null;
  Object.assign(globalThis, {
    postMessage: (message) => told.push(structuredClone(message)),
    addEventListener: (_, listener) => (hear = (data) => listener({ data })),
    fetch: async (address) => {
      if (address.href) return Response.json({ runtime: fileOf("runtime"), models: [{ ...entry, bytes: 1 }] });
      return new Response(gzipSync(all[address.split("/").at(-1).split(".gz")[0]]));
    },
    createSession: nothing(manifest, (graph, { externalData }) => {
      made.push([graph, ...externalData.map(({ data }) => data)].map((data) => Buffer.from(data).toString()));
    }).InferenceSession.create,
  });
  await import("./site/worker.js");
  for (const [id, asked] of asks.entries()) {
    hear({ asks: { id: id + 1, ...asked } });
    await until(() => told.some((message) => message.id === id + 1 && message.end));
  }
  hear({ wants: manifest.kind });
  await until(() => told.some(({ trouble }) => trouble));
  const { env } = await import("./site/ort/ort.js");
  return {
    ready: told.some(({ ready }) => ready), made, runtime: Buffer.from(env.wasm.wasmBinary).toString(), answers: told.filter(({ id }) => id),
    troubles: told.filter((message) => "trouble" in message), fetched: told.flatMap(({ fetched }) => fetched ?? []),
  };
}
