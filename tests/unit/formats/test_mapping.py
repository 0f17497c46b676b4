"""Golden files of any form: the mapping that is proposed, what it reads, and what cannot be mapped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import evaluate, load
from cranfield.base.errors import CranfieldError, TestSetError, UsageError
from cranfield.evaluation.snapshot import query_snapshots, snapshot_text
from cranfield.formats.sniff import detect_format
from cranfield.formats.testsets.field_mapping import FieldMapping, file_values, mapping_from
from cranfield.formats.testsets.mapping import read_mapped
from cranfield.formats.testsets.mapping_back import write_back
from cranfield.formats.testsets.names import KNOWN_SHAPES
from cranfield.formats.testsets.proposal import propose
from cranfield.model import Criteria, Query, TestSet, content_id
from cranfield.model.note import NoteKind


def put(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def read(folder: Path, name: str, content: Any) -> TestSet:
    """As the commands read it: found out by its content."""
    path = put(folder, name, content)
    assert detect_format(path, "testset", None, TestSetError).name == "mapped"
    return load(path)


def by_text(testset: TestSet) -> dict[str, dict[str, float]]:
    """Text of a query to its graded ids, or the labels of its conditions."""
    return {
        query.text or query.id: dict(testset.grades.get(query.id, {}))
        | {target.label: target.grade for target in testset.targets.get(query.id, ())}
        for query in testset.queries
    }


IDS = {"red shoes": {"a": 1, "b": 1}, "blue hat": {"c": 1}}
PAIRS = [("red shoes", ["a", "b"]), ("blue hat", ["c"])]
FORMS: dict[str, tuple[str, Any]] = {
    "list": ("g.json", [{"query": q, "relevant_ids": ids} for q, ids in PAIRS]),
    "lines": ("g.jsonl", "\n".join(json.dumps({"question": q, "goldChunkIds": ids}) for q, ids in PAIRS)),
    "under a key": ("g.json", {"version": 2, "testCases": [{"q": q, "want": ids} for q, ids in PAIRS]}),
    "by id": ("g.json", {f"q{n}": {"text": q, "expected": ids} for n, (q, ids) in enumerate(PAIRS)}),
    "by text": ("g.yaml", "red shoes: [a, b]\nblue hat: [c]\n"),
    "by text under a key": ("g.yaml", "queries:\n  red shoes: [a, b]\n  blue hat: [c]\n"),
    "suites": ("g.json", {"suites": [{"cases": [{"prompt": q, "gold": ids}]} for q, ids in PAIRS]}),
    "inside": (
        "g.yaml",
        "tests:\n- vars: {query: red shoes, targets: [a, b]}\n- vars: {query: blue hat, targets: [c]}\n",
    ),
    "grades": ("g.json", [{"query": q, "relevance": dict.fromkeys(ids, 1)} for q, ids in PAIRS]),
    "objects": ("g.json", [{"query": q, "qrels": [{"docId": one, "rel": 1} for one in ids]} for q, ids in PAIRS]),
    "TOML": ("g.toml", '[[case]]\nq = "red shoes"\nexpect = ["a", "b"]\n[[case]]\nq = "blue hat"\nexpect = ["c"]\n'),
    "CSV": ("g.csv", "Question,Expected IDs\nred shoes,a;b\nblue hat,c\n"),
    "CSV with lists": ("g.csv", 'question,expected_ids\nred shoes,"[""a"", ""b""]"\nblue hat,"[""c""]"\n'),
    "another name": ("g.json", [{"query": q, "zutreffend": ids, "tags": ["x"]} for q, ids in PAIRS]),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_expectations_are_read_from_every_form(tmp_path: Path, form: str) -> None:
    testset = read(tmp_path, *FORMS[form])
    assert by_text(testset) == IDS
    assert any(str(note).startswith("mapping proposed from the data: ") for note in testset.notes)


Q = "red shoes"
ONE = {Q: {"a": 1}}
TWO = {Q: {"a": 1}, "hat": {"b": 1}}
OTHER_FORMS: dict[str, tuple[str, Any, dict[str, dict[str, float]]]] = {
    "German": ("g.yaml", f"faelle:\n- {{frage: {Q}, erwartet: [a]}}\n", ONE),
    "French": ("g.json", [{"Requête": Q, "attendus": ["a"]}], ONE),
    "Japanese": ("g.json", [{"質問": Q, "正解": ["a"]}], ONE),
    "dots and quotes in names": ("g.json", [{"test.query": Q, 'expected"\x1b[m ids': ["a"], "x'y": 1}], ONE),
    "another word": ("g.csv", f"search term,expected SKU\n{Q},a\nhat,b\n", TWO),
    "another key in some": ("g.json", [{"query": Q, "expected_id": "a"}, {"query": "hat", "expected_ids": ["b"]}], TWO),
    "suites by name": (
        "g.json",
        {"suites": {"x": [{"query": Q, "expected": ["a"]}], "y": [{"query": "hat", "expected": ["b"]}]}},
        TWO,
    ),
    "below a mapping": ("g.json", {"meta": {"v": 1}, "data": {"queries": [{"query": Q, "expected": ["a"]}]}}, ONE),
    "beside the queries": ("g.json", {"queries": {"q1": Q, "q2": "hat"}, "qrels": {"q1": ["a"], "q2": ["b"]}}, TWO),
    "beside a list of queries": ("g.json", {"queries": [{"id": "q1", "text": Q}], "qrels": {"q1": {"a": 2}}}, {Q: {"a": 2}}),
    "several texts": ("g.json", [{"id": "i", "queries": [Q, "shoe"], "expected": ["a"]}], {**ONE, "shoe": {"a": 1}}),
    "a conversation": (
        "g.json",
        [{"messages": [{"role": "user", "content": "hi"}, {"role": "user", "content": Q}], "expected_ids": ["a"]}],
        ONE,
    ),
    "grades in keys": (
        "g.json",
        [{"query": Q, "primary_docs": "a", "secondary_docs": ["b", "c"]}, {"query": "hat", "secondary_docs": ["d"]}],
        {Q: {"a": 2, "b": 1, "c": 1}, "hat": {"d": 1}},
    ),
    "pairs": ("g.json", [{"query": Q, "relevant": [["a", 2], ["b", 1]]}], {Q: {"a": 2, "b": 1}}),
    "yes and no": (
        "g.json",
        [{"query": Q, "judgments": [{"doc": "a", "relevant": True}, {"doc": "b", "relevant": False}]}],
        {Q: {"a": 1, "b": 0}},
    ),
    "judged results": (
        "g.json",
        [{"query": Q, "results": [{"id": "a", "relevance": 2}, {"id": "b", "relevance": 0}]}],
        {Q: {"a": 2, "b": 0}},
    ),
    "numbered columns": ("g.csv", f"query,expected_1,expected_2\n{Q},a,b\nhat,c,\n", {Q: {"a": 1, "b": 1}, "hat": {"c": 1}}),
    "a document a row": (
        "g.csv",
        f"question,document,relevance\n{Q},a,2\n{Q},b,1\nhat,c,1\n",
        {Q: {"a": 2, "b": 1}, "hat": {"c": 1}},
    ),
    "the document and not the answer": ("g.json", [{"question": Q, "answer": "It is in the box", "source": "a.md"}], {Q: {"path ends a.md": 1}}),
    "lines in keys": (
        "g.json",
        [{"query": Q, "expected": [{"file": "s.py", "start_line": 3, "end_line": 9}, {"file": "t.py"}]}],
        {Q: {"path ends s.py, lines is 3-9": 1, "path ends t.py": 1}},
    ),
    "lines in a list": ("g.json", [{"query": Q, "expected": [{"path": "s.py", "lines": [3, 9]}]}], {Q: {"path ends s.py, lines is 3-9": 1}}),
    "lines in text": ("g.json", [{"query": Q, "expected": ["s.py#L3-L9"]}], {Q: {"path ends s.py, lines is 3-9": 1}}),
    "lines in columns": ("g.csv", f"query,file,start_line,end_line\n{Q},s.py,3,9\n", {Q: {"path ends s.py, lines is 3-9": 1}}),
    "a title beside an address": ("g.json", [{"query": Q, "expected": [{"url": "https://x.y/a", "title": "T"}]}], {Q: {"url is https://x.y/a": 1}}),
    "nothing in a list": ("g.json", [{"query": Q, "expected": ["a", "", None]}, {"query": "hat", "expected": ""}], {**ONE, "hat": {}}),
}  # fmt: skip


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_what_is_expected_is_found_in_other_forms(tmp_path: Path, form: str) -> None:
    name, content, expected = OTHER_FORMS[form]
    assert by_text(read(tmp_path, name, content)) == expected


@pytest.mark.parametrize(
    ("item", "floors", "forbidden"),
    [
        ({"expected": ["a"], "expect": {"recall_at_5": 0.8, "mrr": 0.5}}, {"R@5": 0.8, "RR": 0.5}, []),
        ({"expected": ["a"], "minNdcgAt10": 0.7, "recall_at_5": 0.8}, {"nDCG@10": 0.7}, []),  # the second is measured
        ({"expected": {"id": "a", "max_rank": 3}}, {"Success@3": 1}, []),
        ({"expected_id": "a", "expected_rank": 2}, {"Success@2": 1}, []),
        (
            {"assertions": [{"type": "rank", "id": "a", "max": 3}, {"type": "not_present", "id": "b"}]},
            {"Success@3": 1},
            ["b"],
        ),
        ({"must_include": ["a"], "must_exclude": ["b"]}, {}, ["b"]),
    ],
)
def test_what_is_required_has_many_names(
    tmp_path: Path, item: dict[str, Any], floors: dict[str, float], forbidden: list[str]
) -> None:
    testset = read(tmp_path, "g.json", [{"query": Q, **item}])
    assert by_text(testset)[Q].keys() - {"text contains a"} <= {"a"}
    assert dict(testset.queries[0].floors) == floors
    assert [target.label for found in testset.forbidden.values() for target in found] == forbidden


@pytest.mark.parametrize(
    "content",
    [
        {"name": "x", "keywords": ["a"], "files": ["dist"], "scripts": {"test": "jest"}},
        {"configurations": [{"type": "python", "request": "launch", "name": "x", "args": ["--x"]}]},
        {"tasks": [{"id": 1, "task": "do x", "references": ["a.py"]}]},
        {"question": "Frage", "answer": "Antwort"},
        {"kind": "ConfigMap", "data": {"a": "b"}},
        [
            {"id": "1", "text": "a document", "url": "https://x.y/1"},
            {"id": "2", "text": "another", "url": "https://x.y/2"},
        ],
        [{"id": "a", "title": "T", "references": ["b"], "URL": "https://x.y"}],
        [{"query": Q, "hits": [{"id": "a", "score": 1.5}]}],
        [{"query": Q, "documents": [{"id": "a", "score": 1.5}]}],
    ],
)
def test_settings_corpora_and_runs_are_no_golden_files(tmp_path: Path, content: Any) -> None:
    with pytest.raises(TestSetError):
        detect_format(put(tmp_path, "x.json", content), "testset", None, TestSetError)


def test_a_result_overlaps_expected_lines_and_two_chunks_of_a_file_are_two_results(tmp_path: Path) -> None:
    golden = put(tmp_path, "g.json", [{"query": Q, "expected": [{"file": "s.py", "start_line": 10, "end_line": 20}]}])
    places = [("src/s.py", 30, 40), ("src/t.py", 10, 20), ("src/s.py", 20, 25)]
    results = [{"file": path, "start_line": first, "end_line": last} for path, first, last in places]
    found = evaluate(load(golden), put(tmp_path, "r.json", [{"query": Q, "results": results}]), measures=["RR"])
    assert found.summaries[found.measures[0]].mean == pytest.approx(1 / 3)


def test_items_that_ask_the_same_are_one_query_and_parameters_make_it_another(tmp_path: Path) -> None:
    items = [{"query": Q, "mode": mode, "expected": [doc]} for mode, doc in (("x", "a"), ("y", "b"), ("x", "c"))]
    testset = read(tmp_path, "g.json", items)
    assert [(dict(query.params), dict(testset.grades[query.id])) for query in testset.queries] == [
        ({"mode": "x"}, {"a": 1, "c": 1}),
        ({"mode": "y"}, {"b": 1}),
    ]
    assert any(str(note).startswith("several items of one query") for note in testset.notes)
    with pytest.raises(TestSetError, match="an item of this file is not one query"):
        write_back(testset, tmp_path / "g.json", tmp_path / "g.json")


def test_keys_of_expected_objects_and_of_suites_that_are_lost_are_named(tmp_path: Path) -> None:
    cases = [{"query": Q, "expected": [{"id": "a", "why": "w"}], "expected_keywords": ["x"]}]
    testset = read(tmp_path, "g.json", {"suites": [{"owner": "ann", "cases": cases}]})
    assert [str(note) for note in testset.notes if note.kind is NoteKind.NOT_CARRIED] == [
        "not carried over: owner, beside cases, 1 value",
        "not carried over: expected_keywords of 1 query (line 1)",
        "not carried over: why of what is expected of 1 query (line 1)",
    ]


RUNS: dict[str, tuple[str, Any]] = {
    "by text": ("r.json", {Q: {"results": ["x", "a"], "ms": 3}, "hat": {"results": ["b"], "ms": 2}}),
    "under a key": ("r.json", {"run": "1", "results": [{"query": Q, "retrieved": ["x", "a"]}, {"query": "hat", "retrieved": ["b"]}]}),
    "camel case": ("r.jsonl", f'{{"query": "{Q}", "retrievedIds": ["x", "a"]}}\n{{"query": "hat", "retrievedIds": ["b"]}}\n'),
    "inside": ("r.json", [{"query": Q, "response": {"hits": [{"docId": "x"}, {"docId": "a"}]}}, {"query": "hat", "response": {"hits": [{"docId": "b"}]}}]),
    "YAML": ("r.yaml", f"- {{query: {Q}, results: [x, a]}}\n- {{query: hat, results: [b]}}\n"),
    "cells": ("r.csv", f"query,retrieved_ids\n{Q},x|a\nhat,b\n"),
    "by rank": ("r.json", [{"query": Q, "results": [{"id": "a", "rank": 2}, {"id": "x", "rank": 1}]}, {"query": "hat", "results": [{"id": "b", "rank": 1}]}]),
    "a source too": ("r.json", [{"query": Q, "results": [{"id": one, "metadata": {"source": "s.md"}} for one in "xa"]}, {"query": "hat", "results": [{"id": "b", "metadata": {"source": "s.md"}}]}]),
    "in the golden file": ("g.json", None),
}  # fmt: skip


@pytest.mark.parametrize("form", RUNS)
def test_runs_of_other_forms_have_the_same_figures(tmp_path: Path, form: str) -> None:
    name, content = RUNS[form]
    both = [{"query": Q, "expected": ["a"], "found": ["x", "a"]}, {"query": "hat", "expected": ["b"], "found": ["b"]}]
    golden = put(tmp_path, "g.json", both)
    run = golden if content is None else put(tmp_path, name, content)
    found = evaluate(load(golden), run, measures=["RR"])
    assert found.summaries[found.measures[0]].mean == 0.75  # ranks 2 and 1


def test_results_that_a_query_forbids_are_marked(tmp_path: Path) -> None:
    golden = put(tmp_path, "g.json", [{"query": Q, "expected": ["a"], "must_not": ["b"]}])
    found = evaluate(load(golden), put(tmp_path, "r.json", {Q: ["a", "b", "c"]}), measures=["RR"])
    (hits,) = found.ranking.top.values()
    assert [hit.grade_text for hit in hits] == ["1", "forbidden", "unjudged"]
    snapshots = query_snapshots(found, 3)
    text = snapshot_text(snapshots, testset="g", system="s", k=3, command="c", forbids=True)
    assert [line.split()[:3] for line in text.splitlines()[-3:]] == [["1", "*", "a"], ["2", "!", "b"], ["3", "c"]]
    assert "! one that must not be found" in text


def test_excel_and_parquet_are_read_as_tables_and_lists(tmp_path: Path) -> None:
    workbook = openpyxl.Workbook()
    for row in (["query", "expected_ids"], ["red shoes", "a|b"], ["blue hat", "c"]):
        workbook.active.append(row)
    workbook.save(tmp_path / "g.xlsx")
    nested = pl.DataFrame({"query": ["red shoes", "blue hat"], "expected_ids": [["a", "b"], ["c"]]})
    nested.write_parquet(tmp_path / "g.parquet")
    assert by_text(load(tmp_path / "g.xlsx")) == by_text(load(tmp_path / "g.parquet")) == IDS


def test_tiers_are_grades_and_the_order_within_a_tier_is_none(tmp_path: Path) -> None:
    item = {"q": "editor", "relevant": [["vi"], ["ed", "nano"], "cat"], "exhaustive": True}
    testset = read(tmp_path, "g.json", [item, {"q": "lister", "relevant": [["ls"]]}])
    assert by_text(testset) == {"editor": {"vi": 3, "ed": 2, "nano": 2, "cat": 1}, "lister": {"ls": 1}}
    assert [query.exhaustive for query in testset.queries] == [True, False]


def test_several_conditions_hold_at_once_and_words_are_grades(tmp_path: Path) -> None:
    passages = [
        {"book": "one", "chapter": 12, "passage_substring": "a long  Road", "relevance": "high"},
        {"book": "two", "relevance": "partial"},
    ]
    testset = read(tmp_path, "g.json", [{"query": "patience", "expected_passages": passages}])
    (targets,) = testset.targets.values()
    assert targets == (
        Criteria({"book": "one", "chapter": "12", "text contains": "a long  Road"}, 2),
        Criteria({"book": "two"}, 1),
    )
    run = put(
        tmp_path,
        "run.json",
        [
            {
                "query": "patience",
                "results": [
                    {"id": "1", "metadata": {"book": "one", "chapter": 11}, "text": "a long road"},  # another chapter
                    {"id": "2", "metadata": {"book": "one", "chapter": 12.0}, "text": "It is A LONG road."},
                    {"id": "3", "metadata": {"book": "two"}, "text": "x"},
                ],
            }
        ],
    )
    found = evaluate(testset, run, measures=["RR", "R@3", "nDCG@3"])
    # Ranks 2 and 3: RR 1/2; nDCG (2/log2(3) + 1/log2(4)) / (2/log2(2) + 1/log2(3)) = (1.2619 + 0.5) / 2.6309 = 0.6697
    assert [round(found.summaries[measure].mean or 0, 4) for measure in found.measures] == [0.5, 1.0, 0.6697]


def test_ids_beside_path_patterns_are_conditions_and_fractions_are_noted(tmp_path: Path) -> None:
    gold = [{"doc_id": "d17", "gain": 1.0}, {"path_contains": "manuals/valve", "gain": 0.5}]
    testset = read(tmp_path, "g.jsonl", json.dumps({"query": "valve", "collection": "kb", "relevance": gold}))
    assert by_text(testset) == {"valve": {"d17": 1, "path contains manuals/valve": 0.5}}
    assert dict(testset.queries[0].params) == {"collection": "kb"}
    assert any("between 0 and 1 count as gains" in str(note) for note in testset.notes)


def test_forbidden_irrelevant_negative_and_floors(tmp_path: Path) -> None:
    items = [
        {
            "q": "mesh",
            "want": ["m1"],
            "never": ["p"],
            "irrelevant": ["x"],
            "min_precision": 0.4,
            "max_rank": 3,
            "k": 10,
        },
        {"q": "piano", "want": []},
        {"q": "open"},
    ]
    testset = read(tmp_path, "g.json", items)
    mesh, piano, unjudged = testset.queries
    assert testset.grades[mesh.id] == {"m1": 1, "x": 0}
    assert testset.forbidden[mesh.id] == (Criteria({"id": "p"}),)
    assert dict(mesh.floors) == {"P@10": 0.4, "Success@3": 1}
    assert dict(mesh.params) == {"k": 10}
    assert (piano.negative is not None, unjudged.negative) == (True, None)
    texts = [str(note) for note in testset.notes]
    assert any(text.startswith("nothing should be found for 1 query: piano") for text in texts)
    assert any(text.startswith("1 query without judgments: open") for text in texts)


@pytest.mark.parametrize(
    ("key", "values", "labels"),
    [
        ("expected_files", ["src/a.py"], ["path ends src/a.py"]),
        ("expected", ["guide.md", "policy/faq.pdf"], ["path ends guide.md", "path ends policy/faq.pdf"]),
        ("expected_ids", ["guide.md"], ["guide.md"]),
        ("expected", ["https://a.example/x#y"], ["url is https://a.example/x#y"]),
        ("expected_titles", ["Getting started"], ["title is Getting started"]),
        ("must_contain", ["kubectl"], ["text contains kubectl"]),
        ("answers", ["the river runs down to the sea"], ["text contains the river runs down to the sea"]),
        ("expected_tool", "calendar.create", ["calendar.create"]),
        ("expected", [42, 7], ["42", "7"]),
    ],
)
def test_a_plain_value_is_what_its_name_and_form_say(tmp_path: Path, key: str, values: Any, labels: list[str]) -> None:
    testset = read(tmp_path, "g.json", [{"query": "x", key: values}])
    assert list(by_text(testset)["x"]) == labels


def test_ids_that_a_system_returned_tell_ids_from_ends_of_paths_and_a_name_that_nothing_else_tells(
    tmp_path: Path,
) -> None:
    source = file_values(put(tmp_path, "g.json", [{"query": "x", "extra": ["a.md"], "expected": ["b.md"]}]))
    assert propose(source).where == {"path ends": "@"}
    known = propose(source, {"b.md"})
    assert (known.expected, known.where) == ("expected", {"id": "@"})
    assert propose(source, {"a.md"}).expected == "extra"


SHAPES: dict[str, tuple[Any, dict[str, dict[str, float]], list[str]]] = {
    "promptfoo": (
        [
            {
                "vars": {"query": "price"},
                "assert": [{"type": "contains", "value": "20 dollars"}, {"type": "not-contains", "value": "free"}],
            }
        ],
        {"price": {"text contains 20 dollars": 1}},
        ["text contains free"],
    ),
    "LangSmith": (
        [{"inputs": {"question": "price"}, "outputs": {"expected_ids": ["d1"]}, "metadata": {"difficulty": "easy"}}],
        {"price": {"d1": 1}},
        [],
    ),
    "OpenAI evals": (
        [{"input": [{"role": "system", "content": "s"}, {"role": "user", "content": "price"}], "ideal": "20 dollars"}],
        {"price": {"text contains 20 dollars": 1}},
        [],
    ),
    "DeepEval": (
        [{"input": "price", "expected_output": "It is 20 dollars."}],
        {"price": {"text contains It is 20 dollars.": 1}},
        [],
    ),
    "Ragas": (
        [{"user_input": "price", "reference": "It is 20 dollars."}],
        {"price": {"text contains It is 20 dollars.": 1}},
        [],
    ),
}


@pytest.mark.parametrize("tool", KNOWN_SHAPES)
def test_datasets_of_other_tools_are_mapped(tmp_path: Path, tool: str) -> None:
    items, expected, forbidden = SHAPES[tool]
    testset = read(tmp_path, "g.json", items)
    assert by_text(testset) == expected
    assert [target.label for found in testset.forbidden.values() for target in found] == forbidden


def test_what_stands_beside_the_queries_is_read_or_noted_and_nothing_is_lost(tmp_path: Path) -> None:
    text = """\
status: draft
version: 3
owners: [ann, ben]
entries:
  - {query: one, expected: [a], intent: lookup, author: ann}
  - {query: two, expected: [b], intent: lookup, author: ben}
"""
    testset = read(tmp_path, "g.yaml", text)
    assert testset.version == "3"
    assert [dict(query.strata) for query in testset.queries] == [{"intent": "lookup"}] * 2
    lost = [str(note) for note in testset.notes if note.kind is NoteKind.NOT_CARRIED]
    assert lost == [
        "not carried over: owners, a list of 2",
        "not carried over: author of 2 queries (lines 5, 6)",
    ]
    assert "status: draft" in map(str, testset.notes)


def test_everything_that_cannot_be_mapped_is_listed_by_place(tmp_path: Path) -> None:
    text = """\
- {id: a, query: one, expected: [{doc_id: x, relevance: high}]}
- {id: b, query: two, expected: [{doc_id: y, relevance: hgih}]}
- {id: b, query: three, expected: [{reason: none}]}
- {query: four, expected: [{doc_id: z}]}
"""
    mapping = {"id": "id", "text": "query", "expected": "expected", "where": {"id": "doc_id"}, "grade": "relevance"}
    with pytest.raises(TestSetError) as caught:
        load(put(tmp_path, "g.yaml", text), mapping={**mapping, "grades": {"high": 2}})
    found = [(problem.line, problem.message) for problem in caught.value.problems]
    assert found == [
        (2, "query 'b': expected[0] has an unknown grade"),
        (3, "query 'b': expected[0] says nothing that `where` of the mapping names"),
        (3, "query id 'b' is used twice"),
        (4, "query 'four' has no id"),
    ]
    assert caught.value.problems[0].expected == "a number, or one of high"


@pytest.mark.parametrize(
    ("content", "message", "expected"),
    [
        ([{"colour": "x", "relevant": ["y"]}], "no field with the text of a query", "a key such as query"),
        ([{"query": "x", "note": "y"}], "no field with what is expected", "a key such as expected_ids"),
        ({"a": 1}, "no list of queries", "a list, or one under a key such as queries"),
    ],
)
def test_a_file_without_queries_or_expectations_says_what_is_missing(
    tmp_path: Path, content: Any, message: str, expected: str
) -> None:
    with pytest.raises(TestSetError) as caught:
        read_mapped(put(tmp_path, "g.json", content))
    (problem,) = caught.value.problems
    assert problem.message == message
    assert (problem.expected or "").startswith(expected)


def test_a_mapping_is_given_by_a_program_by_options_and_by_a_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path, "g.json", {"rows": [{"phrase_de": "Schuh", "treffer": ["s1"], "art": "x"}]})
    given = {"items": "rows", "text": "phrase_de", "expected": "treffer", "strata": {"kind": "art"}}
    by_program = load(path, mapping=given)
    assert by_text(by_program) == {"Schuh": {"s1": 1}}
    by_options = {"items": "rows", "text": "phrase_de", "expected": "treffer", "strata.kind": "art"}
    assert mapping_from(by_options) == mapping_from(given)
    lines = "testset: {file: g.json, items: rows, text: phrase_de, expected: treffer, strata: {kind: art}}\n"
    put(tmp_path, "cranfield.yaml", lines + "systems: {a: {run: a.run}}\n")
    monkeypatch.chdir(tmp_path)
    assert load("g.json", format="mapped").digest == by_program.digest  # the config of the project names the file


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"txt": "q"}, "unknown field of a mapping 'txt'"),
        ({"text": "q["}, "text is not a JMESPath expression"),
        ({"strata": "category"}, "unknown field of a mapping 'strata'"),
        ({"grades.high": "much"}, "grades.high Input should be a valid number"),
    ],
)
def test_a_wrong_mapping_is_refused_before_the_file_is_read(given: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        mapping_from(given)
    assert caught.value.problems[0].message.startswith(message)


names = st.sampled_from(
    ["query", "q", "expected", "relevant", "id", "tags", "x", "vars", "tests", "items", "never", "k"]
)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 99) | st.text("ab./ ", max_size=4) | st.sampled_from(["d1", "a.md"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(names, values, max_size=5) | st.lists(st.dictionaries(names, values, max_size=5), max_size=4))
def test_any_data_is_a_test_set_or_an_error_with_its_place(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    path = put(tmp_path_factory.mktemp("any"), "g.json", data)
    try:
        testset = read_mapped(path)
    except CranfieldError as error:
        places = [problem.path for problem in error.problems]
    else:
        places = []
    if places:
        assert all(places)
        return
    assert testset.queries
    assert {*testset.grades, *testset.targets, *testset.forbidden} <= {*testset.query_ids}
    assert load(path, format="mapped", mapping=propose(file_values(path))).digest == testset.digest


def test_a_mapping_is_written_as_a_config_has_it() -> None:
    mapping = FieldMapping(text="q", expected="want", where={"url": "@"}, urls=("slash",))
    assert mapping.record() == {"text": "q", "expected": "want", "where": {"url": "@"}, "urls": ["slash"]}
    assert str(mapping) == "text: q; expected: want; where: {url: @}; urls: [slash]"
    assert mapping_from(mapping.record()) == mapping


YAML_FILE = """\
# our golden file
version: 3   # keep
tests:
  - vars:
      query: fast shoes   # the classic
      expected: [a, b]
    owner: ann
  - vars: {query: blue hat, expected: [c]}
  - vars: {query: old thing, expected: [z]}
"""


def changed(testset: TestSet, grades: dict[str, dict[str, float]], *, new: tuple[Query, ...] = ()) -> TestSet:
    """The set with other judgments, by the texts of queries; queries without any are gone."""
    queries = tuple(query for query in (*testset.queries, *new) if query.text in grades)
    return replace(testset, queries=queries, grades={query.id: grades[query.text] for query in queries})


def test_what_changed_is_written_back_and_the_rest_of_the_file_stays(tmp_path: Path) -> None:
    path = put(tmp_path, "g.yaml", YAML_FILE)
    new = Query(content_id("brand new"), "brand new")
    judged = changed(
        load(path), {"fast shoes": {"a": 1, "n": 1}, "blue hat": {"c": 1}, "brand new": {"q": 1}}, new=(new,)
    )
    assert write_back(judged, path, path) == 3
    text = path.read_text(encoding="utf-8")
    assert by_text(load(path)) == {"fast shoes": {"a": 1, "n": 1}, "blue hat": {"c": 1}, "brand new": {"q": 1}}
    for kept in ("# our golden file", "version: 3   # keep", "query: fast shoes   # the classic", "owner: ann"):
        assert kept in text
    assert "old thing" not in text


@pytest.mark.parametrize(
    ("name", "content", "grades", "written"),
    [
        ("g.csv", "question,expected_ids,owner\none,a;b,ann\n", {"a": 1, "c": 1}, "one,a;c,ann\n"),
        ("g.json", '[{"q": "one", "want": "a", "n": 1.0}]', {"c": 1}, '"want": "c", "n": 1.0'),
        ("g.json", '[{"q": "one", "relevant": [["a"], ["b"]]}]', {"b": 2, "a": 1, "c": 1}, '[["b"], ["a", "c"]]'),
        ("g.json", '[{"q": "one", "qrels": {"a": 1, "b": 2}}]', {"a": 3, "b": 0}, '{"a": 3, "b": 0}'),
        (
            "g.jsonl",
            '{"q": "one", "want": [{"doc_id": "a", "relevance": "high", "why": "w"}, {"doc_id": "b", "relevance": "partial"}]}\n',
            {"a": 1, "b": 2},
            '{"doc_id": "a", "relevance": "partial", "why": "w"}',
        ),
    ],
)
def test_every_form_of_expectation_is_written_in_its_own_form(
    tmp_path: Path, name: str, content: str, grades: dict[str, float], written: str
) -> None:
    path = put(tmp_path, name, content)
    judged = changed(load(path), {"one": grades})
    assert write_back(judged, path, path) == 1
    assert written in path.read_text(encoding="utf-8")
    assert by_text(load(path)) == {"one": grades}


def test_what_a_golden_file_cannot_say_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    path = put(tmp_path, "g.json", '[{"q": "one", "must_contain": ["a b"]}]')
    testset = load(path)
    graded = replace(testset, targets={testset.query_ids[0]: (Criteria({"text contains": "a b"}, 2),)})
    with pytest.raises(TestSetError, match="the mapping has no place for grades"):
        write_back(graded, path, path)
    other = replace(testset, targets={testset.query_ids[0]: (Criteria({"book": "x"}),)})
    with pytest.raises(TestSetError, match="no plain path for where: book"):
        write_back(other, path, path)
    assert path.read_text(encoding="utf-8") == '[{"q": "one", "must_contain": ["a b"]}]'
