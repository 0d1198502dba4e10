// What `answers.mjs` asks of the page's modules that make elements.
import { documentOf } from "./document.mjs";
import { Element } from "./element.mjs";

function drawing() {
  globalThis.document = documentOf("");
  globalThis.matchMedia = () => ({ matches: false });
}

/** The paths that pens have drawn, one after the other, each of portions of points, and what they said they had
 *  reached; `frame_ms` pass from one picture to the next. */
export async function watched({ writings, how, frame_ms }) {
  drawing();
  let now = 0;
  Object.assign(globalThis, {
    performance: { now: () => now }, cancelAnimationFrame: () => {},
    requestAnimationFrame: (step) => {
      if (now > 1e6) throw new Error("the pen does not end");
      setImmediate(() => step((now += frame_ms)));
    },
  });
  const [{ Pen }, { Nib }] = await Promise.all(["pen", "nib"].map((name) => import(`./service/web/${name}.js`)));
  const found = [];
  for (const portions of writings) {
    const [sheet, reached, began] = [new Element("svg"), [], now];
    const pen = new Pen(sheet, { nib: new Nib(how), pace: () => 1, reached: (...at) => reached.push(at) });
    for (const { points, line, character, lift } of portions) {
      pen.push(points, line, character);
      if (lift) pen.lift();
    }
    pen.end();
    await pen.drained;
    const paths = sheet.childNodes.map((path) => [path.getAttribute("d"), path.getAttribute("stroke-width")]);
    found.push({ paths, reached, took_ms: now - began });
  }
  return found;
}

/** A mixture as ellipses, by their attributes. */
export async function shaded({ mixture }) {
  drawing();
  const { ellipses } = await import("./service/web/expect.js");
  return ellipses(mixture).map(({ attributes }) => Object.fromEntries(attributes));
}

/** What a session is sent of the points of a pen, before it is open and after, and what is shown of its answers. */
export async function expected({ points, opens, answers, spacing }) {
  drawing();
  globalThis.WebSocket ??= { CONNECTING: 0, OPEN: 1, CLOSED: 3 };
  const { answerBy } = await import("./service/web/service.js");
  const { Expectation } = await import("./service/web/expect.js");
  const [sent, shown, socket] = [[], [], { readyState: 0, send: (said) => sent.push(JSON.parse(said)) }];
  socket.close = () => (socket.readyState = 3);
  answerBy({ openOnline: () => socket });
  const made = new Expectation({ model: "any" }, spacing, (...told) => shown.push(told));
  for (const [i, [x, y, up]] of points.entries()) {
    if (i === opens) socket.onopen((socket.readyState = 1));
    made.point([x, y], Boolean(up));
    if (answers) socket.onmessage?.({ data: JSON.stringify({ mixture: [i], pen_up: 0.5 }) });
  }
  return { sent, shown, closed: socket.readyState === 3 };
}

/** The letters of an answer as they are shown, its lines, and how surprising it was: of `before`, which is taken back,
 *  nothing is left. */
export async function tinted({ before, events }) {
  drawing();
  const { Letters } = await import("./service/web/letters.js");
  const paper = new Element("div");
  const letters = new Letters(paper);
  for (const event of before) letters.append(event);
  letters.clear();
  for (const event of events) letters.append(event);
  const { text, bytes, surprise } = letters;
  const lines = paper.childNodes.map((line) => line.childNodes.map((span) => [span.textContent, span.className, span.title || null]));
  return { lines, text, bytes, surprise };
}

/** The names of the sheets of a visit, newest first, and which is on the desk and was put back; the first is looked
 *  at by the keyboard when `count` have been written, unless that is `elsewhere`. */
export async function kept({ count, lines, shows, elsewhere }) {
  drawing();
  Object.assign(URL, { createObjectURL: () => "blob:", revokeObjectURL: () => {} });
  const { Sheets } = await import("./service/web/sheets.js");
  const [list, shown] = [new Element("ol"), []];
  const sheets = new Sheets(list, (sheet) => shown.push(sheet.request.seed));
  const hidden = [];
  for (let seed = 0; seed < count; seed += 1) {
    sheets.add({ svg: "<svg/>", lines, request: { seed } });
    hidden.push(list.hidden);
    if (!seed && !elsewhere) list.firstChild.firstChild.focus();
  }
  const buttons = list.childNodes.map((item) => item.firstChild);
  buttons[shows].click();
  return {
    names: buttons.map(({ title }) => title), shown, hidden: hidden.slice(0, 3),
    current: buttons.map((button) => button.getAttribute("aria-current") === "true"),
    at: buttons.indexOf(document.activeElement),
  };
}
