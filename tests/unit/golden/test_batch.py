"""A new batch against the blessed records, and models whose records keep failing."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.errors import UsageError
from cranfield.golden.retirement import Decision, ModelRecord, SequentialTest, model_histories, run_trials
from cranfield.stats.two_sample import stratified_ks

counts = st.lists(st.integers(0, 9).map(float), min_size=1, max_size=12)


@given(counts, counts)
def test_without_strata_the_statistic_is_the_distance_of_the_distribution_functions(
    first: list[float], second: list[float]
) -> None:
    def below(values: list[float], at: float) -> float:
        return sum(value <= at for value in values) / len(values)

    found = stratified_ks(first, second, n_draws=20)
    assert found.statistic == pytest.approx(max(abs(below(first, t) - below(second, t)) for t in first + second))
    assert 1 / 20 <= found.p_two_sided <= 1


@given(counts, counts, st.randoms())
def test_the_test_does_not_depend_on_the_order_of_the_records(first: list[float], second: list[float], rng) -> None:
    shuffled = rng.sample(first, len(first))
    assert stratified_ks(first, second, n_draws=50).statistic == stratified_ks(shuffled, second, n_draws=50).statistic


def test_another_mix_of_strata_is_no_difference() -> None:
    # Easy records expect 1 entity, hard ones 4, in both samples; only the mix is another.
    first, second = [1.0] * 20 + [4.0] * 5, [1.0] * 5 + [4.0] * 20
    cells, others = ["easy"] * 20 + ["hard"] * 5, ["easy"] * 5 + ["hard"] * 20
    within = stratified_ks(first, second, cells, others, n_draws=500)
    assert (within.statistic, within.p_two_sided) == (0.0, 1.0)
    assert stratified_ks(first, second, n_draws=500).p_two_sided < 0.01


def test_a_stratum_of_one_sample_is_not_compared() -> None:
    found = stratified_ks([1.0, 2.0, 9.0], [1.0, 2.0], ["a", "a", "b"], ["a", "a"], n_draws=20)
    assert (found.statistic, found.extra["n_1"], found.extra["n_2"]) == (0.0, 2, 2)
    nothing = stratified_ks([1.0], [2.0], ["a"], ["b"])
    assert nothing.p_two_sided is None
    assert nothing.note


def test_false_alarms_of_the_permutation_test_are_at_most_alpha() -> None:
    rng = np.random.default_rng(7)
    n_alarms = sum(
        stratified_ks(rng.integers(1, 4, 30), rng.integers(1, 4, 20), seed=seed, n_draws=100).p_two_sided <= 0.05
        for seed in range(200)
    )
    assert n_alarms <= 20  # 200 draws at 5 %: 20 or more have a chance of .003


def test_the_chance_of_retirement_is_that_of_simulated_models() -> None:
    test, rng = SequentialTest(), random.Random(3)
    for share in (0.1, 0.3):
        exact = test.retired_within(share, 80)
        n_retired = sum(
            run_trials([rng.random() < share for _ in range(80)], test)[0].decision is Decision.RETIRE
            for _ in range(2000)
        )
        assert abs(n_retired / 2000 - exact) < 0.03
    assert test.retired_within(0.1, 400) <= test.alpha
    assert test.retired_within(0.3, 400) >= 1 - test.beta


def test_nothing_is_tested_after_a_model_is_retired_and_a_kept_one_is_tested_again() -> None:
    test = SequentialTest()
    trials = run_trials([False] * 9 + [True] * 5, test)
    assert [(each.decision, each.n, each.n_rejected) for each in trials] == [("keep", 9, 0), ("retire", 3, 3)]
    assert run_trials([], test) == ()


def test_models_are_judged_in_each_of_their_roles() -> None:
    records = [ModelRecord("oracle", "p:a", f"q{n}", True) for n in range(3)]
    records += [ModelRecord("adversary", "p:a", f"q{n}", False) for n in range(3)]
    oracle, adversary = model_histories(records, SequentialTest())
    assert (oracle.decision, oracle.n, oracle.n_rejected) == (Decision.RETIRE, 3, 3)
    assert (adversary.decision, adversary.n_rejected) == (Decision.UNDECIDED, 0)


@pytest.mark.parametrize(
    "settings", [{"acceptable": 0.3}, {"acceptable": 0.0}, {"alpha": 0.5}, {"beta": 0.0}, {"unacceptable": 1.0}]
)
def test_settings_that_make_no_test_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        SequentialTest(**settings)
