"""Judgments from mappings and tables: the test set they make is the one a qrels file of the same lines makes."""

import math
from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cranfield.base.errors import TestSetError
from cranfield.formats.testsets.judgments import qrels_from_frame, qrels_from_mapping, qrels_from_rows
from cranfield.formats.testsets.trec import read_qrels, read_subtopic_qrels

QRELS = {"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 2, "d1": -1}}
ROWS = {"query_id": ["q1", "q1", "q2", "q2"], "doc_id": ["d1", "d2", "d3", "d1"], "grade": [1, 0, 2, -1]}
KINDS = {"pandas": pd.DataFrame, "Polars": pl.DataFrame, "Arrow": pa.table}

each_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


@pytest.fixture
def from_file(tmp_path):
    lines = [f"{q} 0 {d} {grade}\n" for q, judged in QRELS.items() for d, grade in judged.items()]
    (tmp_path / "qrels").write_text("".join(lines))
    return read_qrels(tmp_path / "qrels")


def test_a_mapping_makes_the_test_set_of_the_file(from_file):
    for qrels in (QRELS, MappingProxyType({q: MappingProxyType(judged) for q, judged in QRELS.items()})):
        testset = qrels_from_mapping(qrels)
        assert testset.digest == from_file.digest
        assert testset.query_ids == ("q1", "q2")
        assert testset.name == "qrels"


@each_kind
def test_a_table_makes_the_test_set_of_the_file(from_file, make):
    assert qrels_from_frame(make(ROWS), name="mine").digest == from_file.digest
    assert qrels_from_frame(make(ROWS | {"iteration": [0, 1, 2, 3]})).grouping is None


@pytest.mark.parametrize("column", ["relevance", "rel", "label"])
def test_other_names_of_the_grade_are_known(from_file, column):
    assert qrels_from_frame(pl.DataFrame(ROWS).rename({"grade": column})).digest == from_file.digest


def test_whole_numbers_are_ids_of_judgments():
    assert qrels_from_mapping({7: {12: 1, np.int64(3): 0}}).grades == {"7": {"12": 1.0, "3": 0.0}}
    frame = pl.DataFrame({"query_id": [7, 7], "doc_id": [12, 3], "rel": [1, 0]})
    assert qrels_from_frame(frame).grades == {"7": {"12": 1.0, "3": 0.0}}


def test_a_query_without_a_document_stays():
    assert qrels_from_mapping({"q1": {}, "q2": {"d": 1}}).query_ids == ("q1", "q2")


def test_the_callers_mapping_is_not_held():
    qrels = {"q1": {"d1": 1}}
    testset = qrels_from_mapping(qrels)
    qrels["q1"]["d2"] = 3
    assert testset.grades == {"q1": {"d1": 1.0}}


@each_kind
def test_a_column_of_subtopics_makes_the_test_set_of_such_a_file(tmp_path, make):
    (tmp_path / "subtopics").write_text("q1 b d2 1\nq1 a d2 2\nq1 a d1 1\nq1 b é 0\n")
    theirs = read_subtopic_qrels(tmp_path / "subtopics")
    rows = {"query_id": ["q1"] * 4, "doc_id": ["d2", "d2", "d1", "é"], "grade": [1, 2, 1, 0], "subtopic": list("baab")}
    ours = qrels_from_frame(make(rows))
    assert (ours.groups, ours.grades, ours.grouping) == (theirs.groups, theirs.grades, "subtopic")
    named = pl.DataFrame(rows).rename({"subtopic": "iteration"})
    assert qrels_from_frame(named, columns={"subtopic": "iteration"}).groups == theirs.groups


@each_kind
def test_a_document_judged_twice_and_differently_is_an_error_with_both_rows(make):
    rows = {
        "query_id": ["q1"] * 4,
        "doc_id": ["d1", "d2", "d1", "d2"],
        "grade": [1, 0, 1, 3],
        "iteration": list("abcd"),
    }
    with pytest.raises(TestSetError) as caught:
        qrels_from_frame(make(rows))
    assert str(caught.value) == (
        "qrels: row 3: query 'q1', document 'd2' is judged twice; expected 0, as in row 1, got 3.\n"
        "Hint: where rows are of several subtopics, columns={'subtopic': …} names that column."
    )
    assert qrels_from_frame(make(rows), columns={"subtopic": "iteration"}).grades == {"q1": {"d1": 1.0, "d2": 3.0}}


def test_a_subtopic_judged_twice_and_differently_is_an_error():
    with pytest.raises(TestSetError, match="row 1: query 'q', subtopic 's', document 'd' is judged twice"):
        qrels_from_rows([("q", "d", 1.0, "s"), ("q", "d", 2.0, "s")], by_subtopic=True)


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        (
            {"q1": {"d1": math.nan}},
            "qrels: query 'q1', document 'd1': the grade is not a finite number; expected a number",
        ),
        ({"q1": {"d1": "2"}}, "got '2'"),
        ({"q1": {"d1": True}}, "got True"),
        ({"q1": {None: 1}}, "query 'q1': None is not a document id; expected text or whole numbers"),
        ({"q1": {"1": 1, 1: 1}}, "query 'q1', document '1' occurs as text and as a number"),
        ({2.5: {"d": 1}}, "2.5 is not a query id"),
        ({"1": {"d": 1}, 1: {"d": 1}}, "query '1' occurs as text and as a number"),
        (
            {"q1": "d1"},
            "query 'q1' has a str; expected document ids with their grades, or a set or list of the relevant ones",
        ),
        ({"q1": ["d1", ["d2"]]}, "query 'q1': ['d2'] is not a document id"),
        ({}, "no judgment here"),
    ],
)
def test_what_is_no_judgment_is_an_error_that_says_where(qrels, message):
    with pytest.raises(TestSetError) as caught:
        qrels_from_mapping(qrels)
    assert message in str(caught.value)


def test_twenty_problems_are_named_together():
    with pytest.raises(TestSetError) as caught:
        qrels_from_mapping({f"q{i}": {"d": math.nan} for i in range(50)})
    assert len(caught.value.problems) == 20


def test_an_empty_table_of_judgments_is_an_error():
    with pytest.raises(TestSetError, match="no judgment here"):
        qrels_from_frame(pl.DataFrame(ROWS)[:0])
