// Golden vectors: inputs of a graph and what training computed for them, replayed and judged as
// contract/golden.py does. Shapes: T steps, R rows.
import { readSafetensors } from "../service/web/safetensors.js";
import { brokenForcing, forcingRuns } from "./forcing.js";
import { byName, joinSteps, sizeOf, takeRows, takeSteps } from "./tensors.js";

const FACTS = "evenkeel";

/** What a golden file has, by group: `steps`, `rows`, `truth` and `exact` are tensors by port. */
export function readGolden(bytes) {
  const { tensors, metadata } = readSafetensors(bytes);
  const { bounds, training_error: trainingError } = JSON.parse(metadata[FACTS]);
  const group = (start) =>
    Object.fromEntries(
      Object.entries(tensors)
        .filter(([name]) => name.startsWith(`${start}.`))
        .map(([name, tensor]) => [name.slice(start.length + 1), tensor]),
    );
  const filtered = [...tensors.filtered.data];
  return {
    ...Object.fromEntries(["steps", "rows", "truth", "exact"].map((name) => [name, group(name)])),
    bounds,
    trainingError,
    // Those that a graph without the options that leave symbols out can run.
    plainRows: filtered.flatMap((wanted, row) => (wanted ? [] : [row])),
  };
}

const ofRows = (group, rows, axis) => byName(group, (tensor) => takeRows(tensor, rows, axis));

/** Replay them, and force the graph to emit other symbols; a verdict. `emitted` is the state that
 *  holds what was emitted last. */
export async function attest(golden, runner, emitted) {
  const verdict = await replay(golden, runner);
  if (!verdict.ok) return verdict;
  const row = ofRows(golden.rows, golden.plainRows, 0);
  const runs = forcingRuns(ofRows(golden.steps, golden.plainRows, 1));
  const found = [];
  for (const steps of runs) {
    const { state, outputs } = await runner.run({ state: runner.initial(golden.plainRows.length), steps, row });
    found.push({ ...state, ...outputs });
  }
  const detail = brokenForcing(runs, found, emitted);
  return detail === null ? verdict : { ...verdict, ok: false, detail };
}

/** Replay the rows that the plain graph can run, in two runs as contract/golden.py has them; a
 *  verdict. */
export async function replay(golden, runner) {
  const rows = golden.plainRows;
  const [given, row] = [ofRows(golden.steps, rows, 1), ofRows(golden.rows, rows, 0)];
  const total = Object.values(given)[0].shape[0];
  const middle = Math.ceil(total / 2);
  const runs = [];
  let state = runner.initial(rows.length);
  for (const [first, end] of [[0, middle], [middle, total]].slice(0, total)) {
    const steps = byName(given, (tensor) => takeSteps(tensor, first, end));
    const run = await runner.run({ state, steps, row });
    state = run.state;
    runs.push(run.outputs);
  }
  const names = Object.keys(runs[0]);
  const joined = names.map((name) => [name, joinSteps(runs.map((outputs) => outputs[name]))]);
  return judge(golden, Object.fromEntries(joined), rows);
}

/** Compare replayed outputs `(T, rows.length, ...)` of these rows. */
export function judge(golden, outputs, rows) {
  let broken = null;
  let first = null;
  for (const [name, bound] of Object.entries(golden.bounds)) {
    const errors = perStep(outputs[name], takeRows(golden.truth[name], rows, 1), (a, b) => Math.abs(a - b));
    first ??= { bound, errors };
    const step = errors.findIndex((error) => !(error <= bound)); // NaN is outside too
    if (step >= 0) {
      const figures = `${errors[step].toPrecision(3)} > ${bound.toPrecision(3)}`;
      broken ??= `${name}: outside the bound at step ${step}: ${figures}`;
    }
  }
  for (const [name, exact] of Object.entries(golden.exact)) {
    const different = perStep(outputs[name], takeRows(exact, rows, 1), (a, b) => Number(a !== b));
    const step = different.indexOf(1);
    if (step >= 0) broken ??= `${name} differs from the golden one at step ${step}`;
  }
  return {
    ok: broken === null,
    max_error: first.errors.reduce((a, b) => Math.max(a, b), 0), // NaN if any is
    bound: first.bound,
    training_error: golden.trainingError,
    steps: first.errors.length * rows.length,
    detail: broken ?? "everything golden drawn again, every output within its bound",
  };
}

/** The largest distance of each step, NaN if any is. */
function perStep(given, expected, distance) {
  const [steps, size] = [expected.shape[0], sizeOf(expected.shape.slice(1))];
  return Array.from({ length: steps }, (_, t) => {
    let most = 0;
    for (let i = t * size; i < (t + 1) * size; i += 1) {
      most = Math.max(most, distance(given.data[i], expected.data[i]));
    }
    return most;
  });
}
