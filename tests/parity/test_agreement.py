"""Agreement against the libraries that people compute it with: krippendorff, scikit-learn, statsmodels."""

from __future__ import annotations

import warnings
from functools import cache

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix
from statsmodels.stats.inter_rater import aggregate_raters, cohens_kappa, fleiss_kappa, to_table
from tests.unit.judging.book_contents import book

from cranfield.judging.book.freeze import persons_table
from cranfield.judging.raters.raters import at_threshold
from cranfield.stats.agreement import agreement, misfit
from cranfield.stats.confusion import confusion_matrices
from cranfield.stats.consensus import slot_table

CLOSE = 1e-9
SEEDS = range(25)


def drawn(seed, *, missing):
    """Random ratings: some tables of few grades and many raters, some the other way round; NaN where nobody rated."""
    rng = np.random.default_rng(seed)
    n_items, n_raters, n_grades = int(rng.integers(2, 60)), int(rng.integers(2, 7)), int(rng.integers(2, 11))
    truth = rng.integers(0, n_grades, (n_items, 1))
    other = rng.integers(0, n_grades, (n_items, n_raters))
    matrix = np.where(rng.random(other.shape) < 0.6, truth, other).astype(float)
    if missing:
        matrix[rng.random(matrix.shape) < 0.3] = np.nan
    return matrix


def ours(matrix):
    table = slot_table([[None if np.isnan(g) else g for g in row] for row in matrix])
    return agreement(table, n_draws=2)


@cache
def agreed(seed, *, missing):
    """Of a random table, which several tests look at."""
    return ours(drawn(seed, missing=missing))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_krippendorffs_alpha(level, missing):
    compared = 0
    for seed in SEEDS:
        matrix = drawn(seed, missing=missing)
        found = agreed(seed, missing=missing).coefficients[f"alpha-{level}"].value
        if found is None:
            continue
        theirs = krippendorff.alpha(reliability_data=matrix.T, level_of_measurement=level)
        assert found == pytest.approx(theirs, abs=CLOSE)
        compared += 1
    assert compared > 20


def test_fleiss_kappa():
    for seed in SEEDS:
        matrix = drawn(seed, missing=False)
        found = agreed(seed, missing=False).coefficients["fleiss"].value
        assert found == pytest.approx(fleiss_kappa(aggregate_raters(matrix.astype(int))[0]), abs=CLOSE)


@pytest.mark.parametrize(
    ("name", "weights"), [("cohen", None), ("cohen-linear", "linear"), ("cohen-quadratic", "quadratic")]
)
def test_cohens_kappa_of_scikit_learn(name, weights):
    for seed in SEEDS:
        a, b = drawn(seed, missing=False)[:, :2].astype(int).T
        found = ours(np.array([a, b], dtype=float).T).coefficients[name].value
        if found is None:
            continue
        # every grade between is a label, so that the distance of labels is that of grades
        labels = list(range(min(*a, *b), max(*a, *b) + 1))
        assert found == pytest.approx(cohen_kappa_score(a, b, weights=weights, labels=labels), abs=CLOSE)


@pytest.mark.parametrize(
    ("name", "weight"), [("cohen", None), ("cohen-linear", "linear"), ("cohen-quadratic", "quadratic")]
)
def test_cohens_kappa_of_statsmodels(name, weight):
    compared = 0
    for seed in SEEDS:
        matrix = drawn(seed, missing=False)[:, :2].astype(int)
        found = ours(matrix.astype(float)).coefficients[name].value
        table, bins = to_table(matrix)
        if found is None or len(bins) - 1 != matrix.max() - matrix.min() + 1:
            continue  # its weights are those of places in the table
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            theirs = cohens_kappa(table, wt=weight).kappa
        assert found == pytest.approx(theirs, abs=CLOSE)
        compared += 1
    assert compared > 10


def test_each_pair_of_raters_as_scikit_learn_has_it():
    matrix = drawn(3, missing=True)
    for pair in ours(matrix).pairs:
        both = matrix[:, [int(pair.first) - 1, int(pair.second) - 1]]
        both = both[~np.isnan(both).any(axis=1)].astype(int)
        assert pair.n == len(both)
        assert pair.coefficients[0].value == pytest.approx(np.mean(both[:, 0] == both[:, 1]), abs=CLOSE)
        assert pair.coefficients[1].value == pytest.approx(cohen_kappa_score(*both.T), abs=CLOSE)


@pytest.mark.parametrize("missing", [False, True])
def test_alpha_without_each_rater(missing):
    compared = 0
    for seed in SEEDS:
        matrix = drawn(seed, missing=missing)
        table = slot_table([[None if np.isnan(g) else g for g in row] for row in matrix])
        for place, rater in enumerate(misfit(table, n_draws=2).raters):
            if rater.alpha_without is not None:
                others = np.delete(matrix, place, axis=1).T
                theirs = krippendorff.alpha(reliability_data=others, level_of_measurement="ordinal")
                assert rater.alpha_without == pytest.approx(theirs, abs=CLOSE)
                compared += 1
    assert compared > 40


def test_confusion_matrices_and_kappa_at_a_threshold():
    for seed in SEEDS:
        matrix = drawn(seed, missing=False)
        table = slot_table(matrix.tolist())
        labels = np.unique(matrix)
        first, *_ = confusion_matrices(table, most_raters=20)
        assert [list(row) for row in first.counts] == confusion_matrix(
            matrix[:, 0], matrix[:, 1], labels=labels
        ).tolist()
        if len(labels) < 2:
            continue
        two = slot_table(matrix[:, :2].tolist())
        at = float(labels[len(labels) // 2])
        found = agreement(at_threshold(two, tuple(labels.tolist()), at), n_draws=2).coefficients["cohen"].value
        if found is not None:
            theirs = cohen_kappa_score(matrix[:, 0] >= at, matrix[:, 1] >= at)
            assert found == pytest.approx(theirs, abs=CLOSE)


@cache
def of_a_book(seed):
    """A random table, and the agreement of a book with its ratings: queries of five documents, a rater a column."""
    matrix = drawn(seed, missing=True)
    docs: dict[str, dict[str, dict[str, float]]] = {}
    for place, row in enumerate(matrix):
        given = {f"rater{column}": grade for column, grade in enumerate(row.tolist()) if not np.isnan(grade)}
        docs.setdefault(f"q{place // 5}", {})[f"d{place}"] = given
    return matrix, agreement(persons_table(book(docs)), n_draws=2)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_the_ratings_of_a_book(level):
    compared = 0
    for seed in SEEDS:
        matrix, found = of_a_book(seed)
        alpha = found.coefficients[f"alpha-{level}"].value
        if alpha is None:
            continue
        theirs = krippendorff.alpha(reliability_data=matrix.T, level_of_measurement=level)
        assert alpha == pytest.approx(theirs, abs=CLOSE)
        compared += 1
    assert compared > 20


def test_each_pair_of_raters_of_a_book():
    compared = 0
    for seed in SEEDS:
        matrix, found = of_a_book(seed)
        for pair in found.pairs:
            both = matrix[:, [int(name.removeprefix("rater")) for name in (pair.first, pair.second)]]
            both = both[~np.isnan(both).any(axis=1)].astype(int)
            kappa = pair.coefficients[1].value
            if kappa is None:
                continue
            assert kappa == pytest.approx(cohen_kappa_score(*both.T), abs=CLOSE)
            counts, bins = to_table(both)
            if len(bins) > 1:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)
                    assert kappa == pytest.approx(cohens_kappa(counts).kappa, abs=CLOSE)
            compared += 1
    assert compared > 40
