// The page's way to the worker that computes on this device: what the service would be asked is
// asked here, in the same words.

// A worker has no policy but that of its own address, which a plain file server sends none with;
// one from a blob has that of its page.
const address = new URL("worker.js", import.meta.url).href;
const source = new Blob([`import ${JSON.stringify(address)};`], { type: "text/javascript" });
const worker = new Worker(URL.createObjectURL(source), { type: "module" });

const listeners = new Map(); // by id: who hears what the worker answers
let heard = { fetched: () => {}, trouble: () => {} };
let count = 0;

const ready = new Promise((resolve, reject) => {
  worker.addEventListener("message", ({ data }) => {
    if (data.ready) resolve();
    if (data.unready) fail(data.unready);
    if (data.fetched) heard.fetched(data.fetched);
    if ("trouble" in data) heard.trouble(data.trouble, data.of);
    listeners.get(data.id)?.(data);
  });
  worker.addEventListener("error", (event) => {
    event.preventDefault();
    fail(`What computes here cannot be started: ${event.message ?? "the worker failed"}.`);
  });
  const fail = (message) => {
    reject(new Error(message));
    heard.trouble(message);
  };
});
ready.catch(() => {}); // whoever asks hears of it

const post = async (message) => {
  await ready;
  worker.postMessage(message);
};

/** Have somebody hear of the bytes {loaded, total} being fetched, and of trouble in words. */
export const listen = (listener) => (heard = listener);

/** Fetch the models of a kind, if they are not here yet. */
export const want = (kind) => post({ wants: kind }).catch(() => {}); // it has been told

const aborted = () => new DOMException("The task was stopped.", "AbortError");
const json = (content, head) => new Response(JSON.stringify(content), head);
const frame = (content) => new TextEncoder().encode(`data: ${content}\n\n`);

/** What `fetch` would give from the service. */
export function reach(path, { method = "GET", body, signal } = {}) {
  const id = (count += 1);
  const asked = body === undefined ? undefined : JSON.parse(body);
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    let events = null;
    let head = null;
    const fail = (error) => {
      listeners.delete(id);
      if (events) events.error(error);
      else reject(error);
    };
    signal?.addEventListener("abort", () => {
      if (!listeners.has(id)) return;
      post({ stops: id });
      fail(aborted());
    });
    listeners.set(id, (data) => {
      if (data.status) {
        head = { status: data.status };
        if (!data.streams) return;
        const stream = new ReadableStream({ start: (controller) => (events = controller) });
        resolve(new Response(stream, head));
      } else if (data.end) {
        listeners.delete(id);
        events?.enqueue(frame("[DONE]"));
        events?.close();
      } else if (events) events.enqueue(frame(JSON.stringify(data.content)));
      else resolve(json(data.content, head));
    });
    post({ asks: { id, path, method, body: asked } }).catch(({ message }) =>
      resolve(json({ error: { message } }, { status: 503 })),
    );
  });
}

/** What is kept on this device is kept in the worker, and gone with the page. */
export const forgetful = true;

/** As much of a WebSocket as the page uses. */
class Session {
  readyState = WebSocket.CONNECTING;
  #id = (count += 1);

  constructor() {
    listeners.set(this.#id, ({ content, end }) => {
      if (content) this.onmessage?.({ data: JSON.stringify(content) });
      if (end) this.#end();
    });
    post({ opens: { id: this.#id } }).then(() => {
      if (this.readyState !== WebSocket.CONNECTING) return;
      this.readyState = WebSocket.OPEN;
      this.onopen?.();
    });
  }

  send(message) {
    post({ says: { id: this.#id, message: JSON.parse(message) } });
  }

  close() {
    post({ stops: this.#id });
    this.#end();
  }

  #end() {
    this.readyState = WebSocket.CLOSED;
    listeners.delete(this.#id);
    this.onclose?.();
  }
}

export const openOnline = () => new Session();
