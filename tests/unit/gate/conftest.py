"""Small evaluations and baselines for the rules to look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from cranfield import Query, TestSet, evaluate
from cranfield.evaluation.values import Evaluation
from cranfield.gate.baseline import Baseline, baseline_of
from cranfield.gate.gate_input import GateInput
from cranfield.model import Answer, CallLog, Hit, Outcome, Run

Found = Callable[..., Evaluation]


@pytest.fixture
def found() -> Found:
    """`found(38, 100)`: one relevant document a query, first in the list of 38 queries, and not in that of the others."""

    def build(right: int, total: int) -> Evaluation:
        ids = [f"q{number:04}" for number in range(total)]
        testset = TestSet("t", tuple(Query(one) for one in ids), {one: {"d": 1} for one in ids})
        run = {one: ["d" if number < right else "x"] for number, one in enumerate(ids)}
        return evaluate(testset, run, measures=["Success@5", "RR"], name="new")

    return build


@pytest.fixture
def answered() -> Found:
    """`answered({"q1": "RN-"}, strata={"q1": {"difficulty": "easy"}})`: R is relevant, N is judged and not, - is unjudged,
    ! is a timeout and ? no answer at all; letters of a query that are relevant and not returned stand in `missed`."""

    def build(
        lists: Mapping[str, str],
        *,
        strata: Mapping[str, Mapping[str, str]] | None = None,
        missed: Mapping[str, int] | None = None,
        measures: Sequence[str] = ("RR", "P@1", "R@10"),
        latencies: Sequence[float] = (),
    ) -> Evaluation:
        grades, answers = {}, {}
        for query_id, letters in lists.items():
            graded = {f"{query_id}-{rank}": int(letter == "R") for rank, letter in enumerate(letters) if letter in "RN"}
            graded |= {f"{query_id}-missed{number}": 1 for number in range((missed or {}).get(query_id, 0))}
            grades[query_id] = graded or {f"{query_id}-other": 1}
            if letters == "!":
                answers[query_id] = Answer(Outcome.TIMEOUT, reason="too slow")
            elif letters != "?":
                hits = tuple(Hit(f"{query_id}-{rank}") for rank, letter in enumerate(letters) if letter in "RN-")
                answers[query_id] = Answer(Outcome.ANSWERED if hits else Outcome.EMPTY, hits)
        queries = tuple(Query(one, f"text of {one}", strata=dict((strata or {}).get(one, {}))) for one in lists)
        logs = {one: CallLog(ms) for one, ms in zip(lists, latencies, strict=False)}
        run = Run("new", answers, depth=10, logs=logs)
        return evaluate(TestSet("t", queries, grades), run, measures=list(measures), missing="zero")

    return build


@pytest.fixture
def accepted() -> Callable[..., Baseline]:
    """An evaluation as a baseline; with values of its own where they are given."""

    def build(evaluation: Evaluation, measure: str = "", values: Mapping[str, float] | None = None) -> Baseline:
        baseline = baseline_of(
            evaluation, k=10, accepted="2026-01-31", commit="c0ffee", reason="a start", config_digest="sha256:0"
        )
        if values is None:
            return baseline
        column = baseline.measures.index(measure)
        rows = {
            query_id: (*row[:column], values.get(query_id, row[column]), *row[column + 1 :])
            for query_id, row in baseline.values.items()
        }
        return replace(baseline, values=rows)

    return build


@pytest.fixture
def against() -> Callable[[Evaluation, Baseline | None], GateInput]:
    """An evaluation beside a baseline."""
    return lambda evaluation, baseline=None: GateInput(evaluation, baseline)
