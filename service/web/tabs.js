// The tabs: https://www.w3.org/WAI/ARIA/apg/patterns/tabs/ with the tab in the address.
import { keepPlace } from "./chosen.js";

/** The models that tabs are for, by kind. */
export const KINDS = { write: "handwriting", text: "language", draw: "handwriting" };

const tabs = [...document.querySelectorAll('[role="tab"]')];
const names = tabs.map((tab) => tab.id.replace("-tab", ""));
const watchers = [];

export const shown = () => names[tabs.findIndex((tab) => tab.ariaSelected === "true")];
export const onShow = (watcher) => watchers.push(watcher);

const FORMER = { read: "text" }; // names that addresses may still have

/** The tab the address asks for, if there is such a tab; what follows a `?` is the tab's own. */
export function asked() {
  const [name] = location.hash.slice(1).split("?");
  return names.find((known) => known === (FORMER[name] ?? name));
}

/** Show one tab; an address that did not name it before does so then. */
export function show(name, { focus = false } = {}) {
  for (const [i, tab] of tabs.entries()) {
    const here = names[i] === name;
    tab.setAttribute("aria-selected", String(here));
    tab.tabIndex = here ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = !here;
    if (here && focus) tab.focus();
  }
  // Replaced: to leave the page by Back must not take as many steps as tabs were looked at.
  if (asked() !== name) keepPlace(history.state, `#${name}`);
  for (const watcher of watchers) watcher(name);
}

const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

function onKey(event) {
  const last = tabs.length - 1;
  const at = tabs.indexOf(event.currentTarget);
  let to = { Home: 0, End: last }[event.key];
  if (event.key in STEPS) to = (at + STEPS[event.key] + tabs.length) % tabs.length;
  if (to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  show(names[to], { focus: true });
}

for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => show(names[i]));
  tab.addEventListener("keydown", onKey);
}
addEventListener("hashchange", () => asked() && asked() !== shown() && show(asked()));
