"""A file the site fetches is the one that was built, or it says that it is not."""

import gzip
import hashlib
from typing import Any

import pytest

from tests.site.conftest import Ask

_TEXT = "an even keel " * 100
_SHA256 = hashlib.sha256(_TEXT.encode()).hexdigest()
_BROKEN = {"error": "model.gz was cut short or altered; load the page again."}


def _file(**changed: Any) -> dict[str, Any]:
    whole = {"text": _TEXT, "sha256": _SHA256, "bytes": 2 * len(gzip.compress(_TEXT.encode()))}
    return whole | changed


@pytest.mark.parametrize("plain", [False, True])
def test_a_whole_file_is_unpacked(ask: Ask, plain: bool) -> None:
    assert ask("fetched", [_file(plain=plain)]) == [{"text": _TEXT}]


@pytest.mark.parametrize("unkept", ["full", "forbidden"])
def test_a_file_that_cannot_be_kept_is_had_all_the_same(ask: Ask, unkept: str) -> None:
    assert ask("fetched", [_file(**{unkept: True})]) == [{"text": _TEXT}]


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("arrived", [2, 30])
def test_a_file_that_was_cut_short_is_told_so(ask: Ask, arrived: int, plain: bool) -> None:
    assert ask("fetched", [_file(bytes=arrived, plain=plain)]) == [_BROKEN]


def test_an_altered_file_is_told_so_where_there_are_hashes(ask: Ask) -> None:
    other = _file(sha256="0" * 64)
    assert ask("fetched", [other]) == [_BROKEN]
    assert ask("fetched", [other | {"plain": True}]) == [{"text": _TEXT}]


@pytest.mark.parametrize("lost", ["at once", "midway"])
def test_without_a_network_it_is_said_in_words_of_the_page(ask: Ask, lost: str) -> None:
    (found,) = ask("fetched", [_file(lost=lost)])
    assert found == {"error": "model.gz cannot be fetched: there is no connection."}


@pytest.mark.parametrize("unpacked", [False, True])
def test_how_much_has_come_of_how_much_is_told(ask: Ask, unpacked: bool) -> None:
    """No more than there is to come: some hosts send what is packed as what it is packed from."""
    (found,) = ask("counted", [{"text": _TEXT, "unpacked": unpacked}])
    first, *rest = found["told"]
    assert first == {"total": found["bytes"]}
    assert sum(part["loaded"] for part in rest) == found["bytes"]


def test_a_file_is_fetched_once_for_as_long_as_it_is_the_one_that_was_built(ask: Ask) -> None:
    """What the browser has not kept well is told of once, and fetched then."""
    first, second = {"a": "one", "b": "two"}, {"a": "another", "b": "two"}
    visits = [
        {"files": first}, {"files": first}, {"files": second},
        {"files": second, "spoilt": ["b"]}, {"files": second},
    ]  # fmt: skip
    (told,) = ask("revisited", [{"visits": visits}])
    assert [visit["fetched"] for visit in told] == [["a", "b"], [], ["a"], [], ["b"]]
    assert [visit["came"] for visit in told] == [
        ["one", "two"], ["one", "two"], ["another", "two"], ["another", None], ["another", "two"],
    ]  # fmt: skip
    assert [visit["kept"] for visit in told] == [2, 2, 2, 1, 2]
    assert told[-1]["shelves"] == ["evenkeel-files http://127.0.0.1/"]  # of this place alone
