"""Records of queries with graded documents."""

import json
from pathlib import Path

import pytest

from cranfield.base.errors import TestSetError
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets.graded_yaml import read_graded_yaml, write_graded_yaml
from cranfield.model import Pattern, Query, TestSet

SET = """\
name: clinical
version: 1.10
description: three kinds
curator: ann
queries:
  - query_id: q1
    query_text: metformin dose
    query_type: exact_term
    source: log
    relevant_docs: [{doc_id: d1, grade: 3}, {doc_id: d2, grade: 0}, {doc_id: d1, grade: 3}]
  - query_id: q2
    query_text: sugar tablets for old people
    query_type: anything
    source: log
    reviewers: [ann, bob]
    relevant_docs:
      - doc_id: 007
        grade: 1.5
        why: it says so
"""


def put(folder: Path, text: str, name: str = "set.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_types_are_strata_and_what_has_no_place_is_said(tmp_path):
    testset = read_testset(put(tmp_path, SET))
    assert (testset.name, testset.version, testset.description) == ("clinical", "1.10", "three kinds")
    assert testset.queries == (
        Query("q1", "metformin dose", {"query_type": "exact_term", "source": "log"}),
        Query("q2", "sugar tablets for old people", {"query_type": "anything", "source": "log"}),
    )
    assert testset.grades == {"q1": {"d1": 3.0, "d2": 0.0}, "q2": {"007": 1.5}}
    assert tuple(map(str, testset.notes)) == (
        "kept as stratum 'source': 1 value in 2 queries",
        "not carried over: 1 value of 'reviewers': lists or keys",
        "not carried over: 'why' of documents",
        "not carried over: the key 'curator' of the file",
        "1 repeated judgment with the same grade, counted once",
    )


def test_the_scale_and_the_metadata_of_the_file_are_read(tmp_path):
    text = """\
scale: [0, 1, 2, 3, 4]
meta: {review: reviewed, made: 2026-11-01, commit: abc}
queries:
- {query_id: q1, query_text: a, relevant_docs: [{doc_id: d1, grade: 4}]}
"""
    testset = read_testset(put(tmp_path, text))
    assert testset.grades == {"q1": {"d1": 4.0}}
    assert testset.meta.scale == (0.0, 1.0, 2.0, 3.0, 4.0)
    assert (testset.meta.review, testset.meta.made, testset.meta.commit) == ("reviewed", "2026-11-01", "abc")
    assert testset.notes == ()
    with pytest.raises(TestSetError, match="reviw"):
        read_testset(put(tmp_path, text.replace("review:", "reviw:")))
    with pytest.raises(TestSetError, match="two scales"):
        read_testset(put(tmp_path, text.replace("meta: {", "meta: {scale: [0, 1], ")))


@pytest.mark.parametrize("grade", [-1, 4, 3.5, 100])
def test_a_grade_outside_0_to_3_is_an_error_where_no_scale_declares_it(tmp_path, grade):
    text = f"- {{query_id: q1, query_text: a, relevant_docs: [{{doc_id: d0, grade: 3}}, {{doc_id: d1, grade: {grade}}}]}}\n"
    with pytest.raises(TestSetError) as caught:
        read_testset(put(tmp_path, text))
    (problem,) = caught.value.problems
    assert (problem.line, problem.message) == (1, "the grade of 'd1' is not on the scale")
    assert (problem.expected, problem.got) == ("0 to 3", f"{grade:g}")
    assert problem.hint is not None
    assert "`scale:" in problem.hint


def test_a_grade_that_the_declared_scale_does_not_have_is_an_error(tmp_path):
    text = "scale: [0, 2]\nqueries:\n- {query_id: q1, query_text: a, relevant_docs: [{doc_id: d1, grade: 1}]}\n"
    with pytest.raises(TestSetError, match="expected 0, 2, got 1"):
        read_testset(put(tmp_path, text))


def test_other_grades_are_written_with_their_scale(tmp_path):
    testset = TestSet("t", (Query("q", "a"),), {"q": {"d": 7.0, "e": 0.0}})
    write_graded_yaml(testset, tmp_path / "x.yaml")
    assert read_graded_yaml(tmp_path / "x.yaml").grades == testset.grades
    assert read_graded_yaml(tmp_path / "x.yaml").meta.scale == (0.0, 7.0)


@pytest.mark.parametrize("name", ["list.json", "list.yaml", "list"])
def test_a_list_at_the_top_will_do(tmp_path, name):
    records = [{"query_id": "q1", "query_text": "a/b", "relevant_docs": [{"doc_id": "d", "grade": 2}]}]
    testset = read_testset(put(tmp_path, json.dumps(records).replace("/", "\\/"), name))
    assert (testset.name, testset.grades) == ("list", {"q1": {"d": 2.0}})
    assert testset.queries == (Query("q1", "a/b"),)


def test_everything_that_is_wrong_is_told_with_its_place(tmp_path):
    text = """\
- query_id: q1
  query_text: ""
  relevant_docs: [{doc_id: d1, grade: high}, {grade: 1}]
- query_id: q1
  query_text: b
- query_id: q3
  query_text: c
  relevant_docs: [{doc_id: d1, grade: 1}, {doc_id: d1, grade: 2}]
"""
    with pytest.raises(TestSetError) as caught:
        read_testset(put(tmp_path, text))
    found = [(p.line, p.column, p.message) for p in caught.value.problems]
    assert (2, 15, "queries[0].query_text is empty") in found
    assert (3, 39, "wrong value for queries[0].relevant_docs[0].grade") in found
    assert (3, 46, "missing key 'doc_id' in queries[0].relevant_docs[1]") in found
    assert (4, 3, "missing key 'relevant_docs' in queries[1]") in found
    assert (4, 13, "query id 'q1' is used twice; it also occurs on line 1") in found
    assert (8, 43, "query 'q3', document 'd1' is judged twice") in found
    assert len(found) == 6


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[]", "queries is empty"),
        ("- query_id: [", "not valid YAML"),
        ("just words", "'just words' at the top of the file"),
        ("", "the file is empty"),
        ('[{"query_id": "a" "b"}]', "not valid"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path, text, complaint):
    with pytest.raises(TestSetError, match=complaint):
        read_graded_yaml(put(tmp_path, text))


def test_rules_are_not_written(tmp_path):
    testset = TestSet("t", (Query("q", "a"),), targets={"q": (Pattern("x"),)})
    with pytest.raises(TestSetError, match="not written: query 'q' is judged by a rule"):
        write_graded_yaml(testset, tmp_path / "x.yaml")
    with pytest.raises(TestSetError, match=r"not written: queries\[0\].query_text is empty"):
        write_graded_yaml(TestSet("t", (Query("q"),), {"q": {"d": 1}}), tmp_path / "x.yaml")
    assert list(tmp_path.iterdir()) == []
