// Strokes as an SVG drawing: the curves are those of the page.
import { curve } from "../service/web/ink.js";

const escaped = (text) =>
  text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

/** A standalone drawing of strokes on a page of `lines` lines; `title` is for a screen reader. */
export function toSvg(strokes, layout, lines, title) {
  const [width, height] = [layout.width, layout.height(lines)];
  const page = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  const pen = `stroke="${layout.color}" stroke-width="${layout.nib}"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<svg xmlns="http://www.w3.org/2000/svg" ${page} role="img">`,
    `<title>${escaped(title)}</title>`,
    `<g fill="none" ${pen} stroke-linecap="round" stroke-linejoin="round">`,
    ...strokes.map((stroke) => `<path d="${curve(stroke)}"/>`),
    "</g>",
    "</svg>",
  ].join("\n");
}
