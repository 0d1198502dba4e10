// That a graph emits what it is given where it is forced to, and is deaf to it where it is not, as
// contract/forcing.py has it: golden vectors show one of both. Shapes: T steps, R rows.
import { byName, joinSteps, takeSteps } from "./tensors.js";

const NEAR = 1e-3;
const ALIKE = [
  [0, 2],
  [5, 6],
];

/** What to run of a graph, each from the initial state, of golden steps `(T, R, ...)` by port. */
export function forcingRuns(steps) {
  const first = byName(steps, (tensor) => takeSteps(tensor, 0, 1));
  const given = first.forced;
  const one = given.dtype === "int64" ? 1n : 1;
  const other = { ...given, data: given.data.map((value) => (value > 0 ? value - one : value + one)) };
  const run = (force, ...forced) => {
    const these = byName(first, (tensor) => joinSteps(force.map(() => tensor)));
    const rows = these.force.shape[1];
    for (const [t, whether] of force.entries()) these.force.data.fill(Number(whether), t * rows, (t + 1) * rows);
    return { ...these, forced: joinSteps(forced) };
  };
  return [
    run([false, true], given, given),
    run([false, true], given, other),
    run([false, true], other, given),
    run([true], given),
    run([true], other),
    run([true, false], given, given),
    run([true, false], given, other),
  ];
}

/** What a graph does that none may, or null. `found` are the states after each of the runs and its
 *  outputs; `emitted` is the state that holds what was emitted last. */
export function brokenForcing(runs, found, emitted) {
  for (const [i, { force, forced }] of runs.entries()) {
    const { data } = takeSteps(forced, forced.shape[0] - 1, forced.shape[0]);
    const same = data.every((value, place) => Number(value) === Number(found[i][emitted].data[place]));
    if (force.data.at(-1) && !same) return `${emitted} is not what a step was forced to emit`;
  }
  for (const [one, other] of ALIKE) {
    for (const [name, { data }] of Object.entries(found[one])) {
      const near = (value, place) => {
        const again = Number(found[other][name].data[place]);
        return Math.abs(Number(value) - again) <= NEAR + NEAR * Math.abs(again);
      };
      if (!data.every(near)) return `${name} depends on what a step was given that was to draw`;
    }
  }
  return null;
}
