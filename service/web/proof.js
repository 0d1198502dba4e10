// The Proof tab: for every model, what was compared with its training, and the verdict here.
import { allow, make, onPress, scientific, whole } from "./elements.js";
import { all, check, networkOf, serves, showVerdict, watch } from "./models.js";

const list = document.getElementById("proof-models");
const cards = new Map(); // by name: the element of a model, and how to bring it up to date

const COLUMNS = ["Comparison", "Value", "Bound", "Holds"];

/** A figure as short as it can be said: counts whole, ratios plain, differences by exponent. */
const figure = (x) =>
  Number.isInteger(x) ? whole(x) : Math.abs(x) >= 0.01 ? String(+x.toPrecision(3)) : scientific(x);

// A table laid out as a grid is none to a screen reader, unless all its parts say what they are.
const line = (...cells) => make("tr", { role: "row" }, ...cells);

function cell(column, content) {
  const element = make("td", { role: "cell" }, content);
  element.dataset.column = column;
  return element;
}

function row({ name, value, bound, holds, detail }) {
  const head = make("th", { scope: "row", role: "rowheader" }, name, make("small", {}, detail));
  const verdict = make("span", { className: holds ? "good" : "bad" }, holds ? "✓ holds" : "✗ broken");
  const cells = [figure(value), figure(bound), verdict];
  return line(head, ...cells.map((content, i) => cell(COLUMNS[i + 1], content)));
}

function table(model) {
  const heads = COLUMNS.map((name) => make("th", { scope: "col", role: "columnheader" }, name));
  const caption = make("caption", {}, `What was compared when ${model.id} was exported`);
  const body = make("tbody", {}, ...model.parity.map(row));
  return make("table", { role: "table" }, caption, make("thead", {}, line(...heads)), body);
}

function facts(model) {
  const said = {
    network: `${networkOf(model)}${model.precision === "int8" ? ", 8 bits" : ""}`,
    "layer norms": `${whole(model.layer_normalizations)}${model.variant?.folded ? ", and one more in a table of all first inputs" : ""}`,
    "trained on": model.provenance.data.name,
    runtime: model.runtime,
    digest: model.digest,
  };
  const pairs = Object.entries(said).map(([term, value]) =>
    make("div", {}, make("dt", {}, term), make("dd", {}, String(value))),
  );
  return make("dl", {}, ...pairs);
}

function card(model) {
  const verdict = make("p", { className: "verdict", role: "status" });
  const sample = make("p", { hidden: true });
  const button = make("button", { type: "button" }, "Check it now");
  const title = make("h2", { id: `proof-of-${model.id}` }, model.id, make("small", {}, model.kind));
  const head = make("div", { className: "head" }, title, button);
  const element = make("article", {}, head, verdict, sample);
  element.setAttribute("aria-labelledby", title.id);
  button.setAttribute("aria-describedby", title.id);
  onPress(button, () => checkNow(model.id, verdict, button));
  let rest = []; // of the artifact, of which there may be another by now
  let reported = "";
  const update = (model) => {
    showVerdict(verdict, model);
    showSample(sample, model.attestation?.sample);
    allow(button, model.attestation || model.pending);
    const now = JSON.stringify([model.digest, model.runtime, model.parity, model.unproved, serves(model)]);
    if (now === reported) return;
    reported = now;
    for (const part of rest) part.remove();
    rest = [...doubts(model), facts(model), findings(model)];
    element.append(...rest);
  };
  update(model);
  return { element, update };
}

const findings = (model) =>
  model.parity?.length ? table(model) : make("p", { className: "hint" }, "This artifact carries no parity report.");

function doubts(model) {
  if (!model.unproved) return [];
  const served = serves(model) ? "Served" : "Not served, as it is";
  return [make("p", { className: "verdict bad" }, `${served} without proof: ${model.unproved}.`)];
}

/** What is known of a model has changed, or that there is one. */
function show(model) {
  if (cards.has(model.id)) return cards.get(model.id).update(model);
  const made = card(model);
  cards.set(model.id, made);
  list.append(made.element);
}

/** On a device: how much of what a server drew came out the same. */
function showSample(element, sample) {
  element.hidden = !sample;
  if (!sample) return;
  const { equal, of, unit, runtime } = sample;
  element.className = `verdict ${equal === of ? "good" : "bad"}`;
  element.textContent = `${whole(equal)} of ${whole(of)} ${unit} drawn by the server (${runtime}) are the same here`;
}

async function checkNow(name, verdict, button) {
  allow(button, false);
  verdict.className = "verdict";
  verdict.textContent = "Replaying the golden vectors…";
  try {
    await check(name);
  } catch (error) {
    verdict.className = "verdict bad";
    verdict.textContent = error.message;
    allow(button, true);
  }
}

/** The models are known. */
export function begin() {
  list.replaceChildren();
  for (const model of all()) show(model);
  watch(show);
}
