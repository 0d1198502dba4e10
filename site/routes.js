// What the page may ask, and who answers: the paths and bodies are the service's.
import { Refusal } from "./model.js";
import { OnlineInk } from "./online.js";
import { handwriting, stored } from "./ink.js";
import { checkSample } from "./sample.js";
import { completion, completions } from "./text.js";

const list = (data) => ({ object: "list", data });

function known(models, name) {
  const model = models.get(name);
  const others = [...models.keys()].join(", ");
  if (!model) throw new Refusal(`model is ${name}; this page has: ${others}`, "model", 404);
  return model;
}

async function ready(models, name) {
  const model = known(models, name);
  await model.load();
  return model;
}

async function write(models, body, signal) {
  const model = await ready(models, body.model);
  return handwriting(model, body, signal);
}

async function complete(models, body, signal) {
  const model = await ready(models, body.model);
  const answer = body.stream ? completions : completion;
  return answer(model, body, signal);
}

async function attest(models, name, signal) {
  const before = models.get(name)?.verdict;
  const model = await ready(models, name);
  // Who has been loaded for this has replayed them just now.
  if (model.verdict === before) await model.attest();
  model.verdict.sample = await checkSample(model, signal);
  return model.verdict;
}

const ROUTES = [
  ["GET", /^\/v1\/models$/, (models) => list([...models.values()].map((model) => model.describe()))],
  // Answered when there is news: nobody has to ask again and again.
  ["GET", /^\/v1\/models\/([^/]+)$/, async (models, { name }) => {
    const model = known(models, name);
    await model.attested;
    return model.describe();
  }],
  ["POST", /^\/v1\/models\/([^/]+)\/attest$/, (models, { name, signal }) => attest(models, name, signal)],
  ["GET", /^\/v1\/styles$/, (models) => list([...models.values()].flatMap(stored))],
  ["POST", /^\/v1\/completions$/, (models, { body, signal }) => complete(models, body, signal)],
  ["POST", /^\/v1\/handwriting$/, (models, { body, signal }) => write(models, body, signal)],
];

/** Answer one request: a status with a body, or with events as they come. */
export async function answer(models, { path, method, body }, signal) {
  try {
    for (const [verb, pattern, route] of ROUTES) {
      const found = verb === method && pattern.exec(path);
      if (!found) continue;
      const told = await route(models, { name: found[1] && decodeURIComponent(found[1]), body, signal });
      return told?.[Symbol.asyncIterator] ? { status: 200, events: told } : { status: 200, body: told };
    }
    throw new Refusal(`this page has no ${method} ${path}`, null, 404);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const refusal = error instanceof Refusal ? error : new Refusal(error.message, null, 500);
    return { status: refusal.status, body: refusal.body() };
  }
}

/** A session of a model that is followed step by step. */
export async function follow(models, opening) {
  return OnlineInk.of(await ready(models, opening.model), opening);
}
