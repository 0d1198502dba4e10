// Text as the site can write it; accents the service alone writes.
import { fold, unwritable } from "../service/web/fold.js";
import { Refusal } from "./model.js";

/** A text, folded. Throws a `Refusal` naming every character of it that is not among `known`. */
export function written(text, known, param = "text") {
  const unknown = unwritable(text, { characters: known, marks: [] });
  if (!unknown.length) return fold(text);
  const named = unknown.map((character) => JSON.stringify(character)).join(", ");
  throw new Refusal(`${param} has ${named}; this page writes printable ASCII`, param.split(".")[0]);
}
