"""`python -m bench`: measure, print tables with the goals, and write docs/results/bench.json."""

import json
import os
from dataclasses import asdict
from pathlib import Path

from bench import http, ink, machine, step

RESULTS = Path("docs", "results")
STEP_GOAL = 2.5
THROUGHPUT_GOAL = 2.5


def main() -> None:
    """Steps of text and ink for one thread and for all cores, then HTTP."""
    where = machine.describe()
    print(", ".join(f"{k} {v}" for k, v in where.items()))
    counts = sorted({1, os.cpu_count() or 1})
    steps = [row for threads in counts for row in step.measure(threads)]
    pens = [ink.measure(threads) for threads in counts] if ink.ARTIFACT.exists() else []
    print(f"{'model':14}{'threads':>8}{'served µs':>11}{'eager µs':>10}{'ratio':>7}{'p10':>7}")
    for r in steps + pens:
        print(
            f"{r.model:14}{r.threads:8}{r.served_us:11}{r.eager_us:10}{r.ratio_median:7}"
            f"{r.ratio_p10:7}  {_goal(r.ratio_median, STEP_GOAL)}"
        )
    if pens:
        line_ms, points = ink.line_ms(counts[-1])
        print(f"a line of {len(ink.TEXT)} characters: {line_ms:.1f} ms for {points} points")
    rows, ready_s = http.measure()
    print(f"\nstart to ready {ready_s:.2f} s; completions of {http.BYTES} bytes, closed loop")
    print(f"{'clients':>8}{'requests':>10}{'p50 ms':>9}{'p90 ms':>9}{'bytes/s':>10}")
    for row in rows:
        print(
            f"{row.clients:8}{row.requests:10}{row.p50_ms:9}{row.p90_ms:9}{row.bytes_per_s:10.0f}"
        )
    gain = rows[1].bytes_per_s / rows[0].bytes_per_s
    print(f"{http.CLIENTS} clients together: {gain:.2f} times one  {_goal(gain, THROUGHPUT_GOAL)}")
    content = {
        "command": "make bench",
        "machine": where,
        "step": [asdict(r) for r in steps],
        "pen": [asdict(r) for r in pens],
        "http": [asdict(r) for r in rows],
        "start_to_ready_s": round(ready_s, 2),
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "bench.json").write_text(json.dumps(content, indent=2) + "\n")


def _goal(value: float, goal: float) -> str:
    return f"{'met' if value >= goal else 'MISSED'} (goal {goal})"


if __name__ == "__main__":
    main()
