// What a person types for the pen, looked at while they type: what cannot be written is named below
// the field, and the form is not sent with it.
import { say, whole } from "./elements.js";
import { fold, unwritable } from "./fold.js";

const LONGEST = 2000; // characters of a text, as the service has it

const MOST_NAMED = 12; // characters that cannot be written

const codeOf = (letter) => `U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
/** A character as it can be seen: what browsers draw as nothing by its number. */
const seen = (letter) => (/[\s\p{C}\p{Default_Ignorable_Code_Point}]/u.test(letter) ? codeOf(letter) : letter);

function wrongWith(text, writes) {
  const unknown = writes ? unwritable(text, writes) : [];
  const more = unknown.length > MOST_NAMED ? `  and ${whole(unknown.length - MOST_NAMED)} more` : "";
  if (unknown.length) return `The pen cannot write ${unknown.slice(0, MOST_NAMED).map(seen).join("  ")}${more}`;
  const plain = fold(text);
  if (text && !plain.trim()) return "There is nothing but spaces to write.";
  const length = Math.max([...text].length, [...plain].length); // ligatures count as they are, and written out
  return length > LONGEST ? `These are ${whole(length)} characters: the pen writes ${whole(LONGEST)} at a time.` : "";
}

/** Watch a field whose `note` stands below it; `writes()` is what the model can write. Returns what
 *  looks again. */
export function watchTyping(field, note, writes) {
  const look = () => {
    const wrong = wrongWith(field.value, writes());
    field.setCustomValidity(wrong);
    field.setAttribute("aria-invalid", String(wrong !== ""));
    say(note, wrong);
    note.hidden = wrong === "";
  };
  field.addEventListener("input", look);
  return look;
}
