"""The simulation behind the table of procedures in docs/explanation/measurements.md, on few systems."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SIMULATIONS, SYSTEMS, QUERIES = 20, 15, 50
PAIRS = SYSTEMS * (SYSTEMS - 1) // 2
MOST = 0.05 + 3 * float(np.sqrt(0.05 * 0.95 / SIMULATIONS))
"""Three standard errors over .05."""


@pytest.fixture(scope="module")
def bench(checkout: Path, load_script: Callable[[Path], ModuleType]) -> ModuleType:
    return load_script(checkout / "bench" / "many_systems.py")


def test_the_true_means_are_the_gap_apart(bench: ModuleType) -> None:
    groups = bench.groups_of(SYSTEMS, bench.GROUPS)
    for truth in bench.TRUTHS:
        means = truth.draw(np.random.default_rng(0), 20_000, SYSTEMS).mean(axis=0)
        by_group = [means[groups == group].mean() for group in range(bench.GROUPS)]
        gap = 0.0 if truth.n_groups == 1 else bench.GAP
        assert np.diff(by_group) == pytest.approx(gap, abs=0.015)


@pytest.mark.parametrize("procedure", ["permutation, max-T", "t, Holm"])
def test_false_alarms_are_rare_and_large_differences_are_found(bench: ModuleType, procedure: str) -> None:
    graded, alike, _ = bench.TRUTHS
    row = bench.simulate(graded, procedure, SIMULATIONS, SYSTEMS, QUERIES)
    assert row.family_wise <= MOST
    tenth, fifth, third = row.power
    assert tenth < fifth <= third
    assert fifth > 0.9
    assert bench.simulate(alike, procedure, SIMULATIONS, SYSTEMS, QUERIES).family_wise <= MOST


def test_with_holm_few_draws_find_nothing_where_max_t_does(bench: ModuleType) -> None:
    graded = bench.TRUTHS[0]
    assert 2 * PAIRS / bench.DRAWS > bench.ALPHA
    assert max(bench.simulate(graded, "permutation, Holm", 2, SYSTEMS, QUERIES).power) == 0.0
    assert bench.simulate(graded, "permutation, max-T", 2, SYSTEMS, QUERIES).power[-1] > 0.9


@pytest.mark.slow
def test_tukey_alarms_too_often_where_systems_spread_differently(bench: ModuleType) -> None:
    unequal = bench.TRUTHS[2]
    tukey = bench.simulate(unequal, "Tukey HSD (beside)", SIMULATIONS, 30, QUERIES)
    declared = bench.simulate(unequal, "permutation, max-T", SIMULATIONS, 30, QUERIES)
    assert declared.family_wise <= MOST
    assert tukey.family_wise > declared.family_wise
