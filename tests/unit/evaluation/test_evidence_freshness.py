"""Answers that were not asked for in this run are announced, and no others."""

from __future__ import annotations

import pytest

from cranfield.app.evaluate import evaluate
from cranfield.evaluation.compare import compare
from cranfield.evaluation.evidence.values import merged
from cranfield.evaluation.options.blocks import CompareOptions, Consequence, Limits, Setting
from cranfield.formats.runs.jsonl import write_run
from cranfield.model import Answer, CallLog, Hit, Outcome, Query, Run, TestSet

QUERIES = tuple(f"q{number}" for number in range(4))
TESTSET = TestSet("t", tuple(Query(query) for query in QUERIES), {query: {"a": 1} for query in QUERIES})
AT = "2026-11-21T20:51:03Z"
ASKED, KEPT, RESUMED = CallLog(1.0, at=AT), CallLog(1.0, cached=True, at=AT, age_s=82_800.0), "resumed"
CHECKS = {"kept-answers", "resumed-answers"}


def resumed(age_s):
    return CallLog(1.0, at=AT, age_s=age_s)


def found(*logs, config=None, settings=None):
    answers = {query: Answer(Outcome.ANSWERED, (Hit("a"),)) for query in QUERIES}
    by_query = {query: log for query, log in zip(QUERIES, logs, strict=False) if log is not None}
    run = Run("old", answers, depth=10, logs=by_query, testset_digest=TESTSET.digest, config=config or {})
    evaluation = evaluate(TESTSET, run, measures=["RR"], limits=Limits(evidence=settings or {}))
    return [finding for finding in evaluation.evidence if finding.check in CHECKS]


@pytest.mark.parametrize(
    ("logs", "check", "count", "words"),
    [
        ([KEPT] * 4, "kept-answers", 4, "4 of 4 answers were kept from an earlier run (the oldest from 2026-11-21 20:51 UTC, 23 h before)"),
        ([KEPT, ASKED, ASKED, ASKED], "kept-answers", 1, "1 of 4 answers were kept"),
        ([CallLog(1.0, cached=True), ASKED], "kept-answers", 1, "(their time is unknown)"),
        ([resumed(18_000)] * 3 + [ASKED], "resumed-answers", 3, "3 of 4 answers are of the interrupted part of the run (the oldest from 2026-11-21 20:51 UTC, 5 h before)"),
        ([resumed(3601), resumed(0), ASKED], "resumed-answers", 1, "1 of 4 answers are of the interrupted part"),
        ([resumed(86_400 * 9)], "resumed-answers", 1, "9 days before"),
        ([resumed(20.0), ASKED], "resumed-answers", 1, "1 of 4 answers are of the interrupted part of the run (the oldest from 2026-11-21 20:51 UTC, 20 s before)"),
    ],
)  # fmt: skip
def test_answers_that_were_not_asked_for_are_a_caveat(logs, check, count, words):
    (finding,) = found(*logs)
    assert (finding.check, finding.count, finding.total) == (check, count, 4)
    assert finding.consequence is Consequence.CAVEAT
    assert finding.sentence.startswith("old: ")
    assert words in finding.sentence


@pytest.mark.parametrize(
    "logs",
    [
        [],
        [ASKED],
        [ASKED] * 4,
        [CallLog(1.0)] * 4,  # without times
        [CallLog(1.0, attempts=3, repeat_ms=(2.0,), at=AT)] * 4,
        [resumed(0.0)] * 4,
        [resumed(59.0), ASKED],
        [resumed(3600.0)] * 2 + [ASKED] * 2,  # an hour is not more than an hour
        [None, ASKED],
        [CallLog(1.0, "out", "err", at=AT), None],
    ],
)
def test_answers_that_were_asked_for_or_resumed_soon_are_no_caveat(logs):
    assert found(*logs, config={"depends": ["index"]}) == []


def test_resumed_answers_are_old_after_an_hour_although_what_they_depend_on_is_unchanged():
    assert found(resumed(3601.0), config={"depends": ["index"]})
    assert found(resumed(3601.0), config={"run": "old.run"})
    assert found(resumed(59.0), config={"run": "old.run"}) == []


def test_the_answers_of_a_run_file_are_not_kept_answers():
    assert found(*[CallLog(1.0, cached=True)] * 4, config={"run": "old.run"}) == []
    assert found(*[KEPT] * 4, config={"run": "old.jsonl"}), "they were kept when the file was made"


def test_a_run_whose_index_changed_meanwhile_is_a_caveat(tmp_path):
    answers = {query: Answer(Outcome.ANSWERED, (Hit("a"),)) for query in QUERIES}
    for changed in (True, False):
        write_run(Run("old", answers, logs=dict.fromkeys(QUERIES, ASKED), changed=changed), tmp_path / "old.jsonl")
        found = evaluate(TESTSET, tmp_path / "old.jsonl", measures=["RR"]).evidence
        assert ("changed-meanwhile" in {finding.check for finding in found}) is changed


def test_both_checks_can_be_changed_by_name():
    assert found(*[KEPT] * 4, settings={"kept-answers": Setting(Consequence.OFF)}) == []
    assert found(resumed(18_000), settings={"resumed-answers": Setting(threshold=6.0)}) == []
    (finding,) = found(*[KEPT] * 4, settings={"kept-answers": Setting(Consequence.VOID)})
    assert finding.is_void


def test_the_first_caveat_of_a_comparison_is_about_kept_answers():
    sides = []
    for name, hit in (("old", "a"), ("new", "a")):
        answers = {query: Answer(Outcome.ANSWERED, (Hit(hit),)) for query in QUERIES}
        sides.append(evaluate(TESTSET, Run(name, answers, logs=dict.fromkeys(QUERIES, KEPT)), measures=["RR"]))
    result = compare(*sides, CompareOptions(limits=Limits()))
    assert [finding.check for finding in result.evidence][:2] == ["kept-answers", "kept-answers"]


def test_a_number_of_two_systems_keeps_its_unit():
    sentence = "12 of 12 answers were kept (the oldest from 07:57 UTC, {} s before), and not requested again"
    assert merged((name, sentence.format(age)) for name, age in (("old", 0), ("new", 1))) == [
        (
            "old: 12 of 12 answers were kept (the oldest from 07:57 UTC, 0 s before) and "
            "new: 12 of 12 answers were kept (the oldest from 07:57 UTC, 1 s before), and not requested again"
        )
    ]
    share = "{} of 40 results ({} %) repeat an id of their list and are dropped"
    assert merged((name, share.format(n, n * 2.5)) for name, n in (("old", 20), ("new", 10))) == [
        "old: 20 of 40 results (50.0 %) and new: 10 of 40 results (25.0 %) repeat an id of their list and are dropped"
    ]
