"""Ratings made into the grades of a test set: rules, maps, ties, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cranfield.base.errors import TestSetError, UnknownNameError, UsageError
from cranfield.evaluation.testset.consensus import rated_pairs, with_consensus
from cranfield.model import GroupedJudgment, Meta, Query, Rating, TestSet


def rated(slots, *, grades=None, **fields):
    """One query, `q`, and its documents' slots by ann, bob and cas."""
    ratings = tuple(
        Rating(doc_id, rater, grade)
        for doc_id, said in slots.items()
        for rater, grade in zip(("ann", "bob", "cas"), said, strict=False)
    )
    return TestSet("s", (Query("q"), Query("r")), grades or {}, ratings={"q": ratings}, **fields)


SLOTS = {"a": [3, 1, 2], "b": [0, 3], "c": [None, None], "d": [1]}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("median", {"a": 2, "b": 0, "d": 1}),  # b: the lower of two in the middle
        ("mean", {"a": 2, "b": 1.5, "d": 1}),
        ("majority", {"a": 1, "d": 1}),  # b: one against one
        ("searchtweak", {"a": 2, "b": 1.5, "d": 1}),
        ("quepid", {"a": 1, "b": 2, "d": 1}),  # the lowest of three; 1.5 halves up
    ],
)
def test_each_rule_makes_its_grades_and_leaves_the_ratings(rule, expected):
    before = rated(SLOTS)
    after = with_consensus(before, rule)
    assert after.grades == {"q": expected}
    assert after.ratings == before.ratings
    assert after.consensus == rule


def test_ties_and_pairs_that_nobody_rated_are_left_unjudged_and_counted():
    notes = tuple(map(str, with_consensus(rated(SLOTS), "majority").notes))
    assert notes == (
        "grades are made of 6 ratings of 4 pairs by the rule majority",
        "ratings are assumed to be on the graded scale, because none is named",
        "each rating is mapped to the binary scale first",
        "pairs whose votes are even, left unjudged: 1 of 4 (q b)",
        "unrated pairs, left unjudged: 1 of 4 (q c)",
    )


def test_without_a_rule_it_is_the_sets_own_or_the_median_and_says_so():
    assert with_consensus(rated(SLOTS, consensus="mean")).grades["q"]["b"] == 1.5
    by_default = with_consensus(rated(SLOTS))
    assert by_default.consensus == "median"
    assert str(by_default.notes[0]) == "grades are made of 6 ratings of 4 pairs by the rule median (the default rule)"


def test_judgments_beside_ratings_stay_where_no_rule_is_named():
    after = with_consensus(rated(SLOTS, grades={"q": {"a": 3.0, "x": 1.0}, "r": {"y": 2.0}}))
    assert after.grades == {"q": {"a": 3, "x": 1, "b": 0, "d": 1}, "r": {"y": 2}}
    assert "judgments in addition to ratings, kept unchanged because no rule is named: 1" in map(str, after.notes)


def test_a_rule_that_is_named_is_followed_and_says_what_it_changed():
    after = with_consensus(rated(SLOTS, grades={"q": {"a": 3.0, "b": 1.0, "d": 1.0}, "r": {"y": 2.0}}), "majority")
    assert after.grades == {"q": {"a": 1, "d": 1}, "r": {"y": 2}}
    # a was 3 and is 1; b was 1 and is a tie
    assert "judgments that differed from the consensus of their ratings, replaced by it: 2" in map(str, after.notes)


def test_a_map_applies_to_each_slot_before_they_are_made_into_one():
    slots = {"a": [1, 5, 8], "b": [1, 1, 10], "c": [1, 2]}
    # 0,1,1 is 1; 0,0,1 is 0; 0,1 is a tie
    assert with_consensus(rated(slots), "searchtweak", to="binary", scale="detail").grades == {"q": {"a": 1, "b": 0}}
    # 0,2,3; 0,0,3; 0,1
    graded = with_consensus(rated(slots), "searchtweak", to="graded", scale="detail").grades["q"]
    assert graded == {"a": pytest.approx(5 / 3), "b": 1, "c": 0.5}
    own = with_consensus(rated(slots), "mean", to={1: 0, 2: 4, 5: 4, 8: 4, 10: 4}).grades["q"]
    assert own == {"a": pytest.approx(8 / 3), "b": pytest.approx(4 / 3), "c": 2}


def test_the_scale_of_the_set_counts_before_the_smallest_that_fits():
    slots = {"a": [1, 1], "b": [3, 3]}
    assert with_consensus(rated(slots), "majority").grades == {"q": {"a": 1, "b": 1}}
    detail = rated(slots, meta=Meta(scale=tuple(range(1, 11))))
    assert with_consensus(detail, "majority").grades == {"q": {"a": 0, "b": 1}}  # 1 of 10 is not relevant
    assert with_consensus(rated(slots), "majority", scale="detail").grades == {"q": {"a": 0, "b": 1}}


def test_grades_under_0_are_no_judgments():
    after = with_consensus(rated({"a": [-1, 2], "b": [-1]}), "mean")
    assert after.grades == {"q": {"a": 2}}
    assert str(after.notes[1]) == "grades under 0, which are not judgments and leave their slots unfilled: 2"


def test_a_rater_who_rates_a_pair_twice_has_two_votes_and_it_is_said():
    twice = replace(rated({}), ratings={"q": (Rating("a", "ann", 1), Rating("a", "ann", 0), Rating("a", "bob", 1))})
    assert with_consensus(twice, "majority").grades == {"q": {"a": 1}}
    found = rated_pairs(twice)
    assert found.table.raters == ("ann", "ann #2", "bob")
    assert tuple(map(str, found.notes)) == ("pairs rated again by the same rater, counted as another rater: 1",)


def test_judgments_by_judge_become_ratings():
    judged = {"q": tuple(GroupedJudgment(d, j, g) for d, j, g in [("a", "ann", 1), ("a", "bob", 0), ("b", "ann", 1)])}
    before = TestSet("s", (Query("q"),), {"q": {"a": 1.0, "b": 1.0}}, groups=judged, grouping="judge")
    after = with_consensus(before, "majority")
    assert after.grades == {"q": {"b": 1}}
    assert after.ratings == {"q": (Rating("a", "ann", 1), Rating("a", "bob", 0), Rating("b", "ann", 1))}
    assert (after.groups, after.grouping) == ({}, None)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"rule": "medan"}, UnknownNameError, "median"),
        ({"scale": "stars"}, UnknownNameError, "unknown scale 'stars'"),
        ({"to": "stars"}, UnknownNameError, "unknown scale 'stars'"),
        ({"scale": "binary"}, UsageError, r"grades 2, 3 are not on the binary scale; expected 0, 1"),
        ({"to": "detail"}, UsageError, "no map from graded to detail"),
        ({"to": {0: 0, 1: 1}}, UsageError, r"grades 2, 3 are not in the map; expected 0, 1"),
    ],
)
def test_what_cannot_be_is_said(options, error, says):
    with pytest.raises(error, match=says):
        with_consensus(rated(SLOTS), **options)


def test_a_grade_on_no_scale_is_never_a_silent_0():
    with pytest.raises(UsageError, match=r"not on a scale that can be mapped to binary.*got 0, 7\.5"):
        with_consensus(rated({"a": [0, 7.5]}), "majority")
    assert with_consensus(rated({"a": [0, 7.5]}), "mean").grades == {"q": {"a": 3.75}}  # the mean needs no scale


def test_a_set_without_ratings_is_refused():
    with pytest.raises(TestSetError, match="has no ratings"):
        with_consensus(TestSet("s", (Query("q"),), {"q": {"a": 1.0}}))


def test_a_second_time_changes_nothing():
    once = with_consensus(rated(SLOTS), "quepid")
    again = with_consensus(replace(once, notes=()))
    assert (again.grades, again.digest) == (once.grades, once.digest)


@pytest.mark.parametrize(("rule", "grade"), [("median", 2), ("mean", 2), ("majority", 1), ("quepid", 2)])
def test_an_adjudicated_grade_stands_in_the_place_of_the_ratings_which_are_kept(rule, grade):
    before = rated(SLOTS)
    before = replace(before, ratings={"q": (*before.ratings["q"], Rating("b", "lead", 2, final=True))})
    after = with_consensus(before, rule)
    assert after.grades["q"]["b"] == grade
    assert after.ratings == before.ratings
    assert "pairs with an adjudicated grade, used instead of their ratings: 1" in map(str, after.notes)
    assert with_consensus(before, "mean", to={0: 0, 1: 0, 2: 5, 3: 7}).grades["q"]["b"] == 5


def test_the_adjudicator_is_no_rater_whose_agreement_is_measured():
    final = rated(SLOTS)
    final = replace(final, ratings={"q": (*final.ratings["q"], Rating("b", "lead", 2, final=True))})
    assert rated_pairs(final).table.raters == rated_pairs(rated(SLOTS)).table.raters


def test_what_is_pooled_and_has_no_grade_stays_pooled():
    pooled = rated(SLOTS, grades={"q": {"b": -1, "c": -1, "a": -1, "z": -1}})
    assert with_consensus(pooled, "majority").grades == {"q": {"a": 1, "b": -1, "c": -1, "d": 1, "z": -1}}
