// The hands to choose from: any or one of those the service keeps, one's own, one made up.
import { draw, make, parts } from "./elements.js";
import { curve } from "./ink.js";
import { listStyles } from "./service.js";

const at = parts("write");
let mine = null; // {token, strokes, model} of the hand drawn in the Draw tab

const ANY = "One of these";
const [MADE_UP, OWN] = ["made-up", "A hand of its own"];

/** A style of the API: an id, a token, "made-up", or null for any of the stored ones. */
export function chosenHand() {
  const chosen = at.hands.querySelector("input:checked");
  return !chosen || chosen.value === "" ? null : chosen.value;
}

function card(value, name, picture, checked) {
  const radio = make("input", { type: "radio", name: "hand", value, checked });
  return make("label", { className: "hand" }, radio, picture, make("span", {}, name));
}

const unknown = (what) => make("i", { className: "made" }, make("b", {}, "?"), ` ${what} with each seed`);

/** The hands of a model; what was chosen stays so where it can. */
export async function listHands(model) {
  const before = at.hands.querySelector("input:checked")?.value ?? "";
  const styles = await listStyles().catch(() => []);
  const stored = styles
    .filter((style) => style.model === model)
    .map(({ id, description, preview }) => {
      const image = make("img", { src: preview, alt: "", loading: "lazy" });
      const picture = make("div", { className: "picture" }, image);
      return card(id, description || id, picture, id === before);
    });
  const any = stored.length ? [card("", ANY, unknown("another"), before === "")] : [];
  const own = mine?.model === model ? [card(mine.token, "My hand", mineDrawn(), false)] : [];
  const madeUp = card(MADE_UP, OWN, unknown("a new one"), before === MADE_UP);
  at.hands.replaceChildren(...any, ...own, ...stored, madeUp);
  if (!at.hands.querySelector("input:checked")) at.hands.querySelector("input").checked = true;
}

/** Offer the hand that a person drew, and choose it. */
export async function offerMine(hand) {
  mine = hand;
  await listHands(hand.model);
  [...at.hands.querySelectorAll("input")].find((radio) => radio.value === hand.token).checked = true;
}

function mineDrawn() {
  const places = mine.strokes.flat();
  const [xs, ys] = [0, 1].map((i) => places.map((place) => place[i]));
  const [left, top] = [Math.min(...xs) - 8, Math.min(...ys) - 8];
  const size = [Math.max(...xs) - left + 8, Math.max(...ys) - top + 8];
  const picture = draw("svg", { viewBox: [left, top, ...size].join(" "), "aria-hidden": "true" });
  picture.append(...mine.strokes.map((stroke) => draw("path", { d: curve(stroke) })));
  picture.style.strokeWidth = size[1] / 40;
  return picture;
}
