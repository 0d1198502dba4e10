// The Draw tab: a few words in a person's own hand, and the model that goes on in it.
import { allow, count, narrow, onPress, parts, say } from "./elements.js";
import { Expectation, ellipses } from "./expect.js";
import { offerMine } from "./hands.js";
import { bestOf, named, offer, reader, watch } from "./models.js";
import { own, watchOwn } from "./own.js";
import { BASELINE_PX, Pad } from "./pad.js";
import { printByLines } from "./print.js";
import { fill } from "./request.js";
import { aborted, handwrite, readInk } from "./service.js";
import { roomIn, shortcomings, writeOn } from "./sheet.js";
import { onShow, show } from "./tabs.js";
import { watchTyping } from "./typed.js";
import { Work } from "./work.js";

const LINE_PX = [32, 160];
// How many line heights a page is wide at least: fingers write large, and words would be cut to letters.
const WIDE_IN_LINES = 4;
const FIRST_LINE_PX = 110; // until there is ink to measure
// Of a line height: how far apart the points are that the models learnt from.
const SPACING = 0.09;
const IDLE_MS = 15_000; // an open socket holds a place in the service
const INK = "#1b2a49";
const PAUSE_MS = 350; // between strokes of a word there is less
const LEAST_INK_PX = 8; // a dot says nothing
const LONGEST_WORDS = 60; // characters, as the field has it

const at = parts("draw");
const work = new Work(at, refresh);
const pad = new Pad(at.pad, { point: watchPoint, changed: inkChanged, full: sayFull, cancelled: undo });
let expectation = null;
let idle = 0;
let linePx = FIRST_LINE_PX; // of the sheet below
let typed = false; // what was written, by the person, who knows better than a reader
let going = null; // what the paper and the form said when the sheet below was asked for
let reading = null; // of the ink as it is now, if there is one to wait for

printByLines(at.sheet, () => linePx);

export const model = () => named(at.model.value);
const writes = () => model()?.writes;
const looks = [
  watchTyping(at.text, at.wrote, writes),
  watchTyping(at.next, at.wrong, writes),
];
const lookAtTexts = () => looks.forEach((look) => look());
export const stop = () => work.stop();

export function start() {
  if (!model()) return;
  const task = async () => {
    // More may be drawn meanwhile, and the words be typed.
    for (let read; read !== reading; ) await Promise.race([(read = reading), aborted(work.signal)]);
    if (!at.form.reportValidity()) work.stop();
    work.signal.throwIfAborted();
    if (!pad.strokes.length) throw new Error("The line is empty: write a word or two on it first.");
    if (!large(pad.strokes)) throw new Error("A dot shows no hand: write a word or two on the line first.");
    forget();
    const strokes = structuredClone(pad.strokes);
    const body = request(strokes);
    const asked = said();
    const response = await handwrite(body, work.signal);
    const { head, usage, ...missed } = await writeOn(at.sheet, response, {
      signal: work.signal,
      pace: () => 1,
      lineHeight: body.line_height,
      begun: (head) => {
        going = asked;
        linePx = body.line_height;
        markStale();
        offerMine({ token: head.style, strokes, model: body.model });
        at.sheet.scrollIntoView({ block: "nearest" });
      },
    });
    return `${count(usage.characters, "character")} in your hand${shortcomings(missed)}\nseed ${head.seed}`;
  };
  work.run(task, { asks: false }); // the form may be right only once the ink is read
}

function request(strokes) {
  const width = Math.round(pad.width);
  return {
    model: at.model.value,
    text: at.next.value,
    bias: at.bias.valueAsNumber,
    style: { strokes, text: at.text.value },
    format: "json",
    stream: true,
    width,
    line_height: Math.min(lineHeight(strokes), Math.round(width / WIDE_IN_LINES)),
    color: INK,
    ...bestOf(),
  };
}

/** The line height at which the service's writing is as large as the person's: size is how far ink
 *  is from the middle of its line, on average. */
function lineHeight(strokes) {
  const { units_of_size, units_per_line } = model().ink;
  const heights = strokes.flat().map(([, y]) => y).sort((a, b) => a - b);
  const middle = heights[heights.length >> 1];
  const size = heights.reduce((sum, y) => sum + Math.abs(y - middle), 0) / heights.length;
  return Math.round(Math.min(Math.max(size / (units_of_size / units_per_line), LINE_PX[0]), LINE_PX[1]));
}

// --- The layer below the pen -------------------------------------------------------------------

function watchPoint(place, up) {
  if (!at.live.checked || !model()) return;
  clearTimeout(idle);
  idle = setTimeout(forget, IDLE_MS);
  expectation ??= expectFrom(place);
  expectation.point(place, up);
}

/** Begin a line at its first point; what was written before is told first, of this stroke too. */
function expectFrom([x]) {
  const line = pad.strokes.length > 1 ? lineHeight(pad.strokes) : FIRST_LINE_PX;
  const first = pad.strokes[0]?.[0]?.[0] ?? x;
  const opening = {
    model: at.model.value,
    text: at.text.value,
    line_height: line,
    origin: [first, BASELINE_PX],
  };
  const made = new Expectation(opening, line * SPACING, (mixture, penUp) => {
    pad.shade.replaceChildren(...ellipses(mixture));
    at.expected.textContent =
      penUp === null
        ? "Shaded while you write: the darker, the likelier."
        : `Shaded: the next point. The pen lifts there with ${Math.round(100 * penUp)} %.`;
  });
  for (const stroke of pad.strokes.slice(0, -1)) {
    for (const [i, place] of stroke.entries()) made.point(place, i === stroke.length - 1);
  }
  for (const place of pad.strokes.at(-1)?.slice(0, -1) ?? []) made.point(place, false);
  return made;
}

/** The next stroke begins anew with what is then on the paper. */
function forget() {
  clearTimeout(idle);
  expectation?.close();
  expectation = null;
}

// --- What was written ---------------------------------------------------------------------------

function inkChanged() {
  if (!work.running) at.error.hidden = true; // it was of the ink before
  refresh();
  markStale();
  reading = null;
  if (typed || !reader()) return;
  const paused = new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  const latest = paused.then(() => reading === latest && read(latest));
  reading = latest;
}

/** Read what is on the paper, unless there is more by then or the person says what it is. */
async function read(latest) {
  const strokes = structuredClone(pad.strokes);
  const found = large(strokes) ? await readInk({ model: reader()?.id, strokes }).catch(() => null) : { text: "" };
  if (typed || reading !== latest) return;
  if (!found) {
    at.wrote.hidden = false;
    say(at.wrote, "This could not be read: say yourself what you wrote.");
    return;
  }
  const words = found.text.replaceAll("\n", " "); // the field has one line, whatever the paper has
  at.text.value = words.trim().slice(0, LONGEST_WORDS);
  lookAtTexts();
  markStale();
  forget(); // what comes next is expected after these words
}

const said = () => JSON.stringify([pad.strokes, ...[at.text, at.next, at.model, at.bias].map(({ value }) => value)]);

/** The sheet below is of the ink above and the text beside it, or it is marked. */
function markStale() {
  const other = going && going !== said();
  at.stale.hidden = !other;
  at.sheet.classList.toggle("stale", Boolean(other));
}

function large(strokes) {
  const places = strokes.flat();
  const spans = [0, 1].map((i) => places.map((place) => place[i]));
  return spans.some((span) => Math.max(...span) - Math.min(...span) >= LEAST_INK_PX);
}

// --- The paper ---------------------------------------------------------------------------------

function refresh() {
  const some = pad.strokes.length > 0;
  allow(at.start, !work.busy && model());
  allow(at.stop, work.busy);
  allow(at.undo, some && !work.busy);
  allow(at.clear, some && !work.busy);
  allow(at.use, own() && named(own().model) && !work.busy);
  at.reader.value = reader()?.id;
  at.text.placeholder = reader() ? "read as you write, or typed" : "the words you wrote";
}

function clear() {
  forget();
  typed = false;
  at.text.value = "";
  lookAtTexts();
  pad.clear();
  at.sheet.toggleAttribute("hidden", true);
  going = null;
  markStale();
  at.progress.textContent = "";
  fit();
}

function undo() {
  forget();
  pad.undo();
  fit();
}

function sayFull() {
  work.run(() => Promise.reject(new Error("The paper is full: Undo or Clear makes room.")), { asks: false });
}

/** As wide as there is room, until something stands on it. */
function fit() {
  if (at.desk.clientWidth && !pad.strokes.length) pad.rule(roomIn(at.desk, 900));
}

function useMine() {
  fill({ model: own().model, style: own().token });
  show("write", { focus: true });
}

/** The models are known. */
export function begin() {
  offer(at.model, "handwriting", { field: at.models });
  offer(at.reader, "reader", { field: at.readers });
  at.reader.addEventListener("change", inkChanged); // once the choice is known
  at.more.open = !narrow.matches; // the paper comes below, and should be in sight
  lookAtTexts();
  onShow(refresh); // the hand may have been forgotten elsewhere
  watchOwn(refresh);
  watch(refresh); // as the reader's, or that it is not served
  // Later: what changes its size as it is told of it is an error event in WebKit.
  new ResizeObserver(() => requestAnimationFrame(fit)).observe(at.desk);
  refresh();
}

at.text.addEventListener("input", () => {
  typed = at.text.value.trim() !== "";
  if (typed) reading = null; // nobody waits for what a reader makes of it
});
for (const event of ["input", "change"]) at.form.addEventListener(event, markStale);
at.bias.addEventListener("input", () => (at.neat.value = at.bias.valueAsNumber.toFixed(1)));
for (const field of [at.text, at.model, at.live]) field.addEventListener("change", forget);
at.model.addEventListener("change", lookAtTexts);
onPress(at.undo, undo);
onPress(at.clear, clear);
onPress(at.use, useMine);
onPress(at.stop, stop);
