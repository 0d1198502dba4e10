"""A synthetic pen: made-up text in single-stroke Hershey letters, moved as a hand moves.

Shapes: N points of a stroke. Lengths are in units of the font, whose capitals are 21 units tall.
"""

import string
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from HersheyFonts import HersheyFonts
from numpy.random import Generator
from numpy.typing import NDArray

from contract.alphabets import LONGEST_TEXT
from training.ink.line import Line, Stroke

_SOURCE = "synthetic"
_POINTS_PER_SECOND = 100.0

# Those of the package drawn with one line: the others outline their letters, as print does.
_PRINT_FONTS = ("futural", "rowmans")
_JOINED_FONTS = ("scripts", "cursive")
_BASELINE = -9.0  # of the fonts, with y up
# At a style's speed of 1 a letter takes about 0.27 s.
_UNITS_PER_SECOND = 358.0
_STEP = 0.25  # along a stroke, where it is bent and timed
_JOIN = 3.0  # how far apart two joined letters may be for the pen to stay down
_RAMP = 6.0  # over which the pen gains and loses speed at the ends of a stroke
_STRAIGHT = 0.03  # curvature per unit below which a stroke is as fast as it gets

Curve = NDArray[np.float64]  # (N, 2): x to the right and y up

# Hand-made, for characters that all fonts double, adorn, or draw as something else.
_PLAIN: dict[str, tuple[float, list[list[tuple[float, float]]]]] = {
    "[": (12, [[(9, 16), (4, 16), (4, -6), (9, -6)]]),
    "]": (12, [[(3, 16), (8, 16), (8, -6), (3, -6)]]),
    "{": (13, [[(10, 16), (7, 15), (6, 8), (3, 5), (6, 2), (7, -5), (10, -6)]]),
    "}": (13, [[(3, 16), (6, 15), (7, 8), (10, 5), (7, 2), (6, -5), (3, -6)]]),
    "~": (20, [[(2, 5), (4, 9), (7, 9), (12, 6), (15, 6), (18, 10)]]),
    "^": (16, [[(3, 13), (8, 21), (13, 13)]]),
    "`": (10, [[(3, 21), (7, 16)]]),
    "'": (8, [[(4, 21), (4, 15)]]),
    '"': (13, [[(4, 21), (4, 15)], [(9, 21), (9, 15)]]),
    "|": (10, [[(5, 20), (5, -5)]]),
}
# The doubled or foreign shapes that a script has where print is plain.
_FROM_PRINT = frozenset("Q" + string.digits + string.punctuation)

_ONSETS = "t s h w b c d f g l m n p r th st sh ch wh br tr pl gr fr qu k v j y z cl sp"
_VOWELS = "e a o i u ea ou ee ai oo ie y"
_CODAS = "n s r t d l m ng nd st ck ll x ss gh ve p k rs ly"
_NUMBERS = ["{}", "{}", "{}", "${}", "{}%", "#{}", "{}:30", "{}.5", "+{}"]
_ENDINGS = [*".,.,!?;:", "...", "'s", "-", "!?"]
_BRACKETS = [*zip("([{<\"'`*", ")]}>\"'`*", strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """What sets one writer apart. Lengths are in units of the font, `size` scales them."""

    font: str
    size: float
    slant: float  # units to the right per unit up
    width: float
    spacing: float
    word_spacing: float
    rounding: float  # over how many units a corner is rounded
    wobble: float  # how far letters are bent from the font's
    jitter: float  # of a letter's place
    climb: float  # units up per unit to the right
    tremor: float
    speed: float
    phases: tuple[float, float]  # of the bend that all of the writer's letters share


def random_style(generator: Generator) -> Style:
    """A writer nobody has met."""
    joined = generator.random() < 0.5
    return Style(
        font=str(generator.choice(_JOINED_FONTS if joined else _PRINT_FONTS)),
        size=float(np.exp(generator.normal(2.3, 0.2))),
        slant=float(generator.normal(0.0 if joined else 0.08, 0.14)),
        width=float(generator.uniform(0.75, 1.2)),
        # Joined letters that stand apart come apart.
        spacing=0.0 if joined else float(generator.uniform(-1.5, 2.0)),
        word_spacing=float(generator.uniform(10.0, 20.0)),
        rounding=float(generator.uniform(0.5, 1.3)),
        wobble=float(generator.uniform(0.25, 0.9)),
        jitter=float(generator.uniform(0.1, 0.7)),
        climb=float(generator.normal(0.0, 0.015)),
        tremor=float(generator.uniform(0.02, 0.1)),
        speed=float(np.exp(generator.normal(0.0, 0.07))),
        phases=(float(generator.uniform(0, 6.3)), float(generator.uniform(0, 6.3))),
    )


def synthetic_lines(count: int, seed: int) -> Iterator[Line]:
    """`count` lines, each of its own writer; the same for the same seed."""
    for number in range(count):
        # A line of its own seed is the same however many are made.
        generator = np.random.default_rng((seed, number))
        style = random_style(generator)
        yield write(random_text(generator), style, generator, writer=f"{seed}-{number}")


def random_text(generator: Generator) -> str:
    """One to eight words, numbers and signs; all printable ASCII turns up."""
    words: list[str] = []
    for _ in range(generator.integers(1, 9)):
        word = _random_token(generator)
        if len(" ".join([*words, word])) > LONGEST_TEXT:
            break
        words.append(word)
    return " ".join(words)


def write(text: str, style: Style, generator: Generator, *, writer: str = "0") -> Line:
    """A text of printable ASCII as this writer writes it once; the next time differs a little."""
    paths: list[Curve] = []
    x, drift, joins = 0.0, 0.0, False
    for character in text:
        if character == " ":
            x, joins = x + style.word_spacing * generator.uniform(0.85, 1.2), False
            continue
        width, glyph = _glyph(style.font, character)
        drift = 0.8 * drift + generator.normal(0.0, style.jitter)
        bent = _bend(glyph, style, generator)
        placed = [path + np.array([x, drift]) for path in bent]
        letter = character.isalpha() and style.font in _JOINED_FONTS
        if joins and letter and np.hypot(*(placed[0][0] - paths[-1][-1])) < _JOIN:
            placed[0] = np.concatenate([paths.pop(), placed[0]])
        paths.extend(placed)
        joins = letter
        x += style.width * (width + style.spacing * generator.uniform(0.6, 1.4))
    strokes = tuple(_move(path, style, generator) for path in paths)
    return Line(text, strokes, f"{_SOURCE}/{writer}", _SOURCE, _POINTS_PER_SECOND)


def _random_token(generator: Generator) -> str:
    kind = generator.random()
    if kind < 0.12:
        number = str(generator.integers(0, 10 ** generator.integers(1, 5)))
        return str(generator.choice(_NUMBERS)).format(number)
    if kind < 0.22:
        return "".join(generator.choice(list(string.punctuation), generator.integers(1, 4)))
    word = _random_word(generator)
    if generator.random() < 0.3:
        # A capital in its own right, or Q, X and Z would be as rare as in English.
        word = str(generator.choice(list(string.ascii_uppercase))) + word[1:]
    if generator.random() < 0.06:
        word = word.upper()
    if generator.random() < 0.08:
        word += str(generator.choice([*"-&/@_=+"])) + _random_word(generator)
    if generator.random() < 0.08:
        opening, closing = _BRACKETS[generator.integers(len(_BRACKETS))]
        return opening + word + closing
    return word + (str(generator.choice(_ENDINGS)) if generator.random() < 0.25 else "")


def _random_word(generator: Generator) -> str:
    syllables = generator.choice([1, 2, 3], p=[0.5, 0.38, 0.12])
    parts = [
        _falling(options, generator) for _ in range(syllables) for options in (_ONSETS, _VOWELS)
    ]
    return "".join(parts) + (_falling(_CODAS, generator) if generator.random() < 0.8 else "")


def _falling(options: str, generator: Generator) -> str:
    """One of the options, the earlier the likelier: they are in the order of English."""
    weights = 1 / np.arange(3, 3 + len(options.split()))
    return str(generator.choice(options.split(), p=weights / weights.sum()))


@cache
def _font(name: str) -> HersheyFonts:
    (font := HersheyFonts()).load_default_font(name)
    return font


@cache
def _glyph(font: str, character: str) -> tuple[float, tuple[Curve, ...]]:
    """A character's width, and its strokes from the left edge and the baseline on."""
    if character in _PLAIN:
        width, strokes = _PLAIN[character]
        return width, tuple(np.array(stroke, np.float64) for stroke in strokes)
    name = _PRINT_FONTS[0] if character in _FROM_PRINT else font
    glyph = _font(name).all_glyphs[character]
    paths = (np.array(list(stroke), np.float64) * (1, -1) for stroke in glyph.strokes)
    return glyph.char_width, tuple(path - (glyph.left_offset, _BASELINE) for path in paths)


def _bend(glyph: tuple[Curve, ...], style: Style, generator: Generator) -> list[Curve]:
    """The letter as the writer forms it, a little different each time."""
    turn = generator.normal(0.0, 0.03)
    scale = style.width, 1 + generator.normal(0.0, 0.03)
    phases = style.phases + generator.normal(0.0, 0.5, 2)
    bent = []
    for path in glyph:
        waves = np.sin(path[:, ::-1] * (0.31, 0.37) + phases)
        x, y = ((path + style.wobble * waves) * scale).T
        bent.append(np.stack([x + (style.slant + turn) * y, y - turn * x], axis=1))
    return bent


def _move(path: Curve, style: Style, generator: Generator) -> Stroke:
    """The points of the pen at even times, `(N, 2)`: slow at the ends and where the path turns."""
    even = _smooth(_evenly(path), style.rounding / _STEP)
    steps = np.hypot(*np.diff(even, axis=0).T)
    along = np.concatenate([[0.0], np.cumsum(steps)])
    middle = (along[1:] + along[:-1]) / 2
    # From rest, distance grows with the cube of time as jerk is least: speed as its 2/3 power.
    ends = np.minimum(middle, along[-1] - middle) / min(_RAMP, max(along[-1] / 2, _STEP))
    bell = np.clip(ends, 0.02, 1) ** (2 / 3)
    # The two-thirds power law: speed goes with the curvature to the power of -1/3.
    bends = (np.maximum(_curvature(even)[:-1], _STRAIGHT) / _STRAIGHT) ** (-1 / 3)
    seconds = np.concatenate([[0.0], np.cumsum(steps / (bell * bends))])
    seconds /= _UNITS_PER_SECOND * style.speed
    count = max(2, round(seconds[-1] * _POINTS_PER_SECOND)) + 1
    at = np.linspace(0, seconds[-1], count)
    points = np.stack([np.interp(at, seconds, axis) for axis in even.T], axis=1)
    points += _smooth(generator.normal(0.0, 2 * style.tremor, points.shape), 1.0)
    points[:, 1] += style.climb * points[:, 0]
    return (points * (style.size / 10)).astype(np.float32)


def _evenly(path: Curve) -> Curve:
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(path, axis=0).T))])
    count = max(2, round(along[-1] / _STEP)) + 1
    at = np.linspace(0, along[-1], count)
    return np.stack([np.interp(at, along, axis) for axis in path.T], axis=1)


def _smooth(path: Curve, deviation: float) -> Curve:
    """A Gaussian mean along the path; mirrored through its ends, which stay."""
    half = min(round(3 * deviation), len(path) - 1)
    kernel = np.exp(-0.5 * (np.arange(-half, half + 1) / deviation) ** 2)
    # As `np.pad` does it, which takes as long as all else here.
    before, after = 2 * path[0] - path[half:0:-1], 2 * path[-1] - path[-2 : -2 - half : -1]
    padded = np.concatenate([before, path, after])
    mean = [np.convolve(axis, kernel / kernel.sum(), mode="valid") for axis in padded.T]
    return np.stack(mean, axis=1)


def _curvature(path: Curve) -> NDArray[np.float64]:
    """The turn per unit of length at every point."""
    first = np.gradient(path, axis=0)
    second = np.gradient(first, axis=0)
    cross = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    return np.asarray(np.abs(cross) / np.maximum(np.hypot(*first.T), 1e-3) ** 3)
