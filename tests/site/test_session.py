"""A session of the site answers in turn what it hears, and nothing once it is over."""

from tests.site.conftest import Ask

_MESSAGES = [1, 2, 3, 4]


def test_a_session_answers_each_message_in_its_turn(ask: Ask) -> None:
    assert ask("session", [{"messages": _MESSAGES}]) == [
        {"computed": _MESSAGES, "heard": _MESSAGES}
    ]


def test_a_session_that_is_stopped_computes_nothing_of_what_it_has_heard(ask: Ask) -> None:
    (found,) = ask("session", [{"messages": _MESSAGES, "stops": 2}])
    assert found == {"computed": [1, 2], "heard": [1, 2]}


def test_a_session_that_failed_computes_nothing_more_and_fails_once(ask: Ask) -> None:
    (found,) = ask("session", [{"messages": _MESSAGES, "fails": 2, "stops": 4}])
    assert found == {"computed": [1, 2], "heard": [1, "failed"]}
