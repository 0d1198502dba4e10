// Text as the site can write it; accents the service alone writes.
import { fold, unwritable } from "../service/web/fold.js";
import { Refusal } from "./model.js";

// Characters when all ligatures are written out: of a page, and of a line that is read or followed.
const [LONGEST_PAGE, LONGEST_LINE] = [2000, 60];

/** A text, folded. Throws a `Refusal` naming every character of it that is not among `known`. */
export function written(text, known, param = "text") {
  const unknown = unwritable(text, { characters: known, marks: [] });
  if (!unknown.length) return fold(text);
  const named = unknown.map((character) => JSON.stringify(character)).join(", ");
  throw new Refusal(`${param} has ${named}; this page writes printable ASCII`, param.split(".")[0]);
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
