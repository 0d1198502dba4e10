"""`evenkeel`: ask a running service from the shell. `evenkeel --help` lists the verbs.

What was asked for goes to standard output, everything else to standard error; the exit status is 1
when the service refuses or does not answer, 2 for a command that makes no sense.
"""

import json
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TextIO
from urllib.parse import quote

import typer
from rich.console import Console
from rich.progress import Progress

from clients.asking import asking, plain, require_output, tell
from clients.client import Client
from clients.errors import Refused
from clients.files import FORMATS, format_of, found, inks, kept, piped, require_place, save
from clients.options import (
    FILE,
    HERE,
    KEEP,
    BestBy,
    BestOf,
    Judge,
    Key,
    Model,
    Patience,
    Seed,
    Sheet,
    Style,
    Thinning,
    Transparent,
    Url,
    Wander,
    parsed,
    require_sayable,
)
from clients.page import Page
from clients.watch import Watch

main = typer.Typer(
    help="Ask a running Evenkeel for text, ink and proof.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("evenkeel"))
        raise typer.Exit


@main.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="show it and leave"),
    ] = False,
) -> None:
    """What the command takes before a verb."""


@main.command()
def complete(
    prompt: Annotated[
        str | None, typer.Argument(help="what to go on with; - reads standard input")
    ] = None,
    model: Model = None,
    max_tokens: Annotated[int, typer.Option(help="bytes to write at most")] = 200,
    temperature: Annotated[float | None, typer.Option(help="0 to 2")] = None,
    top_p: Annotated[float | None, typer.Option(help="above 0, to 1")] = None,
    top_k: Annotated[int | None, typer.Option(help="bytes to choose from")] = None,
    min_p: Annotated[float | None, typer.Option(help="0 to 1")] = None,
    logit_bias: Annotated[
        str | None, typer.Option(metavar="JSON", help='by byte, like {"65": -100}')
    ] = None,
    stop: Annotated[list[str] | None, typer.Option(help="end before it; may be repeated")] = None,
    seed: Seed = None,
    echo: Annotated[bool, typer.Option("--echo", help="begin with the prompt")] = False,
    state_in: Annotated[
        Path | None, typer.Option(help="go on from the moment in a file", **FILE)
    ] = None,
    state_out: Annotated[
        Path | None, typer.Option(help="keep the moment it ends at", **KEEP)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="write the events, one a line")] = False,
    url: Url = HERE,
    api_key: Key = None,
    patience: Patience = 10,
) -> None:
    """Go on with a text. Without a PROMPT or --state-in, with what is piped in, if anything is."""
    require_place(state_out)
    require_output()
    if prompt == "-" or (prompt is None and state_in is None and not _is_terminal(sys.stdin)):
        prompt = piped()
    asked: dict[str, Any] = {
        "prompt": prompt or "", "max_tokens": max_tokens, "echo": echo,
        "temperature": temperature, "top_p": top_p, "top_k": top_k, "min_p": min_p, "seed": seed,
        "logit_bias": None if logit_bias is None else parsed("--logit-bias", logit_bias),
        "stop": stop, "state": None if state_in is None else kept(state_in),
    }  # fmt: skip
    require_sayable(asked | {"model": model})
    with asking(url, api_key, patience) as client:
        asked["model"] = model or _default(client, "language")
        events = client.complete(**asked, return_state=state_out is not None)
        _print_as_it_comes(events, as_json=as_json, state_out=state_out)


@main.command()
def write(
    context: typer.Context,
    out: Annotated[
        Path,
        typer.Option("-o", "--out", help=f"its ending is the format: {', '.join(FORMATS)}", **KEEP),
    ],
    text: Annotated[str, typer.Argument(help="what to write; - reads standard input")] = "-",
    model: Model = None,
    style: Style = None,
    bias: Annotated[float | None, typer.Option(help="neatness, 0 to 5")] = None,
    best_of: BestOf = None,
    best_by: BestBy = None,
    judge: Judge = None,
    seed: Seed = None,
    width: Annotated[int | None, typer.Option(help="of the page, in px")] = None,
    line_height: Annotated[float | None, typer.Option(help="in px")] = None,
    stroke_width: Annotated[float | None, typer.Option(help="in px")] = None,
    thinning: Thinning = None,
    wander: Wander = None,
    page: Sheet = None,
    margin: Annotated[float | None, typer.Option(help="in mm")] = None,
    paper: Annotated[str | None, typer.Option(help="plain, ruled or squared")] = None,
    transparent: Transparent = False,
    color: Annotated[str | None, typer.Option(help="#rgb or #rrggbb")] = None,
    url: Url = HERE,
    api_key: Key = None,
    patience: Patience = 10,
) -> None:
    """Write a text by hand, into a file."""
    # All other options are fields of the request, by their names.
    own = {"out", "text", "transparent", "url", "api_key", "patience"}
    asked = {n: v for n, v in context.params.items() if n not in own}
    # The end of a file's last line writes nothing.
    asked |= {"text": piped().rstrip("\r\n") if text == "-" else text, "format": format_of(out)}
    asked |= {"ground": "transparent"} if transparent else {}
    require_sayable(asked)
    with asking(url, api_key, patience) as client:
        asked["model"] = model or _default(client, "handwriting")
        ink = _written(client, asked)
        kept_as = f"{out}, seed {ink.seed}"
        save(out, ink.content())
    typer.echo(kept_as, err=True)
    for line in ink.unfinished:
        tell(f"not finished: {line}")
    for line in ink.unreadable:
        tell(f"not legible enough: {line}")


@main.command()
def read(
    ink: Annotated[
        Path, typer.Argument(help="a file of InkML or JSON; - reads standard input")
    ] = Path("-"),
    model: Model = None,
    line_height: Annotated[
        float | None, typer.Option(help="of the ruled line it stands on, in the ink's own units")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="with how sure it is, one a line")
    ] = False,
    url: Url = HERE,
    api_key: Key = None,
    patience: Patience = 10,
) -> None:
    """Read handwriting: InkML or strokes, line by line, or each line of a page that `write` kept
    as JSON."""
    require_output()
    lines = inks(found(ink), ruled=line_height is not None)
    require_sayable({"model": model, "line_height": line_height})
    with asking(url, api_key, patience) as client:
        asked = {"model": model or _default(client, "reader"), "line_height": line_height}
        for line in lines:
            answer = {"text": ""} if line is None else client.read(**asked, **line)
            typer.echo(json.dumps(answer) if as_json else answer["text"])


@main.command()
def models(
    as_json: Annotated[bool, typer.Option("--json", help="all that is known of them")] = False,
    url: Url = HERE,
    api_key: Key = None,
) -> None:
    """List the models, and whether they have proved themselves there."""
    require_output()
    with asking(url, api_key) as client:
        listed = client.models()
        if as_json:
            typer.echo(json.dumps(listed, indent=2))
            return
        for model in listed:
            kind, parameters = model["kind"], f"{model['parameters']:,} parameters"
            told = f"{model['id']:<20} {kind:<12} {parameters:>22}  {_proof(model)}"
            typer.echo(plain(told))


@main.command()
def attest(
    names: Annotated[list[str] | None, typer.Argument(help="all models if left out")] = None,
    url: Url = HERE,
    api_key: Key = None,
) -> None:
    """Have models replay their golden vectors now; exits 1 if any does not agree."""
    require_output()
    require_sayable({"names": names})
    with asking(url, api_key) as client:
        ok = True
        for name in names or [model["id"] for model in client.models()]:
            try:
                verdict = client.ask("POST", f"/v1/models/{quote(name, safe='')}/attest").json()
            except Refused as error:  # the others may be asked all the same
                tell(str(error))
                ok = False
            else:
                typer.echo(plain(f"{name:<20} {_told(verdict)}"))
                ok = ok and verdict["ok"]
    raise typer.Exit(0 if ok else 1)


@main.command()
def watch(
    count: Annotated[
        int | None, typer.Option(min=1, help="rounds of probes; else on and on")
    ] = None,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, max=86_400, help="between rounds")
    ] = 1,
    url: Url = HERE,
    api_key: Key = None,
) -> None:
    """Watch latency live, probing models that write; Ctrl-C ends. Exits 1 if the last probes
    failed."""
    require_output()
    with asking(url, api_key) as client:
        ok = Watch(client).run(count, every_s=every)
    raise typer.Exit(0 if ok else 1)


def _written(client: Client, asked: dict[str, Any]) -> Page:
    """The page that was asked for, once all of it has come; how far it is is shown meanwhile."""
    console, ink = Console(stderr=True), Page(asked["format"])
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("writing", total=None)
        for event in client.write(**asked):
            ink.add(event)
            bar.update(task, total=ink.characters, completed=ink.written)
    return ink


def _is_terminal(stream: TextIO | None) -> bool:
    """Python has None for one that is closed."""
    return stream is not None and stream.isatty()


def _print_as_it_comes(
    events: Iterator[dict[str, Any]], *, as_json: bool, state_out: Path | None
) -> None:
    """The text of a stream, or its events, and the moment it ends at kept in a file."""
    begun = False
    try:
        for event in events:
            choice = event["choices"][0]
            # As bytes: of a text, what a terminal might obey would be left out of a file.
            typer.echo(json.dumps(event) if as_json else choice["text"].encode(), nl=as_json)
            begun = True
            if state_out is not None and "state" in choice:
                save(state_out, choice["state"].encode())
    finally:
        if begun and _is_terminal(sys.stdout) and not as_json:
            typer.echo()  # what is told of an error has a line of its own


def _default(client: Client, kind: str) -> str:
    """The model that the service would take; the first where it would want to be told, said aloud:
    another may have been meant."""
    models = [model for model in client.models() if model["kind"] == kind]
    if not models:
        raise Refused(f"there is no {kind} model")
    taken = max(models, key=lambda model: (model["ready"], model["default"]))
    if len(models) > 1 and not taken["default"]:
        others = ", ".join(model["id"] for model in models if model is not taken)
        tell(f"asks {taken['id']}; -m names another: {others}")
    return str(taken["id"])


def _proof(model: dict[str, Any]) -> str:
    """A replay alone is none: it says that this is what was exported, not that it was trained."""
    doubt, told = model.get("unproved"), _told(model["attestation"])
    return told if doubt is None else f"unproved: {doubt}; golden vectors {told}"


def _told(verdict: dict[str, Any] | None) -> str:
    if verdict is None:
        return "not attested yet"
    if not verdict["ok"]:  # there may be no error to tell, as of outputs that are no numbers
        return f"failed: {verdict['detail']}"
    error, bound = verdict["max_error"], verdict["bound"]
    return f"ok, error {error:.1e} of {bound:.1e} in {verdict['steps']} steps"
