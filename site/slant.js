// How far a hand leans, as service/ink/measure.py has it.

const STEEP_DEGREES = 60; // from the vertical: flatter strokes join letters, and lean by nobody's will
const BLUR_DEGREES = 5; // the jitter of one hand's down-strokes

/** The lean in whole degrees, positive to the right, that most of the length of the down-strokes of
 *  offsets `(n, 3)` has. The peak of the distribution, not its mean: curves and joins lean every way. */
export function slantOf(offsets) {
  const lengths = new Float64Array(2 * STEEP_DEGREES + 1);
  for (let i = 3; i < offsets.length; i += 3) {
    const [dx, dy] = [offsets[i], offsets[i + 1]];
    const lean = (Math.atan2(-dx, -dy) * 180) / Math.PI;
    const bin = Math.floor(lean + STEEP_DEGREES + 0.5);
    const counts = offsets[i - 1] < 0.5 && dy < 0 && Math.abs(lean) <= STEEP_DEGREES + 0.5;
    if (counts) lengths[bin] += Math.hypot(dx, dy);
  }
  if (!lengths.some(Boolean)) return 0;
  const reach = 3 * BLUR_DEGREES;
  const blurred = lengths.map((_, bin) => {
    let sum = 0;
    for (let by = -reach; by <= reach; by += 1) {
      sum += (lengths[bin + by] ?? 0) * Math.exp(-0.5 * (by / BLUR_DEGREES) ** 2);
    }
    return sum;
  });
  return blurred.indexOf(Math.max(...blurred)) - STEEP_DEGREES;
}
