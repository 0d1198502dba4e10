"""What the service worker keeps of the page, answers from that, and leaves to others."""

from tests.site.conftest import Ask

_SCOPE = "http://127.0.0.1/site/"
_OTHERS = [f"evenkeel-page {_SCOPE}other/ 1", f"evenkeel-files {_SCOPE}", "of another site"]


def test_a_build_takes_the_place_of_the_one_before_and_of_nothing_else(ask: Ask) -> None:
    asked = {
        "": "kept", "?server": "kept", "index.html?server": "kept", "static/page.js": "kept",
        "models/index.json": "fetched",
    }  # fmt: skip
    case = {
        "scope": _SCOPE,
        "files": ["./", "static/page.js"],
        "caches": [f"evenkeel-page {_SCOPE} 1", *_OTHERS],
        "asked": [*(["GET", _SCOPE + path] for path in asked), ["GET", "http://127.0.0.1/else"]],
    }
    (found,) = ask("shell", [case])
    assert found["fresh"]  # and nothing that the browser had of the build before
    assert found["caches"] == [*_OTHERS, f"evenkeel-page {_SCOPE} VERSION"]
    assert found["answers"] == [*asked.values(), None]
