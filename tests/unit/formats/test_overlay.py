"""Judgments over texts, texts over judgments, strata by position and by table."""

from __future__ import annotations

from pathlib import Path

import pytest

from cranfield.base.errors import TestSetError
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets.overlay import with_judgments, with_queries, with_strata
from cranfield.formats.testsets.trec import read_qrels
from cranfield.model import Legacy, Negative, Pattern, Query, Source, TestSet
from cranfield.model.note import info

SET = TestSet(
    "canonical",
    (
        Query("a", "Hashable", {"class": "A"}, {"k": 1}, 2.0, "canonical"),
        Query("b", "URLSession", {"class": "E"}),
        Query("c", "nothing at all", negative=Negative()),
    ),
    targets={"a": (Pattern("^x$"),), "b": (Pattern("^y$"),)},
    legacy={"b": Legacy(("ns",))},
    sources=(Source("docs", "^docs"),),
)


def qrels(folder: Path, text: str) -> TestSet:
    (folder / "new.qrels").write_text(text)
    return read_testset(folder / "new.qrels")


def test_judgments_replace_and_all_else_stays(tmp_path: Path) -> None:
    laid = with_judgments(SET, qrels(tmp_path, "b 0 d1 2\nb 0 d2 0\nz 0 d 1\n"))
    assert laid.queries == SET.queries
    assert laid.grades == {"b": {"d1": 2.0, "d2": 0.0}}
    assert laid.targets == {}
    assert (laid.legacy, laid.sources, laid.name) == (SET.legacy, SET.sources, SET.name)
    assert tuple(map(str, laid.notes)) == (
        "judgments of new: 2 judgments for 1 query",
        "never judged in new, excluded from the means: 1 query (a); qrels_fallback scores them by the judgments of the test set",
        "1 query judged there and not in the test set: z",
    )


def test_a_header_row_and_numbers_by_position_are_understood_and_said(tmp_path: Path) -> None:
    laid = with_judgments(SET, qrels(tmp_path, "qid 0 docid relevance\n1 0 x 1\n2 0 y 1\n2 0 z 0\n"))
    assert laid.grades == {"a": {"x": 1.0}, "b": {"y": 1.0, "z": 0.0}}
    assert tuple(map(str, laid.notes)) == (
        "line 1 is a header row and was skipped: 'qid 0 docid relevance'",
        "judgments of new: 3 judgments for 2 queries",
        "its query numbers are positions in the test set, counted from 1",
    )


@pytest.mark.parametrize(
    "text", ["1 0 x 1\nz 0 y 1\n", "4 0 x 1\n", "0 0 x 1\n", "01 0 x 1\n", "z 0 x 1\n"],
    ids=["mixed", "beyond the last", "zero", "a number as nobody writes one", "other ids"],
)  # fmt: skip
def test_what_pairs_with_nothing_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(
        TestSetError,
        match=r"new and the test set canonical share no query; expected its query ids, or positions from 1 to 3",
    ):
        with_judgments(SET, qrels(tmp_path, text))


def test_numbers_that_are_ids_are_ids(tmp_path: Path) -> None:
    numbered = TestSet("n", (Query("2", "x"), Query("1", "y")))
    assert with_judgments(numbered, qrels(tmp_path, "1 0 d 1\n")).grades == {"1": {"d": 1.0}}


def test_a_negative_query_is_not_judged(tmp_path: Path) -> None:
    with pytest.raises(TestSetError, match="judges queries that are negative in the test set: c"):
        with_judgments(SET, qrels(tmp_path, "a 0 d 1\nc 0 d 1\n"))


@pytest.mark.parametrize(
    "header",
    [
        "qid 0 docid relevance",
        "query_id iteration doc_id grade",
        "Query-ID\tIteration\tCorpus-ID\tRelevance",
        "topic iter docno rel",
    ],
)
def test_a_header_row_of_usual_words_is_skipped_and_said(tmp_path: Path, header: str) -> None:
    (tmp_path / "q").write_text(f"{header}\n1 0 d 1\n")
    read = read_qrels(tmp_path / "q")
    assert read.grades == {"1": {"d": 1.0}}
    assert len(read.notes) == 1


@pytest.mark.parametrize(
    "text",
    [
        "1 0 d 1\nqid 0 docid relevance\n",
        "qid 0 docid high\n1 0 d 1\n",
        "q1 0 d1 relevance\n1 0 d 1\n",
        "# c\nqid 0 docid rel\n",
    ],
    ids=["not first", "an unknown word", "ids", "after a comment"],
)
def test_no_other_line_without_a_grade_is_skipped(tmp_path: Path, text: str) -> None:
    (tmp_path / "q").write_text(text)
    with pytest.raises(TestSetError, match="the grade is not a finite number"):
        read_qrels(tmp_path / "q")


def test_texts_are_laid_over_qrels(tmp_path: Path) -> None:
    judged = qrels(tmp_path, "1 0 d 1\n2 0 d 1\n")
    laid = with_queries(judged, TestSet("topics", (Query("1", "one"), Query("9", "nine")), notes=info("read so")))
    assert laid.queries == (Query("1", "one"), Query("2"))
    assert tuple(map(str, laid.notes)) == (
        "read so",
        "read text from topics for 1 query",
        "1 query without a text: 2",
        (
            "1 text without a query in the test set, not used: 9; a query with nothing to find is `negative: true` in a YAML test set, "
            "`yes` under `negative` in a table"
        ),
    )
    with pytest.raises(TestSetError, match="share no query"):
        with_queries(judged, TestSet("topics", (Query("x", "one"),)))


TEN = TestSet("ten", tuple(Query(f"q{i}", "t", {"kind": "x"}) for i in range(1, 11)))


def test_strata_by_rows_count_from_one_in_the_order_of_the_file() -> None:
    laid = with_strata(TEN, "difficulty=standard:1-6, very hard:8-9,last one:10")
    got = [query.strata.get("difficulty") for query in laid.queries]
    assert got == ["standard"] * 6 + [None] + ["very hard"] * 2 + ["last one"]
    assert laid.queries[0].strata == {"kind": "x", "difficulty": "standard"}
    assert tuple(map(str, laid.notes)) == ("strata difficulty: set for 9 of 10 queries", "without difficulty: q7")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("d=a:1-5,b:5-9", "d=a:1-5,b:5-9: row 5 is in two ranges; expected one, got a and b."),
        ("d=a:1-11", "d=a:1-11: the rows 1-11 of 'a' are not in the test set; expected rows from 1 to 10"),
        ("d=a:0-3", "the rows 0-3 of 'a' are not in the test set"),
        ("d=a:5-3", "the rows 5-3 of 'a' are not in the test set"),
        ("d=a:1-2,b", "'b' is not a range; expected VALUE:FIRST-LAST"),
        ("d=a", "neither ranges nor a file; expected KEY=VALUE:FIRST-LAST"),
        ("nowhere.csv", "nowhere.csv: no such file"),
    ],
)
def test_strata_that_cannot_be_are_refused(spec: str, message: str) -> None:
    with pytest.raises(TestSetError) as caught:
        with_strata(TEN, spec)
    assert message in str(caught.value)


@pytest.mark.parametrize("separator", [",", "\t"])
def test_strata_by_table(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "strata.txt"
    rows = ["kind,query_id,level", "task,q1,1", ",q2,2", ",q3,", "task,q99,1"]
    path.write_text("\n".join(rows).replace(",", separator))
    laid = with_strata(TEN, path)
    assert [query.strata for query in laid.queries[:3]] == [
        {"kind": "task", "level": "1"},
        {"kind": "x", "level": "2"},
        {"kind": "x"},
    ]
    assert tuple(map(str, laid.notes)) == (
        "strata kind, level: set for 2 of 10 queries",
        "without kind, level: q3, q4, q5, q6, q7, q8, q9, q10",
        "not in the test set: 1 query of strata.txt, q99",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": no header row in this file"),
        ("a,b\n1,2\n", ":1: no column of query ids; expected a first line like `query_id,difficulty`, got 'a, b'."),
        ("query_id\nq1\n", ":1: no column other than the query ids"),
        ("query_id,d\nq1,a,b\n", ":2:6: 3 cells; expected 2, as the header has, got 'b'."),
        (
            "query_id,d\nq1,a\nq1,b\n",
            ":3:1: query 'q1' occurs twice; it also occurs on line 2; expected each query once.",
        ),
        ("query_id,d\n,a\n", ":2:1: no query id; expected one in column query_id."),
        ("query_id,d,d\nq1,a,b\n", ":1: column 'd' occurs twice; expected a name for each column."),
        ("query_id,\nq1,a\n", ":1: a column without a name; expected a name for each column."),
        ('query_id,d\nq1,"a\n', ":2: not a row of cells: unexpected end of data"),
        (
            "query_id,d\nz,a\n",
            ": this table and the test set share no query; expected query ids like q1, q2, q3, got z.",
        ),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_at_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.csv"
    path.write_text(text)
    with pytest.raises(TestSetError) as caught:
        with_strata(TEN, path)
    assert str(caught.value).startswith(f"{path}{message}")
