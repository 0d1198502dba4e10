"""Short texts in which each printable character stands as people write it: in words, at their ends,
among figures, before and after marks. Made by a rule and a seed, of nobody's data.
"""

import random
import re
import string
from dataclasses import dataclass
from functools import cache

from contract.alphabets import ALPHABET

# Every character but the space, which has no ink.
CHARACTERS = ALPHABET.replace(" ", "")
# Written alike by many: apart by size and place alone, or not at all. Folded, they are one.
ALIKE = ("oO0", "l1I|", "cC", "kK", "pP", "sS", "uU", "vV", "wW", "xX", "zZ")
_FOLDED = str.maketrans({c: group[0] for group in ALIKE for c in group})

_TEXT = """
about acre after again all apple arm at away back bag bake baker band be bird black boat body box
brown bus buyer by cab call calm camp city clock coat cold corn cup dance dark day deep did do dog
door down drum each east easy echo egg end enjoy equal even exit eye eyes face far farm few fig find
fish five flag fly fox from full game garden gate gave girl give go gold good green guest hand hat
he help hill his home horn house ice if ink iron island item ivy jam jar jazz jet job join jug jump
just keen keep key kind king kite knee know lady lamp land late lazy leaf left light lion liquid
long major make man many map milk moon more much name near nest new next night no noon nut oak
object ocean of off old once one open our over owl page paint park path pen pile pond proud queen
quest quick quiet quilt quit quite quiz rain raven red rich ring river road round salt sand sea
sharp ship six size snow soft song south sun table tall taxi tea ten text than the them this thumb
toy train tree under unit until up upon us use vain van vast very vest vine voice vote wall warm was
wax we week west what wide wind window wolf word xenon xylem yard year yellow yes yet young your
zebra zero zigzag zinc zone zoo
"""
_WORDS = _TEXT.split()
_SLOT = re.compile(r"{(\w)}")
# {w} a word, {W} one with a capital, {d} a digit, {n} a number, {x} a letter. A mark that comes in
# pairs stands twice, and each of the two is judged in turn.
_PAIRED = '"'
_FORMS_OF = {
    "!": ("{w}!", "{W} {w}!", "{W}! {W} {w}.", "{w} {n}!"),
    '"': ('"{w}" {w}', '{w} "{w}"', '"{W} {w}."', '{w}, "{w}"'),
    "#": ("#{n} {w}", "{w} #{n}", "{W} #{d}, {w}"),
    "$": ("${n} {w}", "{w} ${n}", "${n}.{d}{d} {w}"),
    "%": ("{n}% {w}", "{w} {n}%", "{n}.{d}% {w}"),
    "&": ("{W} & {W}", "{w} & {w}", "{x}&{x} {w}"),
    "'": ("{w}'s {w}", "the {w}'s {w}", "{W}'s {w}"),
    "(": ("({w}) {w}", "{w} ({w})", "{w} ({n})"),
    ")": ("({w}) {w}", "{w} ({w})", "{d}) {w} {w}"),
    "*": ("{n} * {d}", "{w}* {w}", "{w} *{w}"),
    "+": ("{n} + {d}", "{w} + {w}", "{w} +{n}"),
    ",": ("{w}, {w}", "{W}, {w} {w}", "{d},{d}{d}{d} {w}"),
    "-": ("{w}-{w}", "{w} - {w}", "{d}{d}-{d}{d} {w}"),
    ".": ("{W} {w}.", "{d}.{d} {w}", "{W} {w} {n}.", "{W}. {w}"),
    "/": ("{w}/{w}", "{d}/{d} {w}", "{w} {d}{d}/{d}{d}"),
    ":": ("{w}: {w}", "{d}:{d}{d} {w}", "{W}: {n} {w}"),
    ";": ("{w}; {w}", "{W} {w}; {w}", "{n} {w}; {w}"),
    "<": ("{d} < {n}", "<{w}> {w}", "{w} < {w}"),
    "=": ("{x} = {n}", "{n} = {n}", "{w} = {w}"),
    ">": ("{n} > {d}", "<{w}> {w}", "{w} > {w}"),
    "?": ("{w}?", "{W} {w}?", "{W}? {w}", "{w} {n}?"),
    "@": ("{w}@{w}.org", "@{w} {w}", "{n} @ {d} {w}"),
    "[]": ("[{w}] {w}", "{w} [{d}]", "{w}[{d}] {w}"),
    "\\": ("{w}\\{w}", "{W}:\\{w}", "\\{w} {w}"),
    "^": ("{x}^{d} {w}", "{d}^{d} = {n}", "{w} ^ {w}"),
    "_": ("{w}_{w}", "_{w} {w}", "{w}_{d} {w}"),
    "`": ("`{w} {w}", "{w} `{w}", "{w}` {w}"),
    "{}": ("{{w}} {w}", "{w} {{d}}", "{w} {{w}}"),
    "|": ("{w} | {w}", "{w}|{w}", "{d} | {d} {w}"),
    "~": ("~{n} {w}", "{w} ~ {w}", "{w} ~{d}"),
}
_FORMS = {mark: forms for marks, forms in _FORMS_OF.items() for mark in marks}
_OF_LETTERS = ("{w} {w}", "{w} {w} {w}")
# A capital begins a word or a name; one in five is among others.
_OF_CAPITALS = ("{W} {w}", "{W} {w} {w}", "{w} {W}", "{W} {W}", "SHOUT")
_OF_DIGITS = ("{n} {w}", "{w} {n}", "{n} {w} {n}", "{w} {d}:{d}{d}")


@dataclass(frozen=True, slots=True)
class Context:
    """A text, and the place in it of the character that is judged."""

    text: str
    place: int

    @property
    def character(self) -> str:
        """The one that is judged."""
        return self.text[self.place]


def fold(text: str) -> str:
    """The text with characters that are written alike as one."""
    return text.translate(_FOLDED)


def contexts(character: str, count: int, seed: int) -> list[Context]:
    """So many texts with the character in them. The first of them do not depend on `count`.

    Nothing else in a text is written like it: which of two a reader missed could not be said.
    """
    return [_context(character, number, seed) for number in range(count)]


def _context(character: str, number: int, seed: int) -> Context:
    generator = random.Random(f"{seed} {character} {number}")
    forms = _forms(character)
    times = 2 if character == _PAIRED else 1
    while True:
        text = _expand(forms[number % len(forms)], character, generator)
        if text.count(character) == fold(text).count(fold(character)) == times:
            last = number // len(forms) % times
            return Context(text, text.rindex(character) if last else text.index(character))


def _forms(character: str) -> tuple[str, ...]:
    if character in string.ascii_lowercase:
        return _OF_LETTERS
    if character in string.ascii_uppercase:
        return _OF_CAPITALS
    return _OF_DIGITS if character in string.digits else _FORMS[character]


def _expand(form: str, character: str, generator: random.Random) -> str:
    if form == "SHOUT":
        return f"{_word(character.lower(), generator)} {generator.choice(_WORDS)}".upper()
    slots = _SLOT.findall(form)
    wanted = {"w": string.ascii_lowercase, "W": string.ascii_uppercase, "n": string.digits}
    # One of the slots that may have the character has it.
    hosts = [i for i, slot in enumerate(slots) if character in wanted.get(slot, "")]
    host = generator.choice(hosts) if hosts else None
    filled = iter([_fill(slot, character if i == host else "", generator)
                   for i, slot in enumerate(slots)])  # fmt: skip
    return _SLOT.sub(lambda _: next(filled), form)


def _fill(slot: str, character: str, generator: random.Random) -> str:
    """What stands in a slot, with the character in it if one is given."""
    match slot:
        case "w":
            return _word(character, generator)
        case "W":
            begins = [word for word in _WORDS if word.startswith(character.lower())]
            return generator.choice(begins).capitalize()
        case "x":
            return generator.choice(string.ascii_lowercase)
        case "d":
            return generator.choice(string.digits)
        case _:
            digits = generator.choices(string.digits, k=generator.randint(1, 3))
            if character:
                digits.insert(generator.randint(0, len(digits)), character)
            return "".join(digits).lstrip("0") or "0"


def _word(letter: str, generator: random.Random) -> str:
    """One with the letter in it, as often at its beginning as within and at its end, if there are
    such words."""
    if not letter:
        return generator.choice(_WORDS)
    return generator.choice(generator.choice(_words_with(letter)))


@cache
def _words_with(letter: str) -> list[list[str]]:
    """Those that begin with it, that have it within and that end with it, if there are any."""
    shapes = (rf"{letter}.*", rf".+{letter}.+", rf".*{letter}")
    having = [[word for word in _WORDS if re.fullmatch(shape, word)] for shape in shapes]
    return [words for words in having if words]
