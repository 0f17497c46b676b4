"""Labels of golden sets: every part of a record is read, stands in a test set in YAML or JSON, and is written back."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cranfield.base.errors import TestSetError
from cranfield.evaluation.testset.expected import queries_of
from cranfield.formats.convert import write_testset
from cranfield.formats.io.validation import schema_text
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets import native_form
from cranfield.formats.testsets.golden_record import SCHEMA_FILE, golden_schema
from cranfield.model import Entity, EntityRole, Fact, Label, Lines, Query, Span, TestSet
from cranfield.reporting import render
from cranfield.testsets.reports.testset import queries_document

RANGE = {"file": "src/llm/agent.py", "start": 160, "end": 221}
CITED = {"fact": "It compares the average with a threshold.", "citations": [{**RANGE, "end": 164}]}
FULL: dict[str, Any] = {
    "query_id": "q_00042",
    "query_text": "Where do we decide whether to answer locally?",
    "task_type": "general",
    "difficulty": "medium",
    "expected_entities": [
        {"entity_id": "src/llm/agent.py::Agent.answer", "role": "primary", "rationale": "It holds the branch."},
        "src/llm/agent.py::Agent",
    ],
    "expected_files": ["src/llm/agent.py", "src/config.py"],
    "expected_line_ranges": [RANGE, {"file": "src/config.py", "start": 1, "end": 80}],
    "must_mention_facts": [CITED, "No model is called when it passes."],
    "must_not_mention_facts": [{"fact": "The threshold is fixed.", "citations": [RANGE]}],
    "canonical_narrative": "The decision lives in Agent.answer: 007, yes, #1.",
    "difficulty_rationale": "One hop.",
    "classifier_expectation": "locate",
    "baseline_answerable": False,
    "provenance": {"oracle": "agent:oracle:m", "human_reviewed": True, "edits": [{"field": "facts", "at": 3}]},
    "confidence": "low",
    "uncertainty_notes": None,
    "source_evidence": [{**RANGE, "read_at_step": 1}],
    "validation": {"source_verified": True},
    "correct": False,
    "schema_version": "1.0.0",
    "own_key": {"deep": [1, 2.5, None, "007"]},
    "team": "core",
}
PLAIN: dict[str, Any] = {
    "query_id": "q2",
    "query_text": "Where is f?",
    "expected_entities": ["src/a.py::f"],
    "expected_files": ["src/a.py"],
    "expected_line_ranges": [{"file": "src/a.py", "start": 3, "end": 9}],
}
LABEL = Label(
    (EntityRole("src/llm/agent.py::Agent.answer", "primary", "It holds the branch."),),
    (Lines("src/llm/agent.py", 160, 221), Lines("src/config.py", 1, 80)),
    (
        Fact("It compares the average with a threshold.", (Lines("src/llm/agent.py", 160, 164),)),
        Fact("No model is called when it passes."),
    ),
    (Fact("The threshold is fixed.", (Lines("src/llm/agent.py", 160, 221),)),),
    "The decision lives in Agent.answer: 007, yes, #1.",
    "One hop.",
    "locate",
    False,
    FULL["provenance"],
    {key: FULL[key] for key in list(FULL)[list(FULL).index("confidence") :]},
)


def put(folder: Path, *records: dict[str, Any]) -> Path:
    (folder / "golden.json").write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")
    return folder / "golden.json"


def there_and_back(path: Path, native: str) -> tuple[TestSet, list[dict[str, Any]]]:
    """The set as it is read, and its records after a way through the native format."""
    folder = path.parent
    testset = read_testset(path)
    assert write_testset(testset, folder / native) == ()
    again = read_testset(folder / native)
    assert (again.labels, again.digest, again.labels_digest) == (testset.labels, testset.digest, testset.labels_digest)
    assert write_testset(again, folder / "back.json", "golden-json") == ()
    return testset, json.loads((folder / "back.json").read_text(encoding="utf-8"))


def test_every_part_of_a_record_is_read_and_written_back(tmp_path: Path) -> None:
    testset, records = there_and_back(put(tmp_path, FULL, PLAIN), "set.yaml")
    assert testset.labels == {"q_00042": LABEL}
    assert testset.targets["q_00042"] == (
        Entity("src/llm/agent.py::Agent.answer", lines=((160, 221),)),
        Entity("src/llm/agent.py::Agent"),
    )
    assert testset.by_id["q_00042"].strata == {"task_type": "general", "difficulty": "medium"}
    assert [str(note) for note in testset.notes] == ["kept as queries: 1 record marked as not correct"]
    assert records == [FULL, PLAIN]


def test_a_set_without_facts_comes_back_with_all_its_records(tmp_path: Path, shared_data: Path) -> None:
    records = json.loads((shared_data / "knowcode/golden_v1.0.json").read_text(encoding="utf-8"))
    testset, back = there_and_back(put(tmp_path, *records), "set.json")
    assert back == records
    assert len(testset.labels) == 60
    assert testset.labels["q002"].must_mention == (
        Fact("The freshness endpoint is implemented by `get_freshness`."),
        Fact("The endpoint delegates to `service.get_freshness_metadata()`."),
    )


WORDS = st.sampled_from(["It is so.", "007", "true", "a: b", "#x", "é\n\nzwei", "-", "null"])
PATHS = st.sampled_from(["src/a.py", "src/b/c.py", "tests/d.py"])
RANGES = st.builds(lambda f, s, n: {"file": f, "start": s, "end": s + n}, PATHS, st.integers(1, 9), st.integers(0, 9))
NAMES = st.builds("{}::{}".format, PATHS, st.sampled_from(["f", "C.g"]))
ENTITIES = NAMES | st.builds(
    lambda name, role: {"entity_id": name, "role": role, "rationale": "why"}, NAMES, st.sampled_from(["primary", "odd"])
)
CITATIONS = st.lists(RANGES, min_size=1, max_size=2)
FACTS = st.lists(
    WORDS | st.builds(lambda fact, lines: {"fact": fact, "citations": lines}, WORDS, CITATIONS), max_size=3
)
JSON = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.just(0.25) | WORDS, st.lists, max_leaves=4)
TASKS = st.sampled_from(["locate", "general"])
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "query_id": st.sampled_from(["q1", "q2", "7", "q 4"]),
            "query_text": WORDS,
            "expected_entities": st.lists(ENTITIES, max_size=3, unique_by=str),
            "expected_files": st.lists(PATHS, min_size=1, max_size=2, unique=True),
            "must_mention_facts": FACTS,
            "must_not_mention_facts": FACTS,
        },
        optional={
            "task_type": TASKS,
            "difficulty": st.sampled_from(["easy", "hard"]),
            "strata": st.dictionaries(st.just("kind"), WORDS, min_size=1),
            "expected_line_ranges": st.lists(RANGES, min_size=1, max_size=3),
            "canonical_narrative": WORDS,
            "difficulty_rationale": WORDS,
            "classifier_expectation": TASKS,
            "baseline_answerable": st.booleans(),
            "provenance": st.dictionaries(WORDS, JSON, min_size=1, max_size=2),
            "confidence": JSON,
            "validation": st.just({"human_reviewed": False}),
            "correct": st.booleans() | st.none(),
            "schema_version": st.sampled_from(["1.0.0", None]),
            "team": WORDS,
            "own": JSON,
        },
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda record: str(record["query_id"]),
)


@settings(max_examples=settings().max_examples // 4, deadline=None, suppress_health_check=list(HealthCheck))
@given(records=RECORDS, native=st.sampled_from(["set.yaml", "set.json"]))
def test_records_come_back_through_the_native_format(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]], native: str
) -> None:
    for record in records:
        names = [each if isinstance(each, str) else each["entity_id"] for each in record["expected_entities"]]
        record["expected_entities"] = [
            each for n, each in enumerate(record["expected_entities"]) if names[n] not in names[:n]
        ]
    _, back = there_and_back(put(tmp_path_factory.mktemp("records"), *records), native)
    assert back == records


def test_a_key_that_is_a_stratum_in_one_set_alone_stays_a_key(tmp_path: Path) -> None:
    one, two = ({**PLAIN, "query_id": query_id, "team": "core"} for query_id in ("q1", "q2"))
    both, alone = read_testset(put(tmp_path, one, two)), read_testset(put(tmp_path, one))
    assert [query.strata for query in (*both.queries, *alone.queries)] == [{"team": "core"}, {"team": "core"}, {}]
    merged = TestSet(
        "s", (alone.queries[0], both.queries[1]), targets=both.targets, files=both.files, labels=both.labels
    )
    write_testset(merged, tmp_path / "merged.json", "golden-json")
    assert [q.strata for q in read_testset(tmp_path / "merged.json").queries] == [{}, {"team": "core"}]
    assert [r.get("strata") for r in json.loads((tmp_path / "merged.json").read_text())] == [{"team": None}, None]


def test_other_formats_say_how_many_labels_they_do_not_hold(tmp_path: Path) -> None:
    testset = read_testset(put(tmp_path, FULL, PLAIN))
    spans = TestSet(
        "s", testset.queries, targets={q: (Span("a", 1, 2),) for q in testset.query_ids}, labels=testset.labels
    )
    assert "not carried over: 1 label of queries" in write_testset(spans, tmp_path / "s.csv", "spans-csv")


def test_labels_are_no_part_of_the_digest_and_provenance_is_none_of_theirs(tmp_path: Path) -> None:
    plain = read_testset(put(tmp_path, PLAIN))
    assert plain.labels_digest == ""
    seen = set()
    for change in ({}, {"provenance": {}}, {"validation": {}}, {"canonical_narrative": "x"}, {"own_key": 1}):
        testset = read_testset(put(tmp_path, FULL | change))
        seen.add((testset.digest, testset.labels_digest))
    assert len({digest for digest, _ in seen}) == 1
    assert len(seen) == 3, "without provenance and validation it is the same as with them"


def test_a_query_is_shown_with_its_label(tmp_path: Path) -> None:
    document = queries_document(queries_of(read_testset(put(tmp_path, FULL, PLAIN)), ["q_00042", "q2"]), in_full=True)
    text = render(document, "text")
    for part in (
        "must mention",
        "No model is called",
        "src/llm/agent.py:160-164",
        "The threshold is fixed.",
        "The decision",
    ):
        assert part in text
    labelled, plain = json.loads(render(document, "json"))["queries"]
    assert [fact["text"] for fact in labelled["label"]["must_mention"]] == [
        fact if isinstance(fact, str) else fact["fact"] for fact in FULL["must_mention_facts"]
    ]
    assert plain["label"] is None


def test_an_expectation_of_no_task_type_is_refused_both_ways(tmp_path: Path) -> None:
    with pytest.raises(TestSetError, match=r"unknown task type 'lookup'; expected locate, explain, .*"):
        read_testset(put(tmp_path, FULL | {"classifier_expectation": "lookup"}))
    label = Label(classifier_expectation="lookup")
    testset = TestSet("s", (Query("q", "t"),), targets={"q": (Span("a", 1, 2),)}, labels={"q": label})
    with pytest.raises(TestSetError, match="not written: query 'q' has an unknown task type"):
        write_testset(testset, tmp_path / "new.json", "golden-json")


MISTAKES = {
    '{"must_mention_facts": [7, ""]}': "label.must_mention_facts[1] is empty",
    '{"must_mention_facts": [{"text": "x"}]}': "missing key 'fact' in queries[0].label.must_mention_facts[0]",
    '{"expected_line_ranges": [{"file": "a", "start": 9, "end": 3}]}': (
        "label.expected_line_ranges[0].end is before the start; expected start, then end, got 9-3"
    ),
    '{"expected_files": ["a"]}': "label has expected_files, which are keys of the query itself; expected keys of a label",
    '{"expected_entities": ["a::f"]}': "label has 1 entity without a role",
    '{"expected_entities": [{"entity_id": "a::f", "role": "primary", "why": "x"}]}': (
        "label has unknown keys of entities, line ranges or facts: why"
    ),
    '{"schema_version": "2.0"}': "label has an unknown schema version; expected 1.0.0, got '2.0'",
    '{"baseline_answerable": "no"}': "wrong value for queries[0].label.baseline_answerable; expected true or false",
}


@pytest.mark.parametrize("label", MISTAKES)
def test_each_mistake_in_a_label_is_told(tmp_path: Path, label: str) -> None:
    path = tmp_path / "set.yaml"
    path.write_text(
        f"cranfield_testset: 1\nname: n\nqueries:\n  - {{id: q, text: t, entities: [a::f], label: {label}}}\n"
    )
    with pytest.raises(TestSetError) as caught:
        read_testset(path)
    assert MISTAKES[label] in str(caught.value)
    assert all(problem.line == 4 for problem in caught.value.problems)


def test_the_schema_of_a_set_refuses_keys_of_a_query_in_a_label() -> None:
    validator = jsonschema.Draft202012Validator(native_form.testset_schema())
    query = {"id": "q", "text": "t", "entities": ["a::f"], "label": {"must_mention_facts": ["x"], "own": 1}}
    validator.validate({"cranfield_testset": 1, "name": "n", "queries": [query]})
    query["label"] = {"expected_files": ["a"]}
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({"cranfield_testset": 1, "name": "n", "queries": [query]})


def test_the_published_schema_is_that_of_the_models() -> None:
    hint = "python -m cranfield.formats.testsets.golden_record writes it anew"
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(golden_schema()), hint


BROKEN: dict[str, dict[str, Any]] = {
    "no text": {"query_text": ""},
    "a fact that is a list": {"must_mention_facts": [["x"]]},
    "a citation without an end": {"must_mention_facts": [{"fact": "x", "citations": [{"file": "a", "start": 1}]}]},
    "a line 0": {"expected_line_ranges": [{"file": "a", "start": 0, "end": 1}]},
    "an answerable that is text": {"baseline_answerable": "yes"},
    "an entity without an id": {"expected_entities": [{"role": "primary"}]},
    "provenance that is text": {"provenance": "me"},
}


@pytest.mark.parametrize("name", BROKEN)
def test_schema_and_reader_refuse_the_same(tmp_path: Path, name: str) -> None:
    validator = jsonschema.Draft202012Validator(golden_schema())
    validator.validate(FULL)
    record = deepcopy(FULL) | BROKEN[name]
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(record)
    with pytest.raises(TestSetError):
        read_testset(put(tmp_path, record))
