// Visits to the page, without a browser: `node --experimental-vm-modules visited.mjs` reads visits as lines of JSON and
// writes what each has found, a line too. The page's own modules run, loaded anew for each visit, in a document that
// stands in for one; time passes when a step says so.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { SourceTextModule } from "node:vm";
import { documentOf, parsed } from "./document.mjs";
import { Element, happen, saved, Window } from "./element.mjs";

const [later, html] = [globalThis.setTimeout, readFileSync("service/web/index.html", "utf8")];
const PATIENCE_MS = 20_000;
const FRAME_MS = 16;
const ROUNDS = 12; // of what a promise may wait for another, until a step is over

// --- Time -----------------------------------------------------------------------------------------

let [now, timers, frames, ids] = [0, new Map(), new Map(), 0];

function stopTime() {
  [now, timers, frames] = [0, new Map(), new Map()];
  const timer = (every) => (task, ms = 0) => (timers.set((ids += 1), { task, at: now + ms, every: every ? Math.max(ms, 1) : 0 }), ids);
  const forget = (id) => (timers.delete(id), frames.delete(id));
  Object.assign(globalThis, {
    setTimeout: timer(false), setInterval: timer(true), clearTimeout: forget, clearInterval: forget,
    performance: { now: () => now }, requestAnimationFrame: (task) => (frames.set((ids += 1), task), ids),
    cancelAnimationFrame: forget,
  });
}

/** Have promises settled, and pictures shown until nothing moves, or so many were. */
async function settle(most = visit.frames ?? 2000) {
  for (let round = 0; round < ROUNDS; round += 1) {
    await new Promise(setImmediate);
    if (!frames.size || !most) continue;
    [round, most, now] = [0, most - 1, now + FRAME_MS];
    const due = [...frames.values()];
    frames.clear();
    for (const task of due) task(now);
  }
}

async function pass(ms) {
  const end = now + ms;
  for (;;) {
    const [id, next] = [...timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0] ?? [];
    if (!next) break;
    now = Math.max(now, next.at);
    if (next.every) next.at += next.every;
    else timers.delete(id);
    next.task();
    await settle(0);
  }
  now = Math.max(now, end);
}

// --- The service ----------------------------------------------------------------------------------

let service; // {asked: requests as they came, answers: by path, opened: streams and sockets that are not over}

const said = (event) => new TextEncoder().encode(event === null ? "data: [DONE]\n\n" : `data: ${JSON.stringify(event)}\n\n`);

/** An answer {status, body, text, base64, headers, events, open}: `events` of a stream that ends, unless it stays `open`.
 *  One that is `lost` does not come; of a list of answers the last is given again and again. */
async function fetch(address, { method = "GET", headers = {}, body, signal } = {}) {
  const { pathname: path } = new URL(address, location.href);
  service.asked.push({ method, path, headers, ...(body && { body: JSON.parse(body) }) });
  const known = service.answers[`${method} ${path}`] ?? service.answers[path] ?? { status: 404, body: {} };
  const answer = Array.isArray(known) ? (known.length > 1 ? known.shift() : known[0]) : known;
  if (signal?.aborted) throw signal.reason;
  if (answer.lost) throw new TypeError("as this browser puts it");
  if (answer.held) await new Promise((go, fail) => (service.opened.push({ say: go, cut: fail }), signal?.addEventListener("abort", () => fail(signal.reason))));
  const { status = 200, events, open } = answer;
  const content = () => (answer.base64 ? Buffer.from(answer.base64, "base64") : answer.text ?? JSON.stringify(answer.body ?? {}));
  if (!events) return new Response(content(), { status, headers: answer.headers });
  return new Response(new ReadableStream({
    start(stream) {
      for (const event of events) stream.enqueue(said(event));
      if (!open) stream.enqueue(said(null));
      if (!open) return stream.close();
      let over = false;
      const once = (task) => (...given) => over || task(...given);
      const cut = once((error) => ((over = true), stream.error(error)));
      signal?.addEventListener("abort", () => cut(signal.reason));
      service.opened.push({ say: once((event) => (stream.enqueue(said(event)), event === null && ((over = true), stream.close()))), cut });
    },
  }), { status, headers: answer.headers });
}

class Socket {
  static OPEN = 1;
  readyState = 0;
  constructor(address, protocols) {
    this.told = { address, protocols, sent: [], closed: false };
    service.sockets.push(this);
  }
  send = (text) => this.told.sent.push(JSON.parse(text));
  close = () => Object.assign(this.told, { closed: true });
}

class Worker extends Window {
  constructor(address, how) {
    super();
    service.worker = Object.assign(this, { address, how });
  }
  postMessage = (message) => service.posted.push(message);
}

// --- The browser ----------------------------------------------------------------------------------

const files = new Map(); // blobs by their addresses

function shelf(texts = {}, refuses) {
  const kept = new Map(Object.entries(texts));
  const item = (task) => (...given) => {
    if (refuses) throw new DOMException("No.");
    return task(...given);
  };
  return {
    kept, getItem: item((name) => kept.get(name) ?? null), removeItem: item((name) => kept.delete(name)),
    setItem: item((name, text) => kept.set(name, String(text))),
  };
}

Element.prototype.decode = async function () {
  const [, width, height] = /width="(\d+)" height="(\d+)"/.exec(await files.get(this.src).text());
  Object.assign(this, { naturalWidth: Number(width), naturalHeight: Number(height) });
};
Element.prototype.getContext = function () {
  const [canvas, painted] = [this, (this.painted ??= [])];
  return {
    fillRect(...at) { painted.push([this.fillStyle, ...at]); },
    strokeRect(...at) { painted.push([this.strokeStyle, ...at]); },
    drawImage: (image, ...at) => painted.push([image.src, ...at, canvas.width, canvas.height]),
  };
};
Element.prototype.toBlob = function (done) {
  done(visit.noPng ? null : new Blob([JSON.stringify(this.painted)], { type: "image/png" }));
};

let visit; // what is said of a visit

/** A browser at an address, as a visit says: {address, page, narrow, still, frames, session, local, history, refuses, noClipboard,
 *  noPng}; of its pictures only so many `frames` are shown after a step. */
function open({ address = "", page = html, narrow = false, still = false, ...how }) {
  stopTime();
  const window = new Window();
  const copied = [];
  Object.assign(globalThis, {
    window, copied, document: Object.assign(documentOf(page), { parentNode: window }),
    location: new URL(address, "http://127.0.0.1:8000/"),
    history: { state: how.history ?? null, replaceState(state, _, to) { this.state = state; if (to) location.hash = to; } },
    addEventListener: window.addEventListener.bind(window), dispatchEvent: window.dispatchEvent.bind(window),
    matchMedia: (query) => ({ matches: query.includes("motion") ? still : narrow }), scrollTo: () => {},
    getComputedStyle: () => ({ paddingLeft: "10px", paddingRight: "10px" }), WebSocket: Socket, Worker, fetch,
    ResizeObserver: class { constructor(hear) { (visit.sized ??= []).push(hear); } observe() {} },
    CustomEvent: class extends Event { constructor(type, { detail }) { super(type); this.detail = detail; } },
    Option: function (text, value, isDefault, isChosen) {
      const option = Object.assign(new Element("option"), { text });
      option.setAttribute("value", value);
      option.toggleAttribute("selected", isChosen);
      return option;
    },
    DOMPoint: class { constructor(x, y) { Object.assign(this, { x, y }); } matrixTransform() { return this; } },
    DOMParser: class { parseFromString = (text) => ({ documentElement: parsed(text).children[0] }); },
    XMLSerializer: class { serializeToString = (element) => element.outerHTML; },
  });
  Object.assign(window, { sessionStorage: shelf(how.session, how.refuses), localStorage: shelf(how.local, how.refuses), scrollX: 0, scrollY: 0, prompt: () => how.prompts.shift(),
    SwaggerUIBundle(given) {
      const { spec } = given;
      visit.swagger = { spec, keys: [] };
      queueMicrotask(() => given.onComplete());
      return { preauthorizeApiKey: (...key) => visit.swagger.keys.push(key) };
    },
  });
  const clipboard = { writeText: async (text) => { if (how.noClipboard) throw new DOMException("No."); copied.push(text); } };
  const serviceWorker = { register: async ({ href }) => { visit.registered = href; if (how.refuses) throw new DOMException("No."); } };
  Object.defineProperty(globalThis, "navigator", { value: { clipboard, serviceWorker }, configurable: true });
  URL.createObjectURL = (blob) => (files.set(`blob:${files.size}`, blob), `blob:${files.size - 1}`);
  URL.revokeObjectURL = (url) => visit.revoked.push(url);
}

// --- Steps ----------------------------------------------------------------------------------------

const one = (selector) => {
  const found = selector ? document.querySelector(selector) : document.activeElement;
  if (!found) throw new Error(`nothing on the page is ${selector}`);
  return found;
};
const shown = (element, name) => (name?.startsWith("@") ? element.getAttribute(name.slice(1)) : (name ?? "textContent").split(".").reduce((of, part) => of[part], element)) ?? null;
const changed = (element, types) => types.forEach((type) => element.dispatchEvent(happen(type)));

/** What a person does, or looks at; what is looked at comes back. */
const STEPS = {
  press: (selector) => one(selector).click(),
  focus: (selector) => one(selector).focus(),
  fill: (selector, value) => changed(Object.assign(one(selector), { value }), ["input", "change"]),
  type: (selector, value) => changed(Object.assign(one(selector), { value }), ["input"]),
  sets: (selector, name, value) => (one(selector)[name] = value),
  check: (selector, checked) => changed(Object.assign(one(selector), { checked }), ["input", "change"]),
  key: (key, more = {}, selector) => one(selector).dispatchEvent(happen("keydown", { key, ...more })),
  pointer: (selector, type, { between, ...more }) =>
    one(selector).dispatchEvent(happen(type, { button: 0, pointerId: 1, getCoalescedEvents: between && (() => between), ...more })),
  happens: (type, more) => dispatchEvent(happen(type, more)),
  heard: (type, selector, more) => one(selector).dispatchEvent(happen(type, more)),
  goes: (hash) => ((location.hash = hash), dispatchEvent(happen("hashchange"))),
  answers: (more) => Object.assign(service.answers, more),
  says: (...events) => events.forEach((event) => service.opened.at(-1).say(event)),
  cuts: () => service.opened.at(-1).cut(new TypeError("network")),
  socket: (says) => {
    const socket = service.sockets.at(-1);
    if (!says) return socket.onopen((socket.readyState = Socket.OPEN));
    if (says === "close") return socket.onclose?.();
    socket.onmessage?.({ data: JSON.stringify(says) });
  },
  passes: pass,
  resized: () => visit.sized.forEach((hear) => hear()),
  worker: (data) => service.worker.dispatchEvent(happen("message", { data })),
  clears: (storage) => {
    window[storage].kept.clear();
    dispatchEvent(happen("storage", { key: null, oldValue: null }));
  },
  puts: (storage, name, text) => {
    const [shelf, oldValue] = [window[storage], window[storage].getItem(name)];
    text === null ? shelf.removeItem(name) : shelf.setItem(name, text);
    dispatchEvent(happen("storage", { key: name, oldValue }));
  },
};
const LOOKS = {
  look: (selector, name) => shown(one(selector), name),
  all: (selector, name) => document.querySelectorAll(selector).map((element) => shown(element, name)),
  looks: (name) => shown(document.activeElement, name),
  at: () => document.activeElement?.id ?? null,
  where: () => location.hash,
  asked: (path) => service.asked.splice(0).filter((request) => !path || request.path === path),
  posted: () => service.posted,
  began: async () => [await files.get(service.worker.address).text(), service.worker.how],
  swagger: () => visit.swagger ?? null,
  sockets: () => service.sockets.map(({ told }) => told),
  kept: (storage) => Object.fromEntries(window[storage].kept),
  history: () => history.state,
  copied: () => copied,
  revoked: () => visit.revoked,
  registered: () => visit.registered ?? null,
  saved: async () => {
    const took = saved.splice(0);
    return Promise.all(took.map(async ([address, name]) => [name, await files.get(address).text(), files.get(address).type]));
  },
  left: (type, selector, more) => one(selector).dispatchEvent(happen(type, more)), // to the browser
};

async function stayed(steps) {
  const found = [];
  for (const [verb, ...given] of steps) {
    if (STEPS[verb]) await STEPS[verb](...given);
    else if (LOOKS[verb]) found.push(structuredClone(await LOOKS[verb](...given)));
    else throw new Error(`no such step: ${verb}`);
    await settle();
  }
  return found;
}

const sources = new Map();
const sourceOf = (path) => sources.get(path) ?? sources.set(path, readFileSync(path, "utf8")).get(path);
const parsings = new Map(); // of sources, which take a third of a visit otherwise; of those that import as they run node forgets how

/** Load a module, and anew all that it imports. */
async function load(path) {
  const made = new Map();
  const from = (name, by) => {
    const path = join(dirname(by), name);
    if (!made.has(path)) made.set(path, moduleOf(path));
    return made.get(path);
  };
  const run = async (module) => {
    await module.link((name, { identifier }) => from(name, identifier));
    await module.evaluate();
    return module;
  };
  const moduleOf = (path) => {
    const module = new SourceTextModule(sourceOf(path), {
      identifier: path, importModuleDynamically: (name) => run(from(name, path)), cachedData: parsings.get(path),
      initializeImportMeta: (meta) => (meta.url = new URL(path.replace("service/web", "static"), location.origin).href),
    });
    if (!parsings.has(path) && !/\bimport\(/.test(sourceOf(path))) parsings.set(path, module.createCachedData());
    return module;
  };
  await run(from(path, ""));
}

/** What is found by the steps of a visit {module, answers, steps, ...}, from when its module has been loaded. */
async function visited({ module = "service/web/page.js", answers, steps, ...how }) {
  visit = { ...how, revoked: [] };
  service = { asked: [], answers, opened: [], sockets: [], posted: [] };
  saved.length = 0;
  open(how);
  await load(module);
  await settle();
  return stayed(steps);
}

process.on("unhandledRejection", (error) => (visit.lost ??= error));
for await (const line of createInterface({ input: process.stdin })) {
  const over = new Promise((_, reject) => later(reject, PATIENCE_MS, new Error("it does not end")).unref());
  const found = await Promise.race([visited(JSON.parse(line)), over]).then(
    (found) => (visit.lost ? { error: String(visit.lost.stack) } : { found }), (error) => ({ error: String(error.stack) }),
  );
  process.stdout.write(`${JSON.stringify(found)}\n`);
}
