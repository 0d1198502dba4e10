// Which letter of a line each point of its ink is of, as service/ink/owners.py has it.

// The window looks ahead: it leaves a letter some points before the pen does. Median of 8 hands.
const AHEAD = 3;
// A word begins where the pen comes down furthest right of all ink while the window is at the space:
// within so many points of where the window is first at the word.
const NEAR = 8;
// A point further from there costs as much of a gap as this share of what the pen advances in a
// point on average: gaps within a word may be as wide.
const FARTHER = 0.5;

/** The largest of each number and those before it. */
const highest = (numbers) => {
  let most = -Infinity;
  return numbers.map((number) => (most = Math.max(most, number)));
};

/** The place of the first of rising numbers that is `least` or more; their count if none is. */
function reach(rising, least) {
  const found = rising.findIndex((number) => number >= least);
  return found < 0 ? rising.length : found;
}

/** The place of the letter that each of the points [x, y, up] is of, one at least, given the
 *  window's character at each. */
export function owners(text, characters, points) {
  const count = points.length;
  const found = [...Array(AHEAD).fill(characters[0]), ...characters].slice(0, count);
  const [window, reached] = [highest(characters), highest(points.map(([x]) => x))];
  const downs = points.flatMap(([, , up], i) => (up > 0.5 ? [i + 1] : []));
  const spaces = [...text].flatMap((letter, place) => (letter === " " ? [place] : []));
  const cost = (FARTHER * (reached.at(-1) - reached[0])) / count;
  let begins = 0; // where the word does
  for (const [i, space] of spaces.entries()) {
    const [into, beyond, after] = [space, space + 1, spaces[i + 1] ?? text.length].map((at) => reach(window, at));
    if (beyond === count) break;
    // Of a word of one letter both gaps are near.
    const [first, last] = [Math.max(into - NEAR, begins + 1), Math.min(beyond + NEAR, Math.max(after - 1, beyond))];
    const near = downs.filter((down) => down >= first && down <= last);
    if (near.length) {
      const gaps = near.map((down) => points[down][0] - reached[down - 1] - cost * Math.abs(down - beyond));
      begins = near[gaps.indexOf(Math.max(...gaps))];
      for (let at = 0; at < count; at += 1) {
        if (at < begins) found[at] = Math.min(found[at], Math.max(space - 1, 0));
        else found[at] = Math.max(found[at], space + 1);
      }
    }
    // A letter is drawn there, as no word parts.
    for (let at = 0; at < count; at += 1) if (found[at] === space) found[at] += 1;
  }
  return found;
}
