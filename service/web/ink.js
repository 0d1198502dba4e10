// Ink: a smooth curve through the points of a stroke, the same as in the service's own drawings
// (service/ink/curve.py), so that what was watched is what is downloaded.

const round = (x) => Math.round(x * 100) / 100;
const pair = ([x, y]) => `${round(x)},${round(y)}`;
export const distance = (a, b) => Math.hypot(b[0] - a[0], b[1] - a[1]);

/** The velocity at `b` of the parabola through it and its neighbours, by centripetal knots. */
function velocity(a, b, c) {
  const [into, out] = [Math.sqrt(distance(a, b)), Math.sqrt(distance(b, c))];
  return [0, 1].map(
    (i) => (b[i] - a[i]) / into - (c[i] - a[i]) / (into + out) + (c[i] - b[i]) / out,
  );
}

const mirrored = (point, about) => [2 * about[0] - point[0], 2 * about[1] - point[1]];

/**
 * The cubic Bézier from `b` to `c` of the centripetal Catmull-Rom spline through `a b c d`. At
 * either end the neighbour that is missing is the mirror image of the one that is there.
 */
export function segment(a, b, c, d) {
  const third = Math.sqrt(distance(b, c)) / 3;
  const from = velocity(a ?? mirrored(c, b), b, c);
  const to = velocity(b, c, d ?? mirrored(b, c));
  return [b, [0, 1].map((i) => b[i] + from[i] * third), [0, 1].map((i) => c[i] - to[i] * third), c];
}

/** The first part of a Bézier, up to `t` of it (de Casteljau). */
export function firstPart(bezier, t) {
  const between = (p, q) => [p[0] + (q[0] - p[0]) * t, p[1] + (q[1] - p[1]) * t];
  const part = [bezier[0]];
  for (let row = bezier; row.length > 1; ) {
    row = row.slice(1).map((point, i) => between(row[i], point));
    part.push(row[0]);
  }
  return part;
}

export const moveTo = (point) => `M${pair(point)}`;
export const curveTo = ([, p, q, r]) => ` C${pair(p)} ${pair(q)} ${pair(r)}`;
// A line of no length, which round caps make a dot.
export const dot = (point) => `${moveTo(point)} L${pair(point)}`;

/** Whether two points, told in hundredths of a px, are one. */
export const isSame = (a, b) => a[0] === b[0] && a[1] === b[1];

/** The points of a stroke without those that stay where the pen is: they have no direction. */
export const moving = (points) => points.filter((p, i) => !i || !isSame(p, points[i - 1]));

/** The path data of a whole stroke. */
export function curve(stroke) {
  const points = moving(stroke);
  if (points.length === 1) return dot(points[0]);
  const segments = points
    .slice(1)
    .map((point, i) => curveTo(segment(points[i - 1], points[i], point, points[i + 2])));
  return moveTo(points[0]) + segments.join("");
}
