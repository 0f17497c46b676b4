"""A permutation test and a bootstrap of many draws on many queries, beside SciPy's and ranx's on the same values.

`python bench/significance.py [DRAWS [QUERIES]]`, by default 100,000 and 7,000. Each tool is called once before on a few
queries, so that nothing is imported or compiled while the clock runs. The other tools run in bench/.venv, one after the
other. SciPy makes 100 resamples at once, as it would need gigabytes for all.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tools import BENCH, NUMBA_CACHE, THEIRS, clean_environment, say

from cranfield.stats.bootstrap import bootstrap
from cranfield.stats.describe import differences
from cranfield.stats.permutation import permutation
from cranfield.stats.result import TestResult

OURS: Mapping[str, Callable[..., TestResult]] = {"permutation": permutation, "bootstrap": bootstrap}
THEIR_TESTS = ("scipy permutation", "ranx permutation", "scipy bootstrap")


def values(n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """float64[2, n]: nDCG of one relevant document that two systems find at some rank, 3 queries in 10 alike."""
    rng = np.random.default_rng(7)
    gains = np.array([0.0, *(1 / np.log2(rank + 1) for rank in range(1, 11))])
    baseline, candidate = rng.choice(gains, (2, n))
    alike = rng.random(n) < 0.3
    return np.stack([baseline, np.where(alike, baseline, candidate)])


def ours(name: str, sides: np.ndarray[Any, np.dtype[np.float64]], n_draws: int) -> dict[str, Any]:
    """Cranfield's test of the two rows."""
    difference = differences(*sides)
    OURS[name](difference[:50], n_draws=100)
    wall, cpu = time.perf_counter(), time.process_time()
    result = OURS[name](difference, n_draws=n_draws)
    seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    answer = result.p_two_sided if name == "permutation" else [result.ci_low, result.ci_high]
    return {"name": f"cranfield {name}", **seconds, "answer": answer}


def theirs(path: Path, n_draws: int) -> list[dict[str, Any]]:
    """The others' tests, in one process of theirs."""
    if not THEIRS.exists():
        say("no bench/.venv: run bench/setup.sh for the other tools")
        return []
    NUMBA_CACHE.mkdir(parents=True, exist_ok=True)
    argv = [str(THEIRS), str(BENCH / "peers" / "significance.py"), str(path), str(n_draws), *THEIR_TESTS]
    environment = clean_environment({"NUMBA_CACHE_DIR": str(NUMBA_CACHE)})
    called = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return [json.loads(line) for line in called.stdout.splitlines()]


def spelled(answer: float | list[float]) -> str:
    """A p-value, or the ends of an interval."""
    return f"p {answer:.4f}" if isinstance(answer, float) else " to ".join(f"{end:+.5f}" for end in answer)


def main(n_draws: int = 100_000, n_queries: int = 7_000) -> None:
    """Print the table."""
    sides = values(n_queries)
    print(f"{n_draws:,} draws on {n_queries:,} queries; seconds of the clock and of the processors\n")
    print(f"{'':<22}{'clock':>10}{'processor':>12}{'× slower':>11}  answer")
    found = [ours(name, sides, n_draws) for name in OURS]
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values.npy"
        np.save(path, sides)
        found += theirs(path, n_draws)
    fastest = {row["name"].split()[1]: row["wall"] for row in found if row["name"].startswith("cranfield")}
    for kind in OURS:
        for row in found:
            if row["name"].endswith(kind):
                ratio = row["wall"] / fastest[kind]
                print(
                    f"{row['name']:<22}{row['wall']:>8.2f} s{row['cpu']:>10.2f} s{ratio:>11.1f}  {spelled(row['answer'])}"
                )
    print(f"\nCranfield's peak memory was {peak_mb:.0f} MB.")


if __name__ == "__main__":
    main(*(int(word.replace(",", "")) for word in sys.argv[1:]))
