"""Whether a peer writes what the service writes, so that none is fast by doing less:
`python -m bench.peers.same_text [NAME ...]`.
"""

import argparse
import asyncio
from collections.abc import Sequence
from itertools import takewhile

from bench.client import ask, connect
from bench.peers.launch import end_in_order, launch
from bench.rows import OK
from bench.target import PEERS, SERVICE, Target

# Lengths in bytes by seed, asked for all at once, so that batches hold requests of many lengths.
CASES = {1: 200, 2: 200, 3: 16, 4: 137, 5: 200, 6: 400, 7: 90, -1: 200}
# BentoML runs its first nine requests one by one, to learn how long they take.
_ROUNDS = 3
# PyTorch eager rounds in its own way, and a draw that falls on the border of two bytes may differ
# once in a long while; from there on the text is another. The others run the service's graph.
PLAIN_PREFIX_CHARACTERS = 50


def same_text(service: Target, peer: Target) -> int:
    """Compare every case, whole and streamed as the peer has it; how many were compared.

    Raises `AssertionError` naming the peer, the seed and where the texts part.
    """
    expected = asyncio.run(_texts(service, streamed=False))
    compared = 0
    for streamed in peer.server.modes * _ROUNDS:
        for seed, text in asyncio.run(_texts(peer, streamed=streamed)).items():
            compare(peer.name, seed, expected[seed], text)
            compared += 1
    return compared


def compare(name: str, seed: int, expected: str, text: str) -> None:
    """Raises `AssertionError` if the peer of that name may not write this text."""
    pairs = zip(expected, text, strict=False)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    if text == expected or (name == "plain" and common >= PLAIN_PREFIX_CHARACTERS):
        return
    raise AssertionError(
        f"{name}, seed {seed}: {text[common:][:20]!r} after {common} characters, "
        f"where the service has {expected[common:][:20]!r}"
    )


async def _texts(target: Target, *, streamed: bool) -> dict[int, str]:
    async with connect() as session:
        asked = (ask(session, target, n, seed, streamed=streamed) for seed, n in CASES.items())
        answers = await asyncio.gather(*asked)
    if failed := {answer.status for answer in answers} - {OK}:
        raise AssertionError(f"{target.name} answers {failed}")
    return {seed: answer.text for seed, answer in zip(CASES, answers, strict=True)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Check the peers of these names, or all."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.same_text", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(PEERS))
    names = parser.parse_args(arguments).names
    if unknown := [name for name in names if name not in PEERS]:
        parser.error(f"no such peer: {', '.join(unknown)}")
    with launch(SERVICE) as service:
        for name in names or PEERS:
            with launch(name) as peer:
                print(f"{name}: the same text {same_text(service, peer)} times")


if __name__ == "__main__":
    end_in_order(main)
