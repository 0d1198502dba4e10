"""`python -m bench`: measure, print a table, and write docs/results/step.json."""

import json
import os
from dataclasses import asdict
from pathlib import Path

from bench.machine import describe
from bench.step import measure

RESULTS = Path("docs", "results")
GOAL = 2.5


def main() -> None:
    """Step times for one thread and for all cores."""
    machine = describe()
    print(", ".join(f"{k} {v}" for k, v in machine.items()))
    rows = [row for threads in sorted({1, os.cpu_count() or 1}) for row in measure(threads)]
    print(f"{'model':14}{'threads':>8}{'served µs':>11}{'eager µs':>10}{'ratio':>7}{'p10':>7}")
    for r in rows:
        print(
            f"{r.model:14}{r.threads:8}{r.served_us:11}{r.eager_us:10}{r.ratio_median:7}"
            f"{r.ratio_p10:7}  {'met' if r.ratio_median >= GOAL else 'MISSED'} (goal {GOAL})"
        )
    content = {"command": "make bench", "machine": machine, "rows": [asdict(r) for r in rows]}
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "step.json").write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
