"""What a set holds, counted."""

from __future__ import annotations

from cranfield.formats.sniff import read_testset
from cranfield.model import Entity, Negative, Query, Rating, TestSet
from cranfield.testsets.statistics import GradeCount, Matrix, RaterCount, Spread, StratumCount, statistics

SET = TestSet(
    "set",
    (
        Query("q1", "one", {"kind": "a", "hard": "no"}),
        Query("q2", "two", {"kind": "a", "hard": "yes"}, query_class="prose"),
        Query("q3", "", {"kind": "b"}, negative=Negative()),
    ),
    {"q1": {"a": 2, "b": 0, "c": 1}},
    {"q2": (Entity("x"),)},
    ratings={"q1": (Rating("a", "ann", 2), Rating("a", "bob", None), Rating("b", "ann", 0))},
)


def test_everything_is_counted():
    found = statistics(SET)
    assert (found.n_negative, found.n_without_text) == (1, 1)
    assert found.spreads == (
        Spread("judgments", 4, 0, 1.0, 3),
        Spread("relevant", 3, 0, 1.0, 2),
        Spread("document", 3, 0, 0.0, 3),
        Spread("entity", 1, 0, 0.0, 1),
    )
    assert found.grades == (
        *(GradeCount("document", grade, 1) for grade in (2.0, 1.0, 0.0)),
        GradeCount("entity", 1.0, 1),
    )
    assert found.strata == (
        StratumCount("kind", "a", 2),
        StratumCount("kind", "b", 1),
    )  # `hard` and the class are another for each query that has one
    assert found.raters == (RaterCount("ann", 2, 0), RaterCount("bob", 0, 1))


def test_two_strata_are_crossed():
    (matrix,) = statistics(SET, [("kind", "hard")]).matrices
    assert matrix == Matrix("kind", "hard", ("a", "b"), ("", "no", "yes"), ((0, 1, 1), (1, 0, 0)))


def test_the_matrix_of_knowcode_adds_up_to_its_sixty_records(shared_data):
    found = statistics(read_testset(shared_data / "knowcode" / "golden_v1.0.json"))
    (matrix,) = found.matrices
    assert (matrix.row_key, matrix.column_key) == ("task_type", "difficulty")
    assert sum(map(sum, matrix.counts)) == 60
    assert matrix.counts[matrix.rows.index("locate")][matrix.columns.index("easy")] == 6
