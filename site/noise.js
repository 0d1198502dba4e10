// The randomness of a draw, bit for bit that of contract/noise.py: Philox 4x64-10 (Salmon et al.
// 2011), a counter-based generator, so any number of it can be had directly.

export const LEAST_UNIFORM = 2 ** -24;
const BLOCK = 4; // words of one counter value
const ROUNDS = 10;
const MULTIPLIERS = [0xd2e7470ee14c6c93n, 0xca5a826395121157n];
const WEYL = [0x9e3779b97f4a7c15n, 0xbb67ae8584caa73bn];
const WORD = (1n << 64n) - 1n;

/** The four words of one counter value, as numpy numbers them: the first value drawn is 1. */
function philox(counter, key) {
  let [a, b, c, d] = [counter, 0n, 0n, 0n];
  let [k0, k1] = key;
  for (let round = 0; round < ROUNDS; round += 1) {
    const [p, q] = [MULTIPLIERS[0] * a, MULTIPLIERS[1] * c];
    [a, b, c, d] = [(q >> 64n) ^ b ^ k0, q & WORD, (p >> 64n) ^ d ^ k1, p & WORD];
    [k0, k1] = [(k0 + WEYL[0]) & WORD, (k1 + WEYL[1]) & WORD];
  }
  return [a, b, c, d];
}

/** Odd multiples of 2**-24: never 0, which would draw byte 0 however improbable it is. */
const uniform = (word) => Number(word >> 41n) * 2 ** -23 + LEAST_UNIFORM;

/** Uniforms in (0, 1) numbered from 0, keyed by a seed and the number of a choice. */
export class UniformStream {
  #key;

  constructor(seed, choice = 0) {
    this.#key = [BigInt(seed) & WORD, BigInt(choice)];
  }

  /** The four uniforms of one counter value. */
  block(number) {
    return philox(BigInt(number) + 1n, this.#key).map(uniform);
  }

  /** Uniforms number `first` to `first + count`, whatever portions they are asked for in. */
  take(first, count) {
    const made = new Float32Array(count);
    let words = [];
    for (let i = 0; i < count; i += 1) {
      const place = (first + i) % BLOCK;
      if (!i || !place) words = this.block(Math.floor((first + i) / BLOCK));
      made[i] = words[place];
    }
    return made;
  }
}

/** What a pen's steps need, numbered from 0: a uniform and two standard normals each. */
export class InkNoise {
  #uniforms;

  constructor(seed, choice = 0) {
    this.#uniforms = new UniformStream(seed, choice);
  }

  /** Of steps `first` to `first + count`: uniforms `(count,)` and normals `(count, 2)`. */
  take(first, count) {
    const [uniforms, normals] = [new Float32Array(count), new Float32Array(2 * count)];
    for (let i = 0; i < count; i += 1) {
      const words = this.#uniforms.block(first + i);
      // Box and Muller (1958).
      const [radius, angle] = [Math.sqrt(-2 * Math.log(words[1])), 2 * Math.PI * words[2]];
      uniforms[i] = words[0];
      normals[2 * i] = radius * Math.cos(angle);
      normals[2 * i + 1] = radius * Math.sin(angle);
    }
    return { uniforms, normals };
  }
}
