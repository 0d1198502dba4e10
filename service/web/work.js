// One task at a time in a tab, with its buttons, its error line and its progress in step.

export class Work {
  #at;
  #changed;
  #controller = null;

  /** `at` has form, error and progress; `changed` runs when a task begins and when it ends. */
  constructor(at, changed) {
    this.#at = at;
    this.#changed = changed;
  }

  get busy() {
    return this.#controller !== null;
  }

  /** Aborted when the task is stopped. */
  get signal() {
    return this.#controller.signal;
  }

  stop() {
    this.#controller?.abort();
  }

  /** Run `task` and show what it returns, a string, as its progress. */
  async run(task, meanwhile = "Writing…") {
    const { form, error, progress } = this.#at;
    if (this.busy || !form.reportValidity()) return;
    this.#controller = new AbortController();
    error.hidden = true;
    const before = progress.textContent;
    progress.textContent = meanwhile;
    this.#changed();
    try {
      progress.textContent = await task();
    } catch (problem) {
      // What a task that got somewhere has said beside it stays true.
      if (progress.textContent === meanwhile) progress.textContent = before;
      else progress.textContent = progress.textContent.replace(meanwhile, "Stopped");
      if (problem.name !== "AbortError") {
        error.textContent = problem.message;
        error.hidden = false;
      }
    } finally {
      this.#controller = null;
      this.#changed();
    }
  }
}
