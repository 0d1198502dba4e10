// `/v1/handwriting` and `/v1/styles` as the service answers them, for what the page asks.
import { breakText } from "./breaking.js";
import { Layout } from "./layout.js";
import { requireLine, requirePage, written } from "./letters.js";
import { InkLine, fresh, handThatWrote } from "./line.js";
import { LinePen, strokesOf } from "./linepen.js";
import { LineMarks } from "./marks.js";
import { Refusal, anySeed, requireKnown } from "./model.js";
import { range, round } from "./numbers.js";
import { Squeeze } from "./squeeze.js";
import { offsetsOf } from "./strokes.js";

const FIELDS = [
  "model", "text", "style", "seed", "bias", "width", "line_height", "stroke_width", "thinning", "color", "best_of",
  "format", "stream",
];
const MADE_UP = "made-up"; // the style of a page whose first line makes up its hand
// How wide the model writes a character after ink of some advance, in units.
const [ADVANCE, ADVANCE_OF_INK] = [2.34, 0.34];
// How wide it is in a hand that is made up, as a share of what its writers had: neat, and untidy.
const [NEAT, UNTIDY] = [0.82, 0.16];

/** A point to hundredths of a px. */
const rounded = ([x, y, up]) => [round(100 * x) / 100, round(100 * y) / 100, up];

/** The stored hands of a model, as `/v1/styles` lists them. */
export const stored = ({ name, manifest }) =>
  (manifest.styles ?? []).map(({ id, description }) => ({
    id, model: name, description, preview: `models/previews/${name}/${id}.svg`,
  }));

/** The style of a page that asks for none: one of the stored hands, if the model has any. */
function bySeed({ manifest }, seed) {
  const hands = manifest.styles.length ? manifest.styles.map(({ id }) => id) : [MADE_UP];
  return hands[((seed % hands.length) + hands.length) % hands.length];
}

/** A stored hand by its id; undefined if there is none. */
function storedHand({ manifest, styles }, id) {
  const style = manifest.styles.find((entry) => entry.id === id);
  if (!style) return undefined;
  const state = manifest.ports.state.map(({ name }) => {
    const { dtype, shape, data } = styles[`${id}.${name}`];
    return [name, { dtype, shape: [1, ...shape], data }];
  });
  const { context, height, advance } = style;
  return { state: Object.fromEntries(state), context, height, advance };
}

/** From the leftmost to the rightmost of the places that offsets lead to. */
function widthOf(ink) {
  let x = 0;
  const places = Array.from(ink)
    .filter((_, i) => i % 3 === 0)
    .map((dx) => (x += dx));
  return range(places);
}

/** The hand in a person's own strokes. */
async function ownHand(model, { strokes, text }) {
  const { characters } = model.manifest.alphabet;
  const said = written(text, `${characters}\n`, "style.text").split(/\s+/).filter(Boolean).join(" ");
  if (!said) throw new Refusal("style.text is empty", "style");
  requireLine(said, "style.text");
  const ink = offsetsOf(strokes, said);
  const advance = ADVANCE + (ADVANCE_OF_INK * widthOf(ink)) / said.length;
  return { ...(await handThatWrote(model, said, ink)), advance };
}

/** The hand a style stands for, at the beginning of its randomness, and what names it from then on. */
export async function handIn(model, style, seed) {
  if ((style ?? MADE_UP) === MADE_UP) return { hand: fresh(model, seed), style };
  const own = typeof style === "object";
  const found = own ? await ownHand(model, style) : (storedHand(model, style) ?? model.moment(style));
  if (!found) throw new Refusal("style is neither a stored hand nor one drawn on this page", "style");
  const hand = { ...found, seed, drawn: 0 };
  return { hand, style: own ? model.keep(hand) : style };
}

/** How wide a character is in a hand: what is known, or what those made up have at a bias. */
function advanceIn(hand, ink, bias) {
  const untidy = 1 / ((1 + bias) * (1 + bias));
  return hand.advance ?? ink.units_per_character * (NEAT + UNTIDY * untidy);
}

/** A request laid out: its page, its lines, and the hand it asks for. */
async function laidOut(model, body) {
  requireKnown(body, FIELDS);
  const { alphabet, ink } = model.manifest;
  const text = written(body.text, `${alphabet.characters}\n`);
  if (!text.trim()) throw new Refusal("text has nothing but spaces", "text");
  requirePage(text);
  if (body.best_of > 1) throw new Refusal("best_of needs a reader; this page has none", "best_of");
  const seed = body.seed ?? anySeed();
  const begun = await handIn(model, body.style ?? bySeed(model, seed), seed);
  const layout = new Layout(body, ink, advanceIn(begun.hand, ink, body.bias ?? 1));
  const lines = breakText(text, layout.room);
  layout.check(lines.length);
  return { layout, lines, ...begun };
}

/** Each character that is written, with its points. */
function* byCharacter(points, characters) {
  for (let first = 0, end = 0; first < points.length; first = end) {
    while (characters[end] === characters[first]) end += 1;
    yield { points: points.slice(first, end), character: characters[first] };
  }
}

/** The points of a line in portions of one character each, those of its marks last. */
async function* inkOf(model, job, layout, line, signal) {
  const [pen, squeeze] = [new LinePen(layout, line), new Squeeze(layout, job.text)];
  const marks = new LineMarks(job.text, layout);
  let points = [];
  for await (const _ of model.run(job, signal)) {
    const { offsets, characters } = job.piece();
    if (!characters.length) continue;
    points = pen.move(offsets).map(([x, y, up], i) => [squeeze.place(x, characters[i]), y, up]);
    marks.follow(offsets, points, characters);
    yield* byCharacter(points, characters);
  }
  const drawn = marks.drawn().map(([x, y, up]) => [Math.min(x, layout.width), y, up]);
  if (!drawn.length) return;
  // Of a line that was cut off the pen is down: it is lifted where it is.
  const lifted = points.slice(-1).filter(([, , up]) => up < 0.5).map(([x, y]) => [x, y, 1]);
  yield { points: [...lifted, ...drawn], character: job.character };
}

/** The events of a page that is written line by line, all of them in one hand. */
async function* pageEvents(model, body, page, signal) {
  const { layout, lines, style } = page;
  let { hand } = page;
  const usage = { characters: lines.join("").length, points: 0 };
  yield {
    model: model.name,
    system_fingerprint: model.fingerprint,
    seed: hand.seed,
    style,
    width: layout.width,
    height: layout.height(lines.length),
    stroke_width: layout.nib,
    thinning: layout.thinning,
    color: layout.color,
    lines,
  };
  for (const [line, text] of lines.entries()) {
    if (text) {
      const job = new InkLine(text, hand, model, body.bias ?? 1);
      for await (const { points, character } of inkOf(model, job, layout, line, signal)) {
        usage.points += points.length;
        yield { line, points: points.map(rounded), character };
      }
      yield { line, finish_reason: job.reason };
      if (lines.slice(line + 1).some(Boolean)) hand = await job.after();
    } else yield { line, finish_reason: "stop" };
  }
  yield { usage };
}

/** The same in one: the page with its lines of strokes. */
async function whole(events) {
  const { value: head } = await events.next();
  const { stroke_width: nib, thinning, color, lines: texts, ...about } = head;
  const lines = texts.map((text) => ({ text, points: [] }));
  let tail = {};
  for await (const { line, points = [], finish_reason: reason, ...rest } of events) {
    if (line === undefined) tail = rest;
    else {
      lines[line].points.push(...points);
      if (reason) lines[line].finish_reason = reason;
    }
  }
  const told = lines.map(({ points, ...line }) => ({ ...line, strokes: strokesOf(points) }));
  return { ...about, lines: told, ...tail };
}

/** Write a text by hand: events if it is streamed, or the page as JSON. */
export async function handwriting(model, body, signal) {
  if (body.format !== "json") throw new Refusal("format is not json; the page draws from that", "format");
  const page = await laidOut(model, body);
  const events = pageEvents(model, body, page, signal);
  if (body.stream) return events;
  return whole(events);
}
