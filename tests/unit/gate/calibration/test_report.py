"""Diagnoses and their error rates, the published baseline, and everything that is not counted."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from cranfield.base.errors import InputError, UsageError
from cranfield.gate.calibration.diagnosis import Diagnosis
from cranfield.gate.calibration.report import CalibrationOptions, calibrate
from cranfield.gate.calibration.table import (
    CalibrationAnswers,
    Correctness,
    Exclusion,
    ScoredAnswer,
    TableColumns,
    read_scored,
    with_outcomes,
)

FEW = CalibrationOptions(draws=399)


def source(scores: list[float], right: list[bool], kind: Correctness = Correctness.STATED) -> CalibrationAnswers:
    pairs = enumerate(zip(scores, right, strict=True))
    return CalibrationAnswers("t", "score", {}, [ScoredAnswer(f"q{n}", score, {kind: ok}) for n, (score, ok) in pairs])


def diagnoses(n: int, bias: float, draws: int, seed: int) -> Counter[Diagnosis]:
    """Of simulated scores, uniform from 0 to 1: correct with the probability score - bias."""
    draw, found = np.random.default_rng(seed), Counter[Diagnosis]()
    for _ in range(draws):
        scores = draw.random(n)
        right = draw.random(n) < np.clip(scores - bias, 0, 1)
        found[calibrate(source(scores.tolist(), right.tolist()), FEW).diagnosis] += 1
    return found


def test_a_calibrated_score_is_seldom_blamed_and_a_biased_one_is_found() -> None:
    """The error rates at their full size are in bench/calibration.py; 3 of 60 is the 95th percentile at a rate of .02."""
    calm = {Diagnosis.WELL_CALIBRATED, Diagnosis.INSUFFICIENT_DATA}
    assert sum(count for what, count in diagnoses(60, 0, 60, 1).items() if what in calm) >= 57
    assert diagnoses(200, 0.2, 25, 2)[Diagnosis.OVER_CONFIDENT] >= 24
    assert diagnoses(200, -0.2, 25, 3)[Diagnosis.UNDER_CONFIDENT] >= 24


@pytest.mark.slow  # 1,000 draws of each take 20 s
@pytest.mark.parametrize(("n", "bias", "wanted", "least"), [
    (60, 0, {Diagnosis.WELL_CALIBRATED, Diagnosis.INSUFFICIENT_DATA}, 950),
    (200, 0, {Diagnosis.WELL_CALIBRATED, Diagnosis.INSUFFICIENT_DATA}, 950),
    (200, 0.2, {Diagnosis.OVER_CONFIDENT}, 800),
    (200, -0.2, {Diagnosis.UNDER_CONFIDENT}, 800),
])  # fmt: skip
def test_error_rates_of_the_diagnosis(n: int, bias: float, wanted: set[Diagnosis], least: int) -> None:
    found = diagnoses(n, bias, 1000, 11)
    assert sum(found[each] for each in wanted) >= least, found


def test_equal_outcomes_do_not_make_the_bias_certain() -> None:
    """20 right answers at 1.0: the differences have no variance, but the share may be .84 (Wilson, 95 %)."""
    evidence = calibrate(source([1.0] * 20, [True] * 20)).calibrations[0].group.evidence
    assert evidence is not None
    assert evidence.bias.value == 0
    assert evidence.bias_interval == (0.0, pytest.approx(0.161, abs=0.001))  # 1 - .839
    assert not evidence.is_bias_shown


def test_the_published_baseline_is_over_confident(shared_data: Path) -> None:
    report = calibrate(read_scored(shared_data / "knowcode" / "baseline_v1.0.json"))
    (found,) = report.calibrations
    assert (found.kind, found.group.n, found.group.right, found.excluded) == (Correctness.STRUCTURAL, 60, 24, {})
    evidence = found.group.evidence
    assert evidence is not None
    assert (round(evidence.ece.value, 4), round(evidence.bias.value, 4)) == (0.1817, 0.1423)
    assert report.diagnosis is Diagnosis.OVER_CONFIDENT
    assert found.group.findings == (Diagnosis.OVER_CONFIDENT, Diagnosis.UNINFORMATIVE)  # AUROC .57, p = .37
    assert evidence.n_contradicted == 1  # q059 has a score of 1 and is wrong
    assert (found.routed.n, found.routed.right, round(found.routed.share or 0, 3)) == (7, 4, 0.571)
    assert [round(end, 2) for end in found.routed.interval or ()] == [0.25, 0.84]
    assert found.advice is None
    assert [(each.low, each.n) for each in found.bins if each.low in {0.7, 0.2}] == [(0.2, 10), (0.7, 10)]
    strata = {f"{each.stratum}: {each.value}": each.group for each in found.strata}
    assert {name for name, group in strata.items() if group.evidence is None} == set(strata) - {"difficulty: medium"}


def test_synthesis_is_the_bottleneck_where_structure_is_right_and_facts_are_wrong() -> None:
    def answer(number: int, structure: bool, facts: bool) -> ScoredAnswer:
        return ScoredAnswer(f"q{number}", 0.8, {Correctness.STRUCTURAL: structure, Correctness.FACTS: facts})

    def report(retrieval: int, synthesis: int, right: int = 30):
        outcomes = [(False, False)] * retrieval + [(True, False)] * synthesis + [(True, True)] * right
        return calibrate(CalibrationAnswers("t", "s", {}, [answer(n, *each) for n, each in enumerate(outcomes)]), FEW)

    lost = report(2, 10)
    assert lost.diagnosis is Diagnosis.SYNTHESIS_BOTTLENECK
    assert lost.losses is not None
    assert (lost.losses.n, lost.losses.n_retrieval, lost.losses.n_synthesis) == (42, 2, 10)
    assert [found.kind for found in lost.calibrations] == [Correctness.FACTS, Correctness.STRUCTURAL]
    assert report(6, 6).diagnosis is not Diagnosis.SYNTHESIS_BOTTLENECK
    assert report(3, 8).diagnosis is not Diagnosis.SYNTHESIS_BOTTLENECK  # P(8 or more of 11) = .113
    assert report(0, 10, right=9).diagnosis is Diagnosis.INSUFFICIENT_DATA  # 19 answers
    assert calibrate(source([0.5], [True])).losses is None


TABLE = {
    "a.csv": "id,score,correct,area,note\nq1,0.9,true,x,1.5\nq2,,false,y,2\nq3,0.7,,x,3\nq4,.5,0,y,4\n",
    "a.json": json.dumps([
        {"query": "q1", "confidence": 0.9, "correct": True, "area": "x", "note": 1.5},
        {"query": "q2", "confidence": None, "correct": False, "area": "y"},
        {"query": "q3", "confidence": 0.7, "correct": None, "area": "x"},
        {"query": "q4", "confidence": 0.5, "correct": 0, "area": "y"},
    ]),
    "a.jsonl": '{"query_id": "q1", "score": 0.9, "correct": true, "area": "x"}\n{"query_id": "q2", "correct": 0, "area": "y"}\n'
    '{"query_id": "q3", "score": 0.7, "area": "x"}\n{"query_id": "q4", "score": 0.5, "correct": "no", "area": "y"}\n',
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_each_form_of_a_table_is_the_same_answers(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(TABLE[name])
    read = read_scored(tmp_path / name)
    assert [(answer.query_id, answer.score, answer.correct.get(Correctness.STATED)) for answer in read.answers] == [
        ("q1", 0.9, True), ("q2", None, False), ("q3", 0.7, None), ("q4", 0.5, False),
    ]  # fmt: skip
    assert [answer.strata for answer in read.answers] == [{"area": "x"}, {"area": "y"}] * 2
    (found,) = calibrate(read, CalibrationOptions(draws=9)).calibrations
    assert found.group.n == 2
    assert found.excluded == {Exclusion.NO_SCORE: ("q2",), Exclusion.NO_CORRECTNESS: ("q3",)}


def test_all_problems_of_a_table_are_reported_at_once(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("query,score,correct\nq1,87,true\nq2,high,maybe\n,0.5,true\nq4,0.5,true\nq4,-0.1,false\n")
    with pytest.raises(InputError) as caught:
        read_scored(path)
    assert [(problem.line, problem.message) for problem in caught.value.problems] == [
        (2, "the confidence of q1 is 87"),
        (3, "the confidence of q2 is not a number"),
        (3, "correct of q2"),
        (4, "the row has no query"),
        (6, "the confidence of q4 is -0.1"),
        (None, "query q4 has two rows"),
    ]
    with pytest.raises(InputError, match="no column for the score") as missing:
        read_scored(path, TableColumns(score="sure", correct="right"))
    assert len(missing.value.problems) == 2
    path.write_text("query,score,correct\n")
    with pytest.raises(InputError) as empty:
        read_scored(path)
    assert [problem.message for problem in empty.value.problems] == ["the table has no rows"]


def test_scored_answers_of_another_file_are_joined_by_query(tmp_path: Path) -> None:
    table, scored = tmp_path / "t.csv", tmp_path / "s.jsonl"
    table.write_text("query_id,score,structure_correct\nq1,0.9,true\nq2,0.4,true\n")
    scored.write_text('{"query_id": "q1", "facts_correct": true}\n{"query_id": "q3", "facts_correct": true}\n')
    joined = with_outcomes(read_scored(table), scored)
    structure, facts = {Correctness.STRUCTURAL: True}, {Correctness.FACTS: True}
    assert [answer.correct for answer in joined.answers] == [structure | facts, structure]
    assert joined.rules[Correctness.FACTS] == "facts_correct of s.jsonl"
    scored.write_text('{"query_id": "q1", "facts_correct": true, "structure_correct": false}\n')
    replaced = with_outcomes(read_scored(table), scored)  # two rules of structure are never mixed
    assert [answer.correct for answer in replaced.answers] == [{Correctness.STRUCTURAL: False} | facts, {}]
    scored.write_text('{"query_id": "other", "facts_correct": true}\n')
    with pytest.raises(InputError, match="no query of this file has an answer"):
        with_outcomes(read_scored(table), scored)


def test_what_cannot_be_calibrated_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"no answer has both a score and a correctness.*1 no score"):
        calibrate(CalibrationAnswers("t", "s", {}, [ScoredAnswer("q", None, {Correctness.STATED: True})]))
    with pytest.raises(UsageError, match="unknown stratum 'aria'"):
        calibrate(source([0.5], [True]), CalibrationOptions(by=["aria"]))
    with pytest.raises(UsageError, match=r"threshold is 80(.|\n)*target is nan"):
        CalibrationOptions(threshold=80, target=float("nan"))
