"""Text as it is asked for, and as the pen can write it: what word processors put in place of plain
characters is folded back, and letters with marks are written as their base letters first.
"""
# ruff: noqa: RUF001 - characters that look like others are what this is about

import re
import unicodedata
from functools import lru_cache

from contract.alphabets import LONGEST_TEXT
from contract.ink import InkManifest
from service.errors import InvalidRequest

# Combining marks that can be drawn over or under a letter (`service/ink/shapes.py`).
GRAVE, ACUTE, CIRCUMFLEX, TILDE, MACRON = "\u0300", "\u0301", "\u0302", "\u0303", "\u0304"
BREVE, DOT, DIAERESIS, RING, DOUBLE_ACUTE = "\u0306", "\u0307", "\u0308", "\u030a", "\u030b"
CARON, CEDILLA, OGONEK, BAR = "\u030c", "\u0327", "\u0328", "\u0338"
DOT_BELOW, COMMA_BELOW, STEM = "\u0323", "\u0326", "\u030d"
DEGREE = "°"
MARKS = frozenset((
    GRAVE, ACUTE, CIRCUMFLEX, TILDE, MACRON, BREVE, DOT, DIAERESIS, RING, DOUBLE_ACUTE, CARON,
    CEDILLA, OGONEK, BAR, DOT_BELOW, COMMA_BELOW, STEM, "¿", "¡", DEGREE, "€", "£", "¥",
))  # fmt: skip
# What Unicode does not take apart, though people write it as a letter and a bar through it, as one
# whose stem goes on over its bowl, as a crossed capital, as a dot and what hangs from it, or as
# an apostrophe that is bent into a ring.
_APART = {
    **{letter: (base, BAR) for letter, base in zip("øØđĐðÐłŁ", "oOdDdDlL", strict=True)},
    **{letter: (base, STEM) for letter, base in zip("þÞ", "pP", strict=True)},
    **{other: ("'", other) for other in ("¿", "¡", DEGREE)},
    **{money: (base, money) for money, base in zip("€£¥", "CLY", strict=True)},
}
_FOLDED = {
    "'": "‘’‚‛‹›ʻʼ′´",
    '"': "“”„‟«»″",
    "-": "‐‑‒–—―−•‣⁃◦▪",
    "/": "⁄∕",
    " ": "\t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f"
    "\u205f\u3000",
    "": "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063"
    "\u2064\u2066\u2067\u2068\u2069\ufe0e\ufe0f\ufeff",
    "\n": "\r\v\f\u0085\u2028\u2029",
    "...": "…", "ss": "ß", "SS": "ẞ", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ",
    "ff": "ﬀ", "fi": "ﬁ", "fl": "ﬂ", "ffi": "ﬃ", "ffl": "ﬄ", "st": "ﬅﬆ",
    "..": "‥", "ij": "ĳ", "IJ": "Ĳ", "lj": "ǉ", "Lj": "ǈ", "LJ": "Ǉ", "nj": "ǌ", "Nj": "ǋ",
    "NJ": "Ǌ", "dz": "ǳ", "Dz": "ǲ", "DZ": "Ǳ", "dž": "ǆ", "Dž": "ǅ", "DŽ": "Ǆ",
    "(c)": "©", "(r)": "®", "(tm)": "™", "->": "→", "<-": "←", "=>": "⇒", "x": "×",
    "£": "￡", "¥": "￥", "°": "º˚", "°C": "℃", "°F": "℉", "a": "ª", "No": "№",
}  # fmt: skip
_FRACTIONS = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
# 2½ is no 21/2, nor ½¼ 1/21/4 and ½2 1/22, also where nothing to be seen is between, such as an
# invisible plus.
_DIGITS, _UNSEEN = "0-9０-９", f"[{_FOLDED['']}]*"
_MIXED = re.compile(
    f"[{_DIGITS}{_FRACTIONS}]{_UNSEEN}(?=[{_FRACTIONS}])|[{_FRACTIONS}]{_UNSEEN}(?=[{_DIGITS}])"
)
_FOLDS = {ord(other): plain for plain, others in _FOLDED.items() for other in others}
_FOLDS |= {ord(c): unicodedata.normalize("NFKD", c).replace("⁄", "/") for c in _FRACTIONS}
# The wide forms of ASCII that East Asian keyboards type.
_FOLDS |= {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}


def fold(text: str) -> str:
    """The text with curly quotes, dashes, bullets, fractions, spaces of all widths, ellipses,
    ligatures, sharp s, wide forms and signs such as © as plain characters, and every letter with
    its marks as one character, if Unicode has that."""
    whole = _MIXED.sub(r"\g<0> ", unicodedata.normalize("NFC", text.replace("\r\n", "\n")))
    # A wide letter may have a mark after it.
    return unicodedata.normalize("NFC", whole.translate(_FOLDS))


@lru_cache(maxsize=1024)  # asked several times of every character of a page
def apart(letter: str) -> tuple[str, str]:
    """The base of a letter and its marks, none if it is not one that can be composed."""
    decomposed = unicodedata.normalize("NFD", letter)
    whole, further = decomposed[0], decomposed[1:]
    base, own = _APART.get(whole, (whole, ""))
    # A base that is no letter keeps further marks: nobody would know what was meant.
    takes = not further or (base.isascii() and base.isalpha())
    return (base, own + further) if takes and MARKS.issuperset(further) else (letter, "")


def bases(text: str) -> str:
    """The text, as long as before, with every letter as its base."""
    return "".join(apart(letter)[0] for letter in text)


def written(text: str, manifest: InkManifest, param: str = "text") -> str:
    """The text of a request, folded. Raises `InvalidRequest` naming every character of it that
    cannot be written."""
    folded = fold(text)
    known = {*manifest.alphabet.characters, "\n"}
    unknown = dict.fromkeys(c for c, base in zip(folded, bases(folded), strict=True)
                            if base not in known)  # fmt: skip
    if unknown:
        raise InvalidRequest(
            f"{param} has {', '.join(map(repr, unknown))}; this model writes printable ASCII, "
            "Latin letters with accents, ¿ ¡ ° and € £ ¥",
            param.partition(".")[0],
        )
    return folded


def require_line(folded: str, param: str = "text") -> None:
    """Raises `InvalidRequest` for a text that folding has made too long for one line."""
    if len(folded) > LONGEST_TEXT:
        raise InvalidRequest(
            f"{param} has {len(folded)} characters, ellipses and the like written out; at most "
            f"{LONGEST_TEXT}",
            param.partition(".")[0],
        )
