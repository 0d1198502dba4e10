// The hand a person drew: its token, and the strokes for a picture of it. This browser keeps it until
// it is forgotten, where the service will still know it.
import { remembers } from "./service.js";

const KEPT_AS = "evenkeel-hand";

let mine; // {token, strokes, model}; null if there is none

function load() {
  if (!remembers()) return null;
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT_AS));
    return kept?.token && kept.strokes.flat().length ? kept : null;
  } catch {
    return null; // no storage here, or not of this page's making
  }
}

/** The hand, if one was drawn. */
export const own = () => (mine === undefined ? (mine = load()) : mine);

export function keepOwn(hand) {
  mine = hand;
  if (!remembers()) return;
  try {
    localStorage.setItem(KEPT_AS, JSON.stringify(hand));
  } catch {
    // It lasts as long as the page then.
  }
}

/** Hear that another page of this browser has kept a hand or forgotten it. */
export function watchOwn(changed) {
  addEventListener("storage", ({ key }) => {
    if (!remembers() || ![KEPT_AS, null].includes(key)) return; // null: all that was kept is gone
    mine = undefined;
    changed();
  });
}

export function forgetOwn() {
  mine = null;
  if (!remembers()) return; // what is kept is of another place
  try {
    localStorage.removeItem(KEPT_AS);
  } catch {
    // Nothing was kept.
  }
}
