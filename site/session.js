// A session of `/v1/online`: messages heard one by one, each answered in its turn.

export class Session {
  #turn = Promise.resolve();
  #online = null;
  #over = false;

  /** `open` makes of the first message what answers the others; `told` hears each answer, `failed`
   *  that there will be no more. */
  constructor({ open, told, failed }) {
    Object.assign(this, { open, told, failed });
  }

  hear(message) {
    this.#turn = this.#turn.then(() => this.#say(message)).catch(() => {
      this.stop();
      this.failed();
    });
  }

  /** What it has heard and not yet answered is left alone. */
  stop() {
    this.#over = true;
  }

  async #say(message) {
    if (this.#over) return;
    if (!this.#online) this.#online = await this.open(message);
    else this.told(await this.#online.answer(message));
  }
}
