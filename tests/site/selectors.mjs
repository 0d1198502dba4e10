// Whether an element is one that a selector means, as far as the page's modules use them.
const PART = /^(?:([\w-]+)|#([\w-]+)|\.([\w-]+)|\[([\w-]+)(?:(\^?=)"?([^"\]]*)"?)?\]|:(checked)|:(is|not)\(([^)]*)\))/;
const known = new Map(); // what selectors mean

/** Of a part of a selector: what it asks of an element. */
function asked([, name, id, aClass, attribute, how, value, checked, of, inner]) {
  if (name) return (element) => element.localName === name;
  if (id) return (element) => element.getAttribute("id") === id;
  if (aClass) return (element) => element.classList.contains(aClass);
  if (checked) return (element) => element.checked;
  if (of) return (element) => matches(element, inner) === (of === "is");
  return (element) => {
    const has = element.getAttribute(attribute);
    return has !== null && (how === "=" ? has === value : !how || has.startsWith(value));
  };
}

function ofOne(selector) {
  const parts = [];
  if (!selector) throw new Error("no selector");
  for (let rest = selector; rest; rest = rest.slice(parts.at(-1)[0].length)) {
    const found = PART.exec(rest);
    if (!found) throw new Error(`no such selector: ${selector}`);
    parts.push(found);
  }
  const asks = parts.map(asked);
  return (element) => asks.every((ask) => ask(element));
}

/** Of elements one in the other, the last of which is meant. */
function ofPath(selector) {
  const steps = selector.trim().split(/\s+(?![^(]*\))/).map(ofOne);
  return (element) => {
    let left = steps.length - 1;
    if (!steps[left](element)) return false;
    for (let at = element.parentNode; left && at?.localName; at = at.parentNode) if (steps[left - 1](at)) left -= 1;
    return left === 0;
  };
}

/** Whether an element is one of those that are told apart by commas. */
export function matches(element, selector) {
  if (!known.has(selector)) known.set(selector, selector.split(/,(?![^(]*\))/).map(ofPath));
  return known.get(selector).some((is) => is(element));
}
