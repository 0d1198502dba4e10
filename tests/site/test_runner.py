"""Graphs in onnxruntime-web, of which a page may want several at once."""

from tests.site.conftest import Ask


def test_each_of_the_models_wanted_at_once_has_its_own_weights(ask: Ask) -> None:
    """All models of a kind are wanted when a tab is shown; all but one could not be opened."""
    names = ["mine", "another", "a third"]
    assert ask("together", [names]) == [names]
