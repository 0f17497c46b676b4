"""What classes cost in power: simulated verdicts of one mean and of classes. `class_power.py [SIMULATIONS]` prints a table.

Differences are normal with a standard deviation of 1, the queries are spread evenly over the classes, and the tests are t
tests at .05 with Holm over the classes, as the verdict by class has them. `docs/explanation/verdict.md` has the table.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy import stats

ALPHA = 0.05
FEWEST = 6
"""Queries that a class needs to decide at .05."""
SEED = 12
N_QUERIES = (30, 50, 100, 200, 400)
N_CLASSES = (2, 4, 8)
Verdicts = dict[str, float]


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's adjustment of each row."""
    order = np.argsort(p, axis=1)
    factors = np.arange(p.shape[1], 0, -1)
    stepped = np.maximum.accumulate(np.minimum(1, np.take_along_axis(p, order, axis=1) * factors), axis=1)
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, stepped, axis=1)
    return adjusted


def verdicts(n: int, effects: list[float], n_simulations: int, rng: np.random.Generator) -> Verdicts:
    """Share of each verdict where each class has its own effect, in standard deviations of a difference."""
    labels = np.arange(n) % len(effects)
    values = rng.standard_normal((n_simulations, n)) + np.array(effects)[labels]
    pooled = stats.ttest_1samp(values, 0, axis=1)
    tests = [stats.ttest_1samp(values[:, labels == k], 0, axis=1) for k in range(len(effects))]
    tests = [test for k, test in enumerate(tests) if (labels == k).sum() >= FEWEST]
    up, down = pooled.statistic > 0, pooled.statistic < 0
    significant = pooled.pvalue <= ALPHA
    found: Verdicts = {
        "pooled better": float((significant & up).mean()),
        "pooled worse": float((significant & down).mean()),
    }
    if not tests:
        return found | {"better": 0.0, "worse": 0.0, "mixed": 0.0}
    rejected = holm(np.column_stack([test.pvalue for test in tests])) <= ALPHA
    signs = np.column_stack([test.statistic for test in tests]) > 0
    better, worse = (rejected & signs).any(axis=1), (rejected & ~signs).any(axis=1)
    return found | {
        "better": float((significant & up & better & ~worse).mean()),
        "worse": float((significant & down & worse & ~better).mean()),
        "mixed": float((better & worse).mean()),
    }


def table(title: str, effects_of: dict[str, list[float]], n_simulations: int) -> None:
    """Print the shares for each number of queries."""
    print(
        f"\n{title}\n{'queries':>7} {'classes':>8} {'one mean: better':>17} {'classes: better':>16} {'worse':>7} {'mixed':>7}"
    )
    for n in N_QUERIES:
        for name, effects in effects_of.items():
            found = verdicts(n, effects, n_simulations, np.random.default_rng(SEED))
            shares = (f"{found[key]:.3f}" for key in ("pooled better", "better", "worse", "mixed"))
            print("{:>7} {:>8} {:>17} {:>16} {:>7} {:>7}".format(n, name, *shares))


def main() -> None:
    """Print the tables."""
    n_simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    equal = {str(k): [0.3] * k for k in N_CLASSES}
    table("Every class gains .3 standard deviations", equal, n_simulations)
    table("No class differs", {str(k): [0.0] * k for k in N_CLASSES}, n_simulations)
    falling = {str(k): [0.5] * (k - 1) + [-0.5] for k in N_CLASSES}
    table("One class loses .5, the others gain .5", falling, n_simulations)


if __name__ == "__main__":
    main()
