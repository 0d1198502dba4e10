// The API key of a service that wants one: asked for in the footer, kept until the tab is closed.
import { Kept } from "./kept.js";

const kept = new Kept("sessionStorage", "evenkeel-key");

let known; // where nothing is kept it lasts as long as the page

const key = () => known ?? kept.text;

export const headers = () => (key() ? { Authorization: `Bearer ${key()}` } : {});
/** A page cannot give a WebSocket headers; unlike its address, these are written to no log. */
export const protocols = () => (key() ? ["evenkeel", `bearer.${key()}`] : []);

let asking = null;

/** Whether a person is asked for one. */
export const isAsked = () => asking !== null;

/** Have a person type a key; everybody who waits for one goes on when it is there. */
export function askKey() {
  const [footer, label, field] = ["status", "key", "key-field"].map((id) => document.getElementById(id));
  const before = document.activeElement;
  asking ??= new Promise((typed) => {
    footer.hidden = label.hidden = false;
    field.placeholder = key() ? "that key is not known" : "";
    field.addEventListener(
      "change",
      () => {
        kept.text = known = field.value.replace(/[^!-~]/g, ""); // what a header can have
        field.value = "";
        label.hidden = true;
        asking = null;
        document.dispatchEvent(new Event("key"));
        before?.focus();
        typed();
      },
      { once: true },
    );
  });
  field.focus();
  document.dispatchEvent(new Event("key"));
  return asking;
}
