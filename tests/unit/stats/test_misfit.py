"""Agreement without each rater, who does not fit, and confusion matrices."""

import numpy as np
import pytest

from cranfield.base.errors import UsageError
from cranfield.stats.agreement import misfit
from cranfield.stats.confusion import confusion_matrices
from cranfield.stats.consensus import slot_table
from cranfield.stats.scale import binary_map, parse_levels


def drawn(seed, noise, *, n_queries=20, per=6, grades=3, missing=0.0, by_query=False):
    """Ratings of a truth, each replaced by a random grade with a rater's probability; and the query of each item."""
    rng = np.random.default_rng(seed)
    n = n_queries * per
    truth = rng.integers(0, grades, n)
    matrix = np.empty((n, len(noise)))
    for rater, share in enumerate(noise):
        wrong = rng.random(n) < share
        matrix[:, rater] = np.where(wrong, rng.integers(0, grades, n), truth)
        if by_query:  # all grades of a query are one too high, or none is
            high = np.repeat(rng.random(n_queries) < 0.5, per)
            matrix[:, rater] = np.minimum(matrix[:, rater] + high, grades - 1)
    matrix[rng.random(matrix.shape) < missing] = np.nan
    return table(matrix), np.repeat(np.arange(n_queries), per)


def table(matrix, raters=None):
    return slot_table([[None if np.isnan(grade) else grade for grade in row] for row in matrix], raters)


def test_the_rater_who_guesses_is_named_with_interval_and_p_value():
    found = misfit(*drawn(1, (0.1, 0.1, 0.8, 0.1)), seed=3)
    (odd,) = found.misfits
    assert (odd.rater, found.unit, found.n_units) == ("3", "query", 20)
    assert odd.p_value == pytest.approx(1 / 1001)
    assert 0 < odd.ci_low < odd.change < odd.ci_high
    assert odd.alpha_without == pytest.approx(found.alpha_all + odd.change)
    assert [rater.fits for rater in found.raters] == [True, True, False, True]


def test_the_same_seed_gives_the_same_and_another_one_other_draws():
    given = drawn(2, (0.2, 0.2, 0.4))
    first, again, other = (misfit(*given, seed=seed, n_draws=50) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_rater_who_grades_higher_than_the_others_has_a_bias():
    matrix = np.array([[0, 0, 1], [1, 1, 2], [0, 1, 1], [2, 2, 3], [0, 0, 0], [1, 1, 2], [0, 0, 1]], dtype=float)
    found = misfit(table(matrix))
    # 1 - 0, 2 - 1, 1 - 0.5, 3 - 2, 0, 2 - 1, 1: 5.5 of 7 items
    assert found.raters[2].bias == pytest.approx(5.5 / 7)
    assert found.unit == "pair"


@pytest.mark.parametrize(
    ("matrix", "note"),
    [
        (np.array([[0.0, 1.0]] * 9), "2 raters: at least three are needed to identify one who does not fit"),
        (np.full((9, 3), np.nan), "no item was rated twice"),
        (np.array([[0.0, 1, 1], [1, 1, 0], [0, 0, 1]]), "too few units for intervals and p-values (3, 6 are needed)"),
    ],
)
def test_what_cannot_be_known_has_its_reason(matrix, note):
    found = misfit(table(matrix))
    assert (found.note, found.misfits) == (note, ())
    assert all(rater.p_value is None and rater.fits is None for rater in found.raters)


def test_agreement_of_one_grade_only_names_nobody():
    found = misfit(table(np.ones((9, 3))))
    assert found.alpha_all is None
    assert [(rater.alpha_without, rater.change, rater.p_value) for rater in found.raters] == [(None, None, None)] * 3


def test_a_rater_is_not_permuted_into_queries_without_a_rating():
    matrix = np.array([[1, 0, 1, np.nan], [0, 0, 1, np.nan]] * 8 + [[np.nan, 1, 1, 1], [0, np.nan, 0, 1]] * 4)
    found = misfit(table(matrix), np.repeat(np.arange(12), 2), n_draws=50)
    assert found.unit == "query"
    assert all(0 < rater.p_value <= 1 for rater in found.raters)


def rejections(n, noise, **given):
    return sum(bool(misfit(*drawn(seed, noise, **given), n_draws=99, seed=seed).misfits) for seed in range(n))


@pytest.mark.parametrize(("n", "most"), [(20, 4), pytest.param(60, 8, marks=pytest.mark.slow)])
def test_interchangeable_raters_are_seldom_named(n, most):
    assert rejections(n, (0.2,) * 4, missing=0.2) <= most  # 1 of 20 expected; more has probability .003


@pytest.mark.slow
@pytest.mark.parametrize("by_query", [False, True])
def test_the_family_wise_error_is_at_most_the_level(by_query):
    # binomial(200, .05): more than 20 has probability .001
    assert rejections(200, (0.2,) * 4, by_query=by_query) <= 20


@pytest.mark.slow
def test_a_rater_who_guesses_half_of_the_time_is_found():
    assert rejections(100, (0.2, 0.2, 0.2, 0.6), missing=0.1) >= 80


def test_confusion_matrices_count_what_both_rated():
    (found,) = confusion_matrices(
        table(np.array([[0, 1], [0, 0], [2, 1], [1, np.nan]]), ["ann", "bob"]), [0, 1, 2, 3], most_raters=20
    )
    assert (found.first, found.second, found.n, found.grades) == ("ann", "bob", 3, (0.0, 1.0, 2.0, 3.0))
    assert found.counts == ((1, 1, 0, 0), (0, 0, 0, 0), (0, 1, 0, 0), (0, 0, 0, 0))


def test_scales_are_names_lists_and_ranges():
    assert parse_levels("binary") == (0, 1)
    assert parse_levels("1-5") == (1, 2, 3, 4, 5)
    assert parse_levels("0, 0.5,1") == (0, 0.5, 1)
    for wrong in ("", "3", "a,b", "5-1", "0,inf"):
        with pytest.raises(UsageError, match="scale is"):
            parse_levels(wrong)


def test_a_threshold_separates_grades():
    assert binary_map((0, 1, 2), 2) == {0: 0, 1: 0, 2: 1}
    for at, what in ((0, "all grades are relevant"), (3, "all grades are not relevant")):
        with pytest.raises(UsageError, match=what):
            binary_map((0, 1, 2), at)
