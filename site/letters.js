// Text as the pen can write it: letters with marks are written as their base letters first.
import * as folding from "../service/web/fold.js";
import { Refusal } from "./model.js";
import { MARKS } from "./shapes.js";

// Characters when all ligatures are written out: of a page, and of a line that is read or followed.
const [LONGEST_PAGE, LONGEST_LINE] = [2000, 60];

/** The base of a letter and its marks, none if it is not one that can be composed. */
export const apart = (letter) => folding.apart(letter, MARKS);

/** The text, as long as before, with every letter as its base. */
export const bases = (text) => Array.from(text, (letter) => apart(letter)[0]).join("");

/** A text, folded. Throws a `Refusal` naming every character of it whose base is not among `known`. */
export function written(text, known, param = "text") {
  const unknown = folding.unwritable(text, { characters: known, marks: MARKS });
  if (!unknown.length) return folding.fold(text);
  const named = unknown.map((character) => JSON.stringify(character)).join(", ");
  throw new Refusal(
    `${param} has ${named}; this page writes printable ASCII, Latin letters with accents, ¿ ¡ ° and € £ ¥`,
    param.split(".")[0],
  );
}

/** Throws a `Refusal` for a text that folding has made too long for a page. */
export function requirePage({ length }) {
  if (length <= LONGEST_PAGE) return;
  const [told, most] = [length, LONGEST_PAGE].map((count) => count.toLocaleString("en"));
  throw new Refusal(`text has ${told} characters with its ligatures written out; at most ${most} are taken`, "text");
}

/** Throws a `Refusal` for a text that folding has made too long for one line. */
export function requireLine({ length }, param = "text") {
  if (length <= LONGEST_LINE) return;
  throw new Refusal(
    `${param} has ${length} characters, ellipses and the like written out; at most ${LONGEST_LINE}`,
    param.split(".")[0],
  );
}
