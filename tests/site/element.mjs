// Elements of a document that stands in for a browser's, where nothing is laid out, and the events they hear.
import { matches } from "./selectors.mjs";

/** What hears events, which pass from the window to their target and back. */
class Target {
  #heard = [];

  addEventListener(type, listener, options = {}) {
    const { once = false, capture = options === true } = options;
    this.#heard.push({ type, listener, once, capture });
  }

  /** What hears of an event that is here on its way `down` to its target, or back. */
  hear(event, down) {
    Object.defineProperty(event, "currentTarget", { value: this, configurable: true });
    for (const one of this.#heard.filter(({ type, capture }) => type === event.type && (down === null || capture === down))) {
      if (one.once) this.#heard = this.#heard.filter((other) => other !== one);
      one.listener.call(this, event);
    }
    const own = this[`on${event.type}`];
    if (!down && typeof own === "function") own.call(this, event);
  }

  dispatchEvent(event) {
    const above = [];
    for (let at = this.parentNode; at; at = at.parentNode) above.push(at);
    Object.defineProperty(event, "target", { value: this, configurable: true });
    for (const one of above.toReversed()) one.hear(event, true);
    this.hear(event, null);
    if (event.bubbles) for (const one of above) one.hear(event, false);
    return !event.defaultPrevented;
  }
}

export const Window = Target;
export const happen = (type, more = {}) => Object.assign(new Event(type, { bubbles: true, cancelable: true }), more);

export const ENTITIES = { amp: "&", gt: ">", lt: "<", quot: '"' };
const escaped = (text) => Object.entries(ENTITIES).reduce((all, [name, one]) => all.replaceAll(one, `&${name};`), text);

/** Files that the page has had the browser save: [[address, name], ...]. */
export const saved = [];

class Style {
  #own = {};
  setProperty = (name, value) => (this.#own[name] = String(value));
  getPropertyValue = (name) => this.#own[name] ?? "";

  get cssText() {
    return JSON.stringify({ ...this, ...this.#own });
  }

  set cssText(text) {
    for (const [name, value] of Object.entries(JSON.parse(text))) {
      if (typeof this[name] !== "function") name.startsWith("--") ? this.setProperty(name, value) : (this[name] = value);
    }
  }
}

const REFLECTED = {
  id: "id", type: "type", title: "title", alt: "alt", src: "src", href: "href", placeholder: "placeholder", role: "role",
  scope: "scope", min: "min", max: "max", step: "step", name: "name", download: "download", loading: "loading",
  ariaDisabled: "aria-disabled", ariaSelected: "aria-selected", ariaBusy: "aria-busy", ariaLabel: "aria-label",
  ariaHidden: "aria-hidden", defaultValue: "value",
};
const FIELDS = ["input", "textarea", "select"];

export class Element extends Target {
  attributes = new Map();
  childNodes = [];
  parentNode = null;
  style = new Style();
  scrolled = 0; // how often it was brought in sight
  #value = null;
  #checked = null;
  #wrong = "";

  constructor(name) {
    super();
    this.localName = name;
  }

  get className() {
    return this.getAttribute("class") ?? "";
  }

  set className(names) {
    this.setAttribute("class", names);
  }

  get classList() {
    const all = this.className.split(" ").filter(Boolean);
    const toggle = (name, on) => (this.className = [...all.filter((one) => one !== name), ...(on ? [name] : [])].join(" "));
    return { toggle, contains: (name) => all.includes(name), add: (name) => toggle(name, true), remove: (name) => toggle(name, false) };
  }

  get dataset() {
    return new Proxy({}, {
      get: (_, name) => this.getAttribute(`data-${name}`) ?? undefined,
      set: (_, name, value) => (this.setAttribute(`data-${name}`, value), true),
    });
  }

  getAttribute(name) {
    return this.attributes.get(name) ?? null;
  }

  setAttribute(name, value) {
    return this.attributes.set(name, String(value));
  }

  toggleAttribute(name, on) {
    return (on ? this.attributes.set(name, "") : this.attributes.delete(name));
  }

  get textContent() {
    return this.childNodes.map((node) => node.textContent ?? node).join("");
  }

  set textContent(text) {
    this.replaceChildren(...(text === "" ? [] : [String(text)]));
  }

  get children() {
    return this.childNodes.filter((node) => node instanceof Element);
  }

  get lastElementChild() {
    return this.children.at(-1) ?? null;
  }

  get firstChild() {
    return this.childNodes[0] ?? null;
  }

  get lastChild() {
    return this.childNodes.at(-1) ?? null;
  }

  get previousElementSibling() {
    return this.parentNode.children[this.parentNode.children.indexOf(this) - 1] ?? null;
  }

  hasChildNodes() {
    return this.childNodes.length > 0;
  }

  contains(other) {
    return other === this || this.children.some((node) => node.contains(other));
  }

  append(...nodes) {
    return nodes.forEach((node) => this.insertBefore(node, null));
  }

  prepend(node) {
    return this.insertBefore(node, this.firstChild);
  }

  appendChild(node) {
    return this.insertBefore(node, null);
  }

  after(node) {
    return this.parentNode.insertBefore(node, this.parentNode.childNodes[this.parentNode.childNodes.indexOf(this) + 1] ?? null);
  }

  replaceChildren(...nodes) {
    for (const node of this.children) node.remove();
    this.childNodes = [];
    this.append(...nodes);
  }

  insertBefore(node, before) {
    node.remove?.();
    this.childNodes.splice(before ? this.childNodes.indexOf(before) : this.childNodes.length, 0, node);
    if (node instanceof Element) node.parentNode = this;
    return node;
  }

  remove() {
    if (!this.parentNode) return;
    if (this.contains(document.activeElement)) document.activeElement = document.body;
    this.parentNode.childNodes = this.parentNode.childNodes.filter((node) => node !== this);
    this.parentNode = null;
  }

  cloneNode() {
    const clone = new Element(this.localName);
    clone.attributes = new Map(this.attributes);
    return clone;
  }

  matches(selector) {
    return matches(this, selector);
  }

  all(found = []) {
    for (const node of this.childNodes) if (node instanceof Element) found.push(node), node.all(found);
    return found;
  }

  querySelectorAll(selector) {
    return this.all().filter((node) => node.matches(selector));
  }

  querySelector(selector) {
    return this.querySelectorAll(selector)[0] ?? null;
  }

  getElementById(id) {
    return this.querySelector(`#${id}`);
  }

  closest(selector) {
    return this.matches(selector) ? this : this.parentNode instanceof Element ? this.parentNode.closest(selector) : null;
  }

  focus() {
    return (document.activeElement = this);
  }

  scrollIntoView() {
    return (this.scrolled += 1);
  }

  getClientRects() {
    return this.closest("[hidden]") ? [] : [this.getBoundingClientRect()];
  }

  getBoundingClientRect() {
    return { x: 0, y: 0 };
  }

  clientWidth = 900;
  scrollTop = 0;
  offsetTop = 0;
  offsetHeight = 0;

  click() {
    if (this.localName === "input" && this.type === "radio" && !this.checked) {
      this.checked = true;
      for (const type of ["input", "change"]) this.dispatchEvent(happen(type));
    }
    if (this.localName === "a" && this.download) saved.push([this.href, this.download]);
    const goesOn = this.dispatchEvent(happen("click"));
    if (!goesOn || this.type !== "submit") return;
    const form = this.closest("form");
    if (this.getAttribute("formnovalidate") !== null || form.reportValidity()) form.dispatchEvent(happen("submit"));
  }

  // --- Fields ---

  get options() {
    return this.children;
  }

  get text() {
    return this.textContent;
  }

  set text(text) {
    this.textContent = text;
  }

  get value() {
    if (this.localName === "option") return this.getAttribute("value");
    if (this.localName === "select") {
      const none = { value: "" };
      if (this.#value !== null) return (this.options.find(({ value }) => value === this.#value) ?? none).value;
      return (this.options.findLast((one) => one.getAttribute("selected") !== null) ?? this.options[0] ?? none).value;
    }
    if (["textarea", "output"].includes(this.localName)) return this.#value ?? this.textContent;
    return this.#value ?? this.getAttribute("value") ?? "";
  }

  set value(value) {
    if (this.localName === "output") this.textContent = value;
    else if (this.type === "radio") this.setAttribute("value", value);
    else this.#value = String(value);
  }

  get valueAsNumber() {
    return this.value === "" ? NaN : Number(this.value);
  }

  get checked() {
    return this.#checked ?? this.getAttribute("checked") !== null;
  }

  set checked(on) {
    this.#checked = on;
    if (on && this.type === "radio" && this.parentNode) {
      for (const other of document.querySelectorAll("input[type=radio]")) if (other !== this && other.name === this.name) other.#checked = false;
    }
  }

  setCustomValidity(wrong) {
    return (this.#wrong = wrong);
  }

  #isValid() {
    const [given, { min, max }] = [this.value, this];
    if (this.#wrong || (given === "" && this.getAttribute("required") !== null)) return false;
    return given === "" || !((min && Number(given) < Number(min)) || (max && Number(given) > Number(max)));
  }

  /** Of a form: whether all its fields are right; the first that is not hears of it. */
  reportValidity() {
    const wrong = this.all().find((field) => FIELDS.includes(field.localName) && !field.#isValid());
    wrong?.dispatchEvent(new Event("invalid"));
    wrong?.focus();
    return !wrong;
  }

  // --- Drawings ---

  get viewBox() {
    const [x, y, width, height] = (this.getAttribute("viewBox") ?? "0 0 0 0").split(" ").map(Number);
    return { baseVal: { x, y, width, height } };
  }

  getBBox() {
    const numbers = this.getAttribute("d").match(/-?\d+(\.\d+)?/g).map(Number);
    const ys = numbers.filter((_, i) => i % 2);
    const y = Math.min(...ys);
    return { y, height: Math.max(...ys) - y };
  }

  getScreenCTM() {
    return { inverse: () => null };
  }

  setPointerCapture() {}

  get outerHTML() {
    const attributes = [...this.attributes].map(([name, value]) => ` ${name}="${escaped(value)}"`).join("");
    const content = this.childNodes.map((node) => node.outerHTML ?? escaped(node)).join("");
    return `<${this.localName}${attributes}>${content}</${this.localName}>`;
  }
}

for (const [property, attribute] of Object.entries(REFLECTED)) {
  Object.defineProperty(Element.prototype, property, {
    get() {
      if (property === "defaultValue" && this.localName === "textarea") return this.textContent;
      return this.getAttribute(attribute) ?? (attribute.startsWith("aria-") ? null : "");
    },
    set(value) {
      this.setAttribute(attribute, value);
    },
  });
}
for (const name of ["hidden", "open", "required"]) {
  Object.defineProperty(Element.prototype, name, {
    get() {
      return this.getAttribute(name) !== null;
    },
    set(on) {
      this.toggleAttribute(name, Boolean(on));
    },
  });
}
Object.defineProperty(Element.prototype, "tabIndex", {
  set(at) {
    this.setAttribute("tabindex", at);
  },
});
