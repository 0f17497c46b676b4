"""How long Cranfield takes to start: medians of fresh processes after a warm-up, and as multiples of a bare Python.

Absolute times belong to the machine; the ratios travel better. Limits: `import cranfield` 150 ms, `--help` 300 ms.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 15
WARM_UP = 2
COMMAND = str(Path(sys.executable).with_name("cranfield"))
CASES: dict[str, tuple[list[str], float | None]] = {
    "python -c pass": ([sys.executable, "-c", "pass"], None),
    "import cranfield": ([sys.executable, "-c", "import cranfield"], 150),
    "cranfield --version": ([COMMAND, "--version"], 300),
    "cranfield --help": ([COMMAND, "--help"], 300),
    "cranfield measures": ([COMMAND, "measures"], None),
}


def time_once_ms(argv: list[str]) -> float:
    # Compiled bytecode is kept between starts on a user's machine, so it may be here.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, env=environment)
    return (time.perf_counter() - start) * 1000


def main() -> int:
    # Rounds go through the cases in turn, so that a slow moment of the machine falls on all of them.
    times: dict[str, list[float]] = {name: [] for name in CASES}
    for round_ in range(WARM_UP + ROUNDS):
        for name, (argv, _) in CASES.items():
            elapsed = time_once_ms(argv)
            if round_ >= WARM_UP:
                times[name].append(elapsed)
    bare = statistics.median(times["python -c pass"])
    over = 0
    print(f"startup, {ROUNDS} rounds\n\n{'':22}{'median':>10}{'fastest':>10}{'x bare':>8}{'limit':>10}")
    for name, (_, limit) in CASES.items():
        median = statistics.median(times[name])
        mark = "" if limit is None else f"{limit:7.0f} ms"
        missed = limit is not None and median > limit
        over += missed
        row = f"{name:22}{median:7.0f} ms{min(times[name]):7.0f} ms{median / bare:8.1f}{mark:>10}"
        print(row + ("  over" if missed else ""))
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
