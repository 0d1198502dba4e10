"""The command as a test calls it."""

from typer.testing import CliRunner, Result

from clients.command import main


def evenkeel(
    url: str,
    *words: str,
    given: str | bytes | None = None,
    encoding: str = "utf-8",
    on_terminal: bool = False,
) -> Result:
    """What becomes of `evenkeel WORDS` for the service at an address; a terminal is shown what is
    left out of a file."""
    # However narrow the terminal of whoever runs the test: typer breaks its messages to fit.
    environment = {"EVENKEEL_URL": url, "COLUMNS": "80"}
    runner = CliRunner(charset=encoding)
    return runner.invoke(main, list(words), input=given, env=environment, color=on_terminal)
