"""Spans of lines in CSV."""

from pathlib import Path

import pytest
from tests.by_text import under_texts

from cranfield.base.errors import TestSetError
from cranfield.formats.convert import write_testset
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets.span_csv import read_span_csv, write_span_csv
from cranfield.model import Entity, Query, Span, TestSet, content_id


def put(folder: Path, text: str) -> Path:
    path = folder / "truth.csv"
    path.write_text(text)
    return path


def test_a_query_has_the_spans_of_its_row(tmp_path):
    path = put(tmp_path, 'query,result1,result2\n"a, b",src/a.rs:1-9:2,src/b.rs:4-4:1\n\nc,C:/x.rs:3-5:0.5\n')
    testset = under_texts(read_testset(path))
    assert testset.queries == (Query("a, b", "a, b"), Query("c", "c"))
    assert testset.targets == {
        "a, b": (Span("src/a.rs", 1, 9, 2), Span("src/b.rs", 4, 4, 1)),
        "c": (Span("C:/x.rs", 3, 5, 0.5),),
    }
    assert tuple(map(str, testset.notes[1:])) == ()


@pytest.mark.parametrize(
    ("row", "column", "complaint"),
    [
        ("q,a.rs-1-2,", 3, "result1 has fewer than 2 colons; expected `path:start-end:grade`, got 'a.rs-1-2'"),
        (
            "q,a.rs:1-2:2,b.rs:7:1",
            14,
            "result2: the lines are not a range; expected `start-end`, two whole numbers, got '7'",
        ),
        ("q,a.rs:1.5-2:2,", 3, "the lines are not a range"),
        ("q,a.rs:9-2:2,", 3, "result1: the range ends before it starts; expected start-end, got '9-2'"),
        ("q,a.rs:0-2:2,", 3, "lines count from 1, so line 0 does not exist; expected lines that count from 1"),
        ("q,a.rs:1-2:high,", 3, "the grade is not a finite number; expected a number, got 'high'"),
        ("q,:1-2:2,", 3, "result1 has no path"),
        ("q, a.rs:1-2:2,", 3, "blanks around it"),
        (",a.rs:1-2:2,", 1, "row 1 has no query"),
        ("q,,", 3, "row 1 has no result"),
        ("q,a.rs:1-2:2,,and more", 15, "4 cells; expected 3, as the header has, got 'and more'"),
        ('"q ""x"" y",a.rs:1-2:x,', 13, "the grade is not a finite number"),
    ],
)
def test_a_bad_cell_is_named_with_its_line_and_column(tmp_path, row, column, complaint):
    path = put(tmp_path, f"# made by hand\nquery,result1,result2\n{row}\n")
    with pytest.raises(TestSetError) as caught:
        read_span_csv(path)
    problem = caught.value.problems[0]
    assert (problem.line, problem.column) == (3, column)
    assert complaint in str(problem)


def test_every_bad_cell_is_told_at_once(tmp_path):
    path = put(tmp_path, "query,result1,result2\nq,a:1:1,b:2-1:1\n,c:1-2:x\n")
    with pytest.raises(TestSetError) as caught:
        read_span_csv(path)
    assert [(p.line, p.column) for p in caught.value.problems] == [(2, 3), (2, 9), (3, 1), (3, 2)]


def test_quotes_that_do_not_fit_are_told_with_their_line(tmp_path):
    path = put(tmp_path, 'query,result1\nq,a:1-2:1\n"q" x,a:1-2:1\n')
    with pytest.raises(TestSetError, match=r"truth\.csv:3: not a row of cells"):
        read_span_csv(path)


def test_lines_that_count_from_0_are_said_in_a_comment(tmp_path):
    path = put(tmp_path, "# line_base: 0\nquery,result1\nq,a:0-4:2\n")
    testset = read_testset(path)
    assert testset.targets[content_id("q")] == (Span("a", 1, 5, 2),)
    assert tuple(map(str, testset.notes[1:])) == ("the lines of the file count from 0; one was added to each",)
    with pytest.raises(TestSetError, match="line_base cannot be used; expected 0 or 1, got '2'"):
        read_span_csv(put(tmp_path, "# line_base: 2\nquery,result1\nq,a:0-4:2\n"))


def test_ids_and_strata_have_columns_and_a_text_that_comes_twice_is_said(tmp_path):
    path = put(
        tmp_path,
        "id,query,result1,stratum.level,area,url\nx,q,a:1-2:1,hard,io,u1\ny,q,a:1-2:1,,io,u2\n",
    )
    testset = read_testset(path)
    assert testset.queries == (Query("x", "q", {"area": "io", "level": "hard"}), Query("y", "q", {"area": "io"}))
    assert tuple(map(str, testset.notes)) == (
        "the query 'q' occurs in rows 1, 2",
        "kept as stratum 'area': 1 value in 2 queries",
        "not carried over: 2 values of 'url', all different",
    )


def test_an_id_that_is_used_twice_is_an_error_with_both_lines(tmp_path):
    path = put(tmp_path, "id,query,result1\nx,q,a:1-2:1\nx,r,a:1-2:1\n")
    with pytest.raises(TestSetError, match=r"truth\.csv:3:1: query id 'x' is used twice; it also occurs on line 2"):
        read_span_csv(path)


@pytest.mark.parametrize("text", ["", "# only a comment\n", "query,result1\n", "query,answer\nq,a:1-2:1\n"])
def test_a_file_without_queries_is_refused(tmp_path, text):
    with pytest.raises(TestSetError):
        read_span_csv(put(tmp_path, text))


def test_what_no_cell_can_hold_is_not_written(tmp_path):
    testset = TestSet(
        "t", (Query("1", "q"), Query("2", "")), targets={"1": (Span(" a", 1, 2),), "2": (Span("a", 1, 2),)}
    )
    with pytest.raises(TestSetError) as caught:
        write_span_csv(testset, tmp_path / "new.csv")
    assert len(caught.value.problems) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_spans_is_written_as_its_makers_write_it(tmp_path):
    one, two = content_id("one, two"), content_id("three")
    targets = {one: (Span("a.rs", 1, 2, 2), Span("b.rs", 3, 4)), two: (Span("c.rs", 5, 6, 2),)}
    write_span_csv(TestSet("t", (Query(one, "one, two"), Query(two, "three")), targets=targets), tmp_path / "new.csv")
    assert (tmp_path / "new.csv").read_text() == (
        'query,result1,result2\n"one, two",a.rs:1-2:2,b.rs:3-4:1\nthree,c.rs:5-6:2,\n'
    )


def test_entities_with_known_lines_are_written_as_these_lines_and_others_are_reported(tmp_path):
    entities = (Entity("a.py::f", 2, ((3, 9), (12, 12))), Entity("b.py::g", 1), Span("a.py", 3, 9, 1))
    testset = TestSet("code", (Query("q", "text"),), targets={"q": entities})
    notes = write_testset(testset, tmp_path / "s.csv", "spans-csv")
    assert [note for note in notes if "entit" in note] == ["1 entity written as lines", "not carried over: 1 entity"]
    assert read_span_csv(tmp_path / "s.csv").targets == {"q": (Span("a.py", 3, 9, 2), Span("a.py", 12, 12, 2))}
