"""False alarms and coverage where the truth is known: 2,000 draws at 50 and at 200 queries.

Two populations of query differences, both finite, so that what is true of them is reckoned and not estimated:

- `alike`: two systems that are exchangeable. Each finds its one relevant document at some rank or not at all; 3 queries in
  10 are the same on both. Differences of nDCG have zeros, ties and heavy tails, and are symmetric about 0.
- `skewed`: the candidate loses a little on many queries and gains a lot on few, and nothing on 4 in 10; the mean is 0.

Tests that count alarm as often as their counts let them, which is reckoned too. The rest alarm between 3.5 and 6.5 %, and
their intervals cover 93 to 97 %: three standard errors of 2,000 draws about 5 and 95 %, and a little more.
"""

import functools
import itertools
import math

import numpy as np
import pytest
import scipy.stats

from cranfield.stats.omnibus import friedman, permutation_omnibus
from cranfield.stats.paired import noninferiority, tost
from cranfield.stats.permutation import permutation, permutations
from cranfield.stats.table import TESTS, Paired
from cranfield.stats.wilcoxon import wilcoxon

TRIALS, ALPHA = 2000, 0.05
SIZES = (50, 200)
LEAST, MOST = 0.035, 0.065
DRAWS = 1000
"""Of the permutation test and the bootstrap in each trial: with so many the permutation test is still exact."""

GAINS = np.array([0.0, *(1 / math.log2(rank + 1) for rank in range(1, 11))])
CHANCES = np.array([0.3, 0.25, 0.12, 0.08, 0.06, 0.05, 0.04, 0.03, 0.03, 0.02, 0.02])
SAME = 0.3
"""Share of queries on which the two systems are the same."""

STEPS = np.array([0.0, GAINS[3] - GAINS[2], GAINS[5] - GAINS[3], GAINS[4] - GAINS[2], GAINS[1] - GAINS[2]])
STEP_CHANCES = np.array([0.4, 0.15, 0.16, 0.15, 0.0])
"""Nothing, three small losses, and a gain that makes up for them; its chance is reckoned below."""

pytestmark = pytest.mark.slow


def step_chances():
    """The chance of the gain, with which the mean is 0; the losses have theirs in proportion."""
    nothing, losses = STEP_CHANCES[0], STEP_CHANCES[1:4] / STEP_CHANCES[1:4].sum()
    loss = -float(losses @ STEPS[1:4])
    gain = (1 - nothing) * loss / (loss + STEPS[4])
    return np.array([nothing, *(losses * (1 - nothing - gain)), gain])


def alike(n, systems=2):
    """float64[TRIALS, n, systems] values of systems that are exchangeable within a query."""
    rng = np.random.default_rng(50 + n)
    values = rng.choice(GAINS, p=CHANCES, size=(TRIALS, n, systems))
    same = rng.random((TRIALS, n, 1)) < SAME
    return np.where(same, values[..., :1], values)


def samples(population, n):
    """float64[TRIALS, n] differences with a true mean of 0."""
    if population == "skewed":
        return np.random.default_rng(70 + n).choice(STEPS, p=step_chances(), size=(TRIALS, n))
    values = alike(n)
    return values[..., 1] - values[..., 0]


def given(difference):
    """What a row of the table is given."""
    return Paired(np.zeros_like(difference), difference, difference, ALPHA, 0, DRAWS, None)


@functools.cache
def results_of(test, population, n):
    """The results of all trials."""
    d = samples(population, n)
    if test == "permutation":  # all trials at once: the same code, and the same sign patterns for each
        return permutations(d.T, alpha=ALPHA, n_draws=DRAWS)
    return [TESTS[test].run(given(row)) for row in d]


def share(hits):
    return sum(hits) / TRIALS


def noise(level):
    return 3 * math.sqrt(level * (1 - level) / TRIALS)


def level_of_signs(n, chance):
    """How often the exact test of m signs at 1/2 alarms at .05, m being binomial: counted, not simulated."""
    levels = [0.0]
    for m in range(1, n + 1):
        counts = np.arange(m + 1)
        tails = scipy.stats.binom.cdf(np.minimum(counts, m - counts), m, 0.5)
        levels.append(float(scipy.stats.binom.pmf(counts[np.minimum(1, 2 * tails) <= ALPHA], m, 0.5).sum()))
    return float(scipy.stats.binom.pmf(np.arange(n + 1), n, chance) @ levels)


def test_the_populations_are_what_they_say():
    chances = step_chances()
    assert chances.sum() == pytest.approx(1)
    assert chances.min() > 0
    assert float(chances @ STEPS) == pytest.approx(0, abs=1e-15)
    skew = float(chances @ STEPS**3) / float(chances @ STEPS**2) ** 1.5
    assert 1 < skew < 2
    assert CHANCES.sum() == pytest.approx(1)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    ("population", "test"),
    [
        *(("alike", name) for name in ("permutation", "wilcoxon", "t", "bootstrap")),
        *(("skewed", name) for name in ("permutation", "t", "bootstrap")),  # Wilcoxon's is about symmetry, not the mean
    ],
)
def test_false_alarms_and_coverage_are_what_alpha_says(population, test, n):
    results = results_of(test, population, n)
    assert LEAST <= share(result.p_two_sided <= ALPHA for result in results) <= MOST
    # The mean, and for Wilcoxon's the pseudo-median of a symmetric population, is 0.
    assert 0.93 <= share(result.ci_low <= 0 <= result.ci_high for result in results) <= 0.97


@pytest.mark.parametrize("level", [0.1, 0.2, 0.5])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("test", ["permutation", "wilcoxon", "t", "bootstrap"])
def test_p_values_are_spread_as_chance_says_and_not_only_at_alpha(test, n, level):
    # p-values that are a third too large alarm at .038 for .05, within the bounds above, and at .38 for .5.
    results = results_of(test, "alike", n)
    assert abs(share(result.p_two_sided <= level for result in results) - level) <= noise(level)


@pytest.mark.parametrize("n", SIZES)
def test_the_sign_test_alarms_as_often_as_its_counts_let_it(n):
    unequal = (1 - SAME) * (1 - float(CHANCES @ CHANCES))  # of two independent draws
    level = level_of_signs(n, unequal)
    assert level <= ALPHA
    alarms = share(result.p_two_sided <= ALPHA for result in results_of("sign", "alike", n))
    assert abs(alarms - level) <= noise(level)
    assert alarms <= ALPHA + noise(ALPHA)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("right", [0.5, 0.9])
def test_mcnemar_alarms_as_often_as_its_counts_let_it(n, right):
    rng = np.random.default_rng(90 + n)
    sides = (rng.random((2, TRIALS, n)) < right).astype(float)
    level = level_of_signs(n, 2 * right * (1 - right))
    assert level <= ALPHA
    rows = [Paired(a, b, b - a, ALPHA, 0, DRAWS, None) for a, b in zip(*sides, strict=True)]
    alarms = share(TESTS["mcnemar"].run(row).p_two_sided <= ALPHA for row in rows)
    assert abs(alarms - level) <= noise(level)
    assert alarms <= ALPHA + noise(ALPHA)


@pytest.mark.parametrize("n", SIZES)
def test_the_exact_p_of_wilcoxon_never_alarms_too_often(n):
    results = results_of("wilcoxon", "alike", n)
    exact = [result.extra["p_exact_two_sided"] for result in results]
    assert None not in exact
    assert share(p <= ALPHA for p in exact) <= ALPHA + noise(ALPHA)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    "p_of",
    [lambda d: permutation(d).p_two_sided, lambda d: wilcoxon(d).extra["p_exact_two_sided"]],
    ids=["permutation", "wilcoxon"],
)
def test_over_all_sign_patterns_an_exact_test_alarms_in_at_most_one_of_twenty(p_of, ties):
    sizes = np.array([0.1, 0.1, 0.2, 0.3, 0.3, 0.3, 0.5, 0.5]) if ties else np.arange(1.0, 9.0) ** 1.5
    p_values = [p_of(sizes * signs) for signs in itertools.product((-1.0, 1.0), repeat=8)]
    for alpha in (0.01, 0.05, 0.1, 0.2):
        assert np.mean(np.array(p_values) <= alpha) <= alpha


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("population", ["alike", "skewed"])
def test_noninferiority_errs_as_alpha_says_where_the_loss_is_the_margin(population, n):
    # One-sided, so that skew counts in full: a long tail of gains makes it too cautious about losses, never too bold.
    d = samples(population, n) - 0.1
    errors = share(noninferiority(row, 0.1, alpha=ALPHA).extra["p_noninferior"] <= ALPHA for row in d)
    assert errors <= MOST
    if population == "alike":
        assert errors >= LEAST


@pytest.mark.parametrize("n", SIZES)
def test_equivalence_errs_as_alpha_says_where_the_difference_is_the_margin(n):
    # The margin is many standard errors wide, so that the other side has no part in it.
    d = samples("alike", n) + 0.5
    errors = share(tost(row, 0.5, alpha=ALPHA).extra["p_equivalence"] <= ALPHA for row in d)
    assert LEAST <= errors <= MOST


@pytest.mark.parametrize("n", SIZES)
def test_omnibus_tests_of_four_systems_that_are_alike_alarm_as_alpha_says(n):
    values = alike(n, systems=4)
    assert LEAST <= share(friedman(one).p_two_sided <= ALPHA for one in values) <= MOST
    assert LEAST <= share(permutation_omnibus(one, n_draws=199).p_two_sided <= ALPHA for one in values) <= MOST


@pytest.mark.parametrize("population", ["alike", "skewed"])
def test_the_bootstrap_is_a_little_too_sure_of_itself_at_thirty_queries(population):
    alarms = share(result.p_two_sided <= ALPHA for result in results_of("bootstrap", population, 30))
    assert LEAST <= alarms <= 0.09
