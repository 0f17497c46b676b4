"""Slots made into one value, and maps between scales: the vectors of SearchTweak's documentation."""

import pytest

from cranfield.errors import UsageError
from cranfield.stats.scale import LEVELS, MAPS, aggregate, average, majority, mapped


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        ([1, 1, 0], 1),  # two of three
        ([0, 0, 1], 0),  # one of three
        ([1, 0, None], None),  # one against one: a tie
        ([1, 0], None),
        ([1, None, None], 1),
        ([0], 0),
        ([None, None, None], None),
        ([], None),
    ],
)
def test_majority(slots, expected):
    assert majority(slots) == expected
    assert aggregate(slots, "binary") == expected


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        ([3, 2, 1], 2.0),
        ([3, None, 0], 1.5),  # over the filled ones
        ([10, 9, 9], 28 / 3),
        ([None, None], None),
    ],
)
def test_mean(slots, expected):
    assert average(slots) == expected
    assert aggregate(slots, "detail") == aggregate(slots, "graded") == expected


@pytest.mark.parametrize(
    ("scale", "to", "expected"),
    [
        ("graded", "binary", [0, 1, 1, 1]),
        ("detail", "binary", [0, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
        ("detail", "graded", [0, 1, 1, 1, 2, 2, 2, 3, 3, 3]),  # 1 | 2-4 | 5-7 | 8-10
        ("binary", "graded", [0, 3]),
    ],
)
def test_every_map_grade_by_grade(scale, to, expected):
    assert [mapped(grade, scale, to) for grade in LEVELS[scale]] == expected


def test_every_map_covers_its_scale_and_stays_on_the_other():
    for (scale, to), rules in MAPS.items():
        assert tuple(rules) == LEVELS[scale]
        assert set(rules.values()) <= set(LEVELS[to])


@pytest.mark.parametrize(
    ("slots", "scale", "to", "expected"),
    [
        # 0, 1, 1: the majority is 1. The mean 14/3 = 4.67 is no grade that a map knows.
        ([1, 5, 8], "detail", "binary", 1),
        # 0, 0, 1: the majority is 0, though the mean 4 would map to 1
        ([1, 1, 10], "detail", "binary", 0),
        # 1, 3: the mean is 2; the mean 6 would map to 2 as well
        ([4, 8, None], "detail", "graded", 2.0),
        # 0, 1: .5; the mean 1.5 is no grade
        ([1, 2], "detail", "graded", 0.5),
        ([1, 0, 1], "binary", "graded", 2.0),  # 3, 0, 3
        ([3, 0], "graded", "binary", None),  # 1 against 0
        ([None, None], "detail", "binary", None),
        ([3, 2], "graded", "graded", 2.5),
    ],
)
def test_a_map_applies_to_each_slot_before_they_are_made_into_one(slots, scale, to, expected):
    assert aggregate(slots, scale, to=to) == expected


def test_what_has_no_map_is_said():
    with pytest.raises(UsageError, match="no map from graded to detail; expected one of graded to binary"):
        aggregate([1], "graded", to="detail")
    with pytest.raises(UsageError, match=r"not on the graded scale; expected 0, 1, 2, 3, got 2\.5"):
        aggregate([2.5], "graded", to="binary")
