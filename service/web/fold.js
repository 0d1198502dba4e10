// Text as it is asked for, and as a pen can write it, as service/ink/letters.py has it: what word
// processors put in place of plain characters is folded back.

const FOLDED = {
  "'": "\u2018\u2019\u201a\u201b\u2039\u203a\u02bb\u02bc\u2032\u00b4",
  '"': "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033",
  "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212•‣⁃◦▪",
  "/": "\u2044\u2215",
  " ":
    "\t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f" +
    "\u205f\u3000",
  "":
    "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063" +
    "\u2064\u2066\u2067\u2068\u2069\ufe0e\ufe0f\ufeff",
  "\n": "\r\v\f\u0085\u2028\u2029",
  "...": "…", ss: "ß", SS: "ẞ", ae: "æ", AE: "Æ", oe: "œ", OE: "Œ",
  ff: "ﬀ", fi: "ﬁ", fl: "ﬂ", ffi: "ﬃ", ffl: "ﬄ", st: "ﬅﬆ",
  "..": "‥", ij: "ĳ", IJ: "Ĳ", lj: "ǉ", Lj: "ǈ", LJ: "Ǉ", nj: "ǌ", Nj: "ǋ", NJ: "Ǌ",
  dz: "ǳ", Dz: "ǲ", DZ: "Ǳ", dž: "ǆ", Dž: "ǅ", DŽ: "Ǆ",
  "(c)": "©", "(r)": "®", "(tm)": "™", "->": "→", "<-": "←", "=>": "⇒", x: "×",
  "£": "￡", "¥": "￥", "°": "º˚", "°C": "℃", "°F": "℉", a: "ª", No: "№",
};
const FOLDS = new Map(
  Object.entries(FOLDED).flatMap(([plain, others]) => [...others].map((other) => [other, plain])),
);
// The wide forms of ASCII that East Asian keyboards type.
const [WIDE_FIRST, WIDE_LAST, WIDER_BY] = [0xff01, 0xff5e, 0xfee0];
// What Unicode does not take apart, though people write it as a letter and a bar through it, as one
// whose stem goes on over its bowl, as a crossed capital, as a dot and what hangs from it, or as
// an apostrophe that is bent into a ring.
export const [BAR, STEM, DEGREE] = ["\u0338", "\u030d", "°"];
const APART = {
  ø: ["o", BAR], Ø: ["O", BAR], đ: ["d", BAR], Đ: ["D", BAR], ð: ["d", BAR], Ð: ["D", BAR],
  ł: ["l", BAR], Ł: ["L", BAR], þ: ["p", STEM], Þ: ["P", STEM], "¿": ["'", "¿"], "¡": ["'", "¡"],
  [DEGREE]: ["'", DEGREE], "€": ["C", "€"], "£": ["L", "£"], "¥": ["Y", "¥"],
};

const FRACTIONS = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞";
// 2½ is no 21/2, nor ½¼ 1/21/4 and ½2 1/22, also where nothing to be seen is between, such as an
// invisible plus.
const [DIGITS, UNSEEN] = ["0-9０-９", `[${FOLDED[""]}]*`];
const MIXED = new RegExp(
  `[${DIGITS}${FRACTIONS}]${UNSEEN}(?=[${FRACTIONS}])|[${FRACTIONS}]${UNSEEN}(?=[${DIGITS}])`, "g",
);

function folded(character) {
  if (FRACTIONS.includes(character)) return character.normalize("NFKD").replace("\u2044", "/");
  const code = character.codePointAt(0);
  if (code >= WIDE_FIRST && code <= WIDE_LAST) return String.fromCodePoint(code - WIDER_BY);
  return FOLDS.get(character) ?? character;
}

/** The text with quotes, dashes, fractions, spaces, ligatures and wide forms as plain characters, and
 *  every letter with its marks as one character. */
export function fold(text) {
  const whole = text.replaceAll("\r\n", "\n").normalize("NFC").replace(MIXED, "$& ");
  return Array.from(whole, folded).join("").normalize("NFC");
}

/** The base of a letter and its marks, none if not all of them are among the `marks` that can be
 *  drawn. */
export function apart(letter, marks) {
  const [whole, ...further] = letter.normalize("NFD");
  const [base, ...own] = APART[whole] ?? [whole];
  const takes = !further.length || /^[a-z]$/i.test(base);
  const all = [...own, ...further];
  return takes && all.every((mark) => marks.includes(mark)) ? [base, all] : [letter, []];
}

/** Each character of a text, once, that a model cannot write: its `characters`, and the combining
 *  `marks` that it draws with letters. Line breaks are no characters. */
export function unwritable(text, { characters, marks }) {
  const known = (letter) => letter === "\n" || characters.includes(apart(letter, marks)[0]);
  return [...new Set(fold(text))].filter((letter) => !known(letter));
}
