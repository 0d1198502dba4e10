// The strokes of accents and the like, as service/ink/shapes.py has them: x to the right and y up, in
// heights of a small letter.
import { BAR, DEGREE, STEM } from "../service/web/fold.js";

export const [DOT, DIAERESIS] = ["\u0307", "\u0308"];
const CIRCLE = Array.from({ length: 10 }, (_, i) => {
  const angle = (2 * Math.PI * i) / 9;
  return [0.17 * Math.sin(angle), 0.17 * Math.cos(angle)];
});

/** Over a letter, about the place of the mark. Over an i they go through its dot, which is there. */
export const ABOVE = {
  "\u0300": [[[-0.22, 0.2], [0, 0], [0.16, -0.2]]], // grave
  "\u0301": [[[0.24, 0.22], [0, 0], [-0.16, -0.18]]], // acute
  "\u0302": [[[-0.3, -0.24], [-0.02, 0.06], [0.28, -0.26]]], // circumflex
  "\u030c": [[[-0.28, 0.18], [0, -0.14], [0.3, 0.2]]], // caron
  "\u0303": [[[-0.36, -0.1], [-0.2, 0.1], [0, 0], [0.18, -0.1], [0.36, 0.1]]], // tilde
  "\u0304": [[[-0.3, 0], [0, 0.01], [0.32, 0.03]]], // macron
  "\u0306": [[[-0.26, 0.14], [-0.14, -0.08], [0.1, -0.1], [0.26, 0.16]]], // breve
  [DOT]: [[[0, 0.03], [0.02, -0.04]]],
  [DIAERESIS]: [[[-0.22, 0.03], [-0.2, -0.05]], [[0.22, 0.04], [0.24, -0.04]]],
  "\u030a": [CIRCLE], // ring
  "\u030b": [[[-0.02, 0.2], [-0.2, -0.16]], [[0.3, 0.2], [0.12, -0.16]]], // double acute
};

/** Under a letter, from its foot. */
export const BELOW = {
  "\u0327": [[[0.02, 0.06], [-0.03, -0.14], [0.14, -0.22], [0.1, -0.4], [-0.16, -0.4]]], // cedilla
  "\u0328": [[[0.16, 0.04], [0.02, -0.16], [0.06, -0.34], [0.26, -0.32]]], // ogonek
  "\u0323": [[[0, -0.25], [0.02, -0.32]]], // dot below
  "\u0326": [[[0.04, -0.18], [0.06, -0.3], [-0.08, -0.46]]], // comma below
};

/** What hangs from a dot, from the line on, in shares of how high it is. */
export const HANGING = {
  "¡": [[[0, 1], [0.02, 0.5], [0, 0]]],
  "¿": [[
    [0, 1], [-0.04, 0.76], [-0.24, 0.54], [-0.42, 0.34], [-0.42, 0.14], [-0.28, 0], [-0.06, 0],
    [0.08, 0.12], [0.12, 0.28],
  ]],
};

/** Where strokes cross a capital, from its top in shares of its height, and how far they reach from
 *  its first ink there. */
export const CROSSED = { "€": [[0.42, 0.62], 0.8], "£": [[0.55], 0.45], "¥": [[0.6, 0.78], 0.45] };

/** From the top of an L, which it bends over into a £. */
export const HOOK = [[[0, -0.1], [0.04, 0.1], [0.18, 0.26], [0.36, 0.26], [0.46, 0.06]]];

/** From the top of an apostrophe round to its foot, in shares of how high the ring of a degree is. */
export const CLOSING = Array.from({ length: 8 }, (_, i) => {
  const angle = (Math.PI * i) / 7;
  return [0.75 * Math.sin(angle), (Math.cos(angle) - 1) / 2];
});

/** All marks that can be drawn. */
export const MARKS = [
  ...Object.keys({ ...ABOVE, ...BELOW, ...HANGING, ...CROSSED }), BAR, DEGREE, STEM,
];
