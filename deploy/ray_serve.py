"""The service as a Ray Serve deployment, on one machine or a cluster: the same application, built
once in each replica. Ray starts, routes to, counts, restarts and drains the replicas.

    make ray REPLICAS=2                                          this machine
    serve run deploy.ray_serve:application replicas=2 most=20    on a cluster: docs/scaling.md

Settings are the EVENKEEL_* variables of whoever starts it; EVENKEEL_HOST and EVENKEEL_PORT are
those of Ray's proxies.
"""

import argparse
import asyncio
import logging
import secrets
import signal
from pathlib import Path

import ray
from fastapi import FastAPI
from pydantic import BaseModel, Field, SecretStr
from ray import serve

from service import logs
from service.app import create_alone
from service.catalogue import Models
from service.http.guard import is_loopback
from service.settings import Settings

_ROOT = Path(__file__).parents[1]
_LOOK_S = 0.05
_LAST_WORDS_S = 5
# The service has a line for each request.
_LOGS = {"enable_access_log": False}


class Replicas(BaseModel):
    """How many there are, and what each has. Ray reserves `cpus` of a node for one and keeps it to
    none of them, so that is the number of threads too where `EVENKEEL_THREADS` does not say."""

    replicas: int = Field(1, ge=1, description="at least")
    most: int = Field(0, ge=0, description="at most; 0 for no more than at least")
    cpus: int = Field(1, ge=1, description="of each")


def application(chosen: Replicas) -> serve.Application:
    """What `serve run` and `serve deploy` are given. Raises `ValueError` for a service that
    strangers may reach without a key."""
    asked = Settings()
    if not (asked.keys or asked.open or is_loopback(asked.host)):
        raise ValueError(f"EVENKEEL_HOST is {asked.host!r}: set EVENKEEL_KEYS, or EVENKEEL_OPEN=1")
    # One key for all: a request goes on wherever it comes to.
    key = asked.state_key or SecretStr(secrets.token_hex(32))
    threads = asked.threads or chosen.cpus
    settings = asked.model_copy(update={"state_key": key, "threads": threads})

    def build() -> FastAPI:
        logs.set_up(settings)
        return create_alone(settings)

    class Evenkeel:
        """One replica: its models prove themselves before it is asked anything."""

        async def check_health(self) -> None:
            """Raises for a replica that Ray had better replace: the first time if its models do
            not prove themselves, then if a run is stuck."""
            models: Models = self.app.state.models  # type: ignore[attr-defined]
            while any(not model.engine.attested.is_set() for model in models):
                await asyncio.sleep(_LOOK_S)
            if not models.ready:
                raise RuntimeError("not ready; the log of the replica says why")
            if stuck := models.stuck(settings.stall_timeout_s):
                raise RuntimeError(f"a run is stuck: {', '.join(stuck)}")

    deployed = serve.deployment(
        serve.ingress(build)(Evenkeel),
        name="Evenkeel",
        autoscaling_config={
            "min_replicas": chosen.replicas,
            "initial_replicas": chosen.replicas,
            "max_replicas": max(chosen.most, chosen.replicas),
            # As many as share a run; beyond that they wait.
            "target_ongoing_requests": settings.slots,
            "upscale_delay_s": 5,
            "downscale_delay_s": 300,
        },
        # The engine's own queue says no, and when to come again; Ray's would only make it wait.
        max_ongoing_requests=settings.max_connections,
        ray_actor_options={"num_cpus": chosen.cpus},
        health_check_period_s=5,
        health_check_timeout_s=settings.stall_timeout_s + _LAST_WORDS_S,
        graceful_shutdown_wait_loop_s=0.2,
        graceful_shutdown_timeout_s=settings.drain_timeout_s + _LAST_WORDS_S,
    )
    return deployed.bind()


def main() -> None:
    """Start Ray on this machine and serve until told to stop; or replace what it serves."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, field in Replicas.model_fields.items():
        told = f"{field.description} [{field.default}]"
        parser.add_argument(f"--{name}", type=int, default=field.default, help=told)
    parser.add_argument("--roll", action="store_true", help="replace those of a Ray that runs here")
    asked = vars(parser.parse_args())
    rolls, chosen, settings = asked.pop("roll"), Replicas(**asked), Settings()
    served = application(chosen)
    cpus = max(chosen.replicas, chosen.most) * chosen.cpus
    ray.init(
        **{"address": "auto"} if rolls else {"num_cpus": cpus, "include_dashboard": False},
        logging_level=logging.WARNING,
        runtime_env={"env_vars": {"PYTHONPATH": str(_ROOT)}},
    )
    # Ray's own handler ends everything at once.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    address = {"host": settings.host, "port": settings.port}
    serve.start(http_options=address, logging_config=_LOGS)
    try:
        serve.run(served, blocking=not rolls, logging_config=_LOGS)
    except KeyboardInterrupt:
        serve.shutdown()  # replicas drain first


if __name__ == "__main__":
    main()
