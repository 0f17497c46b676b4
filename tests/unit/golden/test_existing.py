"""Existing sets that enter a run."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from cranfield.errors import TestSetError
from cranfield.golden.existing import Defaults, import_set
from cranfield.golden.records import CitedFact, CitedLines, Evidence, OracleAnswer, QueryCandidate
from cranfield.model import Entity, Fact, File, Label, Lines, Pattern, Query, Span, TestSet
from cranfield.model.label import EntityRole

AT = "2026-11-23T14:05:09Z"
CELL = {"task_type": "locate", "difficulty": "medium"}


def set_of(*targets: Entity | Span | File | Pattern, label: Label | None = None, strata=CELL) -> TestSet:
    labels = {} if label is None else {"q1": label}
    query = Query("q1", "where are files read", strata)
    return TestSet("old", (query,), targets={"q1": targets} if targets else {}, labels=labels)


def imported(testset: TestSet, **defaults: str):
    return import_set(testset, commit="c0ffee", at=AT, defaults=Defaults(**defaults))


def test_a_record_with_a_label_enters_whole() -> None:
    facts = (Fact("it reads", (Lines("a.py", 1, 2),)), Fact("it caches"))
    evidence = [{"file": "a.py", "start": 1, "end": 9, "read_at_step": 1}]
    label = Label(
        (EntityRole("a.py::load", "primary", "it is the one"),),
        (Lines("a.py", 1, 4),),
        facts,
        facts[1:],
        "It reads.",
        "One hop.",
        provenance={"oracle": "agent:x"},
        more={"source_evidence": evidence, "confidence": "low", "ticket": 7},
    )
    found = imported(set_of(Entity("a.py::load"), label=label))
    (candidate,), (answer,) = found.candidates, found.answers
    assert candidate.target_entity_ids == ["a.py::load"]
    assert (candidate.authored_by, candidate.difficulty_rationale) == ("imported:old", "One hop.")
    assert [(entity.role, entity.rationale) for entity in answer.expected_entities] == [("primary", "it is the one")]
    assert answer.expected_line_ranges == [CitedLines(file="a.py", start=1, end=4)]
    assert answer.must_mention_facts[0] == CitedFact(
        fact="it reads", citations=[CitedLines(file="a.py", start=1, end=2)]
    )
    assert answer.source_evidence == [Evidence(**evidence[0])]
    assert (answer.confidence, answer.canonical_narrative, answer.commit) == ("low", "It reads.", "c0ffee")
    assert found.carried == {"q1": {"provenance": {"oracle": "agent:x"}, "more": {"ticket": 7}}}
    assert found.notes == ()


def test_what_a_record_does_not_say_is_missing_and_no_mistake() -> None:
    (candidate,), (answer,) = (found := imported(set_of(Entity("a.py::load")))).candidates, found.answers
    assert (candidate.difficulty_rationale, candidate.classifier_expectation) == ("", None)
    assert (answer.confidence, answer.expected_entities[0].role, answer.source_evidence) == (None, None, [])
    assert candidate.imported_from == answer.imported_from == set_of(Entity("a.py::load")).digest
    # Of a role, the same is refused.
    for record, kind in ((candidate, QueryCandidate), (answer, OracleAnswer)):
        with pytest.raises(ValidationError):
            kind.model_validate(record.model_dump() | {"imported_from": ""})


def test_graded_spans_are_targets_and_line_ranges() -> None:
    spans = [Span("a.py", 10 * n, 10 * n + 2, grade) for n, grade in ((1, 1), (2, 2), (3, 1), (4, 3))]
    found = imported(set_of(*spans))
    (candidate,), (answer,) = found.candidates, found.answers
    assert [(span.start, span.grade) for span in candidate.target_spans] == [(40, 3), (20, 2), (10, 1)]
    assert [lines.start for lines in answer.expected_line_ranges] == [10, 20, 30, 40]
    assert answer.expected_files == ["a.py"]
    assert found.notes == ("1 candidate with only the best three of their spans",)


def test_what_cannot_be_read_is_counted() -> None:
    label = Label(
        (EntityRole("a.py::load", "main"),),
        more={"source_evidence": [{"file": "a.py", "start": 0, "end": 3, "read_at_step": 1}], "confidence": "sure"},
    )
    found = imported(set_of(Entity("a.py::load"), label=label))
    assert sorted(found.notes) == [
        "1 unknown role",
        "1 unknown value of confidence",
        "1 unreadable entry of evidence",
    ]


def test_every_query_that_cannot_enter_is_named_with_what_it_lacks() -> None:
    queries = tuple(
        Query(f"q{n}", text, strata)
        for n, text, strata in (
            (1, "text", {"task_type": "locate"}),
            (2, "", CELL),
            (3, "text", CELL | {"task_type": "find"}),
            (4, "text", CELL),
            (5, "text", CELL),
        )
    )
    file = (File("a.py"),)
    targets = {"q1": file, "q2": file, "q3": file, "q4": (Pattern("a"),), "q5": (Span("a.py", 1, 2, 0.5),)}
    with pytest.raises(TestSetError) as caught:
        imported(TestSet("old", queries, targets=targets))
    assert [problem.message for problem in caught.value.problems] == [
        "query 'q1' has no difficulty",
        "query 'q2' has no text",
        "query 'q3' has an unknown task_type",
        "query 'q4' expects something else",
        "query 'q5' has a span of an unknown grade",
    ]


def test_queries_without_a_cell_take_the_default() -> None:
    (candidate,) = imported(set_of(File("a.py"), strata={}), task_type="explain", difficulty="hard").candidates
    assert (candidate.task_type, candidate.difficulty, candidate.target_files) == ("explain", "hard", ["a.py"])
