"""The smallest run there is: a model of one unit that was trained a row at a time."""

from dataclasses import replace
from pathlib import Path

from models.language import LanguageConfig
from tests.training.tiny import TEXT, tiny_recipe, undrawn
from training.run import carry_out


def write_single(folder: Path) -> Path:
    """`run` and `data` in `folder`; the corpus is the folder `data/sheep`."""
    corpus = folder / "data" / "sheep"
    (corpus / "more").mkdir(parents=True)
    (corpus / "a.txt").write_text(TEXT[:2000])
    (corpus / "more" / "b.txt").write_text(TEXT[2000:4000])
    recipe = tiny_recipe(corpus, rows=1, epochs=0.2)
    recipe = replace(recipe, model=LanguageConfig(cell="rnn", units=1, embedding=4))
    with undrawn():
        carry_out(recipe, folder / "run", "cpu", Path())
    return folder
