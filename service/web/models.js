// What the page knows of the service's models, and who wants to hear when that changes.
import { choose, chosen } from "./chosen.js";
import { attest, getModel, listModels } from "./service.js";
import { say, scientific, whole } from "./elements.js";

const known = new Map();
const watchers = [];
const followed = new Set(); // names of those that are asked for again and again

export const watch = (watcher) => watchers.push(watcher);
export const named = (name) => known.get(name);
export const ofKind = (kind) => [...known.values()].filter((model) => model.kind === kind);

/** Fill a list with the models of a kind; how many there are. Chosen is the one that was before; or else what
 *  the service takes in eight bits for the preferred one; or that one itself; or the one for requests that
 *  name none. One that comes later is offered too. The `field` is hidden while there is no choice. */
export function offer(select, kind, { preferred, field } = {}) {
  const models = ofKind(kind);
  select.replaceChildren(...models.map((one) => new Option(told(one), one.id, one.default, one.default)));
  const instead = models.find((model) => model.default && model.provenance?.from?.name === preferred);
  const wanted = [chosen(select.id), instead?.id, preferred].find((name) => offers(select, name));
  if (wanted) select.value = wanted;
  select.addEventListener("change", () => choose(select.id, select.value));
  const showField = () => field && (field.hidden = select.options.length < 2);
  showField();
  watch((model) => {
    const option = [...select.options].find(({ value }) => value === model.id);
    if (option) option.text = told(model);
    else if (model.kind === kind) select.add(new Option(told(model), model.id));
    showField();
  });
  return models.length;
}

const told = (model) =>
  [model.id, model.precision === "int8" && "8 bits", whyNot(model) && "not served"].filter(Boolean).join(", ");

/** Whether a list has a model to choose. */
export const offers = (select, name) => [...select.options].some(({ value }) => value === name);

/** Whether a model answers requests. On a device whatever has been attested does. */
export const serves = (model) => Boolean(model?.attestation?.ok && model.ready !== false);

/** Those models that can read, or will soon. */
export const readers = () => ofKind("reader").filter((model) => !whyNot(model));

/** The one of a name, or that was chosen, if it can read or will soon; or else the first that can. */
export function reader(name = chosen("draw-reader")) {
  const able = readers();
  return able.find(({ id }) => id === name) ?? able[0];
}

/** What to ask for where a model can read: the most legible of four draws of each word. */
export const bestOf = () => (serves(reader()) ? drawsOf(4) : {});

/** What to ask for to have the most legible of so many draws of each word. The reader is named, since
 *  the service may have several, and counts those as well that do not serve. */
export const drawsOf = (count, judge = reader()?.id) =>
  count === 1 ? {} : { best_of: count, best_by: "word", judge };

/** Whether an error says that the reader which was to choose among draws is not there. */
export const isUnjudged = ({ param }) => param === "best_of" || param === "judge";

export const all = () => [...known.values()];

const until = (is) =>
  new Promise((resolve) => {
    const look = () => is() && resolve();
    look();
    watch(look);
  });

/** Wait until a model answers requests. */
export const ready = (name) => until(() => serves(named(name)));

/** Wait until the one of a name, or else whichever is to read, does; or until none will. */
export const decided = (name) => until(() => !reader(name) || serves(reader(name)));

function learn(model) {
  known.set(model.id, model);
  for (const watcher of watchers) watcher(model);
}

/** Something about one model is different from before. */
export const note = (name, changes) => learn({ ...known.get(name), ...changes });

/** Ask for the models until the service answers; `trouble` hears why it has not. */
export async function load(trouble) {
  for (;;) {
    try {
      for (const model of await listModels()) known.set(model.id, model);
      break;
    } catch (error) {
      trouble(error.message);
      await pause();
    }
  }
  for (const model of all()) if (!settled(model)) follow(model.id);
}

/** Ask again which models there are: some may have come, gone or changed since the page was loaded. */
export async function lookAgain() {
  const there = await listModels();
  const ids = new Set(there.map(({ id }) => id));
  const gone = all().filter(({ id }) => !ids.has(id));
  for (const model of [...there, ...gone.map((model) => ({ ...model, ...GONE }))]) {
    learn(model);
    if (!settled(model)) follow(model.id);
  }
}

const GONE = { ready: false, failed: "it is not served any more" };

/** Whether a model answers requests, or does not for a reason that waiting does not mend. */
export const settled = (model) => serves(model) || Boolean(model && whyNot(model));

/** For what reason that waiting does not mend it answers none, if there is one. */
export const whyNot = ({ attestation, failed }) =>
  attestation && !attestation.ok ? "it does not compute here what it computed in training" : failed;

/** Ask again about one model until that is settled, in one place at a time. */
export async function follow(name) {
  if (followed.has(name)) return;
  followed.add(name);
  while (!settled(await seen(name))) await pause();
  followed.delete(name);
}

/** A model as it is now; null if that cannot be known. */
async function seen(name) {
  // Whoever stands between has a 404 of its own, of a service that will come back.
  const gone = ({ param }) => (param === "model" ? { ...known.get(name), ...GONE } : null);
  const model = await getModel(name).catch(gone);
  if (model) learn(model);
  return model;
}

/** A model has answered, whatever was known of it. */
export function answered(name) {
  if (named(name) && !serves(named(name))) follow(name);
}

/** No request is answered: what was known of those that did is known no more. */
export function doubt() {
  for (const { id } of all().filter(serves)) {
    note(id, { ready: false, pending: "The service does not answer." });
    follow(id);
  }
}

/** Replay the golden vectors now, in the same queue as everything else. */
export async function check(name) {
  const attestation = await attest(name);
  const model = await getModel(name).catch(() => null); // it may be another by now
  note(name, { ...model, attestation, checkedAt: new Date() });
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 2000));

/** What a model is made of. */
export function networkOf({ hyperparameters: { cell, norm, layers, units }, parameters }) {
  const normed = `${norm === "none" ? "no" : norm} norm`;
  return `${cell?.toUpperCase()}, ${normed}, ${layers} × ${units} units, ${whole(parameters)} parameters`;
}

const whenChecked = ({ checkedAt }) => (checkedAt ? `at ${checkedAt.toLocaleTimeString()}` : "at its start");

/** Say in plain words whether a model can be asked, and that it is what was trained. */
export function showReady(element, model) {
  const ok = serves(model);
  const why = !ok && whyNot(model);
  element.className = `verdict ${ok ? "good" : why ? "bad" : ""}`;
  if (ok) say(element, `Ready: checked on this machine ${whenChecked(model)}, it computes what it computed in training.`);
  else if (why) say(element, `Not served: ${why}.`);
  else say(element, model.pending ?? "Getting ready: it is checking itself against its training.");
}

/** Say in a line whether a model is what was trained, with the figures. */
export function showVerdict(element, model) {
  const a = model.attestation;
  element.className = `verdict ${a?.ok && !model.failed ? "good" : whyNot(model) ? "bad" : ""}`;
  if (model.failed && a?.ok !== false) return say(element, `Not served: ${model.failed}.`);
  if (!a) return say(element, model.pending ?? "Not attested yet: the model is replaying its golden vectors.");
  const errors = `largest error ${scientific(a.max_error)}, allowed ${scientific(a.bound)}`;
  const figures = `${whole(a.steps)} steps replayed ${whenChecked(model)}, ${errors}`;
  say(element, a.ok ? `Attested on this machine: ${figures}` : `Not attested, so not served: ${a.detail} (${figures})`);
}
