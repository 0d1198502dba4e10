// The files of this site: fetched once, kept by the browser, and the very bytes that were built.

async function unpacked(blob) {
  const [a, b] = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  // Some servers send what ends in .gz as what it is packed from, and the browser unpacks it.
  if (a !== 0x1f || b !== 0x8b) return blob.arrayBuffer();
  return new Response(blob.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

async function isWhole(bytes, sha256) {
  if (!globalThis.crypto?.subtle) return true; // over plain HTTP, but on this machine, there is none
  const found = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const hex = [...found].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex === sha256;
}

export class Store {
  #base;
  #told;

  /** Paths are under `base`; `told` hears of bytes: {total} that will be fetched, {loaded} that came. */
  constructor(base, told) {
    [this.#base, this.#told] = [base, told];
  }

  /** What is kept; other builds may stand elsewhere on the same origin. */
  #kept = () => (globalThis.caches ? caches.open(`evenkeel-files ${this.#base.href}`).catch(() => null) : null);

  /** A file's name has its content in it, so that a new build never meets an old file. */
  #address = ({ path, sha256 }) => new URL(`${path}?${sha256.slice(0, 16)}`, this.#base).href;

  /** The bytes of a file {path, bytes, sha256}: `bytes` as fetched, the hash of what is packed. */
  async get(file) {
    const [address, kept] = [this.#address(file), await this.#kept()];
    const found = await kept?.match(address);
    const blob = found ? await found.blob() : await this.#fetch(address, file);
    const bytes = await unpacked(blob).catch(() => null);
    if (!bytes || !(await isWhole(bytes, file.sha256))) {
      await kept?.delete(address);
      throw new Error(`${file.path} was cut short or altered; load the page again.`);
    }
    // Without room to keep it, it is fetched again the next time.
    if (!found) await kept?.put(address, new Response(blob)).catch(() => {});
    return new Uint8Array(bytes);
  }

  async #fetch(address, { path, bytes }) {
    this.#told({ total: bytes });
    const lost = () => {
      throw new Error(`${path} cannot be fetched: there is no connection.`);
    };
    const response = await fetch(address).catch(lost);
    if (!response.ok) throw new Error(`${path} cannot be fetched: ${response.status}.`);
    const parts = [];
    let left = bytes;
    for (const reader = response.body.getReader(); ; ) {
      const { value, done } = await reader.read().catch(lost);
      if (done) return new Blob(parts);
      parts.push(value);
      const loaded = Math.min(value.length, left); // of what the browser has unpacked there is more
      left -= loaded;
      this.#told({ loaded });
    }
  }

  /** Forget what is kept of other builds in this place: all but these files. */
  async tidy(files) {
    const kept = await this.#kept();
    const addresses = new Set(files.map(this.#address));
    for (const { url } of (await kept?.keys()) ?? []) if (!addresses.has(url)) await kept.delete(url);
  }
}
