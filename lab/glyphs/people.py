"""The same characters as people wrote them: how much of real ink is read, a ceiling for a pen."""

from collections import Counter
from collections.abc import Sequence

from lab.legibility import held_out
from training.ink.prepare import Ink

MOST_EACH = 200  # samples of a character, about
_LONGEST = 40


def lines_with_all(inks: Sequence[Ink]) -> list[Ink]:
    """Lines and words of held-out writers by their hashes, as few as give every character so many
    samples, where there are."""
    named = {held_out.identity(ink): ink for ink in inks if len(ink.text) <= _LONGEST}
    counts: Counter[str] = Counter()
    chosen = []
    for name in sorted(named):
        text = named[name].text.replace(" ", "")
        if any(counts[character] < MOST_EACH for character in text):
            counts.update(text)
            chosen.append(named[name])
    return chosen
