"""`python -m service`: serve every model in the artifacts folder. Settings are environment
variables; `python -m service --help` lists them."""

import argparse
import logging
import sys

from pydantic import ValidationError

from service.app import create_app
from service.artifact import ArtifactError
from service.server import Server
from service.settings import Settings


def main() -> int:
    """Serve until told to stop; 2 for a bad setting or an artifact that cannot be served."""
    parser = argparse.ArgumentParser(
        prog="python -m service",
        description=__doc__,
        epilog=_settings_table(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.parse_args()
    try:
        settings = Settings()
    except ValidationError as error:
        for problem in error.errors():
            name = f"EVENKEEL_{'_'.join(map(str, problem['loc'])).upper()}"
            secret = problem["loc"] == ("state_key",)
            given = "" if secret else f" is {problem['input']!r}"
            print(f"error: {name}{given}: {problem['msg']}", file=sys.stderr)
        return 2
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        app = create_app(settings)
    except ArtifactError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    server = Server(app, settings)
    try:
        server.run()
    except KeyboardInterrupt:
        return 0
    return 0 if server.started else 2


def _settings_table() -> str:
    lines = ["environment variables:"]
    for name, info in Settings.model_fields.items():
        lines.append(f"  EVENKEEL_{name.upper():18} {info.description} [{info.default}]")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
