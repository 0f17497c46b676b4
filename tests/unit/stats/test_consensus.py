"""Several judgments of one result made into one, by each named rule."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.stats.consensus import CONSENSUS, combined, slot_table


def grade_of(slots, rule, *, scale=None):
    """The grade of one item; None where there is none."""
    (value,) = combined(np.array([slots], dtype=np.float64).reshape(1, len(slots)), rule, scale=scale).tolist()
    return None if math.isnan(value) else value


@pytest.mark.parametrize(
    ("rule", "slots", "expected"),
    [
        ("median", [3, 1, 0], 1),
        ("median", [0, 1, 2, 3], 1),  # 1 and 2 are in the middle: the lower
        ("median", [3, 1], 1),
        ("median", [2, None, None], 2),
        ("majority", [1, 1, 0], 1),
        ("majority", [0, 0, 1], 0),
        ("majority", [1, 0, None], None),  # one against one
        ("majority", [1, None, None], 1),
        ("mean", [3, None, 0], 1.5),
        ("mean", [10, 9, 9], 28 / 3),
        ("searchtweak", [3, 2, 0], 5 / 3),
        ("searchtweak", [1, 0], 0.5),  # no scale said: the mean
        ("quepid", [2], 2),
        ("quepid", [3, 0], 2),  # 1.5, halves up
        ("quepid", [1, 2], 2),
        ("quepid", [3, 3, 0], 0),  # the lowest of the three highest
        ("quepid", [0, 1, 2, 3], 1),  # of 3, 2, 1
        ("quepid", [3, 3, 3, 0, 0], 3),
    ],
)
def test_a_rule(rule, slots, expected):
    assert grade_of(slots, rule) == expected


@pytest.mark.parametrize(
    ("slots", "expected"),
    [([1, 1, 0], 1), ([0, 0, 1], 0), ([1, 0, None], None), ([1, 0], None), ([0], 0), ([1, None, None], 1)],
)
def test_searchtweak_takes_the_majority_on_the_binary_scale(slots, expected):
    assert grade_of(slots, "searchtweak", scale="binary") == expected


@pytest.mark.parametrize("rule", sorted(CONSENSUS))
@pytest.mark.parametrize("slots", [[], [None], [None, None, None]])
def test_of_nothing_there_is_no_grade(rule, slots):
    assert grade_of(slots, rule) is None


@pytest.mark.parametrize("rule", sorted(CONSENSUS))
def test_many_items_at_once_are_as_each_alone(rule):
    rng = np.random.default_rng(3)
    grades = rng.integers(0, 4, (500, 5)).astype(float)
    grades[rng.random(grades.shape) < 0.5] = np.nan
    alone = [grade_of([None if math.isnan(g) else g for g in row], rule) for row in grades]
    together = [None if math.isnan(value) else value for value in combined(grades, rule).tolist()]
    assert together == alone
    assert None in together


@pytest.mark.parametrize("rule", sorted(CONSENSUS))
def test_the_order_of_the_slots_does_not_matter(rule):
    slots = [0, 3, None, 1, 2, 2]
    assert {grade_of(slots[k:] + slots[:k], rule) for k in range(len(slots))} == {grade_of(slots, rule)}


def test_every_rule_says_what_it_does_and_whose_it_is():
    for name, rule in CONSENSUS.items():
        assert name == rule.name
        assert rule.sentence.endswith(".")
        assert rule.source


def test_a_rule_that_is_not_there_is_named_with_the_nearest():
    with pytest.raises(UnknownNameError, match="majority"):
        grade_of([1], "majorty")


def test_a_table_holds_the_filled_slots_and_gives_them_back_side_by_side():
    table = slot_table([[1, None, 0], [None, None, None], [None, 3, 2]], ["ann", "bob", "cas"])
    assert table.filled.tolist() == [2, 0, 2]
    assert (table.n_items, table.n_slots, table.raters) == (3, 9, ("ann", "bob", "cas"))
    assert table.rater.tolist() == [0, 2, 1, 2]
    np.testing.assert_array_equal(table.packed(), [[1, 0], [np.nan, np.nan], [3, 2]])


def test_items_with_other_numbers_of_slots_are_refused():
    with pytest.raises(UsageError, match="different numbers of slots"):
        slot_table([[1, 0], [1]])
    with pytest.raises(UsageError, match="different numbers of slots"):
        slot_table([[1, 0]], ["ann"])
