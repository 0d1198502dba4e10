// Files of safetensors: the length of a JSON, the JSON, the bytes of every tensor.

const KINDS = {
  F64: ["float64", Float64Array],
  F32: ["float32", Float32Array],
  I64: ["int64", BigInt64Array],
  BOOL: ["bool", Uint8Array],
};
export const ARRAYS = Object.fromEntries(Object.values(KINDS));

/** The tensors {dtype, shape, data} of a file by name, and its metadata. Throws for another file. */
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
