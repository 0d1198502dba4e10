// Accents and the like, drawn at the letters of a line when it has been written, as
// service/ink/marks.py has it: as large as the line's own letters, leaning as they lean. Points are
// [x, y, up] in px, y down, strokes [[x, y], ...].
import { BAR, DEGREE, STEM } from "../service/web/fold.js";
import { apart, bases } from "./letters.js";
import { strokesOf } from "./linepen.js";
import { clamp, mean, median, quantile, range } from "./numbers.js";
import { owners } from "./owners.js";
import { ABOVE, BELOW, CLOSING, CROSSED, DIAERESIS, DOT, HANGING, HOOK } from "./shapes.js";
import { slantOf } from "./slant.js";

// In heights of a small letter.
const GAP = 0.5; // from the top of a letter to the middle of its mark
const WIDEST_O = 1.1;
const TALLEST = 1.5; // of small letters
const SMALLEST = 0.5; // a dot over an i
const NEAREST = 1.2; // from an i to its dot
const RING = [0.4, 1]; // how large a degree is at least and at most
const NEXT = 16; // points from an apostrophe to its letter's first one
const SMALL_UNITS = 2.5; // how high a small letter is, where a line has none
const JOINS = [0.15, 0.85]; // of the points of a letter
const [SMALL, DOTTED] = ["aceimnorsuvwxz", "ij"];
const STEEPEST = Math.tan((35 * Math.PI) / 180);

const xs = (points) => points.map(([x]) => x);
const ys = (points) => points.map(([, y]) => y);
const least = (numbers) => Math.min(...numbers);
const most = (numbers) => Math.max(...numbers);
const placeOfLeast = (numbers) => numbers.indexOf(least(numbers));
/** The middle of a letter, whose first and last points may be strokes that join it to others. */
const between = (ink) => mean(JOINS.map((share) => quantile(xs(ink), share)));

/** Where ink goes through a height. */
function crossings(ink, height) {
  return ink.slice(1).flatMap(([x1, y1], i) => {
    const [x0, y0] = ink[i];
    return y0 < height === y1 < height ? [] : [x0 + ((x1 - x0) * (height - y0)) / (y1 - y0)];
  });
}

/** A line as it was written: its small letters stand on y = `foot` and reach to `top`; `lean` is how
 *  far it goes right for each px up. */
class Line {
  constructor(text, points, characters, slant, px) {
    [this.points, this.owners] = [points, owners(text, characters, points)];
    const small = [...bases(text)]
      .map((base, place) => (SMALL.includes(base) ? ys(this.#of(place)) : []))
      .filter((all) => all.length > 2);
    this.foot = small.length ? median(small.map(most)) : most(ys(points));
    // The upper quartile of a few points is not the dot of a letter before.
    const height = small.length ? this.foot - median(small.map((all) => quantile(all, 0.1))) : px;
    this.height = clamp(height, px / 2, px * 2);
    this.top = this.foot - this.height;
    this.lean = clamp(Math.tan((slant * Math.PI) / 180), -STEEPEST, STEEPEST);
  }

  #of(place) {
    return this.points.filter((_, i) => this.owners[i] === place);
  }

  /** How far each point is from those of a letter, in letters. */
  distances(place) {
    return this.owners.map((owner) => Math.abs(owner - place));
  }

  /** The points of a letter, without dots and bars of letters before; one at least. */
  ink(place, base) {
    const far = this.distances(place);
    const nearest = least(far);
    const own = this.points.filter((_, i) => far[i] === nearest);
    if (!SMALL.includes(base)) return own;
    // By its own foot: lines climb and sink, and what joins it to others may hang below.
    const foot = quantile(ys(own), 0.9);
    const kept = own.filter(([, y]) => y > foot - TALLEST * this.height);
    return kept.length ? kept : own;
  }

  /** Where the middle of a letter leans to at a height. */
  atHeight(ink, y) {
    return between(ink) + this.lean * ((least(ys(ink)) + most(ys(ink))) / 2 - y);
  }

  /** The place of a mark over a letter. */
  over(ink) {
    const y = least(ys(ink)) - GAP * this.height;
    return [this.atHeight(ink, y), y];
  }

  /** Strokes about a place, as large and as slanted as the line. */
  shape([x, y], shape) {
    const at = ([right, up]) => [x + this.height * (right + this.lean * up), y - this.height * up];
    return shape.map((stroke) => stroke.map(at));
  }
}

/** The middles of small strokes over the small letters, each of the i or j it is near to, by the
 *  place of that; no two letters have one dot, and the nearest two find each other first. */
function dotsOf(line, text) {
  const small = strokesOf(line.points).filter((stroke) => {
    const size = Math.max(range(xs(stroke)), range(ys(stroke)));
    return size < SMALLEST * line.height && most(ys(stroke)) < line.top;
  });
  const pairs = [...text].flatMap((letter, place) => {
    const [base] = apart(letter);
    if (!DOTTED.includes(base)) return [];
    const [x, y] = line.over(line.ink(place, base));
    return small.map((stroke) => {
      const dot = [mean(xs(stroke)), mean(ys(stroke))];
      return { place, stroke, dot, distance: Math.hypot(x - dot[0], y - dot[1]) };
    });
  });
  const [dots, taken] = [new Map(), new Set()];
  for (const { place, stroke, dot, distance } of pairs.sort((a, b) => a.distance - b.distance)) {
    if (distance > NEAREST * line.height) break;
    if (dots.has(place) || taken.has(stroke)) continue;
    dots.set(place, dot);
    taken.add(stroke);
  }
  return dots;
}

/** The strokes of the apostrophes by their place: of those high up and higher than wide, the one next to
 *  where the window came to the letter, which it may have left for the next one or, after figures, not
 *  come to. No two have one stroke, and the nearest find each other first. */
function apostrophesOf(line, text) {
  const places = [...text].flatMap((letter, place) => (apart(letter)[0] === "'" ? [place] : []));
  const firsts = new Map(places.map((place) => [place, placeOfLeast(line.distances(place))]));
  const pairs = [];
  let begin = 0;
  for (const stroke of strokesOf(line.points)) {
    const end = begin + stroke.length;
    const upright = stroke.map(([x, y]) => x + line.lean * y);
    const high = most(ys(stroke)) < line.foot - line.height / 2;
    if (high && range(ys(stroke)) >= range(upright)) {
      for (const [place, first] of firsts) {
        pairs.push({ place, stroke, far: Math.max(begin - first, first - end + 1, 0) });
      }
    }
    begin = end;
  }
  const [found, taken] = [new Map(), new Set()];
  for (const { place, stroke, far } of pairs.sort((a, b) => a.far - b.far)) {
    if (far >= NEXT || found.has(place) || taken.has(stroke)) continue;
    found.set(place, stroke);
    taken.add(stroke);
  }
  // Where there is none, whatever the window was at.
  const windows = (first) => strokesOf(line.points.slice(first))[0];
  return new Map([...firsts].map(([place, first]) => [place, found.get(place) ?? windows(first)]));
}

/** The stroke through ø, đ, ð and ł. */
function bar(line, base, ink) {
  const [left, right, top, foot] = [least(xs(ink)), most(xs(ink)), least(ys(ink)), most(ys(ink))];
  const over = 0.15 * line.height;
  if ("oO".includes(base)) {
    const x = between(ink);
    const half = Math.min(right - left, WIDEST_O * (foot - top)) / 2 + over;
    return [[x + half, top - over], [x - half, foot + over]];
  }
  // What joins a letter to others is not as high as its stem, nor is the bowl of a d.
  const middle = (top + foot) / 2;
  const high = (top + Math.max(Math.min(line.top, foot), middle)) / 2;
  const stem = ink.filter(([, y]) => y <= high);
  const y = base === "d" ? high : middle;
  let x = median(xs(stem)) + line.lean * (median(ys(stem)) - y);
  const crossed = crossings(ink, y);
  if (crossed.length) {
    const leftmost = "DL".includes(base);
    x = leftmost ? least(crossed) : crossed[placeOfLeast(crossed.map((at) => Math.abs(at - x)))];
  }
  if ("dD".includes(base)) return [[x - 3 * over, y], [x + 2.5 * over, y]];
  return [[x - 2 * over, y + over], [x + 2 * over, y - over]];
}

/** The stroke that makes þ of p: its stem, as far over the bowl as a b's. */
function stem(line, base, ink) {
  const [top, foot] = [least(ys(ink)), most(ys(ink))];
  // Where nothing but the stem is: a p's below the line, a P's below its bowl.
  const low = foot - (foot - top) / 4;
  const crossed = crossings(ink, low);
  const x = crossed.length ? median(crossed) : ink[0][0];
  const ends = [top + 0.2 * line.height, top - (base === "P" ? 0.8 : 0.9) * line.height];
  return ends.map((y) => [x + line.lean * (low - y), y]);
}

/** The strokes that make € of C, £ of L and ¥ of Y. */
function across(line, ink, mark) {
  const [top, foot] = [least(ys(ink)), most(ys(ink))];
  const [shares, reach] = CROSSED[mark];
  const bars = shares.map((share) => {
    const y = top + share * (foot - top);
    const crossed = crossings(ink, y);
    const x = crossed.length ? least(crossed) : line.atHeight(ink, y);
    return [[x - 0.35 * line.height, y], [x + reach * line.height, y]];
  });
  return mark === "£" ? [...bars, ...line.shape(ink[placeOfLeast(ys(ink))], HOOK)] : bars;
}

/** What makes a ring of the apostrophe that the pen has written for °. */
function closing(line, place) {
  const left = line.apostrophes.get(place);
  const size = clamp(range(ys(left)) / line.height, ...RING);
  return line.shape(left[placeOfLeast(ys(left))], [CLOSING.map(([x, y]) => [x * size, y * size])]);
}

/** What hangs from the dot of ¿ and ¡, which the pen has written as an apostrophe. */
function hanging(line, place, shape) {
  const dot = line.apostrophes.get(place);
  const begin = most(ys(dot)) + 0.3 * line.height;
  const foot = Math.max(line.foot, begin + line.height / 2);
  const high = (foot - begin) / line.height;
  const wide = Math.max(high, 1); // though the dot of a hand be long
  const sized = shape.map((stroke) => stroke.map(([x, y]) => [x * wide, y * high]));
  return line.shape([line.atHeight(dot, foot), foot], sized);
}

/** The strokes of a letter's marks; `dot` is the middle of its dot, if it is an i or j that has one. */
function marksOf(line, place, base, marks, dot) {
  const ink = line.ink(place, base);
  const foot = most(ys(ink));
  let at = line.over(ink);
  const stacked = (mark) => {
    const [here, onDot] = [dot ?? at, dot];
    [dot, at] = [undefined, [here[0], here[1] - GAP * line.height]];
    if (!onDot || mark !== DIAERESIS) return line.shape(here, ABOVE[mark]);
    return line.shape([here[0] + 0.44 * line.height, here[1]], ABOVE[DOT]); // beside the one it has
  };
  return marks.flatMap((mark) => {
    if (mark === BAR) return [bar(line, base, ink)];
    if (mark === STEM) return [stem(line, base, ink)];
    if (mark in CROSSED) return across(line, ink, mark);
    if (mark === DEGREE) return closing(line, place);
    if (mark in HANGING) return hanging(line, place, HANGING[mark]);
    if (mark in BELOW) return line.shape([line.atHeight(ink, foot), foot], BELOW[mark]);
    return stacked(mark);
  });
}

/** The marks of a text whose base letters are `points`, as points; `px` is the height of a small letter where the
 *  line has none. Letters that a line was cut off before have no marks. */
function compose(text, points, characters, slant, px) {
  const begun = text.slice(0, most(characters) + 1);
  const marked = [...begun].map((letter, place) => [place, ...apart(letter)]).filter(([, , marks]) => marks.length);
  if (!marked.length) return [];
  const line = new Line(text, points, characters, slant, px);
  const dots = dotsOf(line, begun);
  line.apostrophes = apostrophesOf(line, begun);
  const drawn = marked.flatMap(([place, base, marks]) => marksOf(line, place, base, marks, dots.get(place)));
  return drawn.flatMap((stroke) => stroke.map(([x, y], i) => [x, y, Number(i === stroke.length - 1)]));
}

/** The marks of one line, which is followed while it is written. */
export class LineMarks {
  #offsets = [];
  #points = [];
  #characters = [];

  constructor(text, { pxPerUnit }) {
    [this.text, this.px] = [text, SMALL_UNITS * pxPerUnit];
    this.wanted = bases(text) !== text;
  }

  /** The next of the line: offsets `(n, 3)`, one number after the other, as points on the page, and
   *  the character the window was at for each. */
  follow(offsets, points, characters) {
    if (!this.wanted) return;
    this.#offsets.push(...offsets);
    this.#points.push(...points);
    this.#characters.push(...characters);
  }

  /** The marks of the line as far as it has been written. */
  drawn() {
    if (!this.#points.length) return [];
    return compose(this.text, this.#points, this.#characters, slantOf(this.#offsets), this.px);
  }
}
