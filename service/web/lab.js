// The Lab tab: table 1 of the paper computed here, a table of numbers normalised both ways, a digit
// drawn out of noise.
import { drawDigit } from "./digit.js";
import { make, onPress, parts, say, scientific } from "./elements.js";
import { KINDS, LEAST_IF_NOT, MOST_IF_INVARIANT, perColumn, perRow, table1 } from "./norms.js";
import { readSafetensors } from "./safetensors.js";
import { onShow } from "./tabs.js";

const lab = parts("lab");
const NUMBERS = [[7, 5, 4], [2, 3, 4], [1, 2, 3], [7, 5, 6], [3, 3, 4]];
const sliders = [];
const DRAWN = { steps: 10, stepMs: 250, color: "#c81e1e" };
let seed = 0;
let decoder = null; // its tensors, once somebody has wanted a digit
let digit = 0;
let film = 0;
let listed = false; // whether it is known what was measured

function line(head, ...cells) {
  return make("tr", {}, make("th", { scope: "row" }, head), ...cells);
}

function verdict({ invariant, paper, moved }) {
  const said = { true: "invariant", false: "changes", null: "undecided" }[invariant];
  const agrees = invariant === paper;
  const mark = make("span", { className: agrees ? "good" : "bad" }, agrees ? "✓" : "✗");
  const cell = make("td", { className: invariant ? "invariant" : "" }, mark, ` ${said}`);
  cell.append(make("small", {}, scientific(moved)));
  return cell;
}

function computeTable() {
  const began = performance.now();
  const rows = table1(seed);
  const took = performance.now() - began;
  const right = rows.flatMap((row) => row.entries).filter((e) => e.invariant === e.paper).length;
  lab.invariances.replaceChildren(...rows.map((row) => line(row.name, ...row.entries.map(verdict))));
  lab.table.hidden = false;
  lab.verdict.className = `verdict ${right === 18 ? "good" : "bad"}`;
  lab.verdict.textContent =
    `${right} of 18 entries are the paper's; networks ${seed + 1} to ${seed + 5}, ` +
    `computed here in ${Math.round(took)} ms`;
  seed += 5;
  lab.compute.textContent = "Compute with other networks";
}

function slider(row, column) {
  const value = NUMBERS[row][column];
  const told = make("output", {}, String(value));
  const name = `Row ${row + 1}, unit ${column + 1}`;
  const range = make("input", { type: "range", min: -10, max: 10, step: 1, value, ariaLabel: name });
  range.addEventListener("input", () => {
    told.textContent = range.value;
    normalise();
  });
  (sliders[row] ??= []).push(range);
  return make("td", {}, told, range);
}

const numbers = () => sliders.map((row) => row.map((range) => range.valueAsNumber));

/** As it stands in a column: a figure space where there is no minus. */
const inColumn = (x) => (x < 0 ? `−${(-x).toFixed(2)}` : `\u2007${x.toFixed(2)}`);

function normalise() {
  const rows = numbers();
  const padding = lab.padding.valueAsNumber;
  const padded = [...rows, ...Array.from({ length: padding }, () => [0, 0, 0])];
  lab.padded.textContent = String(padding);
  for (const [name, norm] of [["layer", perRow], ["batch", perColumn]]) {
    const [alone, beside] = [norm(rows), norm(padded)];
    const moved = rows.map((row, n) => Math.max(...row.map((_, i) => Math.abs(beside[n][i] - alone[n][i]))));
    const lines = beside.map((row, n) => {
      const cells = row.map((x) => make("td", {}, inColumn(x)));
      const change = n < rows.length ? make("td", { className: moved[n] ? "bad" : "good" }, inColumn(moved[n])) : make("td", {}, "");
      const element = line(n < rows.length ? String(n + 1) : "pad", ...cells, change);
      element.className = n < rows.length ? "" : "pad";
      return element;
    });
    lab[name].replaceChildren(...lines);
    const most = Math.max(...moved);
    const element = lab[`${name}-moved`];
    element.className = `verdict ${most ? "bad" : "good"}`;
    say(element, most ? `Padding moved a row by up to ${most.toFixed(2)}` : "No row has moved by a bit");
  }
}

function again() {
  for (const [n, row] of sliders.entries()) {
    for (const [i, range] of row.entries()) {
      range.value = NUMBERS[n][i];
      range.previousElementSibling.textContent = String(NUMBERS[n][i]);
    }
  }
  lab.padding.value = 0;
  normalise();
}

/** One picture of a drawing, dark on white, and the frame it wrote in. */
function showDigit({ picture, frame: [x, y, width] }) {
  const side = Math.sqrt(picture.length);
  const zoom = lab.canvas.width / side;
  const pen = lab.canvas.getContext("2d");
  picture.forEach((ink, pixel) => {
    const grey = Math.round(255 * (1 - ink));
    pen.fillStyle = `rgb(${grey} ${grey} ${grey})`;
    pen.fillRect((pixel % side) * zoom, Math.floor(pixel / side) * zoom, zoom, zoom);
  });
  pen.strokeStyle = DRAWN.color;
  pen.lineWidth = 2;
  pen.strokeRect((x - width / 2 - 0.5) * zoom, (y - width / 2 - 0.5) * zoom, width * zoom, width * zoom);
}

async function readDecoder() {
  const answer = await fetch(new URL("lab/draw-decoder.safetensors", import.meta.url));
  if (!answer.ok) throw new Error(`The service answers ${answer.status}.`);
  return readSafetensors(new Uint8Array(await answer.arrayBuffer())).tensors;
}

async function drawOne() {
  try {
    decoder ??= await readDecoder();
  } catch (error) {
    lab.drawn.textContent = `What draws could not be fetched. ${error.message}`;
    return;
  }
  clearInterval(film);
  digit += 1;
  const began = performance.now();
  const pictures = drawDigit(decoder, digit, DRAWN.steps);
  const took = performance.now() - began;
  const stepMs = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : DRAWN.stepMs;
  let step = 0;
  const show = () => {
    showDigit(pictures[step]);
    step += 1;
    lab.drawn.ariaBusy = String(step < pictures.length); // a screen reader reads out the last alone
    lab.drawn.textContent = `Seed ${digit}, step ${step} of ${pictures.length}, computed here in ${Math.round(took)} ms`;
    if (step === pictures.length) clearInterval(film);
  };
  film = setInterval(show, stepMs);
  show();
}

/** What was measured, as pictures, and what draws: the list says what came with this service. */
async function showPlots() {
  const answer = await fetch(new URL("lab/plots.json", import.meta.url)).catch(() => null);
  const told = answer?.ok && (await answer.json().catch(() => null));
  listed = Boolean(told) || answer?.status === 404; // nothing came with this service
  if (!told) return; // unless that is known, it is asked for again when the tab is shown again
  const { plots, draws } = told;
  const figures = plots.map(({ file, title, paper, text }) => {
    const picture = make("img", { src: new URL(`lab/${file}`, import.meta.url).href, alt: `${title}, ${paper}`, loading: "lazy" });
    const caption = make("figcaption", {}, make("b", {}, title), ` ${paper}. ${text}`);
    return make("figure", {}, picture, caption);
  });
  lab.plots.replaceChildren(...figures);
  lab.measured.hidden = plots.length === 0;
  lab.drawing.hidden = !draws;
}

/** The page is there; of the models this tab needs none. */
export function begin() {
  lab.bounds.textContent =
    `Invariant: no output moves by more than ${scientific(MOST_IF_INVARIANT)} of the largest. ` +
    `Changes: one moves by more than ${scientific(LEAST_IF_NOT)} in each of five random networks. ` +
    "✓ is as the paper says.";
  lab.kinds.append(...KINDS.map((kind) => make("th", { scope: "col" }, `${kind} norm`)));
  lab.numbers.replaceChildren(
    ...NUMBERS.map((row, n) => line(String(n + 1), ...row.map((_, i) => slider(n, i)))),
  );
  lab.padding.addEventListener("input", normalise);
  onPress(lab.compute, computeTable);
  onPress(lab.again, again);
  onPress(lab.draw, drawOne);
  normalise();
  showPlots();
  onShow((tab) => tab === "lab" && !listed && showPlots());
}
