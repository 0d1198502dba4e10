// Where models compute, on the server or on this device: a page each, between which what was typed goes
// along.
const KEPT_AS = "evenkeel-fields";
// What was drawn stays behind, and so do the words that it says.
const FIELDS =
  "form :is(textarea, input[type=text], input[type=number], input[type=range], input[type=color]):not(#draw-text)";

const fields = () => [...document.querySelectorAll(FIELDS)];

function leave(event) {
  // At the tab that is shown.
  [event.currentTarget.hash] = location.hash.split("?");
  if (event.ctrlKey || event.metaKey || event.shiftKey) return; // this page stays, and is typed in
  const typed = fields().map(({ id, value }) => [id, value]);
  try {
    sessionStorage.setItem(KEPT_AS, JSON.stringify(Object.fromEntries(typed)));
  } catch {
    // No storage here: what was typed stays behind.
  }
}

/** Let the other place be gone to. */
export function offerPlaces() {
  for (const link of document.querySelectorAll("#place a[href]")) link.addEventListener("click", leave);
}

/** Fill in what was typed in the place that was left. */
export function bringFields() {
  let typed = {};
  try {
    typed = JSON.parse(sessionStorage.getItem(KEPT_AS)) ?? {};
    sessionStorage.removeItem(KEPT_AS);
  } catch {
    // No storage here, or not of this page's making.
  }
  for (const field of fields()) if (field.id in typed) field.value = typed[field.id];
  lookAgain();
}

function lookAgain() {
  for (const field of fields()) field.dispatchEvent(new Event("input", { bubbles: true }));
}

// A browser that goes back to the page fills in what stood there, and tells nobody.
addEventListener("pageshow", lookAgain);
