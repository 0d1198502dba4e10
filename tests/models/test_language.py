"""What a configuration of a language model says is what its layers have."""

from typing import Any

import pytest

from models.language import LanguageConfig, LanguageModel
from models.norms import BatchNorm
from models.stack import Dropout


def test_each_path_has_the_dropout_that_is_named_after_it() -> None:
    rates: dict[str, Any] = {"input_dropout": 0.1, "recurrent_dropout": 0.2, "output_dropout": 0.99}
    model = LanguageModel(LanguageConfig(units=4, embedding=4, **rates))
    assert model.stack.dropout == Dropout(
        input=0.1, recurrent=0.2, output=0.99
    )  # the most there is


def test_batch_norm_has_statistics_of_as_many_steps_as_it_is_told() -> None:
    model = LanguageModel(LanguageConfig(norm="batch", units=4, embedding=4, longest_step=7))
    norms = [module for module in model.modules() if isinstance(module, BatchNorm)]
    assert {len(norm.running_mean) for norm in norms} == {7}


def test_a_stack_has_no_more_layers_than_anybody_trains() -> None:
    with pytest.raises(ValueError, match=r"^model\.layers is 65; it must be at most 64$"):
        LanguageModel(LanguageConfig(layers=65, units=1, embedding=1))
    assert len(LanguageModel(LanguageConfig(layers=64, units=1, embedding=1)).stack.cells) == 64


@pytest.mark.parametrize("size", [True, 4.0, "4"])
def test_a_size_is_a_whole_number(size: Any) -> None:
    with pytest.raises(ValueError, match=rf"^model\.units is {size!r}; it must be a whole number$"):
        LanguageModel(LanguageConfig(units=size, embedding=4))


@pytest.mark.parametrize("name", ["layers", "units"])
def test_a_stack_of_nothing_is_refused_by_the_name_of_what_there_is_none_of(name: str) -> None:
    sizes: dict[str, Any] = {name: 0}
    with pytest.raises(ValueError, match=rf"^model\.{name} is 0; it must be 1 or more$"):
        LanguageModel(LanguageConfig(embedding=4, **sizes))
