// What a person types for the pen, looked at while they type: what cannot be written is named below
// the field, and the form is not sent with it.
import { say } from "./elements.js";
import { unwritable } from "./fold.js";

const codeOf = (letter) => `U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
/** A character as it can be seen. */
const seen = (letter) => (/[\s\p{C}]/u.test(letter) ? codeOf(letter) : letter);

function wrongWith(text, writes) {
  const unknown = writes ? unwritable(text, writes) : [];
  if (unknown.length) return `The pen cannot write ${unknown.map(seen).join("  ")}`;
  return text && !text.trim() ? "There is nothing but spaces to write." : "";
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
