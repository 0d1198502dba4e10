// Where lines of handwriting stand on a page, and how a text is broken into lines, as
// service/ink/layout.py has it.
import { Refusal } from "./model.js";

const LONGEST_LINE = 44; // characters: lines the pen learned from are hardly longer
const SHORTEST_LINE = 2; // characters: one and a hyphen
const MARGIN = 0.5; // of a line height
const ABOVE_BASELINE = 0.7; // of a line height; the rest is for descenders
// Of the width between margins: no hand keeps to its average advance, and what few lines are longer
// still ends within the margin.
const ROOM = 0.93;
const LAST_LINE = 3; // a last line shorter than a third of the others looks lost
const LARGEST_PAGE_PX = 16_000_000;

/** A page, and how large the model's units are on it. */
export class Layout {
  /** For a request, in `units` of the model; a character is `advance` of them wide. */
  constructor(body, units, advance) {
    const { width = 800, line_height: lineHeight = 64, stroke_width: nib = 2 } = body;
    const { color = "#1b2a49", thinning = 0 } = body;
    Object.assign(this, { width, lineHeight, nib, color, thinning });
    this.pxPerUnit = lineHeight / units.units_per_line;
    this.margin = lineHeight * MARGIN;
    const room = (width - 2 * this.margin) * ROOM;
    const characters = Math.floor(room / (advance * this.pxPerUnit));
    if (characters < SHORTEST_LINE) {
      throw new Refusal(
        `the margins leave ${(width - 2 * this.margin).toFixed(0)} px beside each other, too few for ` +
          `two characters of a line of ${lineHeight}`,
        "line_height",
      );
    }
    this.charactersPerLine = Math.min(characters, LONGEST_LINE);
  }

  /** The height of a page of `lines` lines, in px. */
  height(lines) {
    return Math.ceil(2 * this.margin + lines * this.lineHeight);
  }

  /** The left end of the baseline of line number `line`, from 0; y points down. */
  origin(line) {
    return [this.margin, this.margin + (line + ABOVE_BASELINE) * this.lineHeight];
  }

  /** Throws a `Refusal` for more lines than a page may have. */
  check(lines) {
    const area = this.width * this.height(lines);
    if (area <= LARGEST_PAGE_PX) return;
    const [told, most] = [area, LARGEST_PAGE_PX].map((n) => n.toLocaleString("en"));
    throw new Refusal(`text has ${lines} lines, a page of ${told} px; at most ${most}`, "text");
  }
}

/** A part of a word that ends a line, and the rest: by its own hyphens if it has any. */
function divide(word, longest) {
  const place = word.slice(0, longest).lastIndexOf("-") + 1;
  if (place > 1) return [word.slice(0, place), word.slice(place)];
  return [`${word.slice(0, longest - 1)}-`, word.slice(longest - 1)];
}

/** Which way to fill lines is better: fewer, then more even, then with a longer last one. */
const better = (a, b) => a.count - b.count || a.squares - b.squares || a.start - b.start;

/** The fewest lines, and of those the ones whose room left over has the least sum of squares; the
 *  last may be short. */
function fill(words, longest) {
  // For the first n words: how many lines they take, the squares, and where the last one begins.
  const best = [{ count: 0, squares: 0, start: 0 }];
  for (let end = 1; end <= words.length; end += 1) {
    const wanted = end < words.length ? longest : Math.floor(longest / LAST_LINE);
    let found = null;
    for (let start = end - 1, length = -1; start >= 0; start -= 1) {
      length += 1 + words[start].length;
      if (length > longest) break;
      const squares = best[start].squares + Math.max(wanted - length, 0) ** 2;
      const way = { count: best[start].count + 1, squares, start };
      if (!found || better(way, found) < 0) found = way;
    }
    best.push(found);
  }
  const lines = [];
  for (let end = words.length; end; end = best[end].start) {
    lines.unshift(words.slice(best[end].start, end).join(" "));
  }
  return lines.length ? lines : [""];
}

/** The lines of one paragraph; a word longer than a line is divided. */
function wrap(paragraph, longest) {
  const lines = [];
  let words = [];
  for (let word of paragraph.split(" ").filter(Boolean)) {
    while (word.length > longest) {
      const [part, rest] = divide(word, longest);
      lines.push(...fill([...words, part], longest));
      [words, word] = [[], rest];
    }
    words.push(word);
  }
  return [...lines, ...fill(words, longest)];
}

/** The lines of a text, none longer than `longest` characters; blank lines become empty ones. */
export function breakText(text, longest) {
  const paragraphs = text.split(/\r?\n/);
  if (paragraphs.at(-1) === "") paragraphs.pop();
  return paragraphs.flatMap((paragraph) => wrap(paragraph, longest));
}
