"""Golden sets of code search, and the facts beside them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cranfield.base.errors import TestSetError
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets.golden_json import RULES, read_golden_json, write_golden_json
from cranfield.model import (
    Entity,
    File,
    Hit,
    Lines,
    MatchingRules,
    Meta,
    Pattern,
    Query,
    Span,
    TestSet,
    convention_named,
)
from cranfield.ranking.matching.expectation import expect


def record(query_id: str, **more: Any) -> dict[str, Any]:
    return {
        "query_id": query_id,
        "query_text": f"text of {query_id}",
        "task_type": "locate",
        "difficulty": "easy",
        **more,
    }


RANGE = {"file": "src/a.py", "start": 3, "end": 9, "read_at_step": 1}
RECORDS = [
    record(
        "q1",
        expected_entities=["src/a.py::f", {"entity_id": "src/a.py::g", "role": "primary", "rationale": "it is"}],
        expected_files=["src/a.py"],
        expected_line_ranges=[RANGE],
        must_mention_facts=["one", "two"],
        must_not_mention_facts=["three"],
        canonical_narrative="It is so.",
        provenance={"human_reviewed": True},
        correct=False,
    ),
    record("q2", expected_entities=[], expected_files=["src/a.py"], expected_line_ranges=[RANGE], team="core"),
    record("q3", expected_files=["src/b.py", "src/b.py"], team="core", evidence=[RANGE]),
]
META = {
    "created_at": "2026-06-10T19:35:50Z",
    "dataset_status": "agent_curated_pending_human_review",
    "human_reviewed_count": 1,
    "known_limitations": ["Facts are sparse."],
    "query_count": 4,
    "schema_version": "1.0.0",
    "source_file_hashes": {"src/a.py": "00ff"},
    "source_sha": "2ae419ef",
    "strata_counts": {"locate:easy": 2, "locate:hard": 1},
}


def put(folder: Path, records: Any = RECORDS, meta: Any = None) -> Path:
    (folder / "golden.json").write_text(records if isinstance(records, str) else json.dumps(records, indent=2))
    if meta is not None:
        (folder / "golden.meta.json").write_text(json.dumps(meta, indent=2))
    return folder / "golden.json"


def test_entities_come_before_line_ranges_and_those_before_files(tmp_path):
    testset = read_testset(put(tmp_path))
    assert testset.targets == {
        "q1": (Entity("src/a.py::f", lines=((3, 9),)), Entity("src/a.py::g")),
        "q2": (Span("src/a.py", 3, 9),),
        "q3": (File("src/b.py"),),
    }
    assert testset.files == {"q1": ("src/a.py",), "q2": ("src/a.py",), "q3": ("src/b.py",)}
    strata = {"task_type": "locate", "difficulty": "easy"}
    assert [query.strata for query in testset.queries] == [
        strata,
        {**strata, "team": "core"},
        {**strata, "team": "core"},
    ]
    assert testset.matching == RULES == MatchingRules(roots=("src", "tests"))
    assert testset.meta == Meta(review="1 of 3 records reviewed by a person")


def test_what_has_no_place_is_counted(tmp_path):
    assert tuple(map(str, read_testset(put(tmp_path)).notes)) == (
        "not carried over: 2 unknown keys of entities, line ranges and facts",
        "not carried over: 1 place that a record names twice",
        "kept as stratum 'team': 1 value in 2 queries",
        "kept as queries: 1 record marked as not correct",
    )


def test_records_may_stand_under_a_key(tmp_path):
    testset = read_testset(put(tmp_path, {"made_by": "ann", "queries": [record("q", expected_files=["a.py"])]}))
    assert testset.targets == {"q": (File("a.py"),)}
    assert tuple(map(str, testset.notes)) == ("not carried over: the key 'made_by' of the file",)


def test_the_facts_beside_it_are_read_and_what_they_count_wrong_is_said(tmp_path):
    testset = read_testset(put(tmp_path, meta=META))
    assert testset.meta == Meta(
        review="agent_curated_pending_human_review",
        made="2026-06-10",
        commit="2ae419ef",
        source_files={"src/a.py": "00ff"},
        counts={
            "queries": 4,
            "task_type=locate": 3,
            "difficulty=easy": 2,
            "difficulty=hard": 1,
            "reviewed by a person": 1,
        },
    )
    assert tuple(map(str, testset.notes[-4:])) == (
        "golden.meta.json counts 4 queries; the file has 3",
        "golden.meta.json counts 2 strata wrong: 2 'locate:easy' where there are 3",
        "statement of its authors: Facts are sparse.",
        "not carried over from golden.meta.json: schema_version",
    )


def test_the_writer_makes_both_files_and_counts_anew(tmp_path):
    testset = read_testset(put(tmp_path, meta=META))
    write_golden_json(testset, tmp_path / "new.json")
    meta = json.loads((tmp_path / "new.meta.json").read_text())
    assert (meta["query_count"], meta["strata_counts"]) == (3, {"locate:easy": 3})
    assert (meta["source_sha"], meta["dataset_status"]) == ("2ae419ef", "agent_curated_pending_human_review")
    again = read_testset(tmp_path / "new.json")
    assert (again.digest, again.meta, again.name) == (testset.digest, testset.meta, "golden")


def test_graded_and_mixed_targets_stand_under_a_key_of_their_own(tmp_path):
    targets = {"q": (Entity("a.py::f", 2), Span("a.py", 1, 2), File("b.py", 0.5))}
    testset = TestSet("t", (Query("q", "text"),), targets=targets, matching=MatchingRules(line_base=0))
    write_golden_json(testset, tmp_path / "t.json")
    (entry,) = json.loads((tmp_path / "t.json").read_text())
    assert entry["expected_entities"] == ["a.py::f"]
    assert entry["expected_targets"] == [
        {"entity_id": "a.py::f", "grade": 2},
        {"file": "a.py", "start": 1, "end": 2},
        {"file": "b.py", "grade": 0.5},
    ]
    assert read_golden_json(tmp_path / "t.json").digest == testset.digest


def test_everything_that_is_wrong_is_told_with_its_place(tmp_path):
    records = """[
  {"query_id": "q1", "query_text": "", "expected_entities": [7]},
  {"query_id": "q1", "query_text": "b", "expected_files": "a.py"},
  {"query_text": "c", "expected_line_ranges": [{"file": "a.py", "start": 0, "end": 2}]}
]"""
    with pytest.raises(TestSetError) as caught:
        read_testset(put(tmp_path, records))
    found = [(p.line, p.column, p.message) for p in caught.value.problems]
    assert (2, 36, "queries[0].query_text is empty") in found
    assert (3, 16, "query id 'q1' is used twice; it also occurs on line 2") in found
    assert (3, 59, "wrong value for queries[1].expected_files") in found
    assert (4, 3, "missing key 'query_id' in queries[2]") in found
    assert (4, 74, "wrong value for queries[2].expected_line_ranges[0].start") in found


def test_a_record_whose_range_ends_before_it_starts_fails_alone(tmp_path):
    bad = {"file": "a.py", "start": 9, "end": 3}
    records = [
        record("q1", expected_line_ranges=[bad], expected_files=["a.py"]),
        record("q2", expected_line_ranges=[bad, {"file": "a.py", "start": 3, "end": 9}]),
        record("q3", expected_entities=["a.py::f"], expected_line_ranges=[bad]),
    ]
    testset = read_testset(put(tmp_path, records))
    assert testset.targets == {"q2": (Span("a.py", 3, 9),), "q3": (Entity("a.py::f"),)}
    assert testset.labels["q1"].line_ranges == (Lines("a.py", 9, 3),)  # for the gate of golden sets, which names it
    assert [str(note) for note in testset.notes] == [
        f"query {name!r}: lines 9-3 of a.py end before they start, and are not expected" for name in ("q1", "q2", "q3")
    ]
    write_golden_json(testset, tmp_path / "again.json")
    assert read_testset(tmp_path / "again.json").digest == testset.digest


def test_facts_that_are_wrong_are_told_with_their_place(tmp_path):
    with pytest.raises(TestSetError, match=r"golden\.meta\.json:2:18: wrong value for query_count"):
        read_testset(put(tmp_path, meta={"query_count": "many"}))


def test_other_truth_is_not_written(tmp_path):
    testset = TestSet("t", (Query("q", "text"),), targets={"q": (Pattern("x"),)})
    with pytest.raises(TestSetError, match="judged by something other than places in code"):
        write_golden_json(testset, tmp_path / "t.json")
    bare = replace(testset, queries=(Query("q"),), targets={"q": (File("a"),)})
    with pytest.raises(TestSetError, match=r"not written: queries\[0\].query_text is empty"):
        write_golden_json(bare, tmp_path / "t.json")
    assert list(tmp_path.iterdir()) == []


def lines_of(entities: list[str], *ranges: tuple[str, int, int]) -> dict[str, tuple[tuple[int, int], ...]]:
    from cranfield.formats.testsets.golden_json import _lines_of
    from cranfield.formats.testsets.golden_record import LinesModel

    return _lines_of(entities, [LinesModel(file=file, start=start, end=end) for file, start, end in ranges])


@pytest.mark.parametrize(
    ("entities", "ranges", "expected"),
    [
        (["src/a.py::f"], [("src/a.py", 1, 2), ("src/a.py", 5, 6)], {"src/a.py::f": ((1, 2), (5, 6))}),
        (["src/a.py::f"], [("/checkouts/7/src/a.py", 1, 2)], {"src/a.py::f": ((1, 2),)}),
        (
            ["src/a.py::f", "src/a.py::g"],
            [("src/a.py", 1, 2), ("src/a.py", 5, 6)],
            {"src/a.py::f": ((1, 2),), "src/a.py::g": ((5, 6),)},
        ),
        (
            ["src/a.py::f", "src/a.py::g", "src/b.py::h"],
            [("src/a.py", 1, 9)],
            {"src/a.py::f": ((1, 9),)},
        ),
        (["src/a.py::f"], [("src/b.py", 1, 2)], {}),
    ],
    ids=["several of one", "one form of the path", "one each", "of the first where there are fewer", "another file"],
)
def test_line_ranges_are_those_of_the_entities_of_their_file(entities, ranges, expected):
    assert lines_of(entities, *ranges) == expected


def test_a_result_that_names_no_symbol_matches_by_its_lines(tmp_path):
    record = {
        "query_id": "q1",
        "query_text": "Where is it decided?",
        "expected_entities": ["src/agent.py::Agent.answer", "src/other.py::f"],
        "expected_line_ranges": [{"file": "src/agent.py", "start": 160, "end": 221}],
    }
    testset = read_testset(put(tmp_path, [record]))
    hits = {
        "by name": Hit("src/agent.py::Agent.answer"),
        "by lines": Hit("src/agent.py", span="200-230"),
        "by lines of its id": Hit("/repo/src/agent.py:221-300"),
        "other lines": Hit("src/agent.py:222-300"),
        "another symbol": Hit("src/agent.py::Agent.close:160-170"),
        "no lines": Hit("src/agent.py"),
    }
    expected = expect(testset, "q1", convention_named("trec"))
    assert {name: bool(expected.matches(hit)) for name, hit in hits.items()} == {
        "by name": True,
        "by lines": True,
        "by lines of its id": True,
        "other lines": False,
        "another symbol": False,
        "no lines": False,
    }
    assert len(expected.grades) == 2, "the lines are no further items"
