"""The BCa interval against SciPy on the same resamples, and against its own p-value."""

import math
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import UsageError
from cranfield.stats import bootstrap as resampling
from cranfield.stats.bootstrap import DEFAULT_RESAMPLES, bootstrap, index_blocks

ALPHAS = st.sampled_from([0.01, 0.05, 0.1, 0.3, 0.9])


def excludes_zero(result):
    return (result.ci_low is not None and result.ci_low > 0) or (result.ci_high is not None and result.ci_high < 0)


def resampled_means(d, seed, n_draws):
    return np.concatenate([d[indices].mean(axis=1) for _, indices in index_blocks(seed, n_draws - 1, len(d))])


@pytest.mark.parametrize("alpha", [0.05, 0.1])
@pytest.mark.parametrize("shape", ["normal", "skewed", "tied"])
def test_equal_to_scipy_on_the_same_resamples(tied_differences, shape, alpha):
    rng = np.random.default_rng(1)
    d = {"normal": rng.normal(0.1, 1, 40), "skewed": rng.exponential(size=40) - 0.8, "tied": tied_differences(1, 40)}[
        shape
    ]
    means = np.sort(resampled_means(d, 5, 10_000))
    expected = scipy.stats.bootstrap(
        (d,),
        np.mean,
        method="BCa",
        n_resamples=0,
        confidence_level=1 - alpha,
        bootstrap_result=SimpleNamespace(bootstrap_distribution=means),
    ).confidence_interval
    result = bootstrap(d, alpha=alpha, seed=5, n_draws=10_000)
    for found, end in ((result.ci_low, expected.low), (result.ci_high, expected.high)):
        place = np.searchsorted(means, end)
        assert means[place - 2] - 1e-12 <= found <= means[place + 1] + 1e-12


def test_the_p_value_is_the_smallest_alpha_whose_interval_leaves_out_zero():
    d = np.random.default_rng(4).normal(0.4, 1, 40)
    p = bootstrap(d).p_two_sided
    assert 0.02 < p < 0.4
    assert excludes_zero(bootstrap(d, alpha=p * 1.001))
    assert not excludes_zero(bootstrap(d, alpha=p * 0.999))


@given(
    st.lists(st.integers(-4, 5), min_size=6, max_size=20),
    st.sampled_from([1.0, 0.1, 1 / 6]),
    ALPHAS,
    st.sampled_from([2, 3, 20, 99, 400]),
)
def test_p_at_most_alpha_is_an_interval_without_zero(d, step, alpha, n_draws):
    result = bootstrap(np.array(d) * step, alpha=alpha, n_draws=n_draws)
    assert (result.p_two_sided <= alpha) == excludes_zero(result)
    assert result.ci_low is None or result.ci_high is None or result.ci_low <= result.ci_high


@given(st.lists(st.integers(-9, 3), min_size=6, max_size=20))
def test_swapping_the_systems_mirrors_everything(d):
    there, back = (bootstrap(np.array(d) * sign, n_draws=200) for sign in (0.1, -0.1))
    assert there.p_two_sided == pytest.approx(back.p_two_sided, rel=1e-9)
    assert there.ci_low == (None if back.ci_high is None else pytest.approx(-back.ci_high, abs=1e-12))


def test_skew_moves_the_interval_to_the_long_tail():
    d = np.random.default_rng(0).exponential(size=60) - 1
    result = bootstrap(d)
    low, high = np.quantile(resampled_means(d, 0, DEFAULT_RESAMPLES), [0.025, 0.975])
    assert result.extra["acceleration"] > 0
    assert result.ci_low > low
    assert result.ci_high > high


@pytest.mark.parametrize(("size", "p"), [(0.1, 2 / 1000), (0.0, 1.0), (-0.1, 2 / 1000)])
def test_a_constant_difference_has_an_interval_of_no_width(size, p):
    result = bootstrap([size] * 8, n_draws=1000)
    assert (result.ci_low, result.ci_high) == (size, size)
    assert result.p_two_sided == pytest.approx(p)


def test_no_p_is_under_what_so_many_resamples_can_tell():
    d = np.random.default_rng(0).normal(3, 1, 50)
    result = bootstrap(d, n_draws=1000)
    assert result.p_one_sided == 1 / 1000
    assert bootstrap(d, alpha=0.0019, n_draws=1000).ci_low is None  # alpha / 2 is under one in a thousand
    assert bootstrap(d, alpha=0.0021, n_draws=1000).ci_low > 0


def test_under_six_queries_there_is_nothing_but_a_note():
    result = bootstrap([0.1, 0.2, 0.3, 0.4, 0.5])
    assert result.note == "too few queries to resample (n < 6)"
    assert (result.p_two_sided, result.ci_low) == (None, None)
    assert bootstrap([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]).ci_low is not None


def test_the_seed_decides_and_block_sizes_do_not(monkeypatch):
    d = np.random.default_rng(1).normal(0.2, 1, 123)
    first = bootstrap(d, seed=1, n_draws=3000)
    assert bootstrap(d, seed=1, n_draws=3000) == first
    assert bootstrap(d, seed=2, n_draws=3000) != first
    monkeypatch.setattr(resampling, "BLOCK_CELLS", 1000)
    assert bootstrap(d, seed=1, n_draws=3000) == first


@pytest.mark.slow
def test_memory_is_bounded_with_many_queries():
    d = np.random.default_rng(0).normal(size=7000)
    tracemalloc.start()
    bootstrap(d)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 80e6


@pytest.mark.parametrize("arguments", [{"seed": -1}, {"n_draws": 1}, {"alpha": math.nan}])
def test_what_cannot_be_is_refused(arguments):
    with pytest.raises(UsageError):
        bootstrap([0.1] * 9, **arguments)
