"""Whether a report agrees with an answer: the two conditions, and that silence is no consent."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.agents.loop import Read
from cranfield.golden.agreement import (
    BLOCKING,
    LabelAgreement,
    LabelOutcome,
    QueueReason,
    ReviewedSource,
    agree,
    claims_of,
    compare_structure,
    is_spot_checked,
    needs_judge,
)
from cranfield.golden.records import AdversaryReport, NarrativeJudgment, OracleAnswer

LENGTHS = {"a.py": 100, "b.py": 50}
SOURCE = ReviewedSource(LENGTHS.get, (Read("a.py", 1, 40), Read("a.py", 41, 100), Read("b.py", 1, 50)))
EQUIVALENT = NarrativeJudgment(rating="equivalent")


def answer(entities: list[str] | None = None, **changes: Any) -> OracleAnswer:
    fields: dict[str, Any] = {
        "query_id": "q1",
        "task_type": "explain",
        "difficulty": "medium",
        "authored_by": "agent:oracle",
        "created_at": "2026-11-23T00:00:00Z",
        "expected_entities": [{"entity_id": name, "role": "primary"} for name in entities or ["a.py::f", "b.py::g"]],
        "expected_files": ["a.py", "b.py"],
        "expected_line_ranges": [{"file": "a.py", "start": 1, "end": 9}],
        "must_mention_facts": [{"fact": "f calls g.", "citations": [{"file": "a.py", "start": 3, "end": 3}]}],
        "must_not_mention_facts": [{"fact": "g calls f."}],
        "canonical_narrative": "f calls g.",
        "source_evidence": [],
        "confidence": "high",
    }
    return OracleAnswer(**{**fields, **changes})


def verdicts(of: OracleAnswer) -> list[dict[str, Any]]:
    """All supported."""
    cited = {"file": "a.py", "start": 2, "end": 4}
    return [
        {"claim_type": kind, "claim": claim, "verdict": "supported", "citation": cited} for kind, claim in claims_of(of)
    ]


def report(of: OracleAnswer, **changes: Any) -> AdversaryReport:
    fields = {
        "query_id": of.query_id,
        "reviewed_by": "agent:adversary",
        "reviewed_at": "2026-11-23T00:00:00Z",
        "claim_verdicts": verdicts(of),
        "overall_verdict": "supported",
    }
    return AdversaryReport(**{**fields, **changes})


def with_verdict(number: int, **changes: Any) -> LabelAgreement:
    """The agreement where one verdict is another."""
    found = answer()
    reviews = verdicts(found)
    reviews[number] |= changes
    return agree(found, report(found, claim_verdicts=reviews), [EQUIVALENT], SOURCE)


def test_what_is_supported_in_everything_passes() -> None:
    found = agree(answer(), report(answer()), [EQUIVALENT, EQUIVALENT], SOURCE)
    assert (found.outcome, found.disagreements) == (LabelOutcome.PASSED, ())
    assert (found.entities.jaccard, found.files.jaccard) == (1, 1)


@pytest.mark.parametrize("silent", range(7))
def test_a_claim_without_a_verdict_is_no_consent(silent: int) -> None:
    found = answer()
    reviews = verdicts(found)
    assert len(reviews) == 7
    del reviews[silent]
    result = agree(found, report(found, claim_verdicts=reviews), [EQUIVALENT], SOURCE)
    assert result.outcome is LabelOutcome.BLOCKED
    assert QueueReason.SILENT in result.reasons
    assert claims_of(found)[silent][1] in " ".join(each.message for each in result.disagreements)


ENTITY, FILE, RANGE, FACT, FALSE_FACT = 0, 2, 4, 5, 6


@pytest.mark.parametrize(
    ("number", "changes", "reason", "outcome"),
    [
        (ENTITY, {"verdict": "unsupported"}, QueueReason.UNSUPPORTED_STRUCTURE, LabelOutcome.BLOCKED),
        (FILE, {"verdict": "unsupported"}, QueueReason.UNSUPPORTED_STRUCTURE, LabelOutcome.BLOCKED),
        (RANGE, {"verdict": "unsupported"}, QueueReason.UNSUPPORTED_STRUCTURE, LabelOutcome.BLOCKED),
        (FACT, {"verdict": "unsupported"}, QueueReason.UNSUPPORTED_FACT, LabelOutcome.QUEUED),
        (FALSE_FACT, {"verdict": "partial"}, QueueReason.PARTIAL, LabelOutcome.QUEUED),
        (ENTITY, {"citation": None}, QueueReason.NO_CITATION, LabelOutcome.BLOCKED),
        (FACT, {"citation": {"file": "c.py", "start": 1, "end": 1}}, QueueReason.BAD_CITATION, LabelOutcome.BLOCKED),
        (
            FALSE_FACT,
            {"citation": {"file": "b.py", "start": 50, "end": 51}},
            QueueReason.BAD_CITATION,
            LabelOutcome.BLOCKED,
        ),
        (RANGE, {"citation": {"file": "a.py", "start": 1, "end": 101}}, QueueReason.BAD_CITATION, LabelOutcome.BLOCKED),
    ],
)
def test_a_verdict_decides(number: int, changes: dict[str, Any], reason: QueueReason, outcome: LabelOutcome) -> None:
    result = with_verdict(number, **changes)
    assert reason in result.reasons
    assert result.outcome is outcome


def test_a_file_and_a_range_need_no_citation() -> None:
    assert with_verdict(FILE, citation=None).outcome is LabelOutcome.PASSED
    assert with_verdict(RANGE, citation=None).outcome is LabelOutcome.PASSED


def test_cited_lines_were_read_as_a_union_of_what_was_shown() -> None:
    across = {"citation": {"file": "a.py", "start": 30, "end": 60}}
    assert with_verdict(FACT, **across).outcome is LabelOutcome.PASSED
    found = answer()
    gap = ReviewedSource(LENGTHS.get, (Read("a.py", 1, 2), Read("a.py", 4, 100)))
    result = agree(found, report(found), [EQUIVALENT], gap)
    assert set(result.reasons) == {QueueReason.UNREAD_CITATION, QueueReason.UNREAD_CLAIM}
    assert result.outcome is LabelOutcome.BLOCKED
    assert agree(found, report(found), [EQUIVALENT], ReviewedSource(LENGTHS.get)).outcome is LabelOutcome.PASSED


@pytest.mark.parametrize("verdict", ["supported", "partial"])
def test_a_verdict_on_a_range_or_a_file_that_was_not_read_blocks(verdict: str) -> None:
    found = answer(["a.py::f"], expected_files=["a.py", "b.py"])
    seen = ReviewedSource(LENGTHS.get, (Read("a.py", 2, 5),))
    reviews = [each | {"verdict": verdict} for each in verdicts(found)]
    result = compare_structure(found, report(found, claim_verdicts=reviews), seen)
    unread = [each.message for each in result.disagreements if each.kind is QueueReason.UNREAD_CLAIM]
    assert unread == [f"file b.py: {verdict}, but not read", f"line_range a.py:1-9: {verdict}, but not read"]
    assert result.outcome is LabelOutcome.BLOCKED


def test_of_two_verdicts_on_one_claim_the_worse_holds() -> None:
    found = answer()
    reviews = [*verdicts(found), {**verdicts(found)[ENTITY], "verdict": "unsupported"}]
    assert agree(found, report(found, claim_verdicts=reviews), [EQUIVALENT], SOURCE).outcome is LabelOutcome.BLOCKED


def test_the_index_is_exact_at_its_bound_and_what_is_missing_is_in_the_union() -> None:
    four = answer([f"a.py::f{n}" for n in range(4)])
    at = agree(four, report(four, missing_entities=["a.py::g"]), [EQUIVALENT], SOURCE)
    assert (at.entities.jaccard, at.outcome) == (Fraction(4, 5), LabelOutcome.PASSED)
    under = agree(four, report(four, missing_entities=["a.py::g", "a.py::h"]), [EQUIVALENT], SOURCE)
    assert (under.entities.jaccard, under.outcome) == (Fraction(2, 3), LabelOutcome.QUEUED)
    assert under.reasons == (QueueReason.JACCARD_ENTITIES,)
    assert [each.message for each in under.disagreements] == [
        "Jaccard index of entities 0.667, at least 0.8 required: the adversary adds a.py::g and a.py::h"
    ]
    assert at.entities.missing == ("a.py::g",)  # named also where the index is high enough
    files = agree(four, report(four, missing_files=["c.py"]), [EQUIVALENT], SOURCE)
    assert files.reasons == (QueueReason.JACCARD_FILES,)


def test_an_index_names_what_the_adversary_does_not_support() -> None:
    found = with_verdict(ENTITY, verdict="unsupported")
    message = next(each.message for each in found.disagreements if each.kind is QueueReason.JACCARD_ENTITIES)
    assert message.endswith(f"required: it does not support {claims_of(answer())[ENTITY][1]}")


def test_a_definition_and_its_function_are_one_claim_and_no_missing_entity() -> None:
    overloads = answer(["a.py::prompt", "a.py::prompt#3"])
    plain = [each | {"claim": each["claim"].removesuffix("#3")} for each in verdicts(overloads)]
    found = agree(
        overloads, report(overloads, claim_verdicts=plain, missing_entities=["a.py::prompt#2"]), [EQUIVALENT], SOURCE
    )
    assert (found.outcome, found.entities.jaccard, found.entities.missing) == (LabelOutcome.PASSED, 1, ())


@pytest.mark.parametrize("rating", ["minor_divergence", "significant_divergence"])
def test_only_equivalent_passes_and_votes_are_not_averaged(rating: Any) -> None:
    votes = [EQUIVALENT, EQUIVALENT, NarrativeJudgment(rating=rating)]
    result = agree(answer(), report(answer()), votes, SOURCE)
    assert (result.outcome, result.reasons) == (LabelOutcome.QUEUED, (QueueReason.NARRATIVE,))
    assert agree(answer(), report(answer()), [], SOURCE).reasons == (QueueReason.NOT_RATED,)


def test_low_confidence_ends_with_a_person_and_an_issue_blocks() -> None:
    low = answer(confidence="low", uncertainty_notes="two callers")
    assert agree(low, report(low), [EQUIVALENT], SOURCE).outcome is LabelOutcome.QUEUED
    blocked = agree(low, report(low, blocking_issues=["names h"]), [EQUIVALENT], SOURCE)
    assert blocked.reasons == (QueueReason.BLOCKING_ISSUE, QueueReason.LOW_CONFIDENCE)
    assert blocked.outcome is LabelOutcome.BLOCKED
    assert agree(low, report(low, overall_verdict="partial"), [EQUIVALENT], SOURCE).reasons[0] is QueueReason.OVERALL


@given(st.data())
def test_a_label_passes_only_where_every_verdict_is_support(data: st.DataObject) -> None:
    found = answer([f"a.py::f{n}" for n in range(data.draw(st.integers(1, 6)))])
    reviews = verdicts(found)
    for each in reviews:
        each["verdict"] = data.draw(st.sampled_from(["supported"] * 9 + ["partial", "unsupported"]))
    extra = data.draw(st.lists(st.sampled_from(["a.py::x", "a.py::y"]), unique=True))
    result = agree(found, report(found, claim_verdicts=reviews, missing_entities=extra), [EQUIVALENT], SOURCE)
    clean = all(each["verdict"] == "supported" for each in reviews)
    n = len(found.expected_entities)
    assert (result.outcome is LabelOutcome.PASSED) == (clean and n * 5 >= 4 * (n + len(extra)))
    assert (result.outcome is LabelOutcome.BLOCKED) == bool(BLOCKING & set(result.reasons))
    structure = compare_structure(found, report(found, claim_verdicts=reviews, missing_entities=extra), SOURCE)
    assert needs_judge(found, structure) or result.outcome is not LabelOutcome.PASSED


def test_the_sample_of_the_judge_is_seeded_and_has_its_share() -> None:
    names = [f"q{n}" for n in range(2000)]
    drawn = [name for name in names if is_spot_checked(name, 7, Fraction(1, 10))]
    assert 150 < len(drawn) < 250
    assert drawn == [name for name in names if is_spot_checked(name, 7, Fraction(1, 10))]
    assert drawn != [name for name in names if is_spot_checked(name, 8, Fraction(1, 10))]
    assert not any(is_spot_checked(name, 7, Fraction(0)) for name in names)
    assert all(is_spot_checked(name, 7, Fraction(1)) for name in names)
