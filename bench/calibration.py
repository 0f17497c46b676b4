"""How often the diagnosis of `cranfield calibrate` is right: simulated scores. `calibration.py [SIMULATIONS]` prints three tables.

Scores are drawn from a shape; an answer is correct with a chance that has the slope in logits and, over all scores, no net bias.
The second table has the best that any rule could do. The third is of even scores, an answer being correct with the chance
score - bias, within 0 and 1. `docs/explanation/measurements.md` has the tables. 2,000 simulations take ten minutes on two processors.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import repeat

import numpy as np
from scipy.special import expit, logit

from cranfield.gate.calibration.diagnosis import ALPHA_SHOWN, SLOPES, Diagnosis
from cranfield.gate.calibration.report import CalibrationOptions, group_of
from cranfield.stats.calibration import Floats, chances_with_sum, logits

SEED = 7
OPTIONS = CalibrationOptions(draws=399)
SIZES, BIAS_SIZES = (60, 200, 500), (20, 60, 200, 500)
SHAPES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "even": lambda rng, n: rng.random(n),
    "high": lambda rng, n: rng.beta(5, 2, n),
    "extreme": lambda rng, n: rng.beta(0.5, 0.5, n),
    "rounded": lambda rng, n: rng.choice([0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0], n),
    "narrow": lambda rng, n: np.clip(rng.normal(0.7, 0.05, n), 0, 1),
    "constant": lambda _, n: np.full(n, 0.7),
}
RIGHT: dict[float, tuple[Diagnosis, ...]] = {
    1: (Diagnosis.WELL_CALIBRATED,),
    0.75: (Diagnosis.OVER_DISPERSED, Diagnosis.WELL_CALIBRATED),
    0.5: (Diagnosis.OVER_DISPERSED, Diagnosis.UNINFORMATIVE),
    0.25: (Diagnosis.OVER_DISPERSED, Diagnosis.UNINFORMATIVE),
    0: (Diagnosis.UNINFORMATIVE,),
    2: (Diagnosis.UNDER_DISPERSED,),
}
"""Slope to the words that are right of it; at least one of them is among the findings."""
LITTLE_SPREAD = {"narrow": Diagnosis.UNINFORMATIVE, "constant": Diagnosis.UNINFORMATIVE}
"""Right at every slope of these shapes."""
BIASES = (0.0, 0.1, 0.2)
COLUMNS = (Diagnosis.WELL_CALIBRATED, Diagnosis.INSUFFICIENT_DATA, Diagnosis.OVER_CONFIDENT)


@dataclass(frozen=True)
class Cell:
    """Samples of one kind."""

    shape: str
    slope: float
    n: int
    bias: float = 0.0

    def rng(self) -> np.random.Generator:
        """The same for each call."""
        return np.random.default_rng(
            [SEED, list(SHAPES).index(self.shape), round(self.slope * 100), self.n, round(self.bias * 100)]
        )

    def chances(self, scores: Floats) -> Floats:
        """The chance of each answer to be correct."""
        if self.slope == 1:
            return np.clip(scores - self.bias, 0, 1)
        chances: Floats = expit(self.slope * logits(scores) + _intercept(self.shape, self.slope))
        return chances


@cache
def _intercept(shape: str, slope: float) -> float:
    """That without a net bias, of many scores."""
    scores = SHAPES[shape](np.random.default_rng(SEED), 200_000)
    offsets = slope * logits(scores)
    return float(logit(chances_with_sum(offsets, float(scores.sum()))[0]) - offsets[0])


def simulate(cell: Cell, n_simulations: int) -> Counter[tuple[Diagnosis, ...]]:
    """Findings of simulated samples."""
    rng, found = cell.rng(), Counter[tuple[Diagnosis, ...]]()
    for _ in range(n_simulations):
        scores = SHAPES[cell.shape](rng, cell.n)
        found[group_of(scores, rng.random(cell.n) < cell.chances(scores), OPTIONS).findings] += 1
    return found


def best_possible(cell: Cell, n_simulations: int) -> float:
    """The largest share of calibrated samples that a rule can call well-calibrated, if it calls so `ALPHA_SHOWN` at the lower slope.

    By the lemma of Neyman and Pearson this is the power of their likelihood ratio.
    """
    rng, rival = cell.rng(), Cell(cell.shape, SLOPES[0], cell.n)

    def ratios(truth: Cell) -> Floats:
        found = []
        for _ in range(n_simulations):
            scores = SHAPES[cell.shape](rng, cell.n)
            chances = rival.chances(scores)
            correct = rng.random(cell.n) < truth.chances(scores)
            with np.errstate(divide="ignore"):  # a wrong answer with a score of 1 is impossible if it is calibrated
                found.append(np.log(np.where(correct, scores / chances, (1 - scores) / (1 - chances))).sum())
        return np.array(found)

    return float((ratios(cell) > np.quantile(ratios(rival), 1 - ALPHA_SHOWN)).mean())


def shares(found: Counter[tuple[Diagnosis, ...]], *words: Diagnosis) -> str:
    """The share of samples with any of these words among their findings."""
    return f"{sum(count for findings, count in found.items() if set(words) & set(findings)) / found.total():.3f}"


def main(n_simulations: int) -> None:
    """Print the tables as Markdown."""
    kinds = [(shape, slope) for shape in SHAPES for slope in RIGHT if shape != "constant" or slope == 1]
    grid = [Cell(*kind, n) for kind in kinds for n in SIZES]
    biased = [Cell("even", 1, n, bias) for bias in BIASES for n in BIAS_SIZES]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = dict(zip([*grid, *biased], pool.map(simulate, [*grid, *biased], repeat(n_simulations)), strict=True))
        best = pool.map(
            best_possible, (calibrated := [cell for cell in grid if cell.slope == 1]), repeat(n_simulations)
        )
        possible = dict(zip(calibrated, best, strict=True))
    sizes = " | ".join(map(str, SIZES))
    print(f"| shape | slope | well-calibrated: {sizes} | right: {sizes} | insufficient data: {sizes} |")
    for shape, slope in kinds:
        right = {*RIGHT[slope], LITTLE_SPREAD.get(shape, RIGHT[slope][0])}
        cells = [
            shares(found[Cell(shape, slope, n)], *words)
            for words in ((Diagnosis.WELL_CALIBRATED,), right, (Diagnosis.INSUFFICIENT_DATA,))
            for n in SIZES
        ]
        print(f"| {shape} | {slope:g} | {' | '.join(cells)} |")
    print(f"\n| shape | best possible: {sizes} |")
    for shape in SHAPES:
        print(f"| {shape} | {' | '.join(f'{possible[Cell(shape, 1, n)]:.3f}' for n in SIZES)} |")
    print(f"\n| net bias | n | {' | '.join(COLUMNS)} | other |")
    for cell in biased:
        rows = found[cell]
        first = [
            sum(count for findings, count in rows.items() if findings[0] is word) / rows.total() for word in COLUMNS
        ]
        print(f"| {cell.bias:g} | {cell.n} | {' | '.join(f'{share:.3f}' for share in (*first, 1 - sum(first)))} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
