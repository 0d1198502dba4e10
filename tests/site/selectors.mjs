// Whether an element is one that a selector means, as far as the page's modules use them.
const PART = /^(?:([\w-]+)|#([\w-]+)|\.([\w-]+)|\[([\w-]+)(?:(\^?=)"?([^"\]]*)"?)?\]|:(checked)|:(is|not)\(([^)]*)\))/;

function matchesOne(element, selector) {
  for (let rest = selector; rest; ) {
    const found = PART.exec(rest);
    if (!found) throw new Error(`no such selector: ${selector}`);
    const [all, name, id, aClass, attribute, how, value, checked, of, inner] = found;
    const has = element.getAttribute(attribute);
    const is =
      name ? element.localName === name
      : id ? element.id === id
      : aClass ? element.classList.contains(aClass)
      : attribute ? has !== null && (how === "=" ? has === value : !how || has.startsWith(value))
      : checked ? element.checked
      : element.matches(inner) === (of === "is");
    if (!is) return false;
    rest = rest.slice(all.length);
  }
  return true;
}

function matchesPath(element, selector) {
  const steps = selector.trim().split(/\s+(?![^(]*\))/);
  if (!matchesOne(element, steps.pop())) return false;
  for (let at = element.parentNode; steps.length && at.localName; at = at.parentNode) {
    if (matchesOne(at, steps.at(-1))) steps.pop();
  }
  return steps.length === 0;
}

/** Whether it is one of those that are told apart by commas. */
export const matches = (element, selector) => selector.split(/,(?![^(]*\))/).some((one) => matchesPath(element, one));
