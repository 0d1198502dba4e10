"""The command as a test calls it."""

from typer.testing import CliRunner, Result

from clients.command import main


def evenkeel(url: str, *words: str, given: str | bytes | None = None) -> Result:
    """What becomes of `evenkeel WORDS` for the service at an address."""
    return CliRunner().invoke(main, list(words), input=given, env={"EVENKEEL_URL": url})
