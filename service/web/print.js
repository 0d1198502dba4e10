// On paper a sheet is parted between its lines: a printer cuts what is in one piece wherever a page ends.
import { draw, make } from "./elements.js";

/** Have a sheet printed line by line, `lineHeight()` px each. */
export function printByLines(sheet, lineHeight) {
  let lines = null;
  addEventListener("beforeprint", () => {
    lines?.remove(); // of a print that nobody heard the end of
    if (!sheet.getClientRects().length) return; // it is not shown
    lines = make("div", { className: "lines" });
    lines.append(...parted(sheet, lineHeight()));
    sheet.after(lines);
  });
  addEventListener("afterprint", () => lines?.remove());
}

/** A drawing for each line, of the strokes whose middle is there; what hangs over is drawn over. */
function parted(sheet, lineHeight) {
  const { width, height } = sheet.viewBox.baseVal;
  const margin = lineHeight / 2; // of a page that is asked for without one
  const count = Math.max(1, Math.round(height / lineHeight) - 1);
  const bands = Array.from({ length: count }, (_, line) => {
    const top = line ? margin + line * lineHeight : 0;
    const end = line < count - 1 ? margin + (line + 1) * lineHeight : height;
    const band = draw("svg", { viewBox: `0 ${top} ${width} ${end - top}`, class: "sheet" });
    band.style.cssText = sheet.style.cssText;
    return band;
  });
  for (const path of sheet.querySelectorAll("path")) {
    const box = path.getBBox();
    const line = Math.floor((box.y + box.height / 2 - margin) / lineHeight);
    bands[Math.min(Math.max(line, 0), count - 1)].append(path.cloneNode());
  }
  return bands;
}
