"""What settings are taken as they are said, and what there is where nothing is said."""

import ast
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from service.engine.limits import Limits
from service.settings import Settings, misspelt


@pytest.mark.parametrize(
    ("key", "taken"),
    [
        ("abcdefghijklmnop", True),
        ("abcdefghijklmnop\n", True),  # as a file has it that somebody has typed
        ("abcdefghijklmno", False),
        ("abcdefghijklmno\n", False),
        ("abcdefghabcdefgh", True),
        ("abcdefgabcdefgab", False),
        ("abcdABCDabcdABCD", True),
    ],
)
def test_a_secret_has_16_characters_of_which_8_differ(key: str, taken: bool) -> None:
    if taken:
        told = Settings(state_key=key).state_key  # type: ignore[arg-type]
        assert told is not None
        assert told.get_secret_value() == key.strip()
        return
    with pytest.raises(ValidationError, match="it has fewer than") as refused:
        Settings(state_key=key)  # type: ignore[arg-type]
    assert key not in str(refused.value)  # which may end up in a log


_SECRET, _ANOTHER = "abcdefghijklmnop", "another one, with a comma"


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        (f"{_SECRET}\n", [_SECRET]),
        ("lines as base64 has\nthem of many bytes", ["lines as base64 has\nthem of many bytes"]),
        (f'["{_SECRET} ", "{_ANOTHER}"]', [_SECRET, _ANOTHER]),
        (f' [ "{_ANOTHER}"]', [_ANOTHER]),
        ("[]", []),
    ],
)
def test_a_fallback_is_one_secret_or_a_list(
    monkeypatch: pytest.MonkeyPatch, said: str, taken: list[str]
) -> None:
    monkeypatch.setenv("EVENKEEL_STATE_KEY_FALLBACKS", said)
    assert [key.get_secret_value() for key in Settings().state_key_fallbacks] == taken


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        (f"{_SECRET},{_SECRET}x", "written as a JSON list"),
        (_ANOTHER, "written as a JSON list"),
        (f"[{_SECRET}]", "written as a JSON list"),
        (f" [{_SECRET}]", "written as a JSON list"),
        (f'["{_SECRET}", {_SECRET}]', "goes on as none"),
        (f'["{_SECRET}", "short letters"]', "fewer than 16"),
        ("abcdefgabcdefgab", "fewer than 8 different"),
    ],
)
def test_a_fallback_that_may_be_meant_otherwise_or_guessed_is_refused(
    monkeypatch: pytest.MonkeyPatch, said: str, rule: str
) -> None:
    monkeypatch.setenv("EVENKEEL_STATE_KEY_FALLBACKS", said)
    with pytest.raises(ValidationError, match=rule) as refused:
        Settings()
    assert _SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "said", ["one, two ,,three,", '["one", "two", "three"]', ' [ "one","two","three"]']
)
@pytest.mark.parametrize("name", ["require", "allowed_hosts"])
def test_names_are_parted_by_commas_or_a_list(
    monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    monkeypatch.setenv(f"EVENKEEL_{name.upper()}", said)
    assert getattr(Settings(), name) == ("one", "two", "three")


def test_origins_are_named_as_browsers_send_them(monkeypatch: pytest.MonkeyPatch) -> None:
    origins = ("https://friend.example", "http://localhost:3000", "capacitor://localhost",
               "https://friend.example:80", "http://localhost:443", "http://localhost:8080",
               "chrome-extension://abc")  # fmt: skip
    monkeypatch.setenv("EVENKEEL_ALLOWED_ORIGINS", ", ".join(origins))
    assert Settings().allowed_origins == origins
    for odd in ("*", "null", "friend.example", "https://friend.example/", "https://*.example",
                "https://Friend.example", "https://friend.example:443",
                "http://friend.example:80", "https://me@friend.example"):  # fmt: skip
        with pytest.raises(ValidationError, match="is no origin"):
            Settings(allowed_origins=(origins[0], odd))


def test_a_service_listens_where_a_name_can_be_looked_up() -> None:
    """What has no spelling for that ends the process within the event loop."""
    for host in ("localhost", "keel.example.", "zo\xeb.example", "0.0.0.0", "::", "fe80::1%eth0"):
        assert Settings(host=host).host == host
    for odd in ("127.0.0..1", ".example", "a" * 64, "\udcff"):
        with pytest.raises(ValidationError, match="no host has such a name"):
            Settings(host=odd)


def test_hosts_are_named_as_requests_name_them(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = ("a.example", "B.example", "10.0.0.9", "[::1]", "2001:DB8::0:9", "*")
    monkeypatch.setenv("EVENKEEL_ALLOWED_HOSTS", ", ".join(hosts))
    taken = ("a.example", "B.example", "10.0.0.9", "::1", "2001:db8::9", "*")
    assert Settings().allowed_hosts == taken
    monkeypatch.setenv("EVENKEEL_ALLOWED_HOSTS", "[::1], localhost")  # and no list of JSON
    assert Settings().allowed_hosts == ("::1", "localhost")
    for odd in ("a.example:8000", "https://a.example", "*.b.example", "a.example/", "[::1]:80"):
        with pytest.raises(ValidationError, match="is no name of a host"):
            Settings(allowed_hosts=("a.example", odd))


@pytest.mark.parametrize("said", ["[", '["one"', '["one", two]'])
def test_a_list_that_is_broken_off_is_told_in_our_words(
    monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setenv("EVENKEEL_REQUIRE", said)
    with pytest.raises(ValidationError, match="it begins as a JSON list and goes on as none"):
        Settings()


def test_a_proxy_is_named_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a socket says it: of a name or a network nobody would be found, of * everybody."""
    monkeypatch.setenv("EVENKEEL_TRUSTED_PROXIES", "10.0.0.9, 2001:DB8::0:9")
    assert Settings().trusted_proxies == ("10.0.0.9", "2001:db8::9")
    for odd in ("haproxy", "10.0.0.0/8", "*", "10.0.0.9:8000"):
        with pytest.raises(ValidationError, match="a proxy is named by its address"):
            Settings(trusted_proxies=("10.0.0.9", odd))


def test_without_settings_a_stranger_finds_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"EVENKEEL_{name.upper()}", raising=False)
    usual = Settings()
    assert usual.host == "127.0.0.1"
    assert (usual.open, usual.allow_unproved) == (False, False)
    assert (usual.trusted_proxies, usual.allowed_hosts, usual.allowed_origins) == ((), (), ())
    assert (usual.max_body_bytes, usual.max_header_bytes) == (2**20, 2**15)
    assert (usual.queue_size, usual.deadline_s, usual.request_timeout_s) == (256, 600, 20)


def test_every_setting_is_read_by_the_service() -> None:
    """One that is told of and changes nothing would be taken for one that works."""
    read = set(Limits.__dataclass_fields__)
    for path in (Path(__file__).parents[2] / "service").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                owner = getattr(node.value, "attr", getattr(node.value, "id", ""))
                read |= {node.attr} if owner.endswith("settings") else set()
    assert Settings.model_fields.keys() - read == set()


def test_a_secret_may_be_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Which the environment overrules."""
    monkeypatch.setitem(Settings.model_config, "secrets_dir", tmp_path)
    for name in ("STATE_KEY", "STATE_KEY_FALLBACKS"):
        monkeypatch.delenv(f"EVENKEEL_{name}", raising=False)
    (tmp_path / "evenkeel_state_key").write_text("of a file, with its line end\n")
    (tmp_path / "EVENKEEL_STATE_KEY_FALLBACKS").write_text(
        '["the first of two, 12345", "ghijkl, the second"]'
    )
    (tmp_path / "state_key").write_text("of somebody else")
    assert _told(Settings().state_key, *Settings().state_key_fallbacks) == [
        "of a file, with its line end", "the first of two, 12345", "ghijkl, the second",
    ]  # fmt: skip
    monkeypatch.setenv("EVENKEEL_STATE_KEY", "of the environment")
    assert _told(Settings().state_key) == ["of the environment"]


def _told(*secrets: SecretStr | None) -> list[str | None]:
    return [secret and secret.get_secret_value() for secret in secrets]


def test_a_setting_that_is_nearly_one_is_told() -> None:
    names = [
        "EVENKEEL_ALLOWED_HOST",
        "EVENKEEL_CHUNK_STEP",
        "evenkeel_port",
        "evenkeel_thread",
        "EVENKEEL_KEY",
        "EVENKEEL_KEYS",
        "EVENKEEL_DATA",
        "PORTS",
    ]
    assert list(misspelt(names)) == [
        "EVENKEEL_ALLOWED_HOST is no setting; EVENKEEL_ALLOWED_HOSTS is one",
        "EVENKEEL_CHUNK_STEP is no setting; EVENKEEL_CHUNK_STEPS is one",  # the nearest alone
        "EVENKEEL_KEY is no setting; EVENKEEL_KEYS is one",
        "EVENKEEL_THREAD is no setting; EVENKEEL_THREADS is one",
    ]


# What a number may be at least and at most; None where it may be as large as one likes.
_ENDS: dict[str, tuple[float, float | None]] = {
    "port": (0, 65535),
    "threads": (0, 512),
    "slots": (1, 1024),
    "queue_size": (1, None),
    "chunk_steps": (1, 4096),
    "first_chunk_steps": (1, 4096),
    "checkpoint_steps": (1, None),
    "max_tokens": (1, None),
    "max_request_steps": (1, None),
    "max_body_bytes": (1024, None),
    "max_header_bytes": (1024, None),
    "max_connections": (2, None),  # of which one address may have half
    "watch_s": (0, None),
    "piece_s": (0, None),
    "drain_timeout_s": (0, None),
    "shutdown_delay_s": (0, None),
}


@pytest.mark.parametrize("name", _ENDS)
def test_a_number_may_be_as_little_and_as_much_as_its_ends(name: str) -> None:
    least, most = _ENDS[name]
    for taken in (least, most or 10**9):
        assert getattr(Settings(**{name: taken}), name) == taken  # type: ignore[arg-type]
    for odd in (least - 1, *([] if most is None else [most + 1])):
        with pytest.raises(ValidationError, match="or equal to"):
            Settings(**{name: odd})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    [
        "max_wait_s", "deadline_s", "slice_s", "chunk_s",
        "request_timeout_s", "idle_timeout_s", "stall_timeout_s",
    ],
)  # fmt: skip
def test_a_time_in_which_something_has_to_be_done_is_longer_than_none(name: str) -> None:
    assert getattr(Settings(**{name: 1e-9}), name) == 1e-9  # type: ignore[arg-type]
    for odd in (0, -1):
        with pytest.raises(ValidationError, match="greater than 0"):
            Settings(**{name: odd})  # type: ignore[arg-type]


def test_a_service_that_runs_keeps_the_settings_it_began_with() -> None:
    usual = Settings()
    with pytest.raises(ValidationError, match="frozen"):
        usual.open = True


def test_traces_want_the_packages_that_send_them(monkeypatch: pytest.MonkeyPatch) -> None:
    sends = "opentelemetry-exporter-otlp-proto-http"
    monkeypatch.setattr("service.settings.distributions", lambda name: [] if name == sends else [1])
    with pytest.raises(ValidationError, match=f"{sends} is not installed"):
        Settings(traces=True)
