// The API key of a service that wants one: asked for in the footer, kept until the tab is closed.
const KEPT_AS = "evenkeel-key";

const key = () => sessionStorage.getItem(KEPT_AS);
export const headers = () => (key() ? { Authorization: `Bearer ${key()}` } : {});
/** A page cannot give a WebSocket headers; unlike its address, these are written to no log. */
export const protocols = () => (key() ? ["evenkeel", `bearer.${key()}`] : []);

let asking = null;

/** Have a person type a key; everybody who waits for one goes on when it is there. */
export function askKey() {
  const [label, field] = ["key", "key-field"].map((id) => document.getElementById(id));
  asking ??= new Promise((typed) => {
    label.hidden = false;
    field.addEventListener(
      "change",
      () => {
        sessionStorage.setItem(KEPT_AS, field.value.trim());
        field.value = "";
        label.hidden = true;
        asking = null;
        typed();
      },
      { once: true },
    );
  });
  return asking;
}
