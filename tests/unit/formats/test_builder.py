"""What is judged twice, alike or differently, and query ids that are used twice: the same for every reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from cranfield.base.errors import TestSetError
from cranfield.formats.testsets.trec import TestSetBuilder
from cranfield.model import GroupedJudgment, Query, Rating


def builder(**options: object) -> TestSetBuilder:
    made = TestSetBuilder(Path("a.txt"), **options)  # type: ignore[arg-type]  # keywords of the builder
    made.new_query(Query("q"), 1)
    return made


def message(made: TestSetBuilder) -> str:
    with pytest.raises(TestSetError) as caught:
        made.testset()
    return str(caught.value)


def test_repeated_judgments_count_once_and_are_noted() -> None:
    made = builder()
    for line in (2, 3, 4):
        made.judge("q", "d", 1, line)
    assert made.testset(made.repeated()).grades == {"q": {"d": 1.0}}
    assert [str(note) for note in made.repeated()] == ["2 repeated judgments with the same grade, counted once"]


def test_rows_are_added_as_single_judgments_are() -> None:
    made = TestSetBuilder(Path("a.txt"))
    made.judge_rows(
        [("q", "d", 1.0, 1), ("p", "d", 2.0, 2), ("q", "e", 0.0, 3), ("q", "d", 1.0, 4), ("q", "d", 3.0, 5)]
    )
    assert made.grades.values == {"q": {"d": 1.0, "e": 0.0}, "p": {"d": 2.0}}
    assert made.n_repeated == 1
    assert message(made) == "a.txt:5: query 'q', document 'd' is judged twice; expected 1, as on line 1, got 3."


def test_a_conflict_names_its_group_or_rater() -> None:
    made = builder(grouping="subtopic", hint="keep one.")
    made.judge_in_group("q", ("d", "s1", ""), 1, 2)
    made.judge_in_group("q", ("d", "s2", ""), 2, 3)
    made.judge_in_group("q", ("d", "s1", ""), 2, 4)
    made.rate("q", "d", "ann", None, 5)
    made.rate("q", "d", "ann", 0.5, 6)
    assert message(made) == (
        "a.txt:4: query 'q', subtopic 's1', document 'd' is judged twice; expected 1, as on line 2, got 2.\n"
        "Hint: keep one.\n"
        "a.txt:6: query 'q', document 'd' is judged twice by 'ann'; expected no grade, as on line 5, got 0.5.\n"
        "Hint: keep one."
    )


def test_a_place_on_the_same_line_is_named_by_its_column() -> None:
    made = builder(mark=lambda at: divmod(at, 100))
    made.judge("q", "d", 1, 307)
    made.judge("q", "d", 2, 355)
    assert message(made) == (
        "a.txt:3:55: query 'q', document 'd' is judged twice; expected 1, as on line 3, column 7, got 2."
    )


def test_rows_in_memory_are_named_in_the_message() -> None:
    made = TestSetBuilder("frame", None)
    made.judge_rows([("q", "d", 1.0, 0), ("q", "d", 2.0, 7)])
    assert message(made) == "frame: row 7: query 'q', document 'd' is judged twice; expected 1, as in row 0, got 2."


def test_a_query_id_is_used_once() -> None:
    made = builder()
    assert not made.new_query(Query("q", "again"), 8)
    assert message(made) == "a.txt:8: query id 'q' is used twice; it also occurs on line 1."


def test_without_a_query_there_is_no_test_set() -> None:
    assert message(TestSetBuilder(Path("a.txt"))) == "a.txt: no judgment in this file; expected queries with judgments."
    assert message(TestSetBuilder("frame", None)) == "frame: no judgment here; expected queries with judgments."


def test_groups_give_the_highest_grade_and_stand_by_the_bytes_of_documents() -> None:
    made = builder(grouping="judge")
    for line, (document, judge, grade) in enumerate([("b", "x", 1), ("a", "y", 0), ("a", "x", 2)], start=2):
        made.judge_in_group("q", (document, judge, ""), grade, line)
    made.rate("q", "a", "ann", 3, 9)
    testset = made.testset()
    assert testset.grades == {"q": {"a": 2, "b": 1}}
    assert testset.groups == {
        "q": (GroupedJudgment("a", "x", 2), GroupedJudgment("a", "y", 0), GroupedJudgment("b", "x", 1))
    }
    assert testset.ratings == {"q": (Rating("a", "ann", 3),)}
