"""Agreement of raters: values worked by hand, honest limits, intervals."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield.base.errors import UsageError
from cranfield.stats.agreement import agreement, cohens_kappa
from cranfield.stats.coefficients import COEFFICIENTS
from cranfield.stats.consensus import SlotTable, slot_table

KRIPPENDORFF = ("alpha-nominal", "alpha-ordinal", "alpha-interval")


def value(name, items, **options):
    return agreement(slot_table(items), n_draws=50, **options).coefficients[name].value


def several(n_items=60, n_raters=3, seed=1, missing=0.0):
    """Ratings on 0 to 3 by raters who mostly agree."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, n_items)
    matrix = np.clip(truth[:, np.newaxis] + rng.integers(-1, 2, (n_items, n_raters)), 0, 3)
    empty = rng.random(matrix.shape) < missing
    return [[None if gone else int(g) for g, gone in zip(*row, strict=True)] for row in zip(matrix, empty, strict=True)]


TWO = [[1, 1], [1, 0], [0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("name", "items", "expected"),
    [
        ("agreement", TWO, 3 / 4),
        # items with 1 of 3, 3 of 3 agreeing pairs
        ("agreement", [[1, 1, 0], [2, 2, 2]], (1 / 3 + 1) / 2),
        # chance: 1/2 * 1/4 + 1/2 * 3/4 = 1/2; (3/4 - 1/2) / (1 - 1/2)
        ("cohen", TWO, 1 / 2),
        # observed distance: 3 of 2 items; expected: 3 * (1/2 * 1/2 + 1/2 * 1/2) = 3/2 an item; 1 - 1.5 / 1.5
        ("cohen-linear", [[0, 3], [3, 3], [0, 0], [3, 0]], 0.0),
        # said 0, 1, 2 and 0, 2, 2; distances 0, 1, 0: 1 of 3 items.
        # Expected: rows of |a - b| for 0: 0, 2, 2; 1: 1, 1, 1; 2: 2, 0, 0; sum 9 of 9 pairs = 1. 1 - (1/3) / 1
        ("cohen-linear", [[0, 0], [1, 2], [2, 2]], 1 - (1 / 3) / (9 / 9)),
        # squared: observed 1/3; expected 0, 4, 4, 1, 1, 1, 4, 0, 0: 15 of 9. 1 - (1/3) / (15/9)
        ("cohen-quadratic", [[0, 0], [1, 2], [2, 2]], 1 - (1 / 3) / (15 / 9)),
        # marginals 3/8 and 5/8, chance 34/64; observed 3/4: (48 - 34) / (64 - 34)
        ("fleiss", TWO, 14 / 30),
        # Krippendorff: 8 values, 3 ones and 5 zeros; observed 2, expected 2 * 3 * 5 = 30: 1 - 7 * 2 / 30
        ("alpha-nominal", TWO, 1 - 7 * 2 / 30),
        ("alpha-interval", TWO, 1 - 7 * 2 / 30),  # two grades, one apart: the same
        ("alpha-ordinal", TWO, 1 - 7 * 2 / 30),  # and any distance of the two cancels
        # squared distances: observed 2 * 1; values 0, 0, 1, 2, 2, 2: all pairs 2 * (2*1*1 + 2*3*4 + 1*3*1) = 58
        ("alpha-interval", [[0, 0], [1, 2], [2, 2]], 1 - 5 * 2 / 58),
        # middle ranks of 0, 1, 2: 1, 2.5, 4.5. Observed 2 * 2^2 = 8; all: 2 * (2*1.5^2 + 2*3*3.5^2 + 3*2^2) = 180
        ("alpha-ordinal", [[0, 0], [1, 2], [2, 2]], 1 - 5 * 8 / 180),
    ],
)
def test_a_value_by_hand(name, items, expected):
    assert value(name, items) == pytest.approx(expected, abs=1e-12)


def test_krippendorffs_own_example():
    # Krippendorff 2011, the reliability data of section C: 4 observers, 12 units, missing values
    observers = """
        1 2 3 3 2 1 4 1 2 . . .
        1 2 3 3 2 2 4 1 2 5 . 3
        . 3 3 3 2 3 4 2 2 5 1 .
        1 2 3 3 2 4 4 1 2 5 1 ."""
    rows = [[None if g == "." else int(g) for g in line.split()] for line in observers.strip().splitlines()]
    found = agreement(slot_table(list(zip(*rows, strict=True))), n_draws=10)
    assert [round(found.coefficients[name].value, 3) for name in KRIPPENDORFF] == [0.743, 0.815, 0.849]


def test_fleiss_own_example():
    # Fleiss 1971, table 1 as it is usually cited: 10 items, 14 raters, 5 categories; kappa .210
    table = """0 0 0 0 14 / 0 2 6 4 2 / 0 0 3 5 6 / 0 3 9 2 0 / 2 2 8 1 1 / 7 7 0 0 0 / 3 2 6 3 0 / 2 5 3 2 2 / 6 5 2 1 0
        / 0 2 2 3 7"""
    counts = [[int(n) for n in row.split()] for row in table.split("/")]
    items = [[grade for grade, n in enumerate(row) for _ in range(n)] for row in counts]
    assert value("fleiss", items) == pytest.approx(0.210, abs=5e-4)


# What cannot be said ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in COEFFICIENTS if name != "agreement"])
def test_one_grade_only_has_no_value_and_a_reason(name):
    found = agreement(slot_table([[2, 2]] * 10)).coefficients
    assert found[name].value is None
    assert "the same grade" in found[name].note
    assert found["agreement"].value == 1.0


@pytest.mark.parametrize("name", list(COEFFICIENTS))
@pytest.mark.parametrize("items", [[], [[1, None], [None, 0]], [[None, None]]])
def test_where_nothing_is_rated_twice_there_is_no_value(name, items):
    found = agreement(slot_table(items, ["ann", "bob"] if items else None)).coefficients[name]
    assert (found.value, found.ci_low, found.n) == (None, None, 0)
    assert found.note


def test_one_rater_has_nobody_to_agree_with():
    found = agreement(slot_table([[1], [0], [1]], ["ann"]))
    assert all(one.value is None for one in found.coefficients.values())
    assert found.notes == ("only one rater, 'ann': agreement needs two",)
    assert found.coefficients["cohen"].note == "defined for two raters; there is 1"


def test_cohen_of_three_raters_is_told_two_by_two():
    found = agreement(slot_table(several(), ["ann", "bob", "cas"]))
    assert found.coefficients["cohen"].value is None
    assert "there are 3" in found.coefficients["cohen"].note
    assert [(pair.first, pair.second) for pair in found.pairs] == [("ann", "bob"), ("ann", "cas"), ("bob", "cas")]
    alone = agreement(slot_table([[row[0], row[2]] for row in several()])).coefficients
    assert found.pairs[1].coefficients[1].value == pytest.approx(alone["cohen"].value)


def test_fleiss_asks_for_as_many_ratings_of_each():
    found = agreement(slot_table(several(missing=0.3))).coefficients
    assert found["fleiss"].value is None
    assert found["fleiss"].note == "defined for equal numbers of ratings; items have 2 to 3"
    assert all(found[name].value is not None for name in KRIPPENDORFF)


def test_raters_with_few_items_in_common_are_named():
    items = [*several(30), *([row[0], row[1], None] for row in several(30, seed=2))]
    items = [[a, b, c if i < 12 else None] for i, (a, b, c) in enumerate(items)]
    notes = agreement(slot_table(items, ["ann", "bob", "cas"])).notes
    assert notes == ("raters with fewer than 20 items in common: ann and cas (12), bob and cas (12)",)


def test_many_raters_are_not_compared_two_by_two():
    items = several(10, n_raters=25)
    found = agreement(slot_table(items), n_draws=20)
    assert found.pairs == ()
    assert found.notes == ("pairs of raters are not compared: 25 raters are more than 20",)
    # and what does not ask who said it is what it would be with fewer columns
    packed = [sorted(row) for row in items]
    assert found.coefficients["alpha-ordinal"].value == pytest.approx(value("alpha-ordinal", packed))


def test_too_many_different_grades_are_refused():
    with pytest.raises(UsageError, match="300 different grades; expected 200 at most"):
        agreement(slot_table([[i, i] for i in range(300)]))


# Coverage and intervals ------------------------------------------------------------------------------------------------


def test_coverage_is_counted():
    found = agreement(slot_table([[1, None, 0], [1, None, None], [None, None, None]], ["ann", "bob", "cas"]))
    assert (found.n_items, found.n_slots, found.n_filled, found.n_rated, found.n_twice) == (3, 9, 3, 2, 1)
    assert found.by_rater == {"ann": 2, "bob": 0, "cas": 1}


def test_an_interval_holds_its_value_and_is_the_same_for_the_same_seed():
    table = slot_table(several())
    found = agreement(table, seed=4)
    assert found == agreement(table, seed=4)
    assert found.coefficients != agreement(table, seed=5).coefficients
    for name in ("agreement", "fleiss", *KRIPPENDORFF):
        one = found.coefficients[name]
        assert one.ci_low < one.value < one.ci_high


def test_the_interval_is_that_of_resampled_items():
    items = np.array(several(40), dtype=float)
    found = agreement(slot_table(items.tolist()), n_draws=4000).coefficients["alpha-interval"]
    rng = np.random.default_rng(9)
    draws = [value_of_alpha(items[rng.integers(0, 40, 40)]) for _ in range(4000)]
    low, high = np.quantile(draws, [0.025, 0.975])
    assert found.ci_low == pytest.approx(low, abs=0.02)
    assert found.ci_high == pytest.approx(high, abs=0.02)


def value_of_alpha(items):
    """Krippendorff's interval alpha without missing values: 1 - within over total, each without bias."""
    within = items.var(axis=1, ddof=1).mean()
    return 1 - within / items.var(ddof=1)


def test_few_items_have_a_value_and_no_interval():
    found = agreement(slot_table([[1, 1], [0, 0], [1, 0], [1, 1], [0, 0]])).coefficients["cohen"]
    assert found.value is not None
    assert (found.ci_low, found.ci_high) == (None, None)
    assert found.note == "too few items to resample (n < 6)"


def test_perfect_agreement_says_that_its_interval_says_little():
    found = agreement(slot_table([[0, 0], [1, 1]] * 20)).coefficients["cohen"]
    assert (found.value, found.ci_low, found.ci_high) == (1.0, 1.0, 1.0)
    assert found.note == "all resamples are the same: the interval is not informative"


def test_resamples_without_a_value_are_counted():
    found = agreement(slot_table([[0, 0]] * 7 + [[1, 0], [1, 1]]), n_draws=500).coefficients["alpha-nominal"]
    assert found.note.endswith("of 500 resamples have a single grade and no value")


def test_two_raters_at_once():
    assert cohens_kappa([1, 1, 0, 0], [1, 0, 0, 0]).value == pytest.approx(0.5)
    assert cohens_kappa([0, 1, 2, None], [0, 2, 2, 1], "cohen-quadratic").value == pytest.approx(1 - (1 / 3) / (15 / 9))


def test_the_names_of_the_grades_do_not_matter_to_nominal_coefficients():
    items = several()
    renamed = [[{0: 7, 1: -2, 2: 5, 3: 0}[grade] for grade in row] for row in items]
    for name in ("agreement", "fleiss", "alpha-nominal"):
        assert value(name, items) == pytest.approx(value(name, renamed))


def test_a_hundred_thousand_items_of_five_raters_are_resampled_by_pattern():
    rng = np.random.default_rng(1)
    grade = np.clip(rng.integers(0, 4, (100_000, 1)) + rng.integers(-1, 2, (100_000, 5)), 0, 3).astype(float)
    item, rater = np.nonzero(rng.random(grade.shape) < 0.9)
    table = SlotTable(item, rater, grade[item, rater], len(grade), grade.size, tuple("abcde"))
    found = agreement(table, n_draws=100, pairwise=False).coefficients["alpha-ordinal"]
    assert found.ci_low < found.value < found.ci_high
