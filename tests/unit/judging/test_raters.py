"""What is said of the raters of a test set."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cranfield.base.errors import UsageError
from cranfield.judging.raters.raters import merge_raters, rater_report
from cranfield.model import Label, Query, Rating, TestSet

SLOTS = {
    "q1": {"a": [3, 3, 2], "b": [2, 0, 1], "c": [0, 0, None], "d": [None, None, None]},
    "q2": {"a": [1, 1, 1], "e": [3, 2, 0], "f": [0, 0, 0], "g": [1, 0, None]},
}


def rated(slots=None):
    ratings = {
        query_id: tuple(
            Rating(doc_id, rater, grade)
            for doc_id, said in documents.items()
            for rater, grade in zip(("ann", "bob", "cas"), said, strict=True)
        )
        for query_id, documents in (SLOTS if slots is None else slots).items()
    }
    queries = (Query("q1", strata={"kind": "head"}), Query("q2", strata={"kind": "tail"}), Query("q3"))
    return TestSet("s", queries, ratings=ratings)


def test_coverage_and_the_tie_rate():
    report = rater_report(rated(), n_draws=20)
    found = report.agreement
    assert (found.n_items, found.n_rated, found.n_twice, found.n_slots, found.n_filled) == (8, 7, 7, 24, 19)
    # on the binary scale g is 1 against 0; e is 1, 1, 0 and b 1, 0, 1
    assert (report.tie_rate.n_ties, report.tie_rate.n_rated, report.tie_rate.share) == (1, 7, 1 / 7)
    assert report.scale == "graded"


def test_the_widest_disagreements_come_first():
    report = rater_report(rated(), n_draws=20)
    assert [(one.query_id, one.doc_id) for one in report.disagreements] == [
        ("q2", "e"),  # 3 apart
        ("q1", "b"),  # 2 apart
        ("q2", "g"),  # 1 apart: 1, 0 spread wider than 3, 3, 2
        ("q1", "a"),
    ]
    assert report.disagreements[0].ratings == {"ann": 3, "bob": 2, "cas": 0}
    assert report.n_disagreements == 4


def test_what_a_rule_makes_of_it():
    outcome = rater_report(rated(), rule="majority", n_draws=20).outcome
    assert (outcome.grades, outcome.n_ties, outcome.n_unfilled) == ({0: 2, 1: 4}, 1, 1)
    outcome = rater_report(rated(), n_draws=20).outcome
    assert (outcome.rule, outcome.grades, outcome.n_ties) == ("median", {0: 3, 1: 2, 2: 1, 3: 1}, 0)


def test_by_stratum_each_query_counts_in_its_group():
    report = rater_report(rated(), by="kind", n_draws=20)
    assert {value: found.n_twice for value, found in report.by.items()} == {"head": 3, "tail": 4, "": 0}
    assert report.by[""].coefficients["alpha-nominal"].note == "no item was rated twice"
    with pytest.raises(UsageError, match="no query has the stratum 'level'"):
        rater_report(rated(), by="level")


def test_on_another_scale_each_rating_is_mapped_first():
    report = rater_report(rated(), to="binary", n_draws=20)
    assert report.scale == "binary"
    assert report.n_disagreements == 3  # a is 1, 1, 1 now
    assert "each rating is mapped to the binary scale first" in report.notes


def test_a_scale_without_a_map_leaves_the_tie_rate_unknown_with_its_reason():
    report = rater_report(_percentages(), n_draws=20)
    assert report.scale == ""
    assert report.tie_rate.share is None
    assert "not on a scale" in report.tie_rate.note
    assert report.agreement.coefficients["alpha-interval"].value is not None


def _percentages():
    return TestSet(
        "s",
        (Query("q"),),
        ratings={
            "q": tuple(Rating(d, r, g) for d, r, g in [("a", "x", 75), ("a", "y", 80), ("b", "x", 0), ("b", "y", 10)])
        },
    )


def test_of_nothing_there_is_no_number_and_every_rule_says_so():
    nothing = rated({"q1": {"a": [None, None, None]}})
    for rule in ("median", "majority", "searchtweak"):
        report = rater_report(nothing, rule=rule, to="binary")
        assert (report.outcome.grades, report.outcome.n_unfilled) == ({}, 1)
        assert report.tie_rate.share is None
        assert report.disagreements == ()
        assert all(one.value is None for one in report.agreement.coefficients.values())


def test_the_same_seed_gives_the_same_report():
    assert rater_report(rated(), seed=3).agreement == rater_report(rated(), seed=3).agreement


def test_merged_files_keep_the_labels_of_the_first_that_has_one():
    ann, bob = (TestSet(name, (Query("q1"), Query("q2")), {"q1": {"d": 1}, "q2": {"d": 0}}) for name in ("ann", "bob"))
    ann = replace(ann, labels={"q1": Label(narrative="of ann")})
    bob = replace(bob, labels={"q1": Label(narrative="of bob"), "q2": Label(narrative="of bob too")})
    merged = merge_raters({"ann": ann, "bob": bob})
    assert {query_id: label.narrative for query_id, label in merged.labels.items()} == {
        "q1": "of ann",
        "q2": "of bob too",
    }
