"""Identity is content: what changes a digest, and what does not."""

from dataclasses import replace

import pytest

from cranfield.model import Answer, CallLog, Hit, Outcome, Pattern, Query, Run, TestSet

TESTSET = TestSet("a", (Query("q1", "one"), Query("q2", "two")), {"q1": {"d": 1}}, {"q2": (Pattern("^x"),)})
RUN = Run("a", {"q1": Answer(Outcome.ANSWERED, (Hit("d", 1.0),)), "q2": Answer(Outcome.EMPTY)}, depth=10)


@pytest.mark.parametrize(
    "same",
    [
        replace(TESTSET, name="b", version="9", description="other words"),
        replace(TESTSET, queries=TESTSET.queries[::-1]),
        replace(TESTSET, grades={"q1": {"d": 1.0}}),
    ],
    ids=["name, version and description", "order of queries", "1 and 1.0"],
)
def test_what_does_not_change_a_test_sets_digest(same):
    assert same.digest == TESTSET.digest


@pytest.mark.parametrize(
    "other",
    [
        replace(TESTSET, queries=(Query("q1", "One"), Query("q2", "two"))),
        replace(TESTSET, queries=(Query("q1", "one", {"class": "A"}), Query("q2", "two"))),
        replace(TESTSET, queries=(Query("q1", "one", params={"v": 1}), Query("q2", "two"))),
        replace(TESTSET, grades={"q1": {"d": 2}}),
        replace(TESTSET, targets={"q2": (Pattern("^x", credit="every"),)}),
    ],
    ids=["text", "strata", "params", "grade", "credit"],
)
def test_what_changes_a_test_sets_digest(other):
    assert other.digest != TESTSET.digest


@pytest.mark.parametrize(
    "same",
    [
        replace(RUN, name="b", logs={"q1": CallLog(3.0)}, config={"command": ["x"]}),
        replace(RUN, answers=dict(reversed(RUN.answers.items()))),
    ],
    ids=["name, logs and config", "order of answers"],
)
def test_what_does_not_change_a_runs_digest(same):
    assert same.digest == RUN.digest


@pytest.mark.parametrize(
    "other",
    [
        replace(RUN, depth=5),
        replace(RUN, order="descending"),
        replace(RUN, answers={**RUN.answers, "q2": Answer(Outcome.TIMEOUT)}),
        replace(RUN, answers={**RUN.answers, "q1": Answer(Outcome.ANSWERED, (Hit("d", 2.0),))}),
    ],
    ids=["depth", "order", "outcome", "score"],
)
def test_what_changes_a_runs_digest(other):
    assert other.digest != RUN.digest
