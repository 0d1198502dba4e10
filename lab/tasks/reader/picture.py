"""Where the attentive reader looks: words of a few stories, darker where they weigh more."""

from pathlib import Path

from lab.epochs import evaluating
from lab.tasks.reader.data import Stories
from lab.tasks.reader.model import AttentiveReader
from training.figures import pyplot, save

_SHOWN_TASKS = (1, 4, 6, 15, 16, 20)
_LINE = 86  # characters of a line
_CHARACTER, _ROW = 0.0108, 1.0  # of the axes


def draw(model: AttentiveReader, stories: Stories, folder: Path) -> None:
    """`reader-attention.png`: the longest test story of each shown task, question and answers."""
    rows = [
        int((stories.test_tasks == task).nonzero()[-1])
        for task in _SHOWN_TASKS
        if (stories.test_tasks == task).any()
    ]
    with evaluating(model):
        logits, weights = model.attend(stories.test.inputs[rows])
    figure, panels = pyplot.subplots(
        len(rows), 1, figsize=(9, 1.25 * len(rows)), dpi=90, squeeze=False
    )
    for axes, row, answer, weight in zip(
        panels[:, 0], rows, logits.argmax(1), weights, strict=True
    ):
        story, question = (
            [stories.words[w] for w in words[words > 0].tolist()]
            for (words,) in model.split(stories.test.inputs[[row]])
        )
        place = _write(axes, story, weight.tolist())
        right = stories.answers[int(stories.test.classes[row])]
        told = f"{' '.join(question)}?  {stories.answers[int(answer)]}  (right: {right})"
        axes.text(0, place - _ROW, told, fontsize=8, weight="bold", family="monospace")
        axes.set_ylim(place - 2 * _ROW, _ROW)
        axes.set_title(f"task {int(stories.test_tasks[row])}", fontsize=8, loc="left")
        axes.axis("off")
    save(figure, folder / "reader-attention.png")


def _write(axes: object, words: list[str], weights: list[float]) -> float:
    """Words from left to right, line by line; the place of the last line. None is dark where the
    weights are no numbers, as of a model that diverged."""
    column, place, most = 0, 0.0, max((w for w in weights if w > 0), default=1.0)
    for word, weight in zip(words, weights, strict=False):
        if column + len(word) > _LINE:
            column, place = 0, place - _ROW
        box = {
            "facecolor": "#d95f02",
            "alpha": weight / most if weight > 0 else 0.0,
            "edgecolor": "none",
            "pad": 1,
        }
        axes.text(column * _CHARACTER, place, word, fontsize=8, family="monospace", bbox=box)  # type: ignore[attr-defined]
        column += len(word) + 1
    return place
