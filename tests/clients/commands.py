"""The command as a test calls it."""

from typer.testing import CliRunner, Result

from clients.command import main


def evenkeel(url: str, *words: str, given: str | bytes | None = None) -> Result:
    """What becomes of `evenkeel WORDS` for the service at an address."""
    # However narrow the terminal of whoever runs the test: typer breaks its messages to fit.
    environment = {"EVENKEEL_URL": url, "COLUMNS": "80"}
    return CliRunner().invoke(main, list(words), input=given, env=environment)
