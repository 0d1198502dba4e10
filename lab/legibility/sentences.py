"""Invented sentences by a small grammar: mixed case, figures, punctuation and rare letters."""

import random
import re

LONGEST = 60  # characters

_GRAMMAR = {
    "sentence": (
        "{name} {did} {number} {things}{stop}",
        "{name} {did} the {kind} {thing}{stop}",
        "Why {would} {name} want {number} {things}?",
        "{things}, {things} & {things}: {price}{stop}",
        "{name}'s {thing} is No. {number}; ring {name}.",
        "Room {letter}-{number}, {hour}:{minute}, the {kind} {thing}{stop}",
        '"{kind} {things}!" said {name}.',
        "({name} paid {price} for a {thing})",
        "{SHOUT} {number} {SHOUT}!",
        "{number} + {number} = {number}?",
        "{name}, {name} or {name}?",
        "To {letter}. {name}, {number} {name} Street",
        "{hour}/{minute}/{year}: {kind} {things}{stop}",
        "{thing}@{thing}.org",
        "{sentence} {sentence}",
        "{sentence} {sentence}",
        "Up {share}% on {year}; the {thing} {did} it{stop}",
    ),
    "name": (
        "Quentin", "Xavier", "Zora", "Ursula", "Kit", "Yvonne", "Jack", "Walter", "Quincy", "Max",
        "Hazel", "Omar", "Dora", "Felix", "Grace", "Violet", "Ida", "Ned", "Liz", "Roxana", "Tom",
    ),
    "did": ("fixed", "quoted", "zipped", "mixed", "sold", "jumped over", "wove", "squeezed"),
    "would": ("does", "did", "would", "might"),
    "kind": ("exact", "quiet", "Lazy", "brown", "fuzzy", "new", "joint", "expensive", "wet", "Big"),
    "thing": ("box", "quilt", "jar", "ladder", "wizard", "kite", "map", "violin", "zebra", "fax"),
    "things": ("Boxes", "quilts", "jugs", "plums", "zeros", "vowels", "taxis", "hawks", "pigs"),
    "SHOUT": ("QUIZ", "EXIT", "ZOO", "JAZZ", "STOP", "WAX", "KEY", "MAZE", "BUS", "FIVE", "THE"),
    "stop": (".", ".", "!", "?", "...", " -"),
    "price": ("${number}.{minute}", "{number}0 cents", "#{number}"),
    "number": ("{digit}", "{digit}{digit}", "{digit}{digit}{digit}", "{digit},{digit}{digit}0"),
    "share": ("{digit}.{digit}", "{digit}{digit}"),
    "year": ("19{digit}{digit}", "20{digit}{digit}"),
    "hour": ("7", "9", "10", "11", "12"),
    "minute": ("05", "15", "27", "30", "48"),
    "digit": tuple("123456789"),
    "letter": tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
}  # fmt: skip
_PLACE = re.compile(r"{(\w+)}")


def sentences(count: int, seed: int) -> list[str]:
    """So many different ones of 60 characters at most; the same seed gives the same."""
    generator = random.Random(seed)
    found: dict[str, None] = {}  # in order
    while len(found) < count:
        text = _expand("{sentence}", generator)
        if len(text) <= LONGEST:
            found[text] = None
    return list(found)


def _expand(text: str, generator: random.Random) -> str:
    def pick(place: re.Match[str]) -> str:
        return _expand(generator.choice(_GRAMMAR[place[1]]), generator)

    return _PLACE.sub(pick, text)
