"""False alarms and coverage where the truth is known. Bounds allow for the noise of the simulation (1 in 10,000)."""

import numpy as np
import pytest
import scipy.stats

from cranfield.stats.bootstrap import bootstrap
from cranfield.stats.paired import paired_t, sign_test, wilcoxon
from cranfield.stats.permutation import permutations

N, TRIALS, ALPHA = 30, 2000, 0.05
LEAST, MOST = scipy.stats.binom.ppf([0.00005, 0.99995], TRIALS, ALPHA)  # 62 and 139 of 2,000

pytestmark = pytest.mark.slow


def samples(shape):
    """[N, TRIALS] differences with mean 0, symmetric about it."""
    rng = np.random.default_rng(20)
    if shape == "normal":
        return rng.normal(size=(N, TRIALS))
    ranks = 1 / rng.integers(1, 11, (2, N, TRIALS))
    return np.where(rng.random((N, TRIALS)) < 0.3, 0.0, ranks[1] - ranks[0])  # reciprocal ranks, 3 in 10 unchanged


@pytest.mark.parametrize("shape", ["normal", "ranks"])
def test_false_alarms_of_the_permutation_test_are_as_rare_as_alpha_says(shape):
    results = permutations(samples(shape), alpha=ALPHA, n_draws=2000)
    alarms = sum(result.p_two_sided <= ALPHA for result in results)
    assert LEAST <= alarms <= MOST
    one_sided = sum(result.p_one_sided <= ALPHA for result in results)
    assert LEAST <= one_sided <= MOST


@pytest.mark.parametrize("shape", ["normal", "ranks"])
def test_the_permutation_interval_covers_the_true_mean_as_often_as_it_says(shape):
    results = permutations(samples(shape) + 0.7, alpha=ALPHA, n_draws=2000)
    missed = sum(not result.ci_low <= 0.7 <= result.ci_high for result in results)
    assert LEAST <= missed <= MOST


@pytest.mark.parametrize("shape", ["normal", "ranks"])
@pytest.mark.parametrize("test", [paired_t, wilcoxon])
def test_false_alarms_of_t_and_wilcoxon_are_as_rare_as_alpha_says(test, shape):
    alarms = sum(test(d, alpha=ALPHA).p_two_sided <= ALPHA for d in samples(shape).T)
    assert LEAST <= alarms <= MOST


def test_the_sign_test_alarms_less_often_as_counts_are_coarse():
    # Of 30 signs 21 or more, or 9 or fewer: 2 * P(at most 9) = .0428.
    alarms = sum(sign_test(d, alpha=ALPHA).p_two_sided <= ALPHA for d in samples("normal").T)
    assert abs(alarms / TRIALS - 0.0428) < 4 * np.sqrt(0.0428 / TRIALS)


def test_the_bootstrap_is_a_little_too_sure_of_itself_at_thirty_queries():
    alarms = sum(bootstrap(d, alpha=ALPHA, n_draws=1000).p_two_sided <= ALPHA for d in samples("normal").T)
    assert LEAST <= alarms <= 0.09 * TRIALS
