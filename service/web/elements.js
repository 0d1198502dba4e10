// The page's elements: found by tab, made with their content, and their state; and figures in words.

/** Whether there is little room. */
export const narrow = matchMedia("(max-width: 52rem)"); // as in the style sheets

/** The elements of one tab by what their ids say after its name: `write-seed` is `seed`. */
export function parts(tab) {
  const elements = document.querySelectorAll(`[id^="${tab}-"]`);
  return Object.fromEntries([...elements].map((e) => [e.id.slice(tab.length + 1), e]));
}

/** An element with properties and content; text is never taken for markup. */
export function make(name, properties = {}, ...content) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...content);
  return element;
}

/** An SVG element with attributes. */
export function draw(name, attributes = {}) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/** Not `disabled`: that would drop the keyboard focus each time a run begins or ends. */
export function allow(button, allowed) {
  button.setAttribute("aria-disabled", String(!allowed));
}

/** Run `task` when the button is pressed while it is allowed. */
export function onPress(button, task) {
  button.addEventListener("click", () => button.ariaDisabled !== "true" && task());
}

/** Have an element say a text. What is said already is not said again: a screen reader would read it
 *  out once more. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const whole = (x) => Math.round(x).toLocaleString("en");

/** `1 point`, `2 points`. */
export const count = (n, noun) => `${whole(n)} ${noun}${n === 1 ? "" : "s"}`;

/** As the service's log writes it: 6.8e-06. */
export function scientific(x) {
  if (!Number.isFinite(x)) return "not a number";
  return x === 0 ? "0" : x.toExponential(1).replace(/([+-])(\d)$/, "$10$2");
}
