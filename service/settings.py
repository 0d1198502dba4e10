"""Every setting of the service, from the environment: `EVENKEEL_` and the name in capitals."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from importlib.metadata import distributions
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

_EXPORTER = "opentelemetry-exporter-otlp-proto-http"
_NEARLY = 0.8  # of a name's letters
_SHORTEST_SECRET, _LEAST_VARIETY = 16, 8  # characters, and different ones among them
_TAKE_ANOTHER = "take a random one: openssl rand -hex 32"
# Where Docker and Podman mount secrets, each a file that has the name of a variable.
SECRETS = Path("/run/secrets")

_JSON_LIST = re.compile(r"\s*\[\s*(\"|\]|$)")  # and not an address in brackets
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@*A-Z]+")
# Browsers leave out the port that a scheme has of itself.
_WITH_ITS_PORT = re.compile(r"http://.*:80|https://.*:443")

# From the environment as names between commas, or as a JSON list.
Names = Annotated[tuple[str, ...], NoDecode]
# One as it stands, or several as a JSON list: a secret may have any character.
Secrets = Annotated[tuple[SecretStr, ...], NoDecode]
Precision = Literal["exact", "int8", "auto"]


class Settings(BaseSettings):
    """Read once at start and passed in; frozen. What the environment has not may be a file of
    `SECRETS`: an environment is seen by all that a container runs, and by who may inspect it.

    Raises `SettingsError` for a file that cannot be read.
    """

    # A line of a .env file with nothing after it means nothing, not a key of no characters. Where
    # an error is not told in words of ours, as under Ray, it must not tell a key either.
    model_config = SettingsConfigDict(
        env_prefix="EVENKEEL_",
        env_ignore_empty=True,
        frozen=True,
        hide_input_in_errors=True,
        # Where there is none, or it is another process's, nobody wants a warning.
        secrets_dir=SECRETS if os.access(SECRETS, os.R_OK | os.X_OK) else None,
    )

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    artifacts: Path = Field(Path("artifacts"), description="folder of the models to serve")
    site: Path = Field(
        Path("build/site"),
        description="folder of the static site; where there is one, the page offers to compute "
        "on the visitor's device",
    )
    require: Names = Field(
        (),
        description="names of models that have to be served for the service to start and be "
        "ready, separated by commas; without names, any one will do",
    )
    precision: Precision = Field(
        "exact",
        description="which of a model's two precisions answers a request that names no model: "
        "exact, int8, or auto for the faster one on this machine",
    )
    watch_s: float = Field(
        5.0,
        ge=0,
        description="seconds between two looks for new, changed and removed artifacts; with 0 "
        "the service looks on SIGHUP only",
    )
    state_key: SecretStr | None = Field(
        None,
        description="secret that signs state tokens; replicas that share it accept each other's"
        " tokens. Without one, a token lasts until the service restarts",
    )
    state_key_fallbacks: Secrets = Field(
        (),
        description="a secret whose state tokens are accepted too, while another takes its place, "
        "or several as a JSON list",
    )
    provider: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="where models run: cpu, cuda, or auto, which takes CUDA where there is a GPU",
    )
    runner: Literal["auto", "scan", "slots"] = Field(
        "auto", description="scan runs a chunk in one call, slots step by step; auto fits provider"
    )
    threads: int = Field(
        0,
        ge=0,
        le=512,
        description="threads of a model's session, as many as there are cores at most; 0 takes the "
        "number that is fastest at the time. While models at work have more than there are cores, "
        "each makes do with half of the cores at most",
    )
    slots: int = Field(24, ge=1, le=1024, description="requests a model works on at once")
    queue_size: int = Field(256, ge=1, description="requests that may wait; more get a 503")
    max_wait_s: float = Field(
        0.75,
        gt=0,
        description="longest expected wait for other requests, in seconds; a request that would"
        " wait longer gets a 503 at once",
    )
    deadline_s: float = Field(
        600.0, gt=0, description="seconds a request may take; then it ends with a 504"
    )
    slice_s: float = Field(
        1.0, gt=0, description="seconds after which a request gives its slot to one that waits"
    )
    chunk_s: float = Field(
        0.02,
        gt=0,
        description="seconds between two looks at the queue, at most, or four steps if they take "
        "longer",
    )
    chunk_steps: int = Field(
        32, ge=1, le=4096, description="steps between two looks at the queue, at most"
    )
    first_chunk_steps: int = Field(
        8, ge=1, le=4096, description="steps before a request's first bytes go out"
    )
    piece_s: float = Field(
        0.02,
        ge=0,
        description="least seconds between two events of a stream while other requests have all"
        " other slots; where they have some, that share of it",
    )
    checkpoint_steps: int = Field(
        256, ge=1, description="steps, of the prompt too, between two resumable tokens of a stream"
    )
    max_tokens: int = Field(65536, ge=1, description="largest max_tokens a request may ask for")
    max_request_steps: int = Field(
        1 << 21,
        ge=1,
        description="most bytes that one request may read and write, all its choices together",
    )
    max_body_bytes: int = Field(1 << 20, ge=1024, description="largest request body or message")
    max_header_bytes: int = Field(
        32768,
        ge=1024,
        description="largest head of a request (URL and headers), and largest trailers",
    )
    max_connections: int = Field(
        1000,
        ge=2,
        description="connections at once, or fewer if the limit of open files is lower; further"
        " ones are answered at /livez and /readyz alone. One address may have half "
        "of them",
    )
    request_timeout_s: float = Field(
        20.0,
        gt=0,
        description="seconds that the head of a request may take to arrive, then its body, and "
        "then the client to read each 32 KiB of the answer",
    )
    idle_timeout_s: float = Field(
        600.0, gt=0, description="seconds without a message after which a WebSocket is closed"
    )
    drain_timeout_s: int = Field(
        20, ge=0, description="seconds that running requests get to finish when the service stops"
    )
    keys: Path | None = Field(
        None, description="TOML file of API keys; without one, no key is asked for"
    )
    open: bool = Field(False, description="serve without keys even beyond the loopback interface")
    trusted_proxies: Names = Field(
        (), description="addresses whose X-Forwarded-For is believed, separated by commas"
    )
    allowed_hosts: Names = Field(
        (),
        description="host names to answer to, separated by commas, `*` for any; none means any, "
        "or those of the loopback interface for a service that listens there",
    )
    allowed_origins: Names = Field(
        (), description="origins whose pages may use the service too, separated by commas"
    )
    shutdown_delay_s: float = Field(
        0.0,
        ge=0,
        description="seconds after SIGTERM in which requests are still accepted though /readyz "
        "is red, until load balancers have noticed",
    )
    stall_timeout_s: float = Field(
        30.0,
        gt=0,
        description="seconds a run may take before /livez says that it is stuck; a model that "
        "is attested when the service starts has ten times as long before it is "
        "given up",
    )
    allow_unproved: bool = Field(
        False, description="serve even models whose parity report is missing or red"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="least severe lines of the log: debug, info, warning or error"
    )
    log_requests: bool = Field(
        True,
        description="write a line of JSON for each request to standard output; probes are left out",
    )
    traces: bool = Field(
        False,
        description="send OpenTelemetry traces to where the OTEL_* variables say; needs the "
        "packages of the role traces",
    )

    @field_validator("host")
    @classmethod
    def _can_be_looked_up(cls, host: str) -> str:
        try:
            host.encode("idna")
        except UnicodeError as error:
            raise ValueError(f"no host has such a name: {error}") from None
        return host

    @field_validator(
        "require", "trusted_proxies", "allowed_hosts", "allowed_origins", mode="before"
    )
    @classmethod
    def _apart(cls, names: object) -> object:
        if not isinstance(names, str):
            return names
        if _JSON_LIST.match(names):
            return _from_json(names)
        return [name.strip() for name in names.split(",") if name.strip()]

    @field_validator("allowed_origins")
    @classmethod
    def _as_browsers_say(cls, origins: Names) -> Names:
        for origin in origins:
            if not _ORIGIN.fullmatch(origin) or _WITH_ITS_PORT.fullmatch(origin):
                raise ValueError(
                    f"{origin!r} is no origin; one is named as browsers send it, "
                    "https://friend.example or http://localhost:3000"
                )
        return origins

    @field_validator("allowed_hosts")
    @classmethod
    def _as_requests_say(cls, hosts: Names) -> Names:
        return tuple(map(_host, hosts))

    @field_validator("trusted_proxies")
    @classmethod
    def _as_sockets_say(cls, proxies: Names) -> Names:
        # By a name nobody would be believed, and by * everybody.
        try:
            return tuple(str(ip_address(proxy)) for proxy in proxies)
        except ValueError as error:
            raise ValueError(f"{error}; a proxy is named by its address") from None

    @field_validator("state_key_fallbacks", mode="before")
    @classmethod
    def _one_or_several(cls, said: object) -> object:
        if not isinstance(said, str):
            return said
        if _JSON_LIST.match(said):
            return _from_json(said)
        # Whoever parts them by commas would have a secret that nobody signs with.
        if "," in said or said.lstrip().startswith("["):
            raise ValueError(
                "it has a comma or begins with a bracket: several secrets, and one of that kind, "
                'are written as a JSON list, ["...", "..."]'
            )
        return [said]

    @field_validator("state_key")
    @classmethod
    def _cannot_be_guessed(cls, key: SecretStr | None) -> SecretStr | None:
        return None if key is None else _hard_to_guess(key)

    @field_validator("state_key_fallbacks")
    @classmethod
    def _nor_can_these(cls, keys: Secrets) -> Secrets:
        return tuple(map(_hard_to_guess, keys))

    @field_validator("traces")
    @classmethod
    def _has_packages(cls, wanted: bool) -> bool:
        if wanted and not any(distributions(name=_EXPORTER)):
            raise ValueError(f"{_EXPORTER} is not installed; it comes with the role traces")
        return wanted


def _from_json(said: str) -> object:
    try:
        return json.loads(said)
    except ValueError:
        raise ValueError("it begins as a JSON list and goes on as none") from None


def _hard_to_guess(key: SecretStr) -> SecretStr:
    """Without the space around it. Raises `ValueError`, which does not tell it."""
    secret = key.get_secret_value().strip()  # the end of a line comes with many a file
    few = None
    if len(secret) < _SHORTEST_SECRET:
        few = f"{_SHORTEST_SECRET} characters"
    elif len(set(secret)) < _LEAST_VARIETY:
        few = f"{_LEAST_VARIETY} different characters"
    if few:
        raise ValueError(f"it has fewer than {few}; {_TAKE_ANOTHER}")
    try:
        secret.encode()
    except UnicodeEncodeError:  # which would tell all of it
        raise ValueError(f"it has bytes that are no UTF-8; {_TAKE_ANOTHER}") from None
    return SecretStr(secret)


def _host(name: str) -> str:
    """As it stands in a request, without a port. Raises `ValueError` for what never does."""
    with suppress(ValueError):
        return str(ip_address(name.removeprefix("[").removesuffix("]")))
    if name != "*" and ("*" in name or urlsplit(f"//{name}").hostname != name.lower()):
        raise ValueError(
            f"{name!r} is no name of a host: one has no scheme and no port, and * alone is any"
        )
    return name


def named() -> list[str]:
    """Whatever may be meant to be a setting: variables of the environment, and files of `SECRETS`,
    where they are read."""
    folder = Settings.model_config.get("secrets_dir")
    return [*os.environ, *(os.listdir(str(folder)) if folder else ())]


def misspelt(names: Iterable[str]) -> Iterator[str]:
    """Of names those that set nothing and are nearly settings; one that is for something else, as
    `EVENKEEL_DATA`, is like none of them."""
    prefix = "EVENKEEL_"
    known = [name.upper() for name in Settings.model_fields]
    for name in map(str.upper, sorted(names)):
        own = name.removeprefix(prefix)
        if name.startswith(prefix) and own not in known:
            for near in get_close_matches(own, known, 1, _NEARLY):
                yield f"{name} is no setting; {prefix}{near} is one"
