"""Qrels by judge, by subtopic, and as preferences."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from cranfield.base.errors import Problem, TestSetError
from cranfield.formats.testsets.trec import (
    read_judge_qrels,
    read_preferences,
    read_qrels_as_preferences,
    read_subtopic_qrels,
)
from cranfield.model import GroupedJudgment, Query, TestSet

Reader = Callable[[Path], TestSet]


def read(reader: Reader, tmp_path: Path, data: bytes, name: str = "a.qrels") -> TestSet:
    path = tmp_path / name
    path.write_bytes(data)
    return reader(path)


def problems(reader: Reader, tmp_path: Path, data: bytes) -> tuple[Problem, ...]:
    with pytest.raises(TestSetError) as caught:
        read(reader, tmp_path, data)
    return caught.value.problems


def test_judges_are_groups_and_the_highest_grade_is_the_grade(tmp_path: Path) -> None:
    testset = read(read_judge_qrels, tmp_path, b"q2 ann d2 0\nq2 bob d2 2\nq2 ann d1 1\nq1 ann d1 -1\n")
    assert testset.name == "a"
    assert testset.queries == (Query("q2"), Query("q1"))
    assert testset.grouping == "judge"
    assert testset.groups == {
        "q2": (GroupedJudgment("d1", "ann", 1.0), GroupedJudgment("d2", "ann", 0.0), GroupedJudgment("d2", "bob", 2.0)),
        "q1": (GroupedJudgment("d1", "ann", -1.0),),
    }
    assert testset.grades == {"q2": {"d1": 1.0, "d2": 2.0}, "q1": {"d1": -1.0}}


def test_subtopics_are_groups(tmp_path: Path) -> None:
    testset = read(read_subtopic_qrels, tmp_path, b"q 1 d 1\nq 2 d 0\nq 2 e -2\n")
    assert testset.grouping == "subtopic"
    assert {(one.doc_id, one.group, one.value) for one in testset.groups["q"]} == {
        ("d", "1", 1.0),
        ("d", "2", 0.0),
        ("e", "2", -2.0),
    }
    assert testset.grades == {"q": {"d": 1.0, "e": -2.0}}


def test_preferences_have_subgroups(tmp_path: Path) -> None:
    testset = read(read_preferences, tmp_path, b"q ann s1 d1 3.5\nq ann s1 d2 2\nq ann s2 d2 1\n")
    assert testset.grouping == "preference"
    assert testset.groups["q"] == (
        GroupedJudgment("d1", "ann", 3.5, "s1"),
        GroupedJudgment("d2", "ann", 2.0, "s1"),
        GroupedJudgment("d2", "ann", 1.0, "s2"),
    )
    assert testset.grades == {"q": {"d1": 3.5, "d2": 2.0}}


def test_qrels_as_preferences_have_one_subgroup(tmp_path: Path) -> None:
    testset = read(read_qrels_as_preferences, tmp_path, b"q 0 d1 1\nq 0 d2 0\n")
    assert testset.grouping == "preference"
    assert testset.groups["q"] == (GroupedJudgment("d1", "0", 1.0), GroupedJudgment("d2", "0", 0.0))


def test_documents_stand_in_the_order_of_their_bytes(tmp_path: Path) -> None:
    testset = read(read_judge_qrels, tmp_path, "q a z 1\nq a \u00e9 1\nq a B 1\nq a a 1\n".encode())
    assert [one.doc_id for one in testset.groups["q"]] == ["B", "a", "z", "\u00e9"]


@pytest.mark.parametrize(
    "data",
    [
        b"# who said so\n\nq a d 1\n  \n",
        b"\xef\xbb\xbfq\ta\td\t1\r\n",
        b"q a d 1\nq a d 1.0\n",  # said twice, the same
        gzip.compress(b"q a d 1\n", mtime=0),
    ],
)
def test_comments_blank_lines_repeats_and_packing_change_nothing(tmp_path: Path, data: bytes) -> None:
    assert read(read_judge_qrels, tmp_path, data).groups == {"q": (GroupedJudgment("d", "a", 1.0),)}


def test_ids_that_are_not_utf8_keep_their_bytes(tmp_path: Path) -> None:
    testset = read(read_judge_qrels, tmp_path, b"q\xff a\xfe d\xe9 1\n")
    assert testset.groups == {"q\udcff": (GroupedJudgment("d\udce9", "a\udcfe", 1.0),)}


def test_the_name_is_the_file_without_its_endings(tmp_path: Path) -> None:
    assert read(read_judge_qrels, tmp_path, b"q a d 1\n", "web.2024.qrels").name == "web.2024"


@pytest.mark.parametrize(
    ("reader", "data", "line", "message", "expected", "got"),
    [
        (read_judge_qrels, b"q a d\n", 1, "3 columns", "4: query judge document grade", "'q a d'"),
        (read_subtopic_qrels, b"# x\nq a d 1 x\n", 2, "5 columns", "4: query subtopic document grade", "'q a d 1 x'"),
        (read_preferences, b"q a d 1\n", 1, "4 columns", "5: query group subgroup document value", "'q a d 1'"),
        (read_judge_qrels, b"q a d one\n", 1, "the grade is not a finite number", "a number in column 4", "'one'"),
        (read_preferences, b"q a s d nan\n", 1, "the value is not a finite number", "a number in column 5", "'nan'"),
        (read_preferences, b"q a s d 1_0\n", 1, "the value is not a finite number", "a number in column 5", "'1_0'"),
        (
            read_preferences,
            b"q a s d -1\n",
            1,
            "query 'q', group 'a', document 'd': the value is negative",
            "0 or more",
            "-1",
        ),
        (
            read_judge_qrels,
            b"q a d 1\nq b d 2\nq a d 2\n",
            3,
            "query 'q', judge 'a', document 'd' is judged twice",
            "1, as on line 1",
            "2",
        ),
        (
            read_subtopic_qrels,
            b"q 1 d 1\nq 1 d 0\n",
            2,
            "query 'q', subtopic '1', document 'd' is judged twice",
            "1, as on line 1",
            "0",
        ),
        (
            read_preferences,
            b"q a s d 1\nq a t d 2\nq a s d 2\n",
            3,
            "query 'q', group 'a', document 'd' is judged twice",
            "1, as on line 1",
            "2",
        ),
        (
            read_preferences,
            b"q a s d 1\nq b t d 0\nq a t d 0\n",
            3,
            "query 'q', group 'a', document 'd' is relevant in one subgroup only",
            "a value of 0 in all subgroups of a group, or in none",
            "1 on line 1 and 0 on line 3",
        ),
    ],
)
def test_a_bad_line_is_named(
    reader: Reader, data: bytes, line: int, message: str, expected: str, got: str, tmp_path: Path
) -> None:
    (problem,) = problems(reader, tmp_path, data)
    assert (problem.line, problem.message, problem.expected, problem.got) == (line, message, expected, got)
    assert problem.path == str(tmp_path / "a.qrels")


@pytest.mark.parametrize(
    ("data", "circle"),
    [
        (b"q a s d1 2\nq a s d2 1\nq a t d2 2\nq a t d1 1\n", {"d1 > d2 > d1", "d2 > d1 > d2"}),
        # x before y, y before z, z before x
        (
            b"q a s x 2\nq a s y 1\nq a t y 2\nq a t z 1\nq a u z 2\nq a u x 1\n",
            {"x > y > z > x", "y > z > x > y", "z > x > y > z"},
        ),
    ],
)
def test_preferences_that_go_round_in_a_circle_are_refused(tmp_path: Path, data: bytes, circle: set[str]) -> None:
    (problem,) = problems(read_preferences, tmp_path, data)
    assert problem.message == "query 'q', group 'a': its preferences contradict each other"
    assert problem.got is not None
    assert problem.got.strip("'") in circle
    assert problem.line == data.count(b"\n")
    # The same of two groups is two opinions.
    lines = data.splitlines(keepends=True)
    apart = b"".join(line.replace(b" a ", b" %d " % number) for number, line in enumerate(lines, start=0))
    assert len(read(read_preferences, tmp_path, apart).groups["q"]) == len(lines)


def test_all_problems_come_at_once_in_the_order_of_their_lines(tmp_path: Path) -> None:
    found = problems(read_preferences, tmp_path, b"q a s d 1\nq\nq a s d 2\nq a t d 0\nq a s e x\n")
    assert [problem.line for problem in found] == [2, 3, 4, 5]


def test_a_file_without_a_judgment_says_what_it_should_hold(tmp_path: Path) -> None:
    (problem,) = problems(read_preferences, tmp_path, b"# nothing\n")
    assert problem.expected == "lines `query group subgroup document value`"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TestSetError, match="no such file"):
        read_judge_qrels(tmp_path / "nowhere")


def test_a_file_of_something_else_is_given_up_early(tmp_path: Path) -> None:
    assert len(problems(read_judge_qrels, tmp_path, b"x\n" * 5000)) == 1000
