// The page: its tabs, the models behind them, keys, and the verdict below.
import { parts, say } from "./elements.js";
import { isAsked } from "./key.js";
import * as models from "./models.js";
import { bringFields, offerPlaces } from "./place.js";
import { KINDS, asked, onShow, show, shown } from "./tabs.js";
import * as draw from "./draw.js";
import * as lab from "./lab.js";
import * as proof from "./proof.js";
import * as text from "./text.js";
import * as write from "./write.js";

const TABS = { write, text, draw, proof, lab };
const [footer, verdict] = ["status", "verdict"].map((id) => document.getElementById(id));

function showStatus() {
  const model = TABS[shown()].model?.();
  // Proof has the verdicts of all models itself, and Lab has no model.
  footer.hidden = ["proof", "lab"].includes(shown()) && !isAsked();
  if (model) models.showReady(verdict, model);
  else {
    verdict.className = "verdict";
    say(verdict, "No model to attest");
  }
}

/** Without its model a tab is a sentence. */
function sayWhatIsMissing() {
  for (const [tab, kind] of Object.entries(KINDS)) {
    const has = models.ofKind(kind).length > 0;
    const { panel, missing } = parts(tab);
    missing.hidden = has;
    panel.classList.toggle("lacking", !has);
  }
}

async function begin() {
  offerPlaces();
  bringFields();
  const wanted = asked();
  show(wanted ?? "write");
  await models.load((trouble) => {
    verdict.className = "verdict bad";
    say(verdict, trouble);
  });
  sayWhatIsMissing();
  for (const tab of Object.values(TABS)) tab.begin();
  if (!wanted && !models.ofKind("handwriting").length) show("text");
  models.watch(showStatus);
  onShow(showStatus);
  document.addEventListener("unanswered", models.doubt);
  document.addEventListener("unserved", () => models.lookAgain().catch(() => {}));
  document.addEventListener("served", ({ detail }) => models.answered(detail));
  document.addEventListener("change", showStatus); // another model may have been chosen
  showStatus();
}

document.addEventListener("submit", (event) => {
  event.preventDefault();
  TABS[shown()].start();
});
document.addEventListener("keydown", (event) => {
  // It is for whoever composes a character; Safari tells by the code alone that it ended one.
  if (event.isComposing || event.keyCode === 229) return;
  const tab = TABS[shown()];
  if (event.key === "Escape") tab.stop?.();
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  tab.start?.();
});

// A message about a field that is folded away has nowhere to stand.
function unfold({ target }) {
  target.closest("details")?.setAttribute("open", "");
  target.getBoundingClientRect(); // WebKit gives the focus to nothing that has yet to be laid out
}
document.addEventListener("invalid", unfold, true);
// What a person opens should not open behind the buttons.
for (const details of document.querySelectorAll("details")) {
  details.addEventListener("toggle", () => details.open && details.scrollIntoView({ block: "nearest" }));
}
begin();
