// `/v1/completions` as the service answers it, for what the page asks: one prompt, one choice.
import { Completion } from "./completion.js";
import { Refusal, anySeed, requireKnown } from "./model.js";
import { TextOffsets, encode } from "./utf8.js";

const FIELDS = [
  "model", "prompt", "max_tokens", "temperature", "seed", "state", "return_state", "logprobs", "stream", "stream_options",
];
const nothingYet = () => new Uint8Array();

/** Where a request begins: at the moment of its token, or before anything. */
function begin(model, { state, seed }) {
  if (state) {
    const moment = model.moment(state, seed);
    if (!moment) throw new Refusal("state is not a token of this page", "state");
    return moment;
  }
  return { state: model.runner.initial(), seed: seed ?? anySeed(), drawn: 0, undecided: nothingYet() };
}

/** ASCII as itself, any other byte in OpenAI's notation for part of a character. */
const named = (token) =>
  token < 128 ? String.fromCharCode(token) : `bytes:\\x${token.toString(16)}`;

/** OpenAI's parallel lists. */
function listed(entries, offsets) {
  return {
    tokens: entries.map(({ token }) => named(token)),
    token_logprobs: entries.map(({ logprob }) => logprob),
    top_logprobs: entries.map(({ top: [token, logprob] }) => ({ [named(token)]: logprob })),
    text_offset: entries.map(({ token }) => offsets.of(token)),
  };
}

/** The events of a completion: its choice in portions, and how much was read and written. */
export async function* completions(model, body, signal) {
  requireKnown(body, FIELDS);
  const moment = begin(model, body);
  const prompt = encode(body.prompt);
  const { max_tokens: maxTokens = 16, temperature = 1 } = body;
  const job = new Completion({ prompt, maxTokens, temperature, moment });
  const offsets = new TextOffsets(moment.undecided, prompt.length > 0);
  const head = { model: model.name, seed: moment.seed, system_fingerprint: model.fingerprint };
  const event = (goesOn, last) => {
    const { text, entries } = job.piece({ last, goesOn });
    const logprobs = body.logprobs === undefined ? null : listed(entries, offsets);
    const choice = { index: 0, text, logprobs, finish_reason: last ? "length" : null };
    if (goesOn) choice.state = model.keep(job.after());
    return { ...head, choices: [choice] };
  };
  for await (const _ of model.run(job, signal)) if (job.wanted) yield event(false, false);
  yield event(Boolean(body.return_state), true);
  const usage = { prompt_tokens: prompt.length, completion_tokens: job.written };
  yield { ...head, choices: [], usage };
}

/** The same in one: what events with text said, one after the other. */
export async function completion(model, body, signal) {
  const parts = [];
  let last = {};
  for await (last of completions(model, body, signal)) if (last.choices.length) parts.push(last.choices[0]);
  const text = parts.map((part) => part.text).join("");
  const logprobs = body.logprobs === undefined ? null : {};
  for (const name of Object.keys(parts[0].logprobs ?? {})) {
    logprobs[name] = parts.flatMap((part) => part.logprobs[name]);
  }
  return { ...last, choices: [{ ...parts.at(-1), text, logprobs }] };
}
