// Where models compute, on the server or on this device: a page each, between which what was typed goes
// along.
import { Kept } from "./kept.js";

const kept = new Kept("sessionStorage", "evenkeel-fields");
// What was drawn stays behind, and so do the words that it says.
const FIELDS =
  "form :is(textarea, input[type=text], input[type=number], input[type=range], input[type=color]):not(#draw-text)";

const fields = () => [...document.querySelectorAll(FIELDS)];

function leave(event) {
  // At the tab that is shown.
  [event.currentTarget.hash] = location.hash.split("?");
  if (event.ctrlKey || event.metaKey || event.shiftKey) return; // this page stays, and is typed in
  const typed = fields().map(({ id, value }) => [id, value]);
  kept.text = JSON.stringify(Object.fromEntries(typed));
}

/** Let the other place be gone to. */
export function offerPlaces() {
  for (const link of document.querySelectorAll("#place a[href]")) link.addEventListener("click", leave);
}

/** Fill in what was typed in the place that was left. */
export function bringFields() {
  let typed = {};
  try {
    typed = Object(JSON.parse(kept.text));
  } catch {
    // Not of this page's making.
  }
  kept.text = null;
  for (const field of fields()) if (field.id in typed) field.value = typed[field.id];
  lookAgain();
}

function lookAgain() {
  for (const field of fields()) field.dispatchEvent(new Event("input", { bubbles: true }));
}

// A browser that goes back to the page fills in what stood there, and tells nobody.
addEventListener("pageshow", lookAgain);
