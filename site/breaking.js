// How a text is broken into lines of handwriting, as service/ink/breaking.py has it.
import { apart } from "./letters.js";

const LONGEST_LINE = 44; // characters: lines the pen learned from are hardly longer
export const AVERAGE = 10; // widths are in so many parts of the average character of English text
const CHARACTERS = {
  4: "`|{}^,.;:!'()",
  6: "ijl1",
  9: " ostxI0",
  11: "bdnuTU69",
  12: "ghqyzFGJLQVZ2357",
  14: "pABCDHXYW",
  16: "mwEKMNR",
};
const WIDTHS = new Map(
  Object.entries(CHARACTERS).flatMap(([width, every]) => [...every].map((one) => [one, Number(width)])),
);
export const LEAST_ROOM = 2 * AVERAGE; // a character and a hyphen
// After these a word is divided without a hyphen, which in an address would be read as part of it.
const DIVIDES = ["-", "/", "@", "_", "?", "&", "="];
const LAST_LINE = 3; // a last line shorter than a third of the others looks lost

/** How wide a character is written, in `AVERAGE`ths of the average one. */
export const widthOf = (character) => WIDTHS.get(apart(character)[0]) ?? AVERAGE;

const width = (text) => [...text].reduce((sum, character) => sum + widthOf(character), 0);

const fits = (word, room) =>
  word.length === 1 || (word.length <= LONGEST_LINE && width(word) <= room);

/** How many characters from the beginning of a word there is room for; one at least. */
function most(word, room) {
  let [count, left] = [0, room];
  while (count < word.length && (left -= widthOf(word[count])) >= 0) count += 1;
  return Math.max(count, 1);
}

/** A part of a word that ends a line, and the rest: after one of its own marks if it has any. */
function divide(word, room) {
  const longestPart = word.slice(0, most(word.slice(0, LONGEST_LINE), room));
  const place = Math.max(...DIVIDES.map((mark) => longestPart.lastIndexOf(mark))) + 1;
  if (place > 1) return [word.slice(0, place), word.slice(place)];
  const longest = most(word.slice(0, LONGEST_LINE - 1), room - widthOf("-"));
  return [`${word.slice(0, longest)}-`, word.slice(longest)];
}

/** Which way to fill lines is better: fewer, then more even, then with a longer last one. */
const better = (a, b) => a.count - b.count || a.squares - b.squares || a.start - b.start;

/** The fewest lines, and of those the ones whose room left over has the least sum of squares; the
 *  last may be short. */
function fill(words, room) {
  const [widths, space] = [words.map(width), widthOf(" ")];
  // For the first n words: how many lines they take, the squares, and where the last one begins.
  const best = [{ count: 0, squares: 0, start: 0 }];
  for (let end = 1; end <= words.length; end += 1) {
    const wanted = end < words.length ? room : Math.floor(room / LAST_LINE);
    let [found, wide, length] = [null, -space, -1];
    for (let start = end - 1; start >= 0; start -= 1) {
      wide += space + widths[start];
      length += 1 + words[start].length;
      if (found && (wide > room || length > LONGEST_LINE)) break;
      const squares = best[start].squares + Math.max(wanted - wide, 0) ** 2;
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
function wrap(paragraph, room) {
  const lines = [];
  let words = [];
  for (let word of paragraph.split(" ").filter(Boolean)) {
    while (!fits(word, room)) {
      const [part, rest] = divide(word, room);
      lines.push(...fill([...words, part], room));
      [words, word] = [[], rest];
    }
    words.push(word);
  }
  return [...lines, ...fill(words, room)];
}

/** The lines of a text, none of more characters nor wider than a line may be; blank lines become
 *  empty ones. */
export function breakText(text, room) {
  const paragraphs = text.split(/\r?\n/);
  if (paragraphs.at(-1) === "") paragraphs.pop();
  return paragraphs.flatMap((paragraph) => wrap(paragraph, room));
}
