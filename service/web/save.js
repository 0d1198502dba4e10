// What is shown on a sheet as a file.
import { draw, make } from "./elements.js";

/** A sheet as a standalone SVG drawing; its title is what a screen reader says. */
export function toSvg(sheet, title) {
  const { width, height } = sheet.viewBox.baseVal;
  const drawing = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" });
  const ink = draw("g", {
    fill: "none",
    stroke: sheet.style.getPropertyValue("--pen"),
    "stroke-width": sheet.style.strokeWidth,
    "stroke-linecap": "round",
    "stroke-linejoin": "round",
  });
  ink.append(...[...sheet.querySelectorAll("path")].map((path) => path.cloneNode()));
  const named = draw("title");
  named.textContent = title;
  drawing.append(named, ink);
  return new XMLSerializer().serializeToString(drawing);
}

/** The strokes of a drawing that `toSvg` made, and how it was drawn. */
export function fromSvg(svg) {
  const drawing = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  const ink = drawing.querySelector("g");
  const [width, height] = ["width", "height"].map((name) => Number(drawing.getAttribute(name)));
  const [color, nib] = ["stroke", "stroke-width"].map((name) => ink.getAttribute(name));
  return { width, height, color, nib, paths: [...ink.children].map((path) => document.importNode(path)) };
}

const svgBlob = (svg) => new Blob([svg], { type: "image/svg+xml" });

/** The address of a drawing, for a picture of it. */
export const addressOf = (svg) => URL.createObjectURL(svgBlob(svg));

/** A drawing as a PNG on white. */
async function toPng(svg) {
  const image = make("img", { src: addressOf(svg) });
  await image.decode();
  const canvas = make("canvas", { width: image.naturalWidth, height: image.naturalHeight });
  const pen = canvas.getContext("2d");
  pen.fillStyle = "white";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0);
  URL.revokeObjectURL(image.src);
  const png = await new Promise((done) => canvas.toBlob(done));
  if (png) return png;
  throw new Error(`${canvas.width} × ${canvas.height} px are more than this browser makes a PNG of: take the SVG.`);
}

/** A drawing as a file of a format, svg or png. */
export const fileOf = (svg, format) => (format === "png" ? toPng(svg) : svgBlob(svg));

/** Have the browser save a file. */
export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
