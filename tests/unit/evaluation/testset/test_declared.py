"""Grades, task types and versions of the schema that are not declared are errors of every format, with their places."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

import pytest

from cranfield.app.loading import load, read_stored
from cranfield.base.errors import TestSetError, UsageError
from cranfield.evaluation.testset.declared import unknown_task_types
from cranfield.evaluation.testset.edit import Addition, added
from cranfield.evaluation.testset.validate import validate
from cranfield.formats.testsets.golden_json import write_golden_json
from cranfield.model import Label, Meta, Query, TestSet

TODAY = date(2026, 11, 21)
SCALE = '{"scale": [0, 1, 2]}'
SETS = {
    "x.qrels": "q1 0 d1 2\nq1 0 d2 3\n",
    "x.tsv": "query_id\tdoc_id\tgrade\nq1\td1\t1\nq1\td2\t3\n",
    "x.jsonl": '{"query_id": "q1", "doc_id": "d1", "grade": 1}\n{"query_id": "q1", "doc_id": "d2", "grade": 3}\n',
    "x.csv": "query,result1,result2\none,d1:1-2:1,d2:4-5:3\n",
    "m.yaml": "- query_id: q1\n  query_text: one\n  relevant_docs: [{doc_id: d1, grade: 1}, {doc_id: d2, grade: 3}]\n",
    "o.yaml": "cranfield_testset: 1\nname: o\nqueries:\n- {id: q1, text: one, judgments: {d1: 1, d2: 3}}\n",
    "g.json": '[{"query_id": "q1", "query_text": "one", "expected_entities": [],\n'
    ' "expected_targets": [{"entity_id": "d2", "grade": 3}]}]',
}
LINES = {"x.qrels": 2, "x.tsv": 3, "x.jsonl": 2, "x.csv": 2, "m.yaml": 3, "o.yaml": 4, "g.json": 2}


@pytest.mark.parametrize("name", SETS)
def test_a_grade_off_the_declared_scale_is_an_error_with_its_line(tmp_path, name):
    path = tmp_path / name
    path.write_text(SETS[name])
    load(path)
    (tmp_path / f"{name}.meta.json").write_text(SCALE)
    with pytest.raises(TestSetError) as caught:
        load(path)
    (problem,) = caught.value.problems
    assert "grade 3 of d2" in problem.message
    assert (problem.line, problem.expected, problem.got) == (LINES[name], "0, 1, 2", "3")
    findings = validate(read_stored(path), today=TODAY).findings
    assert "scale" in {finding.check for finding in findings}, "validate lists it among the others"


def test_all_grades_are_named_at_once(tmp_path):
    (tmp_path / "x.qrels").write_text("q1 0 d1 4\nq1 0 d2 3\nq2 0 d1 1\nq2 0 d2 -1\n")
    (tmp_path / "x.qrels.meta.json").write_text(SCALE)
    with pytest.raises(TestSetError) as caught:
        load(tmp_path / "x.qrels")
    assert [(problem.line, problem.got) for problem in caught.value.problems] == [(1, "4"), (2, "3")]


def golden(folder, *types, **meta):
    records = [
        {"query_id": f"q{n}", "query_text": f"text {n}", "task_type": kind, "expected_entities": ["src/a.py::f"]}
        for n, kind in enumerate(types)
    ]
    (folder / "g.json").write_text(json.dumps(records, indent=1))
    (folder / "g.meta.json").write_text(json.dumps(meta))
    return folder / "g.json"


def test_an_unknown_task_type_of_a_golden_set_is_an_error(tmp_path):
    with pytest.raises(TestSetError) as caught:
        load(golden(tmp_path, "locate", "locat", "LOCATE", "find"))
    first, second = caught.value.problems
    assert (first.message, first.line, first.hint) == ("unknown task type 'locat'", 13, "did you mean locate?")
    assert (second.line, second.expected) == (29, "locate, explain, debug, extend, review, general")
    assert load(golden(tmp_path, "locate", "find", task_types=["locate", "find"])).meta.task_types == ("locate", "find")


@pytest.mark.parametrize("name", ["own.yaml", "t.tsv"])
def test_an_unknown_task_type_is_an_error_where_others_are_known(tmp_path, name):
    rows = {
        "own.yaml": "cranfield_testset: 1\nname: o\nqueries:\n"
        "- {id: q1, text: one, strata: {task_type: debug}, judgments: {d: 1}}\n"
        "- {id: q2, text: two, strata: {task_type: KIND}, judgments: {d: 1}}\n",
        "t.tsv": "query_id\tdoc_id\tgrade\tstratum.task_type\nq1\td\t1\tdebug\nq2\td\t1\tKIND\n",
    }
    path = tmp_path / name
    path.write_text(rows[name].replace("KIND", "debugg"))
    with pytest.raises(TestSetError) as caught:
        load(path)
    (problem,) = caught.value.problems
    assert (problem.message, problem.hint) == ("query 'q2': unknown task type 'debugg'", "did you mean debug?")
    assert problem.line == rows[name].count("\n")
    path.write_text(rows[name].replace("KIND", "b").replace("debug", "a"))
    assert load(path).query_ids == ("q1", "q2"), "a vocabulary of one's own"


def test_the_version_of_the_schema_is_read(tmp_path):
    path = tmp_path / "g.json"
    record = {"query_id": "q", "query_text": "t", "expected_files": ["src/a.py"], "schema_version": "1.0.0"}
    path.write_text(json.dumps([record]))
    assert load(path).query_ids == ("q",)


@pytest.mark.parametrize("version", ["2.0.0", "1.0", "1", 1, "latest", True, [1]])
def test_an_unknown_version_of_the_schema_is_an_error(tmp_path, version):
    record = {"query_id": "q", "query_text": "t", "expected_files": ["src/a.py"], "schema_version": version}
    (tmp_path / "g.json").write_text(json.dumps([record]))
    (tmp_path / "m.json").write_text(
        json.dumps({"schema_version": version, "queries": [{"query_id": "q", "query_text": "t", "relevant_docs": []}]})
    )
    (tmp_path / "f.json").write_text(json.dumps([{**record, "schema_version": "1.0.0"}]))
    (tmp_path / "f.meta.json").write_text(json.dumps({"schema_version": version}))
    for name in ("g.json", "m.json", "f.json"):
        with pytest.raises(TestSetError) as caught:
            load(tmp_path / name)
        (problem,) = caught.value.problems
        assert (problem.message, problem.line) == ("unknown schema version", 1), name
        assert "1.0.0" in (problem.expected or "")


def test_what_is_not_declared_is_not_added_and_not_written(tmp_path):
    path = golden(tmp_path, "locate", "debug")
    testset = load(path)
    with pytest.raises(UsageError, match="unknown task type 'locat'"):
        added(testset, Addition("q0", strata={"task_type": "locat"}), TODAY)
    other = load(golden(tmp_path, "find", task_types=["find"]))
    with pytest.raises(TestSetError, match="has an unknown task type"):
        write_golden_json(replace(other, meta=replace(other.meta, task_types=())), tmp_path / "new.json")


def test_the_type_that_a_label_expects_of_a_classifier_is_a_declared_one():
    queries = (Query("q1", "one", {"task_type": "locate"}), Query("q2", "two"))
    labels = {"q1": Label(classifier_expectation="debug"), "q2": Label(classifier_expectation="debgu")}
    testset = TestSet("t", queries, {"q1": {"d": 1}, "q2": {"d": 1}}, labels=labels)
    (found,) = unknown_task_types(testset)
    assert (found.query_id, found.got, found.hint) == ("q2", "'debgu'", "did you mean debug?")
    assert list(unknown_task_types(replace(testset, meta=Meta(task_types=("locate", "debug", "debgu"))))) == []
