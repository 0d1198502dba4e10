// The Text tab: a text model writes on from a prompt, each character tinted by its probability.
import { allow, count, make, narrow, onPress, parts, whole } from "./elements.js";
import { Letters, explain } from "./letters.js";
import { follow, named, networkOf, offer, watch } from "./models.js";
import { complete, contentOf, events } from "./service.js";
import { Work } from "./work.js";

const BEGINS_WITH = "shakespeare"; // of several, the one worth reading
const LEAST_MS = 100; // to judge a pace by: whoever stands between may pass all bytes on at once
const at = parts("text");
const work = new Work(at, refresh);
// What is on the paper: the model that wrote it; `state`, the token after its last byte; `last`, the request,
// its answer's head and the letters of the last run; and whether that was `cut` before it could give a token.
let passage = null;

export const model = () => named(at.model.value);
export const stop = () => work.stop();

/** Stream one completion, of the model that `part` names, to the end of the paper; `begun` runs once
 *  the service has accepted it. */
async function run(part, begun = () => {}) {
  const body = {
    max_tokens: at.length.valueAsNumber,
    temperature: at.temperature.valueAsNumber,
    logprobs: 1,
    stream: true,
    stream_options: { include_usage: true },
    return_state: true,
    ...part,
  };
  const began = performance.now();
  const response = await complete(body, work.signal);
  begun();
  const letters = new Letters(at.passage);
  let head = {};
  let bytes = null;
  let first = null; // when the first bytes were there, and how many: a prompt is read before
  try {
    for await (const event of events(response)) {
      head = event;
      const [choice] = event.choices;
      if (choice) letters.append(choice);
      if (letters.bytes) first ??= { at: performance.now(), bytes: letters.bytes };
      if (choice?.state) passage.state = choice.state;
      bytes = event.usage?.completion_tokens ?? bytes;
    }
  } catch (error) {
    passage.cut = letters.bytes > 0;
    throw error;
  } finally {
    if (letters.bytes) passage.last = { letters, head, body: body.state ? body : { ...body, seed: head.seed } };
    const paced = letters.bytes > first?.bytes && performance.now() - first.at > LEAST_MS;
    const seconds = secondsOf(letters.bytes, paced ? first : { at: began, bytes: 0 });
    at.progress.textContent = summary(letters, seconds, bytes === null, head);
    // Another model or runtime than the page knows: the service was started anew.
    const known = named(body.model)?.system_fingerprint;
    if (head.system_fingerprint && head.system_fingerprint !== known) follow(body.model);
  }
  return at.progress.textContent;
}

/** What so many bytes took at the pace they have come at since some were there. */
const secondsOf = (bytes, since) =>
  ((performance.now() - since.at) / 1000) * (since.bytes ? bytes / (bytes - since.bytes) : 1);

function summary(letters, seconds, cut, head) {
  if (head.seed === undefined) return "Stopped";
  const { bytes, surprise } = letters;
  const done = `${cut ? "Stopped after" : "Wrote"} ${count(bytes, "byte")} in ${seconds.toFixed(2)} s`;
  // Some browsers tell a page tenths of a second, lest it know them again.
  const pace = seconds > 0 ? `: ${whole(bytes / seconds)} bytes/s` : "";
  const mean = bytes ? `mean ${surprise.toFixed(2)} bits per byte, ` : "";
  return `${done}${pace}\n${mean}seed ${head.seed}`;
}

function begun(model, prompt) {
  passage = { model, state: null, last: null, cut: false };
  at.passage.replaceChildren();
  // In one piece, unlike what is tinted: each letter that comes has all pieces of its line laid out anew.
  for (const line of prompt.match(/[^\n]*\n|[^\n]+/g) ?? []) {
    at.passage.append(make("div", { className: "line" }, make("span", { className: "prompt" }, line)));
  }
  at.passage.scrollIntoView({ block: narrow.matches ? "start" : "nearest" });
}

export const start = () =>
  model() &&
  work.run(() => {
    const [model, prompt] = [at.model.value, at.prompt.value]; // another may be chosen meanwhile
    const seed = at.seed.value === "" ? undefined : at.seed.valueAsNumber;
    return run({ model, prompt, seed }, () => begun(model, prompt));
  });

const canGoOn = () =>
  !work.busy && passage?.model === at.model.value && Boolean(passage.state || passage.cut);

const goOn = () => work.run(() => further().catch(afterAll).catch(refused));

async function further() {
  if (passage.cut) await catchUp();
  return run({ model: passage.model, prompt: "", state: passage.state });
}

/** A token that a service has signed is none to the one that was started after it: get another. */
function afterAll(error) {
  if (error.param !== "state") throw error;
  passage.cut = true;
  return further();
}

function refused(error) {
  if (error.param !== "state") throw error;
  throw new Error("The service was started anew and no longer knows where this text ended: begin again.");
}

/**
 * Get the token that a run cut short never gave. Same request, same bytes: that is what the service
 * promises, so ask for just the bytes that came.
 */
async function catchUp() {
  const { body, head, letters } = passage.last;
  const again = { ...body, max_tokens: letters.bytes, stream: false, stream_options: undefined };
  const { system_fingerprint: fingerprint, choices: [choice] } = await contentOf(complete(again, work.signal));
  if (fingerprint !== head.system_fingerprint) {
    throw new Error("The service has another model by now, which would write another text: begin again.");
  }
  letters.clear();
  letters.append(choice);
  passage.state = choice.state;
  passage.cut = false;
}

function refresh() {
  allow(at.start, !work.busy && model());
  allow(at.goon, canGoOn());
  allow(at.stop, work.busy);
  at.passage.setAttribute("aria-busy", String(work.busy));
}

function showFacts() {
  at.facts.textContent = `${networkOf(model())}; trained on ${model().provenance.data.name}`;
}

/** The models are known. */
export function begin() {
  if (offer(at.model, "language", { preferred: BEGINS_WITH })) showFacts();
  watch(({ id }) => id === at.model.value && showFacts());
  refresh();
}

/** A finger has no tooltip, and the keyboard neither; what is pointed at, touched or gone to is said
 *  below as well. */
function tell(letter) {
  if (!letter?.matches("[data-chance]")) return;
  at.passage.querySelector(".told")?.classList.remove("told");
  letter.classList.add("told");
  at.letter.value = explain(letter);
}

/** Go to the letter before or after the one that was told of. */
function step(event) {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const letters = [...at.passage.querySelectorAll("[data-chance]")];
  const told = letters.findIndex((letter) => letter.matches(".told"));
  const next = letters[told < 0 && by < 0 ? letters.length - 1 : told + by];
  tell(next);
  next?.scrollIntoView({ block: "nearest" });
}

at.model.addEventListener("change", () => (refresh(), showFacts()));
at.temperature.addEventListener("input", () => (at.heat.value = at.temperature.value));
for (const event of ["pointerover", "click"]) at.passage.addEventListener(event, ({ target }) => tell(target));
at.paper.addEventListener("keydown", step);
onPress(at.goon, () => canGoOn() && goOn());
onPress(at.stop, stop);
