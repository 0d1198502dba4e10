// Text whose every character shows how probable the model held it.
import { make } from "./elements.js";

// Tints, from expected to surprising; beyond the last is one more.
const AT_LEAST = [0.5, 0.2, 0.05, 0.01];
const CONTROL = { "\n": "line break", "\t": "tab", " ": "space" };

const percent = (p) => (p >= 0.095 ? (100 * p).toFixed(0) : (100 * p).toPrecision(1));
const level = (p) => (AT_LEAST.findIndex((least) => p >= least) + 5) % 5;

/** What a person may want to know of one character. */
export function explain(span) {
  const letter = CONTROL[span.textContent] ?? span.textContent;
  return span.dataset.chance ? `${letter}: ${span.dataset.chance} %` : letter;
}

/** One answer of the model, appended to an element as it comes. */
export class Letters {
  #paper;
  #spans = []; // one per character
  #chances = []; // log-probability per character, in nats; a character is one byte or more
  #sum = 0;
  bytes = 0;

  constructor(paper) {
    this.#paper = paper;
  }

  get text() {
    return this.#spans.map((span) => span.textContent).join("");
  }

  /** Bits per byte. */
  get surprise() {
    return this.bytes ? -this.#sum / Math.LN2 / this.bytes : null;
  }

  clear() {
    const lines = new Set(this.#spans.map((span) => span.parentNode));
    for (const span of this.#spans) span.remove();
    for (const line of lines) if (!line.hasChildNodes()) line.remove();
    [this.#spans, this.#chances, this.#sum, this.bytes] = [[], [], 0, 0];
  }

  /** Text and the log-probabilities of its bytes; offsets count characters of the whole answer. */
  append({ text, logprobs }) {
    const first = this.#spans.length;
    for (const letter of text) this.#spans.push(this.#put(letter));
    for (const [i, offset] of (logprobs?.text_offset ?? []).entries()) {
      const chance = logprobs.token_logprobs[i];
      this.#chances[offset] = (this.#chances[offset] ?? 0) + chance;
      this.#sum += chance;
      this.bytes += 1;
    }
    for (let i = first; i < this.#spans.length; i += 1) this.#tint(i);
  }

  #tint(i) {
    if (this.#chances[i] === undefined) return;
    const chance = Math.exp(this.#chances[i]);
    const span = this.#spans[i];
    span.dataset.chance = percent(chance);
    span.className = `likely${level(chance)}`;
    span.title = explain(span);
  }

  /** A line is an element of its own, so that a long text is not laid out anew for each letter. */
  #put(letter) {
    const last = this.#paper.lastElementChild;
    const open = last?.matches(".line") && !last.lastChild.textContent.endsWith("\n");
    const line = open ? last : this.#paper.appendChild(make("div", { className: "line" }));
    return line.appendChild(make("span", {}, letter));
  }
}
