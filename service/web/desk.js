// What lies on the desk of the Write tab: a sheet as it is being written, one of before, and whether it
// still is what the form asks for.
import { count, make, narrow, parts } from "./elements.js";
import { asked, fill, wantedSeed } from "./request.js";
import { fromSvg, toSvg } from "./save.js";
import { blank, shortcomings, writeOn } from "./sheet.js";
import { Sheets } from "./sheets.js";

const at = parts("write");

// {request, fingerprint, lines, said, whole, svg, form}: the request, seed included; `whole` if the
// pen came to its end, `svg` once it has stopped; `form` is what the form said when it began.
let sheet = null;

/** The sheet that is shown; null before there is one. */
export const shown = () => sheet;

const sheets = new Sheets(at.sheets, (before) => desk.free() && putBack(before));
let desk = { free: () => false };

/** Offer the sheets of this visit: one of them may be put on the desk when `free()` says so, and then
 *  `changed()` hears of it. */
export const offerSheets = (whose) => (desk = whose);

/**
 * Write the answer to a request on the desk, until it ends or `signal` stops it; what to say of it.
 * `begun` hears when the sheet lies there; what is stopped is one of the sheets of this visit too, unless
 * nobody `wanted` it. The form `said` so when the request was made.
 */
export async function put(request, response, { signal, begun, wanted = true, said }) {
  let own = null;
  try {
    const { usage, ...missed } = await writeOn(at.sheet, response, {
      signal,
      pace: () => Number(at.speed.value),
      lineHeight: request.line_height,
      begun: (head) => {
        own = lay(request, head, said);
        if (wanted) at.paper.scrollIntoView({ block: narrow.matches ? "start" : "nearest" });
        begun(head);
      },
      reached: follow,
    });
    own.whole = true;
    own.said = summary(own.request, usage, missed);
    return own.said;
  } finally {
    at.echo.querySelector(".now")?.classList.remove("now");
    if (own) own.svg = toSvg(at.sheet, own.lines.join("\n"));
    if (own && (own.whole || wanted)) sheets.add(own);
  }
}

function summary({ seed, best_of: draws, best_by: part }, { characters, points }, missed) {
  // Points of draws that were not kept are counted too.
  const how = draws ? `the most legible of ${draws} draws of each ${part}` : count(points, "point");
  return `${count(characters, "character")}, ${how}${shortcomings(missed)}\nseed ${seed}`;
}

function lay(request, { seed, lines, system_fingerprint: fingerprint }, said) {
  const form = JSON.stringify(said);
  sheet = { request: { ...request, seed }, fingerprint, lines, said: `Stopped\nseed ${seed}`, form };
  showLines(lines);
  at.progress.textContent = `Writing…\nseed ${seed}`;
  return sheet;
}

/** Put a sheet of before on the desk, and what it was asked for by into the form. */
function putBack(before) {
  const { paths, ...page } = fromSvg(before.svg);
  blank(at.sheet, { ...page, label: `Handwriting: ${before.lines.join(" ")}` });
  at.sheet.append(...paths);
  sheet = before;
  fill(before.request).then(() => desk.changed());
  // Its hand may not be there, or not yet: the form asks for another then.
  sheet.form = JSON.stringify({ ...asked(), style: before.request.style ?? null });
  showLines(sheet.lines);
  at.progress.textContent = sheet.said;
  sheets.mark(sheet);
  desk.changed();
}

function showLines(lines) {
  at.empty.hidden = at.opening.hidden = true;
  at.echo.hidden = false;
  const letters = (line) => [...line].map((letter) => make("span", {}, letter));
  at.echo.replaceChildren(...lines.map((line) => make("span", { className: "line" }, ...letters(line))));
}

/** Mark the character being written, and keep it in sight. */
function follow(line, character) {
  const letter = at.echo.children[line]?.children[character];
  const before = at.echo.querySelector(".now");
  if (!letter || letter === before) return;
  before?.classList.remove("now");
  letter.classList.add("now");
  if (before?.parentNode === letter.parentNode) return;
  at.echo.scrollTop = letter.offsetTop - at.echo.offsetTop - letter.offsetHeight;
}

// --- Whether it is what the form asks for ---------------------------------------------------------

const formSays = () => JSON.stringify(asked());

/** Mark a sheet that is not what the form asks for any more. */
export function markStale() {
  const other = sheet && (formSays() !== sheet.form || (wantedSeed() ?? sheet.request.seed) !== sheet.request.seed);
  at.stale.hidden = !other;
  at.sheet.classList.toggle("stale", Boolean(other));
}
