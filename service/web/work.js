// One task at a time in a tab, with its buttons, its error line and its progress in step.
import { isAsked } from "./key.js";

const KEY = "Waiting for the API key, asked for below…";

export class Work {
  #at;
  #changed;
  #controller = null;
  #givesWay = false; // to any other task: nobody asked for it
  #over = null;
  #meanwhile = ""; // what a task that has said nothing yet is doing

  /** `at` has form, error and progress; `changed` runs when a task begins and when it ends. */
  constructor(at, changed) {
    this.#at = at;
    this.#changed = changed;
    document.addEventListener("key", () => this.running && this.#tell());
  }

  /** Whether there is a task that others have to wait for. */
  get busy() {
    return this.running && !this.#givesWay;
  }

  get running() {
    return this.#controller !== null;
  }

  /** Aborted when the task is stopped. */
  get signal() {
    return this.#controller.signal;
  }

  stop() {
    this.#controller?.abort();
  }

  /** Stop, and wait until it has. */
  async ended() {
    this.stop();
    await this.#over;
  }

  /**
   * Run `task` and show what it returns, a string, as its progress. One that gives way is stopped for
   * the next, and nobody is told that it failed; one that does not ask needs no form that is right.
   */
  async run(task, { meanwhile = "Writing…", givesWay = false, asks = true } = {}) {
    if (this.busy || (asks && !this.#at.form.reportValidity())) return;
    if (this.running) {
      this.#givesWay = false; // from here on this task is waited for
      await this.ended();
    }
    this.#controller = new AbortController();
    this.#givesWay = givesWay;
    this.#meanwhile = meanwhile;
    this.#over = this.#see(task);
    await this.#over;
  }

  /** Say what the task is doing, or that a key is waited for, unless it has said something itself. */
  #tell() {
    const { progress } = this.#at;
    const [from, to] = isAsked() ? [this.#meanwhile, KEY] : [KEY, this.#meanwhile];
    if (progress.textContent === from) progress.textContent = to;
  }

  async #see(task) {
    const { error, progress } = this.#at;
    const quiet = this.#givesWay;
    error.hidden = true;
    const before = progress.textContent;
    progress.textContent = this.#meanwhile;
    this.#tell();
    this.#changed();
    try {
      progress.textContent = await task();
    } catch (problem) {
      // What a task that got somewhere has said beside it stays true.
      if ([this.#meanwhile, KEY].includes(progress.textContent)) progress.textContent = before;
      else progress.textContent = progress.textContent.replace(this.#meanwhile, "Stopped");
      if (problem.name !== "AbortError" && !quiet) {
        error.textContent = problem.message;
        error.hidden = false;
      }
    } finally {
      this.#controller = null;
      this.#givesWay = false;
      this.#changed();
    }
  }
}
