"""A change made in the text of a file: the lines that differ, and nothing else. Round trips of all formats: `test_round_trips`."""

from __future__ import annotations

import difflib
import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from cranfield.evaluation.testset.edit import Addition, added
from cranfield.formats.sniff import read_testset
from cranfield.formats.splice.files import splice_text
from cranfield.formats.splice.parts import UnspliceableError
from cranfield.formats.testsets.storage import save
from cranfield.model import Entity, Pattern, Query, Span, content_id

TODAY = date(2026, 11, 21)
RECORD = {
    "query_id": "q1",
    "query_text": "Where is é?",
    "task_type": "locate",
    "expected_entities": [{"entity_id": "src/a.py::f", "role": "primary", "rationale": "it is"}],
    "expected_files": ["src/a.py"],
    "expected_line_ranges": [{"file": "src/a.py", "start": 1, "end": 2}],
    "must_mention_facts": ["The gate compares."],
    "must_not_mention_facts": [],
    "canonical_narrative": "It lives in f.",
    "provenance": {"human_reviewed": True},
    "schema_version": "1.0.0",
    "mine": {"x": [1, 2.50, "\u00e9"]},
}
SECOND = RECORD | {"query_id": "q2", "query_text": "two", "expected_entities": ["src/a.py::g"]}
PATTERNS = '# by ann\nname;query;pattern\nk1;"one; two";^a$\n\nk2;three;b\n'
SPANS = 'query,result1,why\n"one, or two",a.py:1-2:1,"said ""so"""\ntwo,a.py:4-5:2,\n'
TABLE = "qid\tdocno\trel\tnote\nq1\td1\t1.0\tsure\n\nq2\td1\t0\t\nq1\td2\t+2\tlate\n"
MEDICAL = """\
# reviewed in May
- query_id: m1   # first
  query_text: "heart attack"
  query_type: exact_term
  relevant_docs:
    - {doc_id: PMC1, grade: 3, note: seen}   # by ann
    - doc_id: PMC2
      grade: 0
  reviewer: ann
# the second
- query_id: m2
  query_text: stroke
  relevant_docs: []
# end"""


def lines_changed(old: str, new: str) -> list[str]:
    found = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
    return [line for line in found if line[:1] in "+-" and line[:3] not in {"+++", "---"}]


def changed(path: Path, addition: Addition) -> str:
    save(added(read_testset(path), addition, TODAY), path)
    return path.read_bytes().decode()


@pytest.mark.parametrize("indent", [None, 1, 2, 4, "\t"])
@pytest.mark.parametrize("separators", [None, (",", ":")])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_record_more_is_written_as_the_others_are(tmp_path, indent, separators, end):
    path = tmp_path / "g.json"

    def text(*records):
        return json.dumps(records, indent=indent, separators=separators) + end

    path.write_text(text(RECORD, SECOND))
    new = {"query_id": "q3", "query_text": "ö", "task_type": "debug", "expected_entities": ["b.py::h"]}
    addition = Addition("q3", "ö", {"task_type": "debug"}, targets=[Entity("b.py::h")])
    assert changed(path, addition) == text(RECORD, SECOND, new | {"expected_files": []})
    assert json.loads((tmp_path / "g.meta.json").read_text())["query_count"] == 3


def test_a_judgment_more_of_a_record_is_in_its_list(tmp_path):
    path = tmp_path / "g.json"
    path.write_text(json.dumps([RECORD, SECOND], indent=2, ensure_ascii=False))
    old = path.read_text()
    new = changed(path, Addition("q2", targets=[Entity("src/a.py::h")]))
    assert lines_changed(old, new) == ['-      "src/a.py::g"', '+      "src/a.py::g",', '+      "src/a.py::h"']


def test_facts_about_a_golden_set_keep_what_is_not_known(tmp_path):
    path, facts = tmp_path / "g.json", tmp_path / "g.meta.json"
    path.write_text(json.dumps([RECORD, SECOND]))
    written = {
        "dataset_status": "agent_curated_pending_human_review",
        "source_sha": "abc",
        "query_count": 2,
        "known_limitations": ["a", "b"],
        "models": {"oracle": "x"},
        "source_file_hashes": {"src/a.py": "0" * 64},
    }
    facts.write_text(json.dumps(written, indent=4))
    changed(path, Addition("q3", "three", targets=[Entity("b.py::h")]))
    again = json.loads(facts.read_text())
    assert {key: again[key] for key in written} == written | {"query_count": 3}
    assert facts.read_text().startswith('{\n    "dataset_status"')


@pytest.mark.parametrize("n", [1, 7])
def test_counts_of_facts_that_are_wrong_are_set_right(tmp_path, n):
    path, facts = tmp_path / "g.json", tmp_path / "g.meta.json"
    path.write_text(json.dumps([RECORD, SECOND]))
    facts.write_text(json.dumps({"query_count": n, "strata_counts": {"locate:": n, "debug:easy": 1}, "mine": 3}))
    old = path.read_text()
    assert changed(path, Addition("q2", targets=[Entity("src/a.py::h")])) == old.replace(
        '["src/a.py::g"]', '["src/a.py::g", "src/a.py::h"]'
    )
    again = json.loads(facts.read_text())
    assert (again["query_count"], again["strata_counts"], again["mine"]) == (2, {"locate:": 2}, 3)


def test_the_medical_form_keeps_comments_and_keys(tmp_path):
    path = tmp_path / "m.yaml"
    path.write_text(MEDICAL)
    new = changed(path, Addition("m1", grades={"PMC9": 2}))
    assert new == MEDICAL.replace("      grade: 0\n", "      grade: 0\n    - doc_id: PMC9\n      grade: 2\n")
    more = changed(path, Addition("m2", grades={"PMC7": 1}))
    assert more == new.replace("relevant_docs: []", "relevant_docs: [{doc_id: PMC7, grade: 1}]")


@pytest.mark.parametrize(
    ("name", "text", "addition", "more"),
    [
        ("p.csv", PATTERNS, Addition("k3", "new; one", targets=[Pattern("c")]), ['+k3;"new; one";c']),
        ("t.tsv", TABLE, Addition("q1", grades={"d3": 1}), ["+q1\td3\t1\t"]),
        (
            "s.csv",
            "id," + SPANS.replace("\n", "\nx", 1).replace('x"one', 'x,"one').replace("two,a.py:4", "y,two,a.py:4"),
            Addition("z", "three", targets=[Span("b.py", 1, 3)]),
            ["+z,three,b.py:1-3:1,"],
        ),
        ("x.qrels", "# by ann\nq1\t0\td1  1\nq2\t0\td1\t1\n", Addition("q1", grades={"d2": 2}), ["+q1\t0\td2\t2"]),
    ],
)
def test_a_row_more_of_a_table(tmp_path, name, text, addition, more):
    path = tmp_path / name
    path.write_text(text.replace("name;", "id;"))
    old = path.read_text()
    assert lines_changed(old, changed(path, addition)) == more


def test_a_beir_folder_is_changed_in_place(tmp_path):
    folder = tmp_path / "set"
    (folder / "qrels").mkdir(parents=True)
    (folder / "queries.jsonl").write_text(
        '{"_id":"q1","text":"one","metadata":{"by":["ann"]}}\n{"_id":"unused","text":"x"}\n'
    )
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    save(added(read_testset(folder), Addition("q2", "two", grades={"d2": 1}), TODAY), folder)
    assert (folder / "queries.jsonl").read_text().splitlines()[:2] == [
        '{"_id":"q1","text":"one","metadata":{"by":["ann"]}}',
        '{"_id":"unused","text":"x"}',
    ]
    assert (folder / "qrels/test.tsv").read_text() == "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n"
    assert read_testset(folder).by_id["q2"].text == "two"


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ('{"a": [1]}', '{"a": [1, 2]}', '{"a": [1, 3]}'),
        ("[1, ", "[1]", "[2]"),
        ("a: &x 1\nb: *x\n", "a: 1\nb: 1\n", "a: 2\nb: 1\n"),
        ("- 1\n", "a: 1\n", "a: 2\n"),
        ('{"a": {"b": 1}}', '{"a": 1}', '{"a": 2}'),
    ],
    ids=["another list", "broken", "alias", "another shape", "holds more"],
)
def test_a_text_of_another_shape_is_left_alone(text, old, new):
    with pytest.raises(UnspliceableError):
        splice_text(text, old, new, "tree")


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ('{"a": []}', '{"a": []}', '{"a": [1]}', '{"a": [1]}'),
        ('{"a":1,"b":2}', '{"a":1}', '{"c":3}', '{"c":3,"b":2}'),
        ('{"a":1,"b":2}', '{"a":1,"b":2}', '{"c":3,"b":2}', '{"c":3,"b":2}'),
        ("[\n  1,\n  2\n]", "[1, 2]", "[2]", "[\n  2\n]"),
        ("[\n  1\n]", "[1]", "[]", "[]"),
        ("[1, 2, 3]", "[1, 2, 3]", "[1, 4, 3, 5]", "[1, 4, 3, 5]"),
        ("a: 'x'  # c\n", "a: x\n", "a: it's\n", "a: 'it''s'  # c\n"),
        ("a:\n# c\n- 1\n- 2 # d\n", "a: [1, 2]\n", "a: [1, 2, 3]\n", "a:\n# c\n- 1\n- 2 # d\n- 3\n"),
        ("é: {a: 1}\nb: 1", "é: {a: 1}\nb: 1\n", "é: {a: 1, c: x}\nb: 2\nd: [1]\n", "é: {a: 1, c: x}\nb: 2\nd:\n  - 1"),
        ("a:\n  x: 2\nb: 1\n", "a: {x: 2}\nb: 1\n", "a: [x]\nb: 1\n", "a:\n  - x\nb: 1\n"),
        ("a:\n  x: 0\n", "a: {x: 0}\n", "a: {x: false}\n", "a:\n  x: false\n"),
    ],
)
def test_a_change_of_a_tree(text, old, new, expected):
    assert splice_text(text, old, new, "tree") == expected


def test_lines_from_0_stay_lines_from_0(tmp_path):
    path = tmp_path / "s.csv"
    text = '# line_base: 0\nquery,result1,note\n"one, or two",a.py:0-2:1,x\ntwo,a.py:3-5:2,y\n'
    path.write_text(text)
    three = added(read_testset(path), Addition(content_id("three"), "three", targets=[Span("a.py", 11, 13)]), TODAY)
    save(three, path)
    assert path.read_text() == text + "three,a.py:10-12:1,\n"


@pytest.mark.parametrize("indent", [None, 2])
def test_queries_that_get_another_group_keep_what_only_their_text_says(tmp_path, indent):
    path = tmp_path / "ratings.json"
    first, second = (
        {"note": ["mine"], "placeholders": {"$b": 1, "$query": text, "$a": 2}, "template": "template.json"}
        for text in ("one", "two")
    )
    groups = [{"name": "g", "queries": [first, second], "relevant_documents": {"d": {"gain": 2}}}]
    path.write_text(json.dumps({"topics": [{"query_groups": groups}], "index": "i"}, indent=indent))
    before, testset = path.read_text(), read_testset(path, "rre")
    query = testset.queries[0]
    other = replace(testset, queries=(replace(query, strata=query.strata | {"query_group": "h"}), testset.queries[1]))
    save(other, path)
    kept = [json.dumps(entry, indent=indent) for entry in (first, second)]
    assert [query.strata["query_group"] for query in read_testset(path, "rre").queries] == ["h", "g"]
    squeezed = "".join(path.read_text().split())
    assert all("".join(entry.split()) in squeezed for entry in kept)
    save(testset, path)
    assert path.read_text() == before
    between = Query(content_id("new"), "new", strata={"query_group": "h"})
    more = (testset.queries[0], between, testset.queries[1])
    save(replace(testset, queries=more, grades=testset.grades | {between.id: {"d": 2.0}}), path)
    assert len(read_testset(path, "rre").queries) == 3
    save(testset, path)
    assert path.read_text() == before
    judged_otherwise = testset.grades | {query.id: {"d": 1.0}}
    save(replace(testset, grades=judged_otherwise), path)
    assert path.read_text().count("mine") == 2
    save(testset, path)
    assert path.read_text() == before
