"""Counts of a test set."""

from __future__ import annotations

from cranfield.model import Pattern, Query, TestSet


def test_grade_0_is_a_judgment_a_grade_under_it_is_none_and_targets_count() -> None:
    queries = (Query("q1", "graded"), Query("q2", "targets"))
    targets = {"q2": (Pattern("^a"), Pattern("^b"))}
    assert TestSet("t", queries, {"q1": {"a": 2, "b": 0, "c": -1}}, targets=targets).n_judgments == 4
