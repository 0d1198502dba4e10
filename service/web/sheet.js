// A sheet of paper that is written on as the events of a handwriting stream come in.
import { count } from "./elements.js";
import { Nib } from "./nib.js";
import { Pen } from "./pen.js";
import { events } from "./service.js";

/** Make an SVG element an empty page. */
export function blank(sheet, { width, height, color, nib, label }) {
  sheet.replaceChildren();
  sheet.setAttribute("viewBox", `0 0 ${width} ${height}`);
  sheet.setAttribute("aria-label", label);
  sheet.style.maxWidth = `${width}px`;
  sheet.style.setProperty("--pen", color);
  sheet.style.strokeWidth = nib;
  sheet.toggleAttribute("hidden", false);
}

/**
 * Write the answer on the sheet at the pace of a pen, until it ends or `signal` stops it.
 * `lineHeight` is that of the request; `begun` hears the head of the stream, `reached` the line and
 * character being written.
 * Returns the head, the usage, and how many lines the model left unfinished or are hard to read.
 */
export async function writeOn(sheet, response, { signal, pace, lineHeight, begun, reached }) {
  let [pen, head, usage, cut, unreadable, last] = [null, null, null, 0, 0, 0];
  const follow = (line, character) => {
    reached?.(line, character);
    if (line === last) return; // a reader may scroll away and stay there for the rest of a line
    last = line;
    const { scrollX, scrollY } = window;
    sheet.querySelector(".tip")?.scrollIntoView({ block: "nearest" });
    // The desk may scroll; the field that somebody is typing in stays where it is.
    if (document.activeElement?.matches("input, textarea, select")) scrollTo(scrollX, scrollY);
  };
  const stop = () => pen?.stop();
  signal.addEventListener("abort", stop);
  try {
    for await (const event of events(response)) {
      if (event.lines) {
        head = event;
        const { width, height, color, stroke_width: nib, thinning } = event;
        blank(sheet, { width, height, color, nib, label: `Handwriting: ${event.lines.join(" ")}` });
        pen = new Pen(sheet, { nib: new Nib({ width: nib, thinning, lineHeight }), pace, reached: follow });
        begun(head);
      }
      if (event.points) pen.push(event.points, event.line, event.character);
      if (event.finish_reason) pen.lift();
      if (event.finish_reason === "length") cut += 1;
      if (event.finish_reason === "unreadable") unreadable += 1;
      usage = event.usage ?? usage;
    }
    pen.end();
    await pen.drained;
    signal.throwIfAborted();
  } catch (error) {
    if (pen) pen.pace = () => Infinity; // what came before an error is still drawn, and at once
    throw error;
  } finally {
    pen?.end();
    await pen?.drained;
    signal.removeEventListener("abort", stop);
  }
  return { head, usage, cut, unreadable };
}

/** What is to be said of lines that were left unfinished or are hard to read, if there are any. */
export function shortcomings({ cut, unreadable }) {
  const unfinished = cut ? `; ${count(cut, "line")} not finished` : "";
  return unfinished + (unreadable ? `; ${count(unreadable, "line")} hard to read` : "");
}

/** How wide a page fits into an element, in px. */
export function roomIn(element, most = 1000) {
  const { paddingLeft, paddingRight } = getComputedStyle(element);
  const room = element.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
  return Math.round(Math.min(Math.max(room, 280), most));
}
