// What stands in for a browser's document: as much of one as the page's modules use.
import { Element, ENTITIES } from "./element.mjs";

const plain = (text) => text.replace(/&(\w+);/g, (_, name) => ENTITIES[name]);
const TOKEN = /<!--[^]*?-->|<![^>]*>|<(\/?)([\w-]+)((?:\s+[\w-]+(?:="[^"]*"|='[^']*')?)*)\s*(\/?)>|([^<]+)/g;
const ATTRIBUTE = /([\w-]+)(?:=(["'])([^]*?)\2)?/g;
const EMPTY = ["meta", "link", "input", "img", "br"];

/** An element that has in it what a text says: HTML, or a drawing. */
export function parsed(text) {
  const root = new Element("root");
  let at = root;
  for (const [all, closes, name, attributes, ends, said] of text.matchAll(TOKEN)) {
    if (said !== undefined) at.append(plain(said));
    else if (closes) at = at.parentNode;
    else if (name) {
      const element = new Element(name);
      for (const [, key, , value = ""] of attributes.matchAll(ATTRIBUTE)) element.setAttribute(key, plain(value));
      at.append(element);
      if (!ends && !EMPTY.includes(name)) at = element;
    } else if (!all.startsWith("<!")) throw new Error(`no markup: ${all}`);
  }
  return root;
}

/** A document that has in it what a text says. */
export function documentOf(text) {
  const made = (name) => {
    if (!/^[a-z]/i.test(name)) throw new DOMException(`no element is called ${name}`);
    return new Element(name);
  };
  const found = parsed(text);
  found.documentElement = found.children[0] ?? null;
  found.body = found.querySelector("body");
  return Object.assign(found, {
    createElement: made, createElementNS: (_, name) => made(name), activeElement: found.body,
    importNode: (node) => node.cloneNode(),
  });
}
