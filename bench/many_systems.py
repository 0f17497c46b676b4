"""False alarms and power of the procedures for many systems, where the truth is known.

`python bench/many_systems.py [SIMULATIONS [SYSTEMS [QUERIES]]]`, by default 200 simulations of 143 systems on 50 queries. The
systems form 5 groups of equal true means, .10 apart. A significant pair within a group is a false alarm; a significant pair of
groups that are .10, .20 or .30 apart was found. Three populations of values:

- `graded`: gains of one relevant document at ranks 1 to 10 or nowhere; queries differ in difficulty.
- `alike`: the same, with all systems in one group.
- `unequal`: normal values; the systems of every second group spread three times as far as the others.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.evaluation.many import all_pairs
from cranfield.stats.result import holm
from cranfield.stats.simultaneous import max_t, tukey_hsd

Values = NDArray[np.float64]
"""Queries by systems."""
ALPHA, GAP, GROUPS = 0.05, 0.10, 5
STEPS = (1, 2, 3)
"""Gaps whose power is printed, in groups."""
DRAWS = 2_000
"""Sign patterns of max-T in each simulation; with so many it is still exact."""
GAINS = np.array([0.0, *(1 / np.log2(rank + 1) for rank in range(10, 0, -1))])


@dataclass(frozen=True, slots=True)
class Truth:
    """A population: how values are drawn, and which systems have equal means."""

    name: str
    draw: Callable[[np.random.Generator, int, int], Values]
    n_groups: int = GROUPS


def groups_of(systems: int, n_groups: int) -> NDArray[np.int64]:
    """The group of each system."""
    return np.arange(systems) * n_groups // systems


def graded(rng: np.random.Generator, n: int, systems: int, n_groups: int = GROUPS) -> Values:
    """Gains of one relevant document; the true means of neighbouring groups are `GAP` apart."""
    means = 0.5 + GAP * (groups_of(systems, n_groups) - (n_groups - 1) / 2)
    wanted = np.clip(means + rng.normal(0, 0.15, (n, 1)) + rng.normal(0, 0.1, (n, systems)), 0, 1)
    above = np.clip(np.searchsorted(GAINS, wanted, side="right"), 1, len(GAINS) - 1)
    low, high = GAINS[above - 1], GAINS[above]
    # One of the two gains next to it, by chance: the mean stays.
    return np.where(rng.random((n, systems)) < (wanted - low) / (high - low), high, low)


def unequal(rng: np.random.Generator, n: int, systems: int) -> Values:
    """Normal values whose spread differs between groups."""
    groups = groups_of(systems, GROUPS)
    spread = np.where(groups % 2, 0.30, 0.10)
    return GAP * groups + rng.normal(0, 0.2, (n, 1)) + spread * rng.normal(size=(n, systems))


TRUTHS = (
    Truth("graded", graded),
    Truth("alike", lambda rng, n, systems: graded(rng, n, systems, 1), 1),
    Truth("unequal", unequal),
)


def by_max_t(values: Values, seed: int) -> Values:
    """Adjusted p-values of single-step max-T."""
    found = max_t(values, all_pairs(values.shape[1]), seed=seed, n_draws=DRAWS)
    return np.array([result.p_adjusted for result in found])


def by_t(values: Values, _seed: int) -> Values:
    """Paired t tests, adjusted by Holm."""
    from scipy.special import stdtr

    first, second = np.array(all_pairs(values.shape[1])).T
    d = values[:, second] - values[:, first]
    n, spread = len(d), d.std(axis=0, ddof=1)
    t = np.divide(d.mean(axis=0) * np.sqrt(n), spread, out=np.zeros(d.shape[1]), where=spread > 0)
    return np.array(holm((2 * stdtr(n - 1, -np.abs(t))).tolist()), dtype=np.float64)


def by_tukey(values: Values, _seed: int) -> Values:
    """Tukey's honestly significant difference."""
    return tukey_hsd(values, all_pairs(values.shape[1]))


def by_permutation(values: Values, seed: int) -> Values:
    """Permutation tests of each pair, adjusted by Holm: here with as few draws, which cannot find anything."""
    found = max_t(values, all_pairs(values.shape[1]), seed=seed, n_draws=DRAWS)
    return np.array(holm([result.p_two_sided for result in found]), dtype=np.float64)


PROCEDURES: Mapping[str, Callable[[Values, int], Values]] = {
    "permutation, max-T": by_max_t,
    "t, Holm": by_t,
    "Tukey HSD (beside)": by_tukey,
    "permutation, Holm": by_permutation,
}


@dataclass(frozen=True, slots=True)
class Row:
    """What one procedure did in all simulations of one population."""

    truth: str
    procedure: str
    family_wise: float
    """Share of the simulations with a false alarm."""
    power: tuple[float, ...]
    """Share of the pairs of groups that are each of `STEPS` apart that were found, in the right direction."""
    seconds: float
    """Of one simulation."""


def simulate(truth: Truth, procedure: str, simulations: int, systems: int, queries: int, seed: int = 0) -> Row:
    """Draw the population many times, and count what the procedure finds."""
    groups, pairs = groups_of(systems, truth.n_groups), np.array(all_pairs(systems))
    apart = groups[pairs[:, 1]] - groups[pairs[:, 0]]
    alarms, spent = 0, 0.0
    found: dict[int, list[float]] = {step: [] for step in STEPS if (apart == step).any()}
    for number in range(simulations):
        values = truth.draw(np.random.default_rng([seed, number]), queries, systems)
        started = time.perf_counter()
        significant = PROCEDURES[procedure](values, number) <= ALPHA
        spent += time.perf_counter() - started
        alarms += bool(significant[apart == 0].any())
        means = values.mean(axis=0)
        up = means[pairs[:, 1]] > means[pairs[:, 0]]
        for step, shares in found.items():
            shares.append(float((significant & up)[apart == step].mean()))
    power = tuple(float(np.mean(shares)) for shares in found.values())
    return Row(truth.name, procedure, alarms / simulations, power, spent / simulations)


def main(simulations: int = 200, systems: int = 143, queries: int = 50) -> None:
    """Print the table."""
    n_pairs = systems * (systems - 1) // 2
    print(f"{simulations} simulations, {systems} systems, {queries} queries, {n_pairs:,} pairs, alpha {ALPHA}\n")
    gaps = "".join(f"{f'gap {step * GAP:.2f}':>10}" for step in STEPS)
    print(f"{'population':<12}{'procedure':<22}{'family-wise error':>20}{gaps}{'seconds':>9}")
    for truth in TRUTHS:
        for procedure in PROCEDURES:
            row = simulate(truth, procedure, simulations, systems, queries)
            power = "".join(f"{share:>10.3f}" for share in row.power) or f"{'':>{10 * len(STEPS)}}"
            noise = math.sqrt(max(row.family_wise, 1 / simulations) * (1 - row.family_wise) / simulations)
            error = f"{row.family_wise:.3f} ± {noise:.3f}"
            print(f"{row.truth:<12}{procedure:<22}{error:>20}{power}{row.seconds:>9.2f}", flush=True)


if __name__ == "__main__":
    main(*(int(word.replace(",", "")) for word in sys.argv[1:]))
