"""Whether a container is shut in as docker-compose.yml says; run inside of it:

docker compose exec -T evenkeel python - < tests/deploy/inside.py
"""

import os
from contextlib import suppress
from pathlib import Path


def _limit(*files: str) -> str:
    """What the first of these files that is there says: control groups are of version 1 or 2."""
    return next(Path(file).read_text("utf-8").strip() for file in files if Path(file).exists())


def _writable(folder: str) -> bool:
    with suppress(OSError):
        (Path(folder) / "probe").touch()
        (Path(folder) / "probe").unlink()
        return True
    return False


status = dict(
    line.split(":\t", 1)
    for line in Path("/proc/self/status").read_text("utf-8").splitlines()
    if ":\t" in line
)
memory = _limit("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
pids = _limit("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max")
found = {
    "user": (os.getuid(), 10001),
    "capabilities": (int(status["CapEff"], 16) | int(status["CapBnd"], 16), 0),
    "new privileges are out": (status["NoNewPrivs"], "1"),
    "memory": (memory, str(2 << 30)),
    "processes": (pids, "256"),
    "writable": (
        [folder for folder in ("/", "/app", "/opt", "/tmp") if _writable(folder)],
        ["/tmp"],
    ),
}
wrong = {name: pair for name, pair in found.items() if pair[0] != pair[1]}
if wrong:
    raise SystemExit(f"found, and expected: {wrong}")
print("shut in:", ", ".join(found))
