// The two normalisations of the Lab tab, and table 1 of the paper, in float64.
// Matrices are arrays of rows: N cases by F units.

const EPSILON = 2 ** -17; // the models' own
const FACTOR = 3;
const [CASES, INPUTS, UNITS, NETWORKS] = [40, 12, 9, 5];
// With weights this large epsilon is nothing beside the variance of a summed input.
const WEIGHT_SCALE = 1e3;

export const MOST_IF_INVARIANT = 1e-9;
export const LEAST_IF_NOT = 1e-2;
export const KINDS = ["batch", "weight", "layer"];

const transposed = (matrix) => matrix[0].map((_, i) => matrix.map((row) => row[i]));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const largest = (matrix) => Math.max(...matrix.flat().map(Math.abs));

/** Numbers by their own mean and variance. */
export function standardised(numbers) {
  const mean = sum(numbers) / numbers.length;
  const variance = sum(numbers.map((x) => (x - mean) ** 2)) / numbers.length;
  return numbers.map((x) => (x - mean) / Math.sqrt(variance + EPSILON));
}

/** Layer norm without gain and bias: each row by its own mean and variance. */
export const perRow = (matrix) => matrix.map(standardised);

/** Batch norm in training mode: each column by those of all rows. */
export const perColumn = (matrix) => transposed(transposed(matrix).map(standardised));

/** Numbers that seem to be drawn, the same for the same seed (mulberry32). */
function uniforms(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Standard normal numbers, by Box and Muller. */
export function normals(seed) {
  const uniform = uniforms(seed);
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

const list = (length, draw) => Array.from({ length }, draw);

/** A random layer and what it sees: W (F, D), gain and bias (F), data (N, D) around a mean. */
function randomNetwork(seed) {
  const normal = normals(seed);
  const mean = list(INPUTS, normal);
  return {
    weight: list(UNITS, () => list(INPUTS, () => WEIGHT_SCALE * normal())),
    gain: list(UNITS, () => 1 + 0.2 * normal()),
    bias: list(UNITS, () => 0.2 * normal()),
    data: list(CASES, () => mean.map((m) => m + normal())),
  };
}

const product = (a, b) => a.map((row) => b.map((other) => sum(row.map((x, i) => x * other[i]))));

const NORMALISED = {
  batch: ({ data, weight }) => perColumn(product(data, weight)),
  layer: ({ data, weight }) => perRow(product(data, weight)),
  weight: ({ data, weight }) => product(data, weight.map((w) => w.map((x) => x / Math.hypot(...w)))),
};

/** `tanh(gain * normalised(W x) + bias)`. */
const output = (kind, network) =>
  NORMALISED[kind](network).map((row) =>
    row.map((x, i) => Math.tanh(network.gain[i] * x + network.bias[i])),
  );

const times = (matrix) => matrix.map((row) => row.map((x) => FACTOR * x));
const firstTimes = ([first, ...rest]) => [...times([first]), ...rest];

/** The same random vector of the matrix's own scale on every row. */
function shifted(matrix) {
  const normal = normals(2016);
  const all = matrix.flat();
  const mean = sum(all) / all.length;
  const scale = Math.sqrt(sum(all.map((x) => (x - mean) ** 2)) / all.length);
  const shift = matrix[0].map(() => scale * normal());
  return matrix.map((row) => row.map((x, i) => x + shift[i]));
}

const ofWeight = (change) => (network) => ({ ...network, weight: change(network.weight) });
const ofData = (change) => (network) => ({ ...network, data: change(network.data) });

// Each with what the paper says of batch, weight and layer norm.
const CHANGES = {
  "weight matrix re-scaling": [ofWeight(times), [true, true, true]],
  "weight matrix re-centring": [ofWeight(shifted), [false, false, true]],
  "weight vector re-scaling": [ofWeight(firstTimes), [true, true, false]],
  "data set re-scaling": [ofData(times), [true, false, true]],
  "data set re-centring": [ofData(shifted), [true, false, false]],
  "single case re-scaling": [ofData(firstTimes), [false, false, true]],
};

/** How far `after` is from `before`, relative to the largest of `before`. */
function relativeChange(kind, network, change) {
  const [before, after] = [output(kind, network), output(kind, change(network))];
  return largest(after.map((row, n) => row.map((x, i) => x - before[n][i]))) / largest(before);
}

/** What five networks say of one cell: invariant where all move less than the one bound, changed
    where all move more than the other, undecided between them. */
function entry(kind, change, paper, seed) {
  const moved = list(NETWORKS, (_, n) => relativeChange(kind, randomNetwork(seed + n), change));
  const [least, most] = [Math.min(...moved), Math.max(...moved)];
  const invariant = most <= MOST_IF_INVARIANT ? true : least >= LEAST_IF_NOT ? false : null;
  return { kind, invariant, paper, moved: invariant === false ? least : most };
}

/** Table 1: six changes, each with its three entries; other networks for another seed. */
export const table1 = (seed) =>
  Object.entries(CHANGES).map(([name, [change, paper]]) => ({
    name,
    entries: KINDS.map((kind, i) => entry(kind, change, paper[i], seed)),
  }));
