// The hand a person drew: its token, and the strokes for a picture of it. This browser keeps it until
// it is forgotten, where the service will still know it.
import { Kept } from "./kept.js";
import { MOST_POINTS } from "./pad.js";
import { remembers } from "./service.js";

const kept = new Kept("localStorage", "evenkeel-hand");

let mine; // {token, strokes, model}; null if there is none

const isPoint = (place) => place.length === 2 && place.every(Number.isFinite);
const isStroke = (stroke) => stroke.length > 0 && stroke.every(isPoint);
const isDrawn = (strokes) => strokes.length && strokes.every(isStroke) && strokes.flat().length <= MOST_POINTS;
const isName = (text) => typeof text === "string" && text !== "";

/** The hand that was kept as this text; null if none was. */
function read(text) {
  try {
    const { token, strokes, model } = JSON.parse(text);
    return isName(token) && isName(model) && isDrawn(strokes) ? { token, strokes, model } : null;
  } catch {
    return null; // not of this page's making
  }
}

/** The hand, if one was drawn. */
export function own() {
  if (mine === undefined) mine = remembers() ? read(kept.text) : null;
  return mine;
}

export function keepOwn(hand) {
  mine = hand;
  if (remembers()) kept.text = hand && JSON.stringify(hand); // or what is kept is of another place
}

export const forgetOwn = () => keepOwn(null);

/** Hear that another page of this browser has kept a hand or forgotten it, and which there was before. */
export function watchOwn(changed) {
  addEventListener("storage", ({ key, oldValue }) => {
    if (!remembers() || ![kept.name, null].includes(key)) return; // null: all that was kept is gone
    mine = undefined;
    changed(read(oldValue));
  });
}
