"""The evidence check of the rules that a config declares for every answer: broken and healthy runs."""

import pytest

from cranfield import Answer, Hit, Outcome, Run, TestSet, compare, evaluate
from cranfield.base.errors import UsageError
from cranfield.evaluation.evidence.checks import declared_rules
from cranfield.evaluation.options.blocks import Limits, as_setting
from cranfield.model import Query

N = 10
IDS = [f"q{number}" for number in range(N)]
TESTSET = TestSet("t", tuple(Query(one) for one in IDS), {one: {"d": 1} for one in IDS})
SEMANTIC, LEXICAL = {"mode": "semantic", "confidence": 0.9}, {"mode": "lexical", "confidence": 0.4}


def run_of(*rules, fields=(SEMANTIC,) * N, outcomes=(), name="new", hits=("d",)):
    outcomes = [*outcomes, *[Outcome.ANSWERED] * N][:N]
    answers = {
        one: Answer(outcome, () if outcome.is_failure else tuple(map(Hit, hits)), fields=dict(own))
        for one, own, outcome in zip(IDS, fields, outcomes, strict=True)
    }
    return Run(name, answers, depth=10, config={"preflight": [{"probe": "x"}, *({"every_answer": r} for r in rules)]})


def scored(run, **settings):
    limits = Limits(
        evidence={name.replace("_", "-"): as_setting(name.replace("_", "-"), value) for name, value in settings.items()}
    )
    return evaluate(TESTSET, run, measures=["RR"], limits=limits)


def findings(evaluation):
    return [finding for finding in evaluation.evidence if finding.check == "answer-rules"]


FALLEN_BACK = (*(SEMANTIC,) * 7, *(LEXICAL,) * 3)


@pytest.mark.parametrize(
    ("run", "sentences"),
    [
        # The service fell back to another mode after seven queries.
        (
            run_of("mode = semantic", fields=FALLEN_BACK),
            [
                '3 of 10 answers break the rule declared in the config for every answer, mode = semantic: q7 (mode is "lexical"), q8'
            ],
        ),
        # One answer.
        (
            run_of("mode = semantic", fields=(*(SEMANTIC,) * 9, LEXICAL)),
            ["1 of 10 answers breaks the rule declared in the config"],
        ),
        # Two rules, both broken.
        (
            run_of("mode = semantic", "confidence >= 0.5", fields=FALLEN_BACK),
            ["mode = semantic: q7", "confidence >= 0.5: q7 (confidence is 0.4)"],
        ),
        # The field is never stated.
        (run_of("mode = semantic", fields=({},) * N), ["10 of 10 answers break the rule", "(no field mode)"][:1]),
        # Failures are no answers: three of the five that came back break it.
        (
            run_of("mode = semantic", fields=FALLEN_BACK, outcomes=(Outcome.TIMEOUT,) * 5),
            ["3 of 5 answers break the rule"],
        ),
    ],
)
def test_broken_runs_are_void_with_their_queries(run, sentences):
    found = findings(scored(run))
    assert [finding.is_void for finding in found] == [True] * len(sentences)
    for finding, sentence in zip(found, sentences, strict=True):
        assert sentence in finding.sentence
        assert len(finding.query_ids) == finding.count


@pytest.mark.parametrize(
    "run",
    [
        run_of(),
        run_of("mode = semantic"),
        run_of("mode in semantic, hybrid"),
        run_of("mode != lexical"),
        run_of("mode exists"),
        run_of("confidence >= 0.9"),
        run_of("confidence > 0.5", "mode = semantic"),
        run_of(fields=FALLEN_BACK),  # no rule, no finding
        run_of("mode = semantic", outcomes=(Outcome.TIMEOUT,) * N, fields=({},) * N),  # counted by failed-queries
        run_of("mode = semantic", outcomes=(Outcome.EMPTY,) * N, fields=({},) * N, hits=()),
        Run("file", {one: Answer(Outcome.ANSWERED, (Hit("d"),)) for one in IDS}),
    ],
)
def test_healthy_runs_have_no_finding(run):
    assert findings(scored(run)) == []


def test_the_check_is_changed_by_its_name():
    run = run_of("mode = semantic", fields=FALLEN_BACK)
    assert findings(scored(run, answer_rules="off")) == []
    assert [finding.is_void for finding in findings(scored(run, answer_rules="caveat"))] == [False]
    assert findings(scored(run, answer_rules=0.3)) == []  # 3 of 10 is not more than .3
    assert len(findings(scored(run, answer_rules=0.29))) == 1


def test_a_comparison_with_a_broken_side_has_no_verdict():
    old, new = run_of("mode = semantic", name="old"), run_of("mode = semantic", fields=FALLEN_BACK)
    verdict = compare(scored(old), scored(new)).verdict
    assert verdict.name == "invalid"
    assert "new: 3 of 10 answers break the rule" in " ".join(verdict.reasons)
    assert compare(scored(old), scored(run_of("mode = semantic"))).verdict.name != "invalid"


def test_rules_are_read_from_the_configuration_of_the_run():
    assert [str(rule) for rule in declared_rules(run_of("mode = a", "mode = a", "b > 1").config)] == [
        "mode = a",
        "b > 1",
    ]
    assert (
        declared_rules({})
        == declared_rules({"preflight": None})
        == declared_rules({"preflight": ["x", {"file": "y"}]})
        == []
    )


def test_a_rule_that_cannot_be_read_is_an_error():
    with pytest.raises(UsageError, match="mode is semantic"):
        findings(scored(run_of("mode is semantic")))
