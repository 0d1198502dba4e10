"""Graphs in onnxruntime-web, of which a page may want several at once."""

from tests.site.conftest import Ask


def test_each_of_the_models_wanted_at_once_has_its_own_weights(ask: Ask) -> None:
    """All models of a kind are wanted when a tab is shown; all but one could not be opened."""
    names = ["mine", "another", "a third"]
    assert ask("together", [names]) == [names]


def test_a_graph_is_given_what_it_asks_for_though_a_run_before_has_failed(ask: Ask) -> None:
    found, alone = ask("ran", [{"rows": 2}, {}])
    assert alone["fed"][0] == ["h", "float32", [0.5] * 2, [1, 2]]
    assert found["lost"] == "out of memory"
    assert found["fed"] == [
        ["h", "float32", [0.5] * 4, [2, 2]],
        ["x", "float32", [5, 6], [1, 2]],
        ["scale", "float32", [7], [1, 1]],
    ]
    told = found["found"]
    assert told["state"] == {"h": {"dtype": "float32", "shape": [1], "data": [1]}}
    assert told["outputs"] == {"drawn": {"dtype": "float32", "shape": [2], "data": [3, 4]}}
