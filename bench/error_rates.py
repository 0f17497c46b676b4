"""False verdicts and power of the paired tests, simulated: shape of the differences x ties x queries x test.

    python bench/error_rates.py [--simulations 10000] [--seed 13] [--cells FILE] [--shape NAME ...]

prints the tables of `docs/explanation/error-rates.md` (about 8 minutes on one core). With `--cells`, each finished cell is added to the
file, and a cell that is already there is not computed again.

Every shape has a mean of 0 and a standard deviation of 1, so that each *better* or *worse* is false. All tests here except `wilcoxon` and `sign`
do not change when the same number is added to every difference and to the true mean: the interval misses the true mean
exactly where the test rejects it, so the coverage of the 95 % interval is 100 % minus the false verdicts.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]
Tails = tuple[Floats, Floats]
"""One-sided p-values of each row: mean above 0, and mean below 0."""

ALPHA = 0.05
SEED = 13
SIMULATIONS = 10_000
SIZES = (10, 20, 30, 50, 100, 200)
ZEROS = {"none": 0.0, "many": 0.6}
"""Share of queries on which both systems have the same value, beyond those of the shape."""
DRAWS = 2000
"""Sign patterns, and resamples plus one; at n = 10 all 1,024 sign patterns."""
AT_ONCE = 500
"""Simulations that share sign patterns and resamples."""
EFFECT = stats.norm.ppf(0.8) + stats.norm.ppf(1 - ALPHA / 2)
"""True mean of the alternative in standard errors: a z test has 80 % power."""

GAINS = np.array([0.0, *(1 / rank for rank in range(1, 11))])
CHANCES = np.array([0.3, 0.25, 0.12, 0.08, 0.06, 0.05, 0.04, 0.03, 0.03, 0.02, 0.02])
RARE = 0.0425
"""Share of queries that lose in the shape `rare losses`."""
BELOW_TOP = 0.2
"""Share of queries that are not at the ceiling."""


def rare_losses(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    """Gains of .02 to .06 on most queries; .0425 of them lose what cancels that."""
    gain = rng.uniform(0.02, 0.06, size)
    return np.where(rng.random(size) < RARE, -0.04 * (1 - RARE) / RARE, gain)


def ceiling(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    """A value of 1 on most queries, and any value below on the others; the mean is 1 - BELOW_TOP / 2."""
    return np.where(rng.random(size) < BELOW_TOP, rng.random(size), 1.0) - (1 - BELOW_TOP / 2)


def ndcg_steps(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    """One relevant document: on 3 of 10 queries the same rank, else from rank 3 to 2, or, more seldom, from 1 to 3."""
    rise, fall = 1 / math.log2(3) - 0.5, -0.5
    falls = 0.7 * rise / (rise - fall)
    return rng.choice([0.0, rise, fall], p=[0.3, 0.7 - falls, falls], size=size)


def reciprocal_ranks(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    """Differences of RR@10 of two exchangeable systems."""
    return rng.choice(GAINS, p=CHANCES, size=size) - rng.choice(GAINS, p=CHANCES, size=size)


@dataclass(frozen=True)
class Shape:
    """A population of differences with mean 0."""

    draw: Callable[[np.random.Generator, tuple[int, int]], Floats]
    sd: float
    is_symmetric: bool
    meaning: str


SHAPES: Mapping[str, Shape] = {
    "normal": Shape(lambda rng, size: rng.standard_normal(size), 1.0, True, "normal"),
    "heavy tail": Shape(
        lambda rng, size: rng.standard_t(3, size), math.sqrt(3), True, "Student's t with 3 degrees of freedom"
    ),
    "binary": Shape(
        lambda rng, size: rng.choice([-1.0, 1.0], size=size),
        1.0,
        True,
        "−1 or +1 with equal probability: P@1 of two equal systems",
    ),
    "RR": Shape(
        reciprocal_ranks,
        math.sqrt(2 * float(CHANCES @ GAINS**2 - (CHANCES @ GAINS) ** 2)),
        True,
        "differences of RR@10 of two exchangeable systems: discrete, with zeros",
    ),
    "nDCG steps": Shape(
        ndcg_steps,
        math.sqrt(0.7 * (1 / math.log2(3) - 0.5) * 0.5),
        False,
        "rank 3 to 2 on most queries, rank 1 to 3 on few: discrete, skewed a little",
    ),
    "exponential": Shape(
        lambda rng, size: 1 - rng.standard_exponential(size),
        1.0,
        False,
        "1 minus an exponential variable: gains end at 1, losses have a tail",
    ),
    "log-normal": Shape(
        lambda rng, size: math.exp(0.5) - rng.lognormal(0, 1, size),
        math.sqrt((math.e - 1) * math.e),
        False,
        "minus a log-normal variable, centred: a longer tail of losses",
    ),
    "ceiling": Shape(
        ceiling,
        math.sqrt(BELOW_TOP / 3 + 1 - BELOW_TOP - (1 - BELOW_TOP / 2) ** 2),
        False,
        "80 % of the queries at the largest value, the others anywhere below, centred",
    ),
    "rare losses": Shape(
        rare_losses,
        math.sqrt((1 - RARE) * (0.04**2 + 0.04**2 / 12) + RARE * (0.04 * (1 - RARE) / RARE) ** 2),
        False,
        "a gain of .02 to .06 on 95.75 % of the queries, a loss of .90 on 4.25 %",
    ),
}


def sample(shape: str, zeros: float, n: int, shift: float, n_rows: int, rng: np.random.Generator) -> Floats:
    """float64[n_rows, n]: differences with a true mean of `shift`, whose queries that are equal by `zeros` stay so."""
    about = SHAPES[shape]
    values = about.draw(rng, (n_rows, n)) / about.sd / math.sqrt(1 - zeros) + shift / (1 - zeros)
    return np.where(rng.random((n_rows, n)) < zeros, 0.0, values) if zeros else values


def flips(n: int, rng: np.random.Generator) -> Floats:
    """float64[n, patterns / 2]: the first set of flipped queries of each pair, the empty set first."""
    if n <= 10:
        return np.array([[(pattern >> bit) & 1 for pattern in range(1 << (n - 1))] for bit in range(n)], dtype=float)
    members = rng.integers(0, 2, (n, DRAWS // 2)).astype(float)
    members[:, 0] = 0
    return members


def permutation(d: Floats, members: Floats) -> Tails:
    """`cranfield.stats.permutation`: the sums over the flipped sets, and over their complements."""
    sums, total = d @ members, d.sum(axis=1, keepdims=True)
    zero = 1e-12 * np.abs(d).sum(axis=1, keepdims=True)
    both = 2 * members.shape[1]
    greater = (sums <= zero).sum(axis=1) + (total - sums <= zero).sum(axis=1)
    less = (sums >= -zero).sum(axis=1) + (total - sums >= -zero).sum(axis=1)
    return greater / both, less / both


def wilcoxon(d: Floats, members: Floats) -> Tails:
    """The permutation test of signed midranks; zeros are left out, and 6 others are needed."""
    size = np.where(np.abs(d) <= 1e-12, np.nan, np.round(np.abs(d), 12))
    ranks = np.nan_to_num(stats.rankdata(size, axis=1, nan_policy="omit"))
    greater, less = permutation(ranks * np.sign(d), members)
    enough = (ranks > 0).sum(axis=1) >= 6
    return np.where(enough, greater, 1.0), np.where(enough, less, 1.0)


def sign(d: Floats) -> Tails:
    """The binomial test of gains and losses."""
    gains, losses = (d > 1e-12).sum(axis=1), (d < -1e-12).sum(axis=1)
    return stats.binom.sf(gains - 1, gains + losses, 0.5), stats.binom.sf(losses - 1, gains + losses, 0.5)


def moments(d: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, standard deviation and mean third power about the mean of each row; a spread of rounding errors is 0."""
    mean, spread = d.mean(axis=1), d.std(axis=1, ddof=1)
    spread = np.where(spread <= 1e-12 * np.abs(d).max(axis=1), 0.0, spread)
    return mean, spread, ((d - mean[:, None]) ** 3).mean(axis=1)


def of_t(statistic: Floats, df: int) -> Tails:
    """Both tails of Student's t."""
    return stats.t.sf(statistic, df), stats.t.cdf(statistic, df)


def student(d: Floats) -> Floats:
    """The t statistic; infinite without spread."""
    mean, spread, _ = moments(d)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(mean / spread * math.sqrt(d.shape[1]), nan=0.0, posinf=np.inf, neginf=-np.inf)


def johnson(d: Floats) -> Floats:
    """Johnson's modified t: t + g (1 + 2 t^2) / (6 sqrt n), g = m3 / s^3 (Johnson 1978, JASA 73(363), equation 2.5)."""
    t, (_, spread, third) = student(d), moments(d)
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = np.where(spread > 0, third / spread**3, 0.0)
        return np.where(spread > 0, t + skew * (1 + 2 * t**2) / (6 * math.sqrt(d.shape[1])), t)


def resamples(n: int, rng: np.random.Generator) -> Floats:
    """float64[n, DRAWS - 1]: how often each query is in each resample."""
    return rng.multinomial(n, np.full(n, 1 / n), size=DRAWS - 1).T.astype(float)


def bca(d: Floats, counts: Floats) -> Tails:
    """`cranfield.stats.bootstrap`: Efron's BCa interval of the mean, inverted."""
    n, zero = d.shape[1], 1e-12 * np.abs(d).sum(axis=1, keepdims=True)
    sums, total = d @ counts, d.sum(axis=1, keepdims=True)
    below = (sums < total - zero).sum(axis=1) + (np.abs(sums - total) <= zero).sum(axis=1) / 2
    bias = special.ndtri(np.clip(below, 1, DRAWS - 2) / (DRAWS - 1))
    _, spread, third = moments(d)
    squares = (n - 1) / n * spread**2
    with np.errstate(divide="ignore", invalid="ignore"):
        acceleration = np.where(spread > 0, third / (6 * math.sqrt(n) * squares**1.5), 0.0)
    greater = _alpha_of((sums <= zero).sum(axis=1) + 1, bias, acceleration)
    return greater, _alpha_of((sums >= -zero).sum(axis=1) + 1, -bias, -acceleration)


def _alpha_of(rank: NDArray[np.int64], bias: Floats, acceleration: Floats) -> Floats:
    shifted = special.ndtri(np.minimum(rank, DRAWS - 1) / DRAWS) - bias
    p = np.maximum(1 / DRAWS, special.ndtr(shifted / (1 + acceleration * shifted) - bias))
    return np.where(rank >= DRAWS, 1.0, p)


def bootstrap_t(d: Floats, counts: Floats) -> Tails:
    """The studentised bootstrap: where t lies among (m* - m) / s* sqrt(n) of the resamples."""
    n = d.shape[1]
    centred = d - d.mean(axis=1, keepdims=True)
    means, squares = centred @ counts / n, centred**2 @ counts / n
    spread = np.sqrt(np.maximum(squares - means**2, 0) * n / (n - 1))
    spread[spread <= 1e-9 * np.abs(d).max(axis=1, keepdims=True)] = 0
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.nan_to_num(means / spread * math.sqrt(n), nan=0.0, posinf=np.inf, neginf=-np.inf)
    t = student(d)[:, None]
    return ((drawn >= t).sum(axis=1) + 1) / DRAWS, ((drawn <= t).sum(axis=1) + 1) / DRAWS


TESTS = ("permutation", "t", "Johnson t", "BCa", "bootstrap t", "wilcoxon", "sign")
OF_THE_MEAN = TESTS[:5]


def verdicts(d: Floats, rng: np.random.Generator) -> dict[str, tuple[int, int]]:
    """Of each test, in how many rows it says better, and worse."""
    members, counts, df = flips(d.shape[1], rng), resamples(d.shape[1], rng), d.shape[1] - 1
    tails: dict[str, Tails] = {
        "permutation": permutation(d, members),
        "t": of_t(student(d), df),
        "Johnson t": of_t(johnson(d), df),
        "BCa": bca(d, counts),
        "bootstrap t": bootstrap_t(d, counts),
        "wilcoxon": wilcoxon(d, members),
        "sign": sign(d),
    }
    return {
        name: (int((greater <= ALPHA / 2).sum()), int((less <= ALPHA / 2).sum()))
        for name, (greater, less) in tails.items()
    }


@dataclass(frozen=True)
class Cell:
    """What a test does with one shape and number of queries, as shares of the simulations."""

    shape: str
    zeros: str
    n: int
    test: str
    false_better: float
    false_worse: float
    power: float
    """Verdicts *better* where the true mean is EFFECT standard errors above 0."""
    simulations: int
    seed: int

    @property
    def wrong(self) -> float:
        """All false verdicts."""
        return self.false_better + self.false_worse


def simulate(shape: str, zeros: str, n: int, simulations: int, seed: int) -> list[Cell]:
    """All tests on one shape and number of queries; the same whatever else is simulated."""
    key = (seed, list(SHAPES).index(shape), list(ZEROS).index(zeros), n)
    rng = np.random.default_rng(np.random.SeedSequence(key))
    null = {name: np.zeros(2, dtype=int) for name in TESTS}
    alternative = dict.fromkeys(TESTS, 0)
    for start in range(0, simulations, AT_ONCE):
        rows = min(AT_ONCE, simulations - start)
        for name, counted in verdicts(sample(shape, ZEROS[zeros], n, 0.0, rows, rng), rng).items():
            null[name] += counted
        for name, (better, _) in verdicts(
            sample(shape, ZEROS[zeros], n, EFFECT / math.sqrt(n), rows, rng), rng
        ).items():
            alternative[name] += better
    return [
        Cell(
            shape,
            zeros,
            n,
            name,
            *(null[name] / simulations).tolist(),
            alternative[name] / simulations,
            simulations,
            seed,
        )
        for name in TESTS
    ]


def grid(shapes: Sequence[str], simulations: int, seed: int, path: Path | None) -> Iterator[Cell]:
    """Every cell; those of the file are not computed again."""
    known: dict[tuple[object, ...], Cell] = {}
    if path is not None and path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            cell = Cell(**json.loads(line))
            known[cell.shape, cell.zeros, cell.n, cell.test, cell.simulations, cell.seed] = cell
    places = [(shape, zeros, n) for zeros in ZEROS for shape in shapes for n in SIZES]
    for done, place in enumerate(places):
        found = [known[key] for name in TESTS if (key := (*place, name, simulations, seed)) in known]
        if len(found) < len(TESTS):
            began = time.perf_counter()
            found = simulate(*place, simulations, seed)
            print(f"{done + 1} of {len(places)}: {place}, {time.perf_counter() - began:.1f} s", file=sys.stderr)
            if path is not None:
                with path.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(asdict(cell)) + "\n" for cell in found)
        yield from found


def percent(share: float) -> str:
    """`4.9`."""
    return f"{100 * share:.1f}"


def print_table(title: str, cells: Sequence[Cell], value: Callable[[Cell], float], tests: Sequence[str]) -> None:
    """A Markdown table with a row for each shape and number of queries."""
    print(f"\n{title}\n\n| differences | n | {' | '.join(tests)} |\n|{'---|' * (2 + len(tests))}")
    rows: dict[tuple[str, int], dict[str, str]] = {}
    for cell in cells:
        rows.setdefault((cell.shape, cell.n), {})[cell.test] = percent(value(cell))
    for (shape, n), row in rows.items():
        print(f"| {shape} | {n} | {' | '.join(row[test] for test in tests)} |")


def print_worst(cells: Sequence[Cell]) -> None:
    """The largest share of false verdicts of each test, over symmetric and over skewed shapes."""
    print("\nWorst false verdicts\n\n| n | " + " | ".join(TESTS) + " |\n|" + "---|" * (1 + len(TESTS)))
    for n in SIZES:
        row = []
        for test in TESTS:
            of_test = [cell for cell in cells if cell.test == test and cell.n == n]
            ends = (
                max((cell.wrong for cell in of_test if SHAPES[cell.shape].is_symmetric is kind), default=0.0)
                for kind in (True, False)
            )
            row.append(" / ".join(map(percent, ends)))
        print(f"| {n} | {' | '.join(row)} |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="False verdicts and power of the paired tests, simulated.")
    parser.add_argument("--simulations", type=int, default=SIMULATIONS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--cells", type=Path, help="file of finished cells, JSON lines")
    parser.add_argument("--shape", action="append", choices=list(SHAPES), help="only these")
    options = parser.parse_args()
    cells = list(grid(options.shape or list(SHAPES), options.simulations, options.seed, options.cells))
    print(f"{options.simulations} simulations a cell, seed {options.seed}")
    print_worst(cells)
    for zeros in ZEROS:
        of_zeros = [cell for cell in cells if cell.zeros == zeros]
        print_table(f"False verdicts, {zeros} zeros added", of_zeros, lambda cell: cell.wrong, TESTS)
    for zeros in ZEROS:
        of_zeros = [cell for cell in cells if cell.zeros == zeros]
        print_table(f"Power, {zeros} zeros added", of_zeros, lambda cell: cell.power, TESTS)


if __name__ == "__main__":
    main()
