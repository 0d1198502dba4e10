"""Stories in the form of bAbI's files, drawn: who is where, and is somebody somewhere."""

import random

_PEOPLE = ("Mary", "John", "Daniel", "Sandra")
_PLACES = ("kitchen", "garden", "office", "hallway")
_MOVES = 3


def drawn_stories(seed: int, stories: int) -> dict[int, str]:
    """Text by task, as of bAbI's tasks 1 and 6; a question after every second move."""
    draw = random.Random(seed)
    return {task: "".join(_story(draw, task) for _ in range(stories)) for task in (1, 6)}


def _story(draw: random.Random, task: int) -> str:
    lines, at = [], {}
    for move in range(1, _MOVES + 1):
        person, place = draw.choice(_PEOPLE), draw.choice(_PLACES)
        at[person] = place
        lines.append(f"{person} went to the {place}.")
        if move % 2:
            asked = draw.choice(sorted(at))
            lines.append(_question(draw, task, asked, at[asked]))
    return "".join(f"{number} {line}\n" for number, line in enumerate(lines, 1))


def _question(draw: random.Random, task: int, person: str, place: str) -> str:
    if task == 1:
        return f"Where is {person}? \t{place}\t1"
    guess = draw.choice((place, draw.choice(_PLACES)))
    return f"Is {person} in the {guess}? \t{'yes' if guess == place else 'no'}\t1"
