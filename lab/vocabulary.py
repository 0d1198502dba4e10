"""Words of a text and their numbers, for the laboratory's sentence encoders."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from models.sentence import PADDING, UNKNOWN

# An apostrophe begins a word of its own, and so does n't, as in the tokenised sets of sentences.
_WORD = re.compile(r"[^\W\d_]+?(?=n't\b)|n't\b|'?[^\W\d_]+|\d+|[.,;:!?]")


def words_of(text: str) -> list[str]:
    """The words of a text in small letters, numbers and marks among them."""
    # Some of the tokenised sets have it in two pieces, `n 't`.
    return _WORD.findall(text.lower().replace("\u2019", "'").replace("n 't", "n't"))


class Vocabulary:
    """Words by number, the most frequent first; words of equal frequency by alphabet."""

    def __init__(self, sentences: Iterable[Sequence[str]], size: int, at_least: int = 1) -> None:
        counts = Counter(chain.from_iterable(sentences))
        kept = [w for w, n in sorted(counts.items(), key=lambda c: (-c[1], c[0])) if n >= at_least]
        first = max(PADDING, UNKNOWN) + 1
        self._numbers = {word: first + i for i, word in enumerate(kept[: size - first])}
        self.size = first + len(self._numbers)

    def numbers(self, words: Sequence[str]) -> list[int]:
        """The number of each word; at least one, so that no sentence is empty."""
        return [self._numbers.get(word, UNKNOWN) for word in words] or [UNKNOWN]
