// What `answers.mjs` asks of the page's own modules, service/web, as far as they need no browser to show anything.
import { curve, moving } from "./service/web/ink.js";
import { Nib } from "./service/web/nib.js";
import { KINDS, LEAST_IF_NOT, MOST_IF_INVARIANT, normals, perColumn, perRow, table1 } from "./service/web/norms.js";

/** The path of a stroke, and the width in px of each of its segments. */
export function curved({ stroke, ...how }) {
  const points = moving(stroke);
  const nib = new Nib(how);
  const widths = points.slice(1).map((to, i) => nib.widthAt(nib.step(points[i - 1], points[i], to, points[i + 2])));
  return { path: curve(stroke), widths };
}

/** A table of numbers normalised both ways, the invariances that networks of a seed show, and numbers of a seed. */
export function normed({ rows, seed }) {
  const normal = normals(seed);
  return {
    rows: perRow(rows), columns: perColumn(rows), table: table1(seed), kinds: KINDS,
    bounds: [MOST_IF_INVARIANT, LEAST_IF_NOT], drawn: Array.from({ length: 9 }, normal),
  };
}

/** What stands in for a browser that the page's modules ask for when they are loaded, at an address. */
function browserAt(address) {
  const kept = () => {
    const texts = new Map();
    return {
      getItem: (name) => texts.get(name) ?? null,
      setItem: (name, text) => texts.set(name, text),
      removeItem: (name) => texts.delete(name),
    };
  };
  const document = new EventTarget();
  const told = [];
  for (const name of ["unserved", "unanswered", "served"]) document.addEventListener(name, ({ type }) => told.push(type));
  Object.assign(globalThis, {
    document, location: new URL(address), history: { state: null, replaceState(state) { this.state = state; } },
    window: { sessionStorage: kept(), localStorage: kept() }, matchMedia: () => ({ matches: false }),
    CustomEvent: globalThis.CustomEvent ?? class extends Event {},
  });
  return told;
}

/** Figures as they are told. */
export async function told({ numbers }) {
  browserAt("http://127.0.0.1/");
  const { count, scientific, whole } = await import("./service/web/elements.js");
  return numbers.map((x) => [count(x, "line"), scientific(x), whole(x)]);
}

/** What is said below a field of each of some texts, and whether the form may be sent with them. */
export async function typed({ texts, writes }) {
  browserAt("http://127.0.0.1/");
  const { watchTyping } = await import("./service/web/typed.js");
  const field = new EventTarget();
  const note = { textContent: "", hidden: true };
  field.setCustomValidity = (wrong) => (field.wrong = wrong);
  field.setAttribute = (name, value) => (field[name] = value);
  watchTyping(field, note, () => writes);
  return texts.map((text) => {
    field.value = text;
    field.dispatchEvent(new Event("input"));
    return [note.textContent, note.hidden, field.wrong, field["aria-invalid"]];
  });
}

/** Requests, one after the other, as a command, a program and a link, and what following the link asks for; a
 *  `key` that a person typed, and the `readers` that are there, from then on. */
export async function copied({ requests }) {
  browserAt("http://127.0.0.1/page?x#lab");
  const { note } = await import("./service/web/models.js");
  const { asCurl, asPython, asLink, fromLink } = await import("./service/web/copies.js");
  return requests.map(({ request, key, readers = [] }) => {
    if (key) window.sessionStorage.setItem("evenkeel-key", key);
    for (const id of readers) note(id, { id, kind: "reader", attestation: { ok: true } });
    const link = asLink(request);
    globalThis.location = new URL(link);
    return { curl: asCurl(request), python: asPython(request), link, followed: fromLink() };
  });
}

/** What addresses ask for. */
export async function linked({ addresses }) {
  browserAt("http://127.0.0.1/");
  const { fromLink } = await import("./service/web/copies.js");
  return addresses.map((address) => {
    globalThis.location = new URL(address, "http://127.0.0.1/");
    return fromLink();
  });
}

/** What models are said to be. */
export async function called({ models }) {
  browserAt("http://127.0.0.1/");
  const { networkOf, serves, settled, showReady, showVerdict, whyNot } = await import("./service/web/models.js");
  return models.map((model) => {
    const shown = [showReady, showVerdict].map((show) => {
      const element = { className: "", textContent: "" };
      show(element, model);
      return [element.textContent, element.className];
    });
    const is = [serves(model), settled(model), Boolean(whyNot(model))];
    return { shown, is, network: networkOf(model) };
  });
}

/** What is asked for where a model is to choose among draws, and which can read, with what is known of the models one
 *  after the other. */
export async function judged({ moments, chosen }) {
  browserAt("http://127.0.0.1/");
  history.state = { "draw-reader": chosen };
  const { bestOf, drawsOf, note, readers } = await import("./service/web/models.js");
  return moments.map(({ models, judge }) => {
    for (const model of models) note(model.id, model);
    return { draws: [bestOf(), drawsOf(1), drawsOf(3, judge)], readers: readers().map(({ id }) => id) };
  });
}

/** What the page makes of answers of a service, one after the other, with how each was asked for, and what it then
 *  tells itself; one may be `lost`. */
export async function answered({ answers }) {
  const told = browserAt("https://127.0.0.1/");
  const { answerBy, complete, events } = await import("./service/web/service.js");
  const found = [];
  for (const { status = 200, headers = {}, parts = [], lost } of answers) {
    const [asked, heard] = [[], []];
    const body = new ReadableStream({
      start: (stream) => {
        for (const part of parts) stream.enqueue(new TextEncoder().encode(part));
        stream.close();
      },
    });
    const reach = async (path, { method, headers: sentWith, body: sent }) => {
      asked.push({ path, method, headers: sentWith, body: JSON.parse(sent) });
      if (lost) throw new TypeError("as this browser puts it");
      return new Response(body, { status, headers });
    };
    answerBy({ reach });
    const hear = async () => {
      for await (const event of events(await complete({ model: "it" }))) heard.push(event);
    };
    const error = await hear().then(() => null, ({ message, param }) => [message, param ?? null]);
    found.push({ asked, heard, error, told: told.splice(0) });
  }
  return found;
}

/** The models that are listed by each of some answers, or what is wrong with it. */
export async function modelsListed({ texts }) {
  browserAt("https://127.0.0.1/");
  const { answerBy, listModels } = await import("./service/web/service.js");
  const found = [];
  for (const text of texts) {
    answerBy({ reach: async () => new Response(text) });
    found.push(await listModels().catch(({ message }) => message));
  }
  return found;
}

const soon = (promise) =>
  Promise.race([promise, new Promise((_, reject) => setTimeout(reject, 5000, new Error("it does not end")))]);

/** What stands in a tab while tasks run and after: each returns, fails or waits to be stopped; what is asked for
 *  while another is under way. */
export async function tasked({ valid }) {
  browserAt("http://127.0.0.1/");
  const { Work } = await import("./service/web/work.js");
  const at = {
    form: { reportValidity: () => valid }, error: { hidden: true, textContent: "" }, progress: { textContent: "" },
  };
  const [told, ran] = [[], []];
  const work = new Work(at, () => told.push([work.busy, work.running]));
  const stands = () => [at.progress.textContent, at.error.hidden ? null : at.error.textContent];
  const waits = (name) => () => {
    ran.push(name);
    return new Promise((_, reject) => work.signal.addEventListener("abort", () => reject(work.signal.reason)));
  };
  const found = [];
  await soon(work.run(async () => "first", { asks: false }));
  found.push(stands());
  await soon(work.run(async () => { throw new Error("it failed"); }, { asks: false }));
  found.push(stands());
  const [one, second] = [work.run(waits("one"), { asks: false }), work.run(waits("second"), { asks: false })];
  found.push(stands());
  work.stop();
  await soon(Promise.all([one, second]));
  found.push(stands());
  const quiet = work.run(waits("quiet"), { asks: false, givesWay: true });
  found.push([work.busy, work.running]);
  const pressedTwice = [work.run(async () => "over it", { asks: false }), work.run(waits("again"), { asks: false })];
  await soon(Promise.all([...pressedTwice, quiet]));
  found.push(stands());
  const fails = async () => {
    throw new Error("nobody asked for it");
  };
  await soon(work.run(fails, { asks: false, givesWay: true }));
  found.push(stands());
  await soon(work.run(async () => "sent"));
  found.push(stands());
  return { found, told, ran };
}

/** The hands that are read of texts which another page keeps one after the other, and what is heard of those before;
 *  then how one is kept, and what is left when it is forgotten. */
export async function ownHand({ texts, forgetful }) {
  browserAt("http://127.0.0.1/");
  const page = new EventTarget();
  globalThis.addEventListener = page.addEventListener.bind(page);
  const { answerBy } = await import("./service/web/service.js");
  if (forgetful) answerBy({ forgetful });
  const { forgetOwn, keepOwn, own, watchOwn } = await import("./service/web/own.js");
  const [kept, before] = [() => window.localStorage.getItem("evenkeel-hand"), []];
  watchOwn((hand) => before.push(hand));
  const read = texts.map((text) => {
    const event = { key: "evenkeel-hand", oldValue: kept() };
    window.localStorage.setItem("evenkeel-hand", text);
    page.dispatchEvent(Object.assign(new Event("storage"), event));
    page.dispatchEvent(Object.assign(new Event("storage"), { key: "another", oldValue: "1" }));
    return own();
  });
  keepOwn({ token: "new", strokes: [[[1, 2]]], model: "pen" });
  const [mine, then] = [own().token, kept()];
  forgetOwn();
  return { read, before, mine, kept: then, left: [own(), kept()] };
}
