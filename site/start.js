// The page on this device: the service's own, answered by the worker beside it.
import { make, say } from "../service/web/elements.js";
import { answerBy } from "../service/web/service.js";
import { all, check, named, note, ofKind } from "../service/web/models.js";
import { KINDS, asked, onShow, shown } from "../service/web/tabs.js";
import * as device from "./device.js";

const MB = 1e6;

const bar = make("progress", { ariaLabel: "Fetching the model" });
const told = make("span", { role: "status" });
const figures = make("span"); // which a screen reader would read out one after the other
const fetching = make("div", { className: "fetching", hidden: true }, bar, told, figures);
document.querySelector("header").append(fetching);

const troubles = new Map(); // by model that could not be had, until it is
let samples = Promise.resolve(); // drawn again, one after the other

function showFetched({ loaded, total }) {
  if (total === 0) return showTroubles();
  fetching.hidden = bar.hidden = false;
  bar.value = Math.min(1, loaded / total);
  say(told, "Fetching the model, kept for the next visit:");
  figures.textContent = `${[loaded, total].map((bytes) => (bytes / MB).toFixed(1)).join(" of ")} MB`;
}

function showTroubles() {
  fetching.hidden = troubles.size === 0;
  bar.hidden = true;
  figures.textContent = "";
  told.textContent = [...troubles.values()].join(" ");
}

function hearTrouble(message, of) {
  if (named(of)) note(of, { pending: message || null });
  if (message) troubles.set(of, message);
  else troubles.delete(of);
  showTroubles();
}

async function drawSamples() {
  for (const { id, attestation } of all()) {
    if (attestation && !attestation.sample) await check(id).catch(() => {});
  }
}

/** What is shown needs its model, and Proof a sample of every model that is here. */
function prepare(tab) {
  if (KINDS[tab]) device.want(KINDS[tab]);
  for (const { id } of ofKind(KINDS[tab])) note(id, { pending: null });
  if (tab === "proof") samples = samples.then(drawSamples);
}

device.listen({ fetched: showFetched, trouble: hearTrouble });
answerBy(device);
// Served by a service, this page offers the way back to it.
document.getElementById("place").hidden = location.search !== "?server";
prepare(asked() ?? shown());
onShow(prepare);
addEventListener("online", () => prepare(shown()));
await import("../service/web/page.js").catch((error) => {
  // As of what is imported above, lost.js tells of it.
  document.querySelector("script[type=module]").dispatchEvent(new Event("error"));
  throw error;
});
navigator.serviceWorker?.register(new URL("../sw.js", import.meta.url)).catch(() => {
  // Not over plain HTTP, nor where a person forbids it: then there is no offline visit.
});
