// Tensors by name, read from safetensors files, and rows taken out of them.

const KINDS = {
  F64: ["float64", Float64Array],
  F32: ["float32", Float32Array],
  I64: ["int64", BigInt64Array],
  BOOL: ["bool", Uint8Array],
};
export const ARRAYS = Object.fromEntries(Object.values(KINDS));

export const sizeOf = (shape) => shape.reduce((product, n) => product * n, 1);

/** A tensor with one value everywhere; an int64 is a BigInt to JavaScript. */
export function filled(dtype, shape, value) {
  const data = new ARRAYS[dtype](sizeOf(shape));
  return { dtype, shape, data: data.fill(dtype === "int64" ? BigInt(value) : value) };
}

/** The tensors of a safetensors file by name, and its metadata. Throws for another file. */
export function readSafetensors(bytes) {
  const start = 8 + Number(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, start)));
  const { __metadata__: metadata = {}, ...entries } = header;
  const tensors = {};
  for (const [name, { dtype, shape, data_offsets: offsets }] of Object.entries(entries)) {
    const [kind, Numbers] = KINDS[dtype];
    // Copied: numbers in the file need not lie where an array of them may begin.
    const part = bytes.slice(...offsets.map((offset) => start + offset));
    tensors[name] = { dtype: kind, shape, data: new Numbers(part.buffer) };
  }
  return { tensors, metadata };
}

/** Some of the rows of a tensor `(..., R, ...)`, whose axis is the second of two or the first. */
export function takeRows({ dtype, shape, data }, rows, axis) {
  const before = sizeOf(shape.slice(0, axis));
  const size = sizeOf(shape.slice(axis + 1));
  const taken = new ARRAYS[dtype](before * rows.length * size);
  for (let t = 0; t < before; t += 1) {
    for (const [i, row] of rows.entries()) {
      const from = (t * shape[axis] + row) * size;
      taken.set(data.subarray(from, from + size), (t * rows.length + i) * size);
    }
  }
  return { dtype, shape: [...shape.slice(0, axis), rows.length, ...shape.slice(axis + 1)], data: taken };
}
