// The hand a person drew: its token, and the strokes for a picture of it. This browser keeps it until
// it is forgotten, where the service will still know it.
import { remembers } from "./service.js";

const KEPT_AS = "evenkeel-hand";

let mine; // {token, strokes, model}; null if there is none

const isPoint = (place) => place.length === 2 && place.every(Number.isFinite);
const isStroke = (stroke) => stroke.length > 0 && stroke.every(isPoint);

/** The hand that was kept as this text. */
function read(kept) {
  try {
    const { token, strokes, model } = JSON.parse(kept);
    return token && model && strokes.length && strokes.every(isStroke) ? { token, strokes, model } : null;
  } catch {
    return null; // not of this page's making
  }
}

function load() {
  if (!remembers()) return null;
  try {
    return read(localStorage.getItem(KEPT_AS));
  } catch {
    return null; // no storage here
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

/** Hear that another page of this browser has kept a hand or forgotten it, and which there was before. */
export function watchOwn(changed) {
  addEventListener("storage", ({ key, oldValue }) => {
    if (!remembers() || ![KEPT_AS, null].includes(key)) return; // null: all that was kept is gone
    mine = undefined;
    changed(read(oldValue));
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
