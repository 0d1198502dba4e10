// The Write tab: a sentence, a hand, and the pen that writes it.
import { asCurl, asLink, asPython, fromLink } from "./copies.js";
import { markStale, offerSheets, put, shown } from "./desk.js";
import { allow, draw, narrow, onPress, parts } from "./elements.js";
import { chosenHand, forgetMine, isEverybodys, listHands } from "./hands.js";
import { bestOf, decided, drawsOf, isUnjudged, lookAgain, named, offer, offers, readers, ready } from "./models.js";
import { own } from "./own.js";
import { printByLines } from "./print.js";
import { asked, fill, wantedSeed } from "./request.js";
import { fileOf, save } from "./save.js";
import { bodyOf, handwrite } from "./service.js";
import { roomIn } from "./sheet.js";
import { onShow, shown as shownTab } from "./tabs.js";
import { watchTyping } from "./typed.js";
import { Work } from "./work.js";

const at = parts("write");
const work = new Work(at, refresh);
const FILES = ["svg", "png", "pdf"];
const COPIES = { curl: asCurl, python: asPython, link: asLink };

printByLines(at.sheet, () => shown()?.request.line_height ?? at.size.valueAsNumber);

// Or a line would hold one word; before anything is typed or brought along.
if (narrow.matches) [at.size.value, at.nib.value] = [44, 2];

export const model = () => named(at.model.value);
export const stop = () => work.stop();
const lookAtText = watchTyping(at.text, at.wrong, () => model()?.writes);

export const start = () => model() && write(wantedSeed());

const again = () => write(undefined);

const write = (seed, width = roomIn(at.desk), draws = bestOf()) =>
  work.run(async () => {
    if (seed === undefined) at.seed.value = ""; // or it would name another than the one used
    const said = asked();
    const drawn = { ...said, seed, width };
    let request = { ...drawn, ...draws };
    const unjudged = async (error) => {
      if (!isUnjudged(error)) throw error;
      await lookAgain(); // it may have gone since the page was loaded
      if (bestOf().best_of) throw error; // it is there: so many draws are not to be had
      return stream((request = drawn));
    };
    const response = await stream(request).catch(unjudged).catch((error) => explain(error, request));
    return put(request, response, { signal: work.signal, begun: refresh, said });
  });

const stream = (request) => handwrite({ ...request, format: "json", stream: true }, work.signal);

/** A hand that is refused is one's own, of another time: kept, it would only be refused again. */
function explain(error, { style }) {
  if (error.param !== "style" || !own() || style !== own().token) throw error;
  forgetMine();
  throw new Error(
    "The service no longer knows the hand you drew, so it has been forgotten here. " +
      "Write a few words under Draw to have it again.",
  );
}

// --- What is there before anybody has asked -------------------------------------------------------

/** Write the sentence whose stored ink is shown, live, over that ink. */
const open = () =>
  work.run(
    async () => {
      const { src, dataset } = at.opening;
      const said = asked();
      const request = { ...said, ...JSON.parse(dataset.request) };
      return put(request, await stream(request), {
        signal: work.signal,
        wanted: false,
        said,
        begun: ({ width, height }) => {
          at.sheet.prepend(draw("image", { href: src, width, height, class: "before" }));
          refresh();
        },
      }).finally(() => at.sheet.querySelector(".before")?.remove());
    },
    { givesWay: true, asks: false },
  );

const brief = (name) => (name.length > 40 ? `${name.slice(0, 40)}…` : name);

/** The model that chooses among draws, as far as it is not there: a link may not name it. */
function missingJudge(judge) {
  const able = readers().map(({ id }) => id);
  if (!able.length) return "a model that reads";
  if (judge) return !able.includes(judge) && `the model ${brief(judge)}`;
  return able.length > 1 && `the only model that reads (there are ${able.length})`;
}

/** Write what a link says, unless another model or hand would have to. */
function follow({ model: name, style, width, best_of: draws, judge }) {
  const missing = [
    name && !offers(at.model, name) && `the model ${brief(name)}`,
    style && chosenHand() !== style && `the hand ${brief(style)}`,
    draws > 1 && missingJudge(judge),
  ].filter(Boolean);
  const wanted = draws && drawsOf(Number(draws), judge);
  if (!missing.length) return write(wantedSeed(), Number(width) || undefined, wanted);
  const why = `This link asks for ${missing.join(" and ")}, not to be had here. Write takes what is chosen below.`;
  return work.run(() => Promise.reject(new Error(why)), { asks: false });
}

const inSight = () =>
  new Promise((resolve) => {
    const look = (tab) => tab === "write" && resolve();
    look(shownTab());
    onShow(look);
  });

async function begun() {
  const linked = fromLink();
  const untouched = at.text.value === at.text.defaultValue;
  at.opening.hidden = !untouched || Boolean(linked);
  at.empty.hidden = !at.opening.hidden;
  if (linked) fill(linked);
  const { value } = at.text;
  const hands = listHands(at.model.value);
  await Promise.all([ready(at.model.value), linked && hands, linked?.best_of > 1 && decided(linked.judge)]);
  if (linked) await inSight(); // elsewhere there is no room to see how wide a page may be
  // Whoever has begun to type will say when it is to be written.
  if (work.running || shown() || at.text.value !== value) return;
  if (linked) follow(linked);
  else if (untouched && shownTab() === "write") open();
}

// --- What is taken away ---------------------------------------------------------------------------

const download = (format) =>
  work.run(
    async () => {
      const { svg, request } = shown();
      const name = `evenkeel-${request.seed}.${format}`;
      save(await (format === "pdf" ? askForPdf() : fileOf(svg, format)), name);
      return `Saved ${name}\nseed ${request.seed}`;
    },
    { meanwhile: "Making the file…", asks: false },
  );

/** The same request gives the same ink, of the same model. */
async function askForPdf() {
  const { request, fingerprint } = shown();
  const response = await handwrite({ ...request, format: "pdf" }, work.signal).catch((error) => {
    if (!isUnjudged(error)) throw error;
    throw new Error("The service has no reader any more, which this sheet was chosen by: write it again.");
  });
  if (response.headers.get("X-Evenkeel-Fingerprint") === fingerprint) return bodyOf(response, "blob");
  throw new Error("The service has another model by now, which would draw other ink: write it again.");
}

const copy = (kind) =>
  work.run(
    async () => {
      const { request } = shown();
      const mine = kind === "link" && !isEverybodys(request.style);
      const copied = COPIES[kind](mine ? { ...request, style: null } : request);
      try {
        await navigator.clipboard.writeText(copied);
      } catch {
        return copied; // a page that came without TLS from elsewhere has no clipboard, or it is forbidden
      }
      return `Copied${mine ? ", but for your hand, which stays here" : ""}\nseed ${request.seed}`;
    },
    { meanwhile: "Copying…", asks: false },
  );

function refresh() {
  const sheet = shown();
  allow(at.start, !work.busy && model());
  allow(at.again, !work.busy && sheet);
  allow(at.stop, work.running);
  for (const button of [at.svg, at.png, at.curl, at.python, at.link]) allow(button, !work.running && sheet);
  allow(at.pdf, !work.running && sheet?.whole);
  markStale();
}

/** The models are known. */
export function begin() {
  const offered = offer(at.model, "handwriting", { field: at.models });
  offerSheets({ free: () => !work.running, changed: refresh });
  lookAtText();
  refresh();
  if (offered) begun();
}

for (const event of ["input", "change"]) at.form.addEventListener(event, markStale);
at.model.addEventListener("change", () => (listHands(at.model.value), lookAtText()));
at.bias.addEventListener("input", () => (at.neat.value = at.bias.valueAsNumber.toFixed(1)));
at.thinning.addEventListener("input", () => (at.thin.value = at.thinning.valueAsNumber.toFixed(1)));
addEventListener("hashchange", async () => {
  if (!fromLink() || !model()) return;
  await work.ended();
  const linked = fromLink();
  if (!linked) return; // it was taken back meanwhile
  await fill(linked);
  follow(linked);
});
onPress(at.again, again);
onPress(at.stop, stop);
for (const format of FILES) onPress(at[format], () => download(format));
for (const kind of Object.keys(COPIES)) onPress(at[kind], () => copy(kind));
