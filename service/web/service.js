// Asking the service: requests, streams of events, and errors a person can read.
import { askKey, headers, protocols } from "./key.js";

/** An address of the service, beside this page: a proxy may have put both under a path of its host. */
export const addressOf = (path) => new URL(path.replace(/^\/?/, "./"), location.origin + location.pathname).href;

// Who answers: the service, unless something on this device does that is asked in the same words.
let place = {
  reach: (path, options) => fetch(addressOf(path), { ...options, headers: { ...options.headers, ...headers() } }),
  openOnline: () => new WebSocket(addressOf("/v1/online").replace(/^http/, "ws"), protocols()),
};

/** Have another place answer: `reach` is as `fetch`, what `openOnline` gives as a WebSocket. */
export const answerBy = (other) => (place = other);

/** Whether what it signs is known to it after the page has been loaded again. */
export const remembers = () => !place.forgetful;

export const aborted = (signal) =>
  new Promise((_, reject) => {
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener("abort", () => reject(signal.reason));
  });

let first; // settles when the first answer is there, with a key where one is wanted

/** Fetch, or throw an error whose message a person can read; `param` is the field that is wrong. */
export function ask(path, options = {}) {
  // Whether a key is wanted is asked once: nothing else goes out until that is known.
  if (first) return first.then(() => answered(path, options));
  const answer = answered(path, options);
  first = answer.catch(() => {});
  return answer;
}

async function answered(path, options) {
  let response;
  try {
    response = await place.reach(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unanswered("The service does not answer.");
  }
  if (response.ok) return response;
  if (response.status === 401) {
    await Promise.race([askKey(), aborted(options.signal)]);
    return answered(path, options);
  }
  const body = await response.json().catch(() => null);
  throw refusal(body?.error, `The service answers ${response.status}.`, whenAgain(response, body?.error));
}

/** When it is worth asking again, as far as that is known: of a model that is not served nobody knows it. */
function whenAgain({ headers }, error) {
  const [seconds, { code }] = [headers.get("Retry-After"), Object(error)];
  return /^[1-9]\d*$/.test(seconds) && code !== "not_ready" ? `; try again in ${seconds} s` : "";
}

/** An error in the service's words, or in `ours`, as a proxy may have none, and `more`; of a model that is not
 *  served, or not any more, the page hears. */
function refusal(error, ours, more = "") {
  const { message, param, code } = Object(error);
  if (param === "model" || code === "not_ready") document.dispatchEvent(new Event("unserved"));
  const words = message && typeof message === "string" ? message : ours;
  return Object.assign(new Error(more ? words.replace(/\.$/, "") + more : words), { param });
}

/** An error of what is not there, perhaps, for whoever asks next. */
function unanswered(message) {
  document.dispatchEvent(new Event("unanswered"));
  return new Error(message);
}

function brokenOff(error) {
  throw error.name === "AbortError" ? error : unanswered("The connection broke off.");
}

async function post(path, body, signal) {
  const response = await ask(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  document.dispatchEvent(new CustomEvent("served", { detail: body.model }));
  return response;
}

export const complete = (body, signal) => post("/v1/completions", body, signal);
export const handwrite = (body, signal) => post("/v1/handwriting", body, signal);

const notOurs = () => new Error("What came is no answer of Evenkeel.");

/** What an answer says, or an event; somebody else's, as of who wants a log-in first, may be no JSON. */
function parsed(text) {
  let said;
  try {
    said = JSON.parse(text);
  } catch {
    throw notOurs();
  }
  if (Object(said) !== said) throw notOurs();
  return said;
}

/** All of an answer, read `as` text or a blob; it may break off as a stream may. */
export const bodyOf = (response, as) => response[as]().catch(brokenOff);

export const contentOf = async (response) => parsed(await bodyOf(await response, "text"));

export const readInk = (body) => contentOf(post("/v1/read", body));

async function listOf(path) {
  const { data } = await contentOf(ask(path));
  if (!Array.isArray(data)) throw notOurs();
  return data;
}

export const listModels = () => listOf("/v1/models");
export const listStyles = () => listOf("/v1/styles");

const path = (name) => `/v1/models/${encodeURIComponent(name)}`;
export const getModel = (name) => contentOf(ask(path(name)));
export const attest = (name) => contentOf(ask(`${path(name)}/attest`, { method: "POST" }));

/** A session of a model that is followed step by step. */
export const openOnline = () => place.openOnline();

const dataOf = (event) =>
  event
    .split("\n")
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.replace(/^data: ?/, ""))
    .join("\n");

/** The events of a stream. What arrives together is not what was sent together. */
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch(brokenOff);
    if (done) throw unanswered("The answer ended before its end mark.");
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const data = dataOf(part);
      if (data === "[DONE]") return;
      if (!data) continue; // a comment: there is nothing to tell yet
      const event = parsed(data);
      if (event.error) throw refusal(event.error, "The answer ended in an error.");
      yield event;
    }
  }
}
