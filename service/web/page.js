import { ask, complete, events } from "./service.js";

const page = Object.fromEntries([...document.querySelectorAll("[id]")].map((e) => [e.id, e]));

let running = null; // the AbortController of the run in progress
let fingerprint = null; // of the model and runtime the verdict is about
// What is on the paper: the model that wrote it; `state`, the token after its last byte; and `cut`,
// the request and the text node of a run that ended before it could give a token.
let passage = null;

const bytesIn = (text) => new TextEncoder().encode(text).length;
const whole = (x) => Math.round(x).toLocaleString("en");

/** As the service's log writes it: 6.8e-06. */
function scientific(x) {
  if (!Number.isFinite(x)) return "not a number";
  return x === 0 ? "0" : x.toExponential(1).replace(/([+-])(\d)$/, "$10$2");
}

// --- Writing -----------------------------------------------------------------------------------

function put(className, text) {
  const span = document.createElement("span");
  span.className = className;
  const node = document.createTextNode(text);
  span.append(node);
  page.text.append(span);
  return node;
}

/** Stream one completion to the end of the paper; `begin` runs once the service has accepted it. */
async function run(part, begin = () => {}) {
  const body = {
    model: page.model.value,
    max_tokens: page.length.valueAsNumber,
    temperature: page.temperature.valueAsNumber,
    stream: true,
    stream_options: { include_usage: true },
    return_state: true,
    ...part,
  };
  const began = performance.now();
  const response = await complete(body, running.signal);
  begin();
  const node = put("generated", "");
  let head = {};
  let bytes = null;
  try {
    for await (const event of events(response)) {
      head = event;
      const [choice] = event.choices;
      if (choice) node.appendData(choice.text);
      if (choice?.state) passage.state = choice.state;
      bytes = event.usage?.completion_tokens ?? bytes;
    }
  } catch (error) {
    if (node.data) passage.cut = { node, body: body.state ? body : { ...body, seed: head.seed } };
    throw error;
  } finally {
    const seconds = (performance.now() - began) / 1000;
    page.progress.textContent = summary(bytes ?? bytesIn(node.data), seconds, bytes === null, head);
    if (head.system_fingerprint && head.system_fingerprint !== fingerprint) showModel();
  }
}

function summary(bytes, seconds, cut, head) {
  const rate = `${whole(bytes / seconds)} bytes/s`;
  const done = `${cut ? "Stopped after" : "Wrote"} ${whole(bytes)} bytes in ${seconds.toFixed(2)} s`;
  return head.seed === undefined ? "Stopped" : `${done}: ${rate}\nseed ${head.seed}`;
}

const write = () =>
  work(() => {
    const prompt = page.prompt.value;
    const seed = page.seed.value === "" ? undefined : page.seed.valueAsNumber;
    return run({ prompt, seed }, () => {
      passage = { model: page.model.value, state: null, cut: null };
      page.text.replaceChildren();
      if (prompt) put("prompt", prompt);
      page.paper.scrollIntoView({ block: "start" });
    });
  });

const canGoOn = () =>
  !running && passage?.model === page.model.value && Boolean(passage.state || passage.cut);

const goOn = () =>
  work(async () => {
    if (passage.cut) await catchUp();
    await run({ prompt: "", state: passage.state });
  });

/**
 * Get the token that a run cut short never gave. Same request, same bytes: that is what the service
 * promises, so ask for just the bytes that came.
 */
async function catchUp() {
  const { body, node } = passage.cut;
  const max_tokens = Math.min(body.max_tokens, bytesIn(node.data));
  const again = { ...body, max_tokens, stream: false, stream_options: undefined };
  const response = await complete(again, running.signal);
  const [choice] = (await response.json()).choices;
  node.data = choice.text;
  passage.state = choice.state;
  passage.cut = null;
}

/** One task at a time, with the controls and the error line in step. */
async function work(task) {
  if (running || !page.model.value || !page.controls.reportValidity()) return;
  running = new AbortController();
  page.error.hidden = true;
  const before = page.progress.textContent;
  page.progress.textContent = "Writing…";
  refresh();
  try {
    await task();
  } catch (error) {
    if (page.progress.textContent === "Writing…") page.progress.textContent = before;
    if (error.name !== "AbortError") {
      page.error.textContent = error.message;
      page.error.hidden = false;
    }
  } finally {
    running = null;
    refresh();
  }
}

function refresh() {
  const allow = (button, allowed) => button.setAttribute("aria-disabled", String(!allowed));
  allow(page.start, !running && page.model.value);
  allow(page.goon, canGoOn());
  allow(page.stop, running);
  page.text.setAttribute("aria-busy", String(running !== null));
}

// --- The models --------------------------------------------------------------------------------

function showVerdict(kind, text) {
  page.verdict.className = `verdict ${kind}`;
  page.verdict.textContent = text;
}

/** Try again when the service is not there, and while it is still attesting. */
async function patiently(task) {
  try {
    if (await task()) return;
  } catch (error) {
    showVerdict("bad", error.message);
  }
  setTimeout(patiently, 2000, task);
}

const showModel = () =>
  patiently(async () => {
    const name = page.model.value;
    const model = await (await ask(`/v1/models/${encodeURIComponent(name)}`)).json();
    if (name !== page.model.value) return true; // another was chosen meanwhile, and is shown
    const { cell, norm, layers, units } = model.hyperparameters;
    const normed = `${norm === "none" ? "no" : norm} norm`;
    const network = `${cell.toUpperCase()}, ${normed}, ${layers} × ${units} units`;
    const trained = `trained on ${model.provenance.data.name}`;
    page.facts.textContent = `${network}, ${whole(model.parameters)} parameters; ${trained}`;
    page.identity.textContent = `${model.runtime}, digest ${model.digest}`;
    fingerprint = model.system_fingerprint;
    showAttestation(model.attestation);
    return model.attestation !== null;
  });

function showAttestation(a, when = "at its start") {
  page.check.setAttribute("aria-disabled", String(!a));
  if (!a) {
    showVerdict("", "Not attested yet: the model is replaying its golden vectors.");
    return;
  }
  const errors = `largest error ${scientific(a.max_error)}, allowed ${scientific(a.bound)}`;
  const figures = `${whole(a.steps)} steps replayed ${when}, ${errors}`;
  if (a.ok) showVerdict("good", `Attested on this machine: ${figures}`);
  else showVerdict("bad", `Not attested, so not served: ${a.detail} (${figures})`);
}

/** Replay the golden vectors now, in the same queue as everything else. */
async function check() {
  const name = page.model.value;
  page.check.setAttribute("aria-disabled", "true");
  try {
    const path = `/v1/models/${encodeURIComponent(name)}/attest`;
    const verdict = await (await ask(path, { method: "POST" })).json();
    if (name === page.model.value) showAttestation(verdict, `at ${new Date().toLocaleTimeString()}`);
  } catch (error) {
    showVerdict("bad", error.message);
    page.check.setAttribute("aria-disabled", "false");
  }
}

function listModels() {
  return patiently(async () => {
    const { data } = await (await ask("/v1/models")).json();
    const names = data.filter((model) => model.kind === "language").map((model) => model.id);
    if (!names.length) throw new Error("This service has no language model.");
    page.model.replaceChildren(...names.map((name) => new Option(name)));
    refresh();
    showModel();
    return true;
  });
}

page.controls.addEventListener("submit", (event) => {
  event.preventDefault();
  write();
});
page.goon.addEventListener("click", () => canGoOn() && goOn());
page.stop.addEventListener("click", () => running?.abort());
page.check.addEventListener("click", () => page.check.ariaDisabled === "false" && check());
page.model.addEventListener("change", () => (refresh(), showModel()));
page.temperature.addEventListener("input", () => (page.heat.value = page.temperature.value));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") running?.abort();
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  write();
});
listModels();
