// A caller's strokes as ink the model can read: level, at its rate, in its size, as
// contract/strokes.py and service/ink/hands.py prepare them. A point is [x, y], y up.
import { Refusal } from "./model.js";
import { clamp, mean, median, range, round, sum } from "./numbers.js";

const POINTS_PER_CHARACTER = 10;
const UNITS_OF_SIZE = 1.5;
const LONGEST_OFFSET = 25; // units; a gap as wide as five letters
const ELONGATED = 4; // times as wide as high: a shorter word is too short to say how its line climbs
const STEEPEST = 1; // a line that climbs more is not level writing, however the tablet lay
const FLAT = 1e-6; // of its width: a line that is no higher has no size but its width
const PAUSE = 0.02; // of the line's size: a pen that moves less stands still
const LEAST_PX = 1e-3; // a line shorter than this is a slip of the pen, whatever it says
const LEAST_POINTS_PER_CHARACTER = 2; // fewer, and there is no letter to be seen in them

const extent = (points) => [0, 1].map((axis) => range(points.map((point) => point[axis])));

const turned = (points, slope) => {
  const long = Math.hypot(1, slope);
  return points.map(([x, y]) => [(x + slope * y) / long, (y - slope * x) / long]);
};

/** The strokes turned so that their line no longer climbs, if they are long enough to say. */
function level(strokes) {
  const every = strokes.flat();
  const [width, height] = extent(every);
  if (width <= height) return strokes;
  const [middleX, middleY] = [0, 1].map((axis) => mean(every.map((point) => point[axis])));
  const tilt =
    sum(every.map(([x, y]) => (x - middleX) * (y - middleY))) / sum(every.map(([x]) => (x - middleX) ** 2));
  // A tilted line is higher than it is when level: what turning makes of it counts as well.
  const elongated = [[width, height], extent(turned(every, tilt))].some(([w, h]) => w >= ELONGATED * h);
  const slope = Math.abs(tilt) < STEEPEST && elongated ? tilt : 0;
  return strokes.map((stroke) => turned(stroke, slope));
}

/** The median of the lowest points of all arcs: most letters stand on the line. */
function baseline(strokes) {
  return median(
    strokes.flatMap((stroke) => {
      const y = [Infinity, ...stroke.map((point) => point[1]), Infinity];
      return stroke.map((point) => point[1]).filter((low, i) => low < y[i] && low <= y[i + 2]);
    }),
  );
}

/** The stroke without points that repeat the one before, as those of a pen that rests do. */
const withoutRests = (stroke) =>
  stroke.filter(([x, y], i) => i === 0 || x !== stroke[i - 1][0] || y !== stroke[i - 1][1]);

/** The stroke with one point at most for each `least` of its path; its ends stay. */
function withoutPauses(stroke, least) {
  let path = 0;
  let before = -1;
  return stroke.filter(([x, y], i) => {
    if (i) path += Math.hypot(x - stroke[i - 1][0], y - stroke[i - 1][1]);
    const place = Math.floor(path / least);
    const kept = place > before || i === stroke.length - 1;
    before = place;
    return kept;
  });
}

/** Every `stride`-th sample in time, evenly, with both ends; what lies between is averaged. */
function resample(stroke, stride) {
  const last = stroke.length - 1;
  if (last === 0) return stroke;
  const count = Math.max(1, round(last / stride)) + 1;
  // A mean over half a stride takes out the tremor of the tablet, not the corners.
  const half = Math.max(0, round(stride / 4));
  const smooth = stroke.map((point, i) => {
    if (i === 0 || i === last) return point;
    const around = Array.from({ length: 2 * half + 1 }, (_, j) => stroke[clamp(i + j - half, 0, last)]);
    return [0, 1].map((axis) => mean(around.map((near) => near[axis])));
  });
  return Array.from({ length: count }, (_, k) => {
    const at = (k * last) / (count - 1);
    const before = Math.min(Math.floor(at), last - 1);
    return [0, 1].map((axis) => {
      const [from, to] = [smooth[before][axis], smooth[before + 1][axis]];
      return from + (to - from) * (at - before);
    });
  });
}

/** The strokes levelled from the left end of their baseline, without pauses, and their size. */
function measure(strokes, text) {
  let wide = level(strokes);
  const left = Math.min(...wide.flat().map(([x]) => x));
  const bottom = baseline(wide);
  wide = wide.map((stroke) => stroke.map(([x, y]) => [x - left, y - bottom]));
  const heights = wide.flat().map((point) => point[1]);
  const middle = median(heights);
  const width = range(wide.flat().map((point) => point[0]));
  let size = mean(heights.map((y) => Math.abs(y - middle)));
  if (size < FLAT * width) size = width;
  const moving = wide.map((stroke) => withoutPauses(stroke, PAUSE * size));
  const points = moving.flat().length / Math.max(text.replaceAll(" ", "").length, 1);
  return { strokes: moving, points, size };
}

/**
 * Strokes in px, y down, that say `text`, as offsets `(n, 3)` in units: dx, dy, and 1 where the pen
 * leaves the paper. Throws a `Refusal` for ink that cannot be the text: none, or far too little.
 */
export function offsetsOf(strokes, text) {
  const paths = strokes
    .filter((stroke) => stroke.length)
    .map((stroke) => withoutRests(stroke).map(([x, y]) => [x, -y]));
  if (!paths.length || Math.max(...extent(paths.flat())) < LEAST_PX) {
    throw new Refusal("style.strokes has no line in it", "style");
  }
  const line = measure(paths, text);
  if (line.points < LEAST_POINTS_PER_CHARACTER) {
    throw new Refusal(
      `style.strokes has ${(Math.floor(10 * line.points) / 10).toFixed(1)} points a character that move; ` +
        `a pen makes ${LEAST_POINTS_PER_CHARACTER} or more`,
      "style",
    );
  }
  const scale = UNITS_OF_SIZE / line.size;
  const ready = line.strokes.map((stroke) => resample(stroke, line.points / POINTS_PER_CHARACTER));
  const offsets = new Float32Array(3 * ready.flat().length);
  let [at, x, y] = [0, 0, 0];
  for (const stroke of ready) {
    for (const [i, point] of stroke.entries()) {
      const place = point.map((length) => length * scale);
      const moved = [place[0] - x, place[1] - y].map((d) => clamp(d, -LONGEST_OFFSET, LONGEST_OFFSET));
      offsets.set([...moved, i === stroke.length - 1 ? 1 : 0], at);
      [at, x, y] = [at + 3, ...place];
    }
  }
  return offsets;
}
