// A text that this browser keeps for the page. Where a person forbids that there never is one.

export class Kept {
  #storage;

  /** Under a name in `sessionStorage` or `localStorage`. */
  constructor(storage, name) {
    [this.#storage, this.name] = [storage, name];
  }

  /** The text; null if there is none. */
  get text() {
    try {
      return window[this.#storage].getItem(this.name);
    } catch {
      return null;
    }
  }

  set text(text) {
    try {
      if (text === null) window[this.#storage].removeItem(this.name);
      else window[this.#storage].setItem(this.name, text);
    } catch {
      // Whoever sets it knows it as long as the page lives.
    }
  }
}
