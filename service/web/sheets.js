// The sheets that were written in this visit, to be shown again.
import { make } from "./elements.js";
import { addressOf } from "./save.js";

const MOST = 12;
const LONGEST_NAME = 60; // characters

export class Sheets {
  #list;
  #show;
  #kept = []; // newest first: {sheet, item}

  /** `list` is an element of items; `show(sheet)` puts one back. */
  constructor(list, show) {
    [this.#list, this.#show] = [list, show];
  }

  /** Keep a sheet {svg, lines, request}, which is the one that is shown. */
  add(sheet) {
    const name = `${sheet.lines.join(" ").slice(0, LONGEST_NAME)}, seed ${sheet.request.seed}`;
    const picture = make("img", { src: addressOf(sheet.svg), alt: "" });
    const button = make("button", { type: "button", ariaLabel: `Show again: ${name}`, title: name }, picture);
    const item = make("li", {}, button);
    button.addEventListener("click", () => this.#show(sheet));
    this.#kept.unshift({ sheet, item });
    this.#list.prepend(item); // the others stay where they are, and the keyboard with them
    for (const { item: old } of this.#kept.splice(MOST)) {
      if (old.contains(document.activeElement)) old.previousElementSibling.firstChild.focus();
      URL.revokeObjectURL(old.querySelector("img").src);
      old.remove();
    }
    this.#list.hidden = this.#kept.length < 2; // one is on the desk
    this.mark(sheet);
  }

  /** A sheet is on the desk. */
  mark(shown) {
    for (const { sheet, item } of this.#kept) {
      item.firstChild.setAttribute("aria-current", String(sheet === shown));
    }
  }
}
