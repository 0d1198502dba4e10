// The Write tab: a sentence, a hand, and the pen that writes it.
import { allow, count, make, onPress, parts } from "./elements.js";
import { chosenHand, listHands } from "./hands.js";
import { bestOf, named, offer } from "./models.js";
import { handwrite } from "./service.js";
import { roomIn, writeOn } from "./sheet.js";
import { Work } from "./work.js";

const at = parts("write");
const work = new Work(at, refresh);
const narrow = matchMedia("(max-width: 52rem)"); // as in the style sheets
let written = null; // the request, seed included, of what is on the sheet

export const model = () => named(at.model.value);
export const stop = () => work.stop();

function request(seed) {
  return {
    model: at.model.value,
    text: at.text.value,
    bias: at.bias.valueAsNumber,
    seed,
    style: chosenHand(),
    width: roomIn(at.desk),
    line_height: at.size.valueAsNumber,
    stroke_width: at.nib.valueAsNumber,
    color: at.color.value,
    ...bestOf(),
  };
}

export function start() {
  if (!model()) return;
  write(at.seed.value === "" ? undefined : at.seed.valueAsNumber);
}

function again() {
  at.seed.value = ""; // or the field would name another seed than the one used
  write(undefined);
}

const write = (seed) =>
  work.run(async () => {
    const body = request(seed);
    const response = await handwrite({ ...body, format: "json", stream: true }, work.signal);
    const { head, usage, cut, unreadable } = await writeOn(at.sheet, response, {
      signal: work.signal,
      pace: () => Number(at.speed.value),
      begun: (head) => lay(body, head),
      reached: follow,
    });
    at.echo.querySelector(".now")?.classList.remove("now");
    const unfinished = cut ? `; ${count(cut, "line")} not finished` : "";
    const unclear = unreadable ? `; ${count(unreadable, "line")} hard to read` : "";
    const { characters, points } = usage;
    return `${count(characters, "character")}, ${count(points, "point")}${unfinished}${unclear}\nseed ${head.seed}`;
  });

/** The sheet is ready: from here on the writing can be asked for again. */
function lay(body, head) {
  written = { ...body, seed: head.seed };
  at.empty.hidden = true;
  at.echo.hidden = false;
  at.echo.replaceChildren(...head.lines.map((line) => make("span", { className: "line" }, ...letters(line))));
  at.progress.textContent = `Writing…\nseed ${head.seed}`;
  at.paper.scrollIntoView({ block: narrow.matches ? "start" : "nearest" });
  refresh();
}

const letters = (line) => [...line].map((letter) => make("span", {}, letter));

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

/** Ask for the same writing as a file: the same request gives the same ink. */
const download = (format) =>
  work.run(async () => {
    const response = await handwrite({ ...written, format }, work.signal);
    const address = URL.createObjectURL(await response.blob());
    make("a", { href: address, download: `evenkeel-${written.seed}.${format}` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
    return `Saved evenkeel-${written.seed}.${format}\nseed ${written.seed}`;
  }, "Asking for the file…");

/** The command that asks for the same ink. */
const copy = () =>
  work.run(async () => {
    const quoted = JSON.stringify(written).replaceAll("'", "'\\''");
    const command =
      `curl ${location.origin}/v1/handwriting -H 'content-type: application/json' ` +
      `-d '${quoted}' -o evenkeel-${written.seed}.svg`;
    // A page that came without TLS from elsewhere has no clipboard.
    await navigator.clipboard?.writeText(command);
    return navigator.clipboard ? `Copied\nseed ${written.seed}` : command;
  });

function refresh() {
  allow(at.start, !work.busy && model());
  allow(at.again, !work.busy && written);
  allow(at.stop, work.busy);
  for (const button of [at.svg, at.png, at.pdf, at.curl]) allow(button, !work.busy && written);
}

/** The models are known. */
export function begin() {
  const offered = offer(at.model, "handwriting");
  at.models.hidden = offered < 2;
  if (offered) listHands(at.model.value);
  if (narrow.matches) at.size.value = 44; // or a line would hold one word
  refresh();
}

at.form.addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
at.model.addEventListener("change", () => listHands(at.model.value));
at.bias.addEventListener("input", () => (at.neat.value = at.bias.valueAsNumber.toFixed(1)));
onPress(at.again, again);
onPress(at.stop, stop);
onPress(at.svg, () => download("svg"));
onPress(at.png, () => download("png"));
onPress(at.pdf, () => download("pdf"));
onPress(at.curl, copy);
