"""Corpora: files, folders, Python's own reference; and how streams are laid out."""

from pathlib import Path

import pytest
import torch

from models.language import LanguageConfig, LanguageModel
from training.run import data_at, data_folder
from training.text.data import PYTHON_REFERENCE, read_corpus, require_segments, streams
from training.text.task import LanguageTask


def test_a_folder_is_its_files_in_order_of_name(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("two")
    (tmp_path / "a.txt").write_text("one ")
    assert read_corpus(str(tmp_path)).content == b"one two"


def test_a_corpus_has_the_name_of_what_a_link_leads_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tales").mkdir()
    (tmp_path / "tales" / "a.txt").write_text("one")
    (tmp_path / "latest").symlink_to("tales")
    monkeypatch.chdir(tmp_path / "tales")
    assert [read_corpus(source).name for source in ("../latest", ".")] == ["tales", "tales"]


def test_data_is_looked_for_in_the_data_folder_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    for place in (tmp_path / "text", tmp_path / "data" / "text", tmp_path / "here"):
        place.touch()
    folder = Path("data")
    assert [data_at(s, folder) for s in ("text", "here", "pydoc")] == ["data/text", "here", "pydoc"]


def test_the_data_folder_is_data_here_unless_the_environment_names_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("EVENKEEL_DATA", raising=False)
    assert data_folder() == Path("data")
    monkeypatch.setenv("EVENKEEL_DATA", "/corpora")
    assert data_folder() == Path("/corpora")


def test_the_reference_every_python_carries_is_a_corpus() -> None:
    corpus = read_corpus(PYTHON_REFERENCE)
    assert b"assert" in corpus.content
    assert len(corpus.content) > 300_000


def test_streams_are_contiguous_parts_side_by_side() -> None:
    laid = streams(torch.arange(11, dtype=torch.uint8), 3)
    assert laid.T.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_a_segment_wants_a_byte_more_than_its_steps_for_each_row() -> None:
    text = torch.zeros(33, dtype=torch.uint8)
    require_segments(text, 3, 10, "training")
    with pytest.raises(ValueError, match=r"has 32 bytes; .* needs at least 33"):
        require_segments(text[1:], 3, 10, "training")


@pytest.mark.parametrize("world", [1, 2])
def test_an_epoch_reads_every_stream_in_order_whoever_reads_it(world: int) -> None:
    model = LanguageModel(LanguageConfig(units=4, embedding=2))
    text = torch.arange(250, dtype=torch.uint8)
    columns: dict[int, list[int]] = {}
    for rank in range(world):
        task = LanguageTask(model, text, text, 4, 10, seed=3, rank=rank, world=world)
        for update in range(task.updates_per_epoch):
            (inputs, targets), anew = task.batch(update)
            assert anew is (update == 0)
            assert torch.equal(inputs[1:], targets[:-1])
            for column in range(inputs.shape[1]):
                columns.setdefault(rank + world * column, []).extend(inputs[:, column].tolist())
    assert len(columns) == 4
    for read in columns.values():
        assert read == list(range(read[0], read[0] + len(read)))


@pytest.mark.parametrize("size", [44, *range(84, 96)])
def test_every_segment_is_whole_and_the_same_whenever_it_is_read(size: int) -> None:
    model = LanguageModel(LanguageConfig(units=4, embedding=2))
    text = torch.arange(size, dtype=torch.uint8)
    task = LanguageTask(model, text, text, 4, 10, seed=3)
    updates = range(5 * task.updates_per_epoch)
    batches = [task.batch(update)[0] for update in updates]
    for update in reversed(updates):
        inputs, targets = task.batch(update)[0]
        assert inputs.shape == targets.shape == (10, 4)
        assert torch.equal(inputs, batches[update][0])


def test_batch_norm_wants_two_rows_in_each_process_and_as_many_steps_as_it_keeps() -> None:
    model = LanguageModel(LanguageConfig(units=4, embedding=2, norm="batch", longest_step=10))
    text = torch.zeros(100, dtype=torch.uint8)
    assert LanguageTask(model, text, text, 4, 10, seed=0, world=2).updates_per_epoch == 2
    with pytest.raises(ValueError, match=r"batch\.rows is 2; batch norm needs 2 for each of 2 "):
        LanguageTask(model, text, text, 2, 10, seed=0, world=2)
