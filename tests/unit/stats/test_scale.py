"""Scales, and maps between them: the vectors of SearchTweak's documentation."""

import numpy as np
import pytest

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.evaluation.testset.consensus import with_consensus
from cranfield.model import Query, Rating, TestSet
from cranfield.stats.scale import (
    LEVELS,
    MAPS,
    format_map,
    map_grades,
    parse_target,
    rules_between,
    scale_named,
    scale_of,
)


@pytest.mark.parametrize(
    ("scale", "to", "expected"),
    [
        ("graded", "binary", [0, 1, 1, 1]),
        ("detail", "binary", [0, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
        ("detail", "graded", [0, 1, 1, 1, 2, 2, 2, 3, 3, 3]),  # 1 | 2-4 | 5-7 | 8-10
        ("binary", "graded", [0, 3]),
        ("graded", "graded", [0, 1, 2, 3]),
    ],
)
def test_every_map_grade_by_grade(scale, to, expected):
    assert map_grades(np.array(LEVELS[scale], dtype=float), rules_between(scale, to), "there").tolist() == expected


def test_every_map_covers_its_scale_and_stays_on_the_other():
    for (scale, to), rules in MAPS.items():
        assert tuple(rules) == LEVELS[scale]
        assert set(rules.values()) <= set(LEVELS[to])


def combined_grade(slots, scale, to):
    """Grade of a document that its raters gave these grades, as SearchTweak combines them."""
    ratings = tuple(Rating("d", f"rater {number}", grade) for number, grade in enumerate(slots))
    rated = TestSet("t", (Query("q"),), {}, ratings={"q": ratings})
    return with_consensus(rated, "searchtweak", to=to, scale=scale).grades.get("q", {}).get("d")


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
        ([3, None, 0], "graded", None, 1.5),
        ([1, 1, 0], "binary", None, 1),
    ],
)
def test_a_map_applies_to_each_slot_before_they_are_made_into_one(slots, scale, to, expected):
    assert combined_grade(slots, scale, to) == expected


@pytest.mark.parametrize(
    ("grades", "scale"),
    [
        ([0, 1, 1], "binary"),
        ([0, 2], "graded"),
        ([1, 3], "graded"),
        ([1, 4], "detail"),
        ([0, 4], None),
        ([0.5], None),
        ([11], None),
        ([], None),
    ],
)
def test_the_smallest_scale_that_holds_all_grades(grades, scale):
    assert scale_of(np.array(grades, dtype=float)) == scale


def test_a_map_of_ones_own():
    grades = np.array([[1.0, 4.0], [5.0, 1.0]])
    assert map_grades(grades, {1: 0, 4: 1, 5: 3}, "in the map").tolist() == [[0, 1], [3, 0]]


def test_what_has_no_map_is_said():
    with pytest.raises(UsageError, match="no map from graded to detail; expected one of graded to binary"):
        combined_grade([1], "graded", "detail")
    with pytest.raises(UsageError, match=r"grade 2\.5 is not on the graded scale; expected 0, 1, 2, 3"):
        combined_grade([2.5], "graded", "binary")
    with pytest.raises(UsageError, match=r"grades 2, 3 are not in the map; expected 0, 1"):
        map_grades(np.array([3.0, 0.0, 2.0, 3.0]), {0: 0, 1: 1}, "in the map")
    with pytest.raises(UnknownNameError, match="binary"):
        scale_named("binry")


def test_a_target_is_a_scale_or_a_map_as_text():
    assert parse_target("binary") == "binary"
    own = parse_target(" 0=0, 1=0,2=1,3 = 1")
    assert own == {0: 0, 1: 0, 2: 1, 3: 1}
    assert parse_target(format_map(own)) == own


def test_every_problem_of_a_map_is_said():
    with pytest.raises(UsageError) as caught:
        parse_target("0=1,1=0,2=x,1=2,=1,3=-1,4=nan,")
    assert [problem.message for problem in caught.value.problems] == [
        "'2=x' is not a mapping of grades",
        "grade 1 is mapped twice",
        "'=1' is not a mapping of grades",
        "'3=-1' is not a mapping of grades",
        "'4=nan' is not a mapping of grades",
        "'' is not a mapping of grades",
        "grade 1 becomes 0, less than grade 0, which becomes 1",
    ]
    with pytest.raises(UnknownNameError, match="'binry'; expected binary, graded, detail, or a map such as"):
        parse_target("binry")
