"""A sheet of what is found: for some captions, the pictures that fit best, the right one framed."""

from pathlib import Path

from lab.tasks.ranking.score import ranks
from lab.tasks.ranking.task import Ranking
from training.figures import pyplot, save

_QUERIES, _FOUND = 8, 6
_DPI = 80


def draw(task: Ranking, image: Path) -> None:
    """A column for the picture that was asked for, then those that were found, best first.

    The queries are evenly spaced by rank from the best to the worst, so none is picked by hand.
    """
    pairs = task.data.test
    scores = task.score(pairs)
    order = scores.argsort(1, descending=True)
    rank = ranks(scores)
    by_rank = rank.argsort(stable=True)
    chosen = [int(by_rank[i * (len(pairs) - 1) // (_QUERIES - 1)]) for i in range(_QUERIES)]
    figure, grid = pyplot.subplots(
        _QUERIES, _FOUND + 1, figsize=(1.1 * (_FOUND + 1), 1.2 * _QUERIES), dpi=_DPI,
        layout="constrained",
    )  # fmt: skip
    for row, query in zip(grid, chosen, strict=True):
        shown = [query, *order[query, :_FOUND].tolist()]
        for place, (axes, which) in enumerate(zip(row, shown, strict=True)):
            axes.imshow(task.data.pictures[pairs[which].picture].numpy())
            axes.set(xticks=[], yticks=[])
            right = place > 0 and which == query
            axes.spines[:].set(visible=right, color="#1b7837", linewidth=3)
        row[0].set_ylabel(f"rank {int(rank[query])}", fontsize=9)
        row[1].set_title(task.data.names[pairs[query].picture], fontsize=9, loc="left")
    grid[0][0].set_title("asked", fontsize=9)
    save(figure, image)
