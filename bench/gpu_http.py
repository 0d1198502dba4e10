"""The service on a GPU over HTTP, and on the CPU beside it: `python -m bench.gpu_http`.

Requests of 200 bytes to `shakespeare`, in a closed loop of clients, whole and streamed; a server of
each provider in turn, in two rounds. Writes JSON to docs/results, or to `--out`; `--providers
cpu` rehearses what needs no GPU.
"""

import argparse
import json
from dataclasses import asdict
from itertools import product

from bench import http
from bench.peers.launch import end_in_order, launch, unproxied
from bench.servers import ALONE, MANY
from bench.target import SERVERS, SERVICE
from export.results import command, machine, results_folder, write_json
from service.artifact import ArtifactError
from service.engine.runtime import choose_runtime
from service.settings import Settings

PROVIDERS = ("cuda", "cpu")


def main(arguments: list[str] | None = None) -> None:
    """Print a row per provider, number of clients and way to answer, and write the rows."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_http", description=__doc__)
    parser.add_argument("--providers", nargs="+", choices=PROVIDERS, default=PROVIDERS)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--out", type=results_folder, default="docs/results", help="where to write")
    options = parser.parse_args(arguments)
    try:
        for provider in options.providers:
            choose_runtime(Settings(provider=provider))
    except ArtifactError as error:
        parser.error(str(error))
    rows = []
    for _, provider in product(range(options.rounds), options.providers):
        with launch(SERVICE, settings={"EVENKEEL_PROVIDER": provider}) as target:
            with unproxied.open(target.url("/v1/models")) as answer:
                runtime = json.load(answer)["data"][0]["runtime"]
            for clients, streamed in product((ALONE, MANY), SERVERS[SERVICE].modes):
                row = http.load(target, clients=clients, seconds=options.seconds, streamed=streamed)
                print(runtime, row.line(), flush=True)
                rows.append({"runtime": runtime} | asdict(row))
    content = {"command": command("bench.gpu_http", arguments), "machine": machine()}
    write_json(options.out / "gpu-http.json", content | {"rows": rows})


if __name__ == "__main__":
    end_in_order(main)
