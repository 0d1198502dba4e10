// Tensors {dtype, shape, data}, and rows taken out of them.
import { ARRAYS } from "../service/web/safetensors.js";

export const sizeOf = (shape) => shape.reduce((product, n) => product * n, 1);

/** A tensor with one value everywhere; an int64 is a BigInt to JavaScript. */
export function filled(dtype, shape, value) {
  const data = new ARRAYS[dtype](sizeOf(shape));
  return { dtype, shape, data: data.fill(dtype === "int64" ? BigInt(value) : value) };
}

/** Tensors by name, each changed. */
export const byName = (tensors, change) =>
  Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [name, change(tensor)]));

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

/** The steps from `first` until before `end` of a tensor `(T, ...)`. */
export function takeSteps({ dtype, shape: [, ...shape], data }, first, end) {
  const size = sizeOf(shape);
  return { dtype, shape: [end - first, ...shape], data: data.subarray(first * size, end * size) };
}

/** Tensors `(T, ...)` one after the other. */
export function joinSteps(tensors) {
  const [{ dtype, shape }] = tensors;
  const steps = tensors.reduce((sum, tensor) => sum + tensor.shape[0], 0);
  const data = new ARRAYS[dtype](steps * sizeOf(shape.slice(1)));
  let at = 0;
  for (const tensor of tensors) {
    data.set(tensor.data, at);
    at += tensor.data.length;
  }
  return { dtype, shape: [steps, ...shape.slice(1)], data };
}
