// How much of what the service drew, when this site was built, comes out the same here.
import { handwriting } from "./ink.js";
import { completion } from "./text.js";
import { encode } from "./utf8.js";

const SAME_PX = 0.1;
const count = (items, same) => items.filter(same).length;

/** Bytes of text that are the same. */
async function sameBytes(model, { request, answer }, signal) {
  const written = await completion(model, request, signal);
  const [theirs, ours] = [answer, written].map(({ choices }) => encode(choices[0].text));
  return { equal: count([...theirs], (byte, i) => byte === ours[i]), of: theirs.length, unit: "bytes" };
}

const pointsOf = ({ lines }) => lines.flatMap(({ strokes }) => strokes.flat());

/** Points of ink that are in the same place. */
async function samePoints(model, { request, answer }, signal) {
  const [theirs, ours] = [answer, await handwriting(model, request, signal)].map(pointsOf);
  const near = ([x, y], i) => ours[i] && Math.hypot(x - ours[i][0], y - ours[i][1]) < SAME_PX;
  return { equal: count(theirs, near), of: theirs.length, unit: "points" };
}

/** Draw the sample of a model again. */
export async function checkSample(model, signal) {
  const { drawn } = model.entry;
  const compare = model.manifest.kind === "language" ? sameBytes : samePoints;
  return { ...(await compare(model, drawn, signal)), runtime: drawn.runtime };
}
