"""The pictures of the page's Lab tab: those of docs/results/ copied to service/web/lab/, a list of
what they show, and the weights of what draws digits there. Part of `python -m lab report`.
"""

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from export.folders import made_whole
from training.checkpoint import understanding

_ROOT = Path(__file__).parents[1]
RESULTS = Path("docs", "results")
SHOWN = Path("service", "web", "lab")
LIST = "plots.json"
DECODER = "draw-decoder.safetensors"  # with which the tab draws a digit itself
MAX_PICTURE_BYTES = 150_000


@dataclass(frozen=True, slots=True)
class Plot:
    """One picture: its `file` in the folder of the page, whose it is, and what to look for."""

    file: str
    title: str
    paper: str
    text: str


# Not table 1, which the tab computes itself.
_ANALYSIS = {
    "growth": Plot(
        "growth.png",
        "2,000 steps of an LSTM",
        "section 3.1",
        "The hidden state neither explodes nor vanishes under any norm. The gradient vanishes "
        "without one, stays under a gain of 0.1, and grows under a gain of 1.",
    ),
    "curvature": Plot(
        "curvature.png",
        "What a long weight vector slows",
        "section 5.2",
        "Under a norm, the longer a weight vector, the less the same step changes the output: its "
        "length sets the rate. Without one it does not matter.",
    ),
}
_MORE = {
    "draw-film": "The drawing of some digits, stroke by stroke; the frame is where it writes.",
    "draw-samples": "Digits drawn out of noise.",
    "padding-share": "Left, accuracy: the ranges of seeds overlap. Right, how far a row moves when "
    "it does not stand alone: under batch norm alone by more than rounding.",
    "thoughts-probes": "Eight probes of the vectors of sentences: layer norm is best in most, and "
    "a bag of words far better in all.",
}


def publish(root: Path = _ROOT) -> list[Plot]:
    """Copy what there is, remove what is no more, and write the list. Raises `ValueError` for a
    picture too large for a page."""
    folder, plots = root / SHOWN, found(root)
    decoder = root / RESULTS / "lab" / DECODER
    listed = {"plots": [asdict(plot) for plot in plots], "draws": decoder.exists()}
    with made_whole(folder, lambda _: True, "folder of pictures") as made:
        for plot in plots:
            shutil.copyfile(source(root, plot), made / plot.file)
        if decoder.exists():
            shutil.copyfile(decoder, made / DECODER)
        told = json.dumps(listed, indent=1, ensure_ascii=False)
        (made / LIST).write_text(told + "\n", "utf-8")
    return plots


def found(root: Path = _ROOT) -> list[Plot]:
    """The pictures there are: of each task that has results its curves and more, then the
    analysis."""
    plots = []
    for path in sorted((root / RESULTS / "lab").glob("*.json")):
        with understanding(path):
            told = json.loads(path.read_text("utf-8"))
            text = f"The paper: {told['claim']}."
            plots.append(Plot(f"{path.stem}.png", told["title"], told["paper"], text))
        for more in sorted(path.parent.glob(f"{path.stem}-*.png")):
            if more.stem in _MORE:
                plots.append(Plot(more.name, told["title"], told["paper"], _MORE[more.stem]))
    plots += _ANALYSIS.values()
    there = [plot for plot in plots if source(root, plot).exists()]
    for plot in there:
        size = source(root, plot).stat().st_size
        if size > MAX_PICTURE_BYTES:
            raise ValueError(
                f"{plot.file} has {size} bytes; it must be {MAX_PICTURE_BYTES} or less"
            )
    return there


def source(root: Path, plot: Plot) -> Path:
    """Where a picture comes from."""
    folder = "analysis" if Path(plot.file).stem in _ANALYSIS else "lab"
    return root / RESULTS / folder / plot.file
