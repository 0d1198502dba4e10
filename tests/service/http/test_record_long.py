"""However much a request has done, its line in the log is short."""

import json

from service.http.record import Record
from service.metrics import Work


def test_a_line_says_of_as_many_jobs_how_they_ended_as_a_text_has_choices() -> None:
    """A page of 16,000 draws left a line of 128 KB, which what collects logs cuts into parts."""
    ended = ["length", *["stop"] * 1000]
    works = [Work("pen", reason, 1, 2, 0.0, 0.0, 0.0, 0.0) for reason in ended]
    told = json.loads(Record("mine", works=works).line())
    assert told["finish"] == ended[:128]
    assert (told["prompt_tokens"], told["completion_tokens"]) == (1001, 2002)
