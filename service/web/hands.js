// The hands to choose from: any or one of those the service keeps, one's own, one made up.
import { choose, chosen } from "./chosen.js";
import { draw, make, onPress, parts } from "./elements.js";
import { curve } from "./ink.js";
import { headers } from "./key.js";
import { named, settled, whyNot } from "./models.js";
import { forgetOwn, keepOwn, own, watchOwn } from "./own.js";
import { addressOf, ask, listStyles } from "./service.js";

const at = parts("write");
const AGAIN_MS = 2000; // a service that has just been started measures its hands first
const MADE_UP = "made-up";

let listed = ""; // the model whose hands are wanted
let last = []; // the stored hands of all models as they came last
let ids = new Set(); // of all stored hands
let fetching = Promise.resolve(); // pictures, one after another
let wanted = chosen(at.hands.id) ?? ""; // the value of the hand to be chosen as soon as it is there

const checked = () => at.hands.querySelector("input:checked");

/** A style of the API: an id, a token, "made-up", or null for any of the stored ones. */
export function chosenHand() {
  // What is checked because the wanted hand is not there, or not yet, is nobody's choice.
  return wanted !== "" && checked()?.value === wanted ? wanted : null;
}

/** Choose a hand by its style, or any one; one that is not there is chosen as soon as it is. */
export function chooseHand(style) {
  wanted = style ?? "";
  choose(at.hands.id, wanted);
  const radios = [...at.hands.querySelectorAll("input")];
  // Without any hand that is stored there is no "Any": one is made up then, and not one's own.
  const nobodys = radios.find(({ value }) => ["", MADE_UP].includes(value));
  const radio = radios.find(({ value }) => value === wanted) ?? nobodys;
  if (radio) radio.checked = true;
  tell();
  at.hands.dispatchEvent(new Event("input", { bubbles: true })); // a sheet may be of another hand
}

/** Say what the chosen hand is like. */
function tell() {
  const chosen = checked();
  const lost = own() && !named(own().model);
  const about = [chosen?.dataset.about, lost && `The hand you drew is of ${own().model}, which is not served.`];
  at.hand.textContent = about.filter(Boolean).join(" ");
  at.forget.hidden = !own() || !(lost || chosen?.value === own().token);
}

function card(value, name, about, picture) {
  const radio = make("input", { type: "radio", name: "hand", value });
  radio.dataset.about = about;
  return make("label", { className: "hand", title: about }, radio, picture, make("span", {}, name));
}

const unknown = () => make("i", { className: "made", ariaHidden: "true" }, "?");

function storedCard({ id, description, preview }) {
  const image = make("img", { alt: "", loading: "lazy" });
  if (headers().Authorization) fetchInto(image, preview);
  else {
    image.onerror = () => {
      image.onerror = null; // once more, later, if others were being served just then
      setTimeout(() => (image.src = addressOf(preview)), AGAIN_MS);
    };
    image.src = addressOf(preview);
  }
  const picture = make("div", { className: "picture" }, image);
  return card(id, id[0].toUpperCase() + id.slice(1), description, picture);
}

/** An image by itself sends no key. One at a time, as a key may have few requests under way. */
function fetchInto(image, path) {
  const model = listed;
  const fetched = async () => {
    if (listed !== model) return;
    const blob = await (await ask(path)).blob();
    image.onload = () => URL.revokeObjectURL(image.src);
    image.src = URL.createObjectURL(blob);
  };
  // Once more, later, if something else was under way just then.
  const again = () => new Promise((resolve) => setTimeout(resolve, AGAIN_MS)).then(fetched);
  fetching = fetching.then(fetched).catch(again).catch(() => {});
}

/** Whether a style is one of those everybody has, and no token of somebody's hand. */
export const isEverybodys = (style) => style == null || style === MADE_UP || ids.has(style);

/** Show the hands of a model, and return once all are there; what was chosen stays so where it can. */
export async function listHands(model) {
  listed = model;
  // Another pen may be ready before this one, which is then not asked for its hands.
  const early = !settled(named(model));
  const styles = await listStyles().catch(() => null);
  if (listed !== model) return;
  if (styles) last = styles; // where they are lost on their way, those that were there are there still
  showHands(model);
  const stored = (styles ?? []).filter((style) => style.model === model);
  const complete = early ? stored.length : styles || whyNot(named(model));
  const count = at.hands.querySelectorAll("input").length;
  at.count.textContent = complete ? `${count} to choose from` : "the others are being looked at";
  if (complete) return;
  await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  if (listed === model) await listHands(model);
}

function showHands(model) {
  ids = new Set(last.map(({ id }) => id));
  const stored = last.filter((style) => style.model === model).map(storedCard);
  const any = card("", "Any", "Another of these hands with each seed", unknown());
  const mine = own()?.model === model ? [card(own().token, "My hand", "The hand you drew", mineDrawn())] : [];
  const madeUp = card(MADE_UP, "Made up", "A new hand with each seed, made up as it writes", unknown());
  const cards = [...(stored.length ? [any] : []), ...mine, ...stored, madeUp];
  const held = at.hands.contains(document.activeElement);
  at.hands.replaceChildren(...cards);
  chooseHand(wanted);
  if (held) checked().focus(); // the keyboard stays where it was
}

/** Keep the hand that a person drew, and offer it. */
export async function offerMine(hand) {
  const mine = wanted === own()?.token;
  keepOwn(hand);
  if (mine) wanted = hand.token;
  if (listed === hand.model) await listHands(listed);
}

/** The service does not take it any more, or the person does not want it kept. */
export async function forgetMine() {
  forgetOwn();
  chooseHand(null);
  showHands(listed); // the service may take its time to say which others there are
  await listHands(listed);
}

function mineDrawn() {
  const { strokes } = own();
  const places = strokes.flat();
  const [xs, ys] = [0, 1].map((i) => places.map((place) => place[i]));
  const [left, top] = [Math.min(...xs) - 8, Math.min(...ys) - 8];
  const size = [Math.max(...xs) - left + 8, Math.max(...ys) - top + 8];
  const picture = draw("svg", { viewBox: [left, top, ...size].join(" "), "aria-hidden": "true" });
  picture.append(...strokes.map((stroke) => draw("path", { d: curve(stroke) })));
  picture.style.strokeWidth = size[1] / 40;
  return picture;
}

at.hands.addEventListener("change", ({ target }) => chooseHand(target.value));
onPress(at.forget, () => {
  forgetMine();
  checked().focus(); // the button is gone, and the keyboard with it
});
watchOwn((before) => {
  if (before && wanted === before.token && own()) wanted = own().token; // drawn anew
  if (listed) listHands(listed);
});
