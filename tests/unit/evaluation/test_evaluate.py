"""Summaries, warnings, and what is refused."""

import subprocess
import sys
from dataclasses import replace

import pytest

from cranfield import Answer, Hit, Outcome, Pattern, Query, Run, TestSet, compare, evaluate, parse
from cranfield.base.errors import MeasureError, NoCommonQueryError, NotEvaluatedError, UsageError
from cranfield.model import CONVENTIONS, Span

TWO = TestSet("two", (Query("q1"), Query("q2")), {"q1": {"a": 1}, "q2": {"b": 1}})


def test_a_summary_has_mean_median_spread_interval_and_n():
    # RR 1 and 0: mean .5, std sqrt(.5) = .7071, t interval .5 ± 12.7062 * .7071 / sqrt(2) = .5 ± 6.3531: beyond 0 to 1,
    # where no mean of RR can be
    summary = evaluate(TWO, {"q1": ["a"], "q2": ["x"]}, measures=["RR"]).summaries[parse("RR")]
    assert (summary.mean, summary.median, summary.n) == (0.5, 0.5, 2)
    assert summary.std == pytest.approx(0.70710678)
    assert (summary.ci_low, summary.ci_high) == (0.0, 1.0)


@pytest.mark.parametrize("spelling", ["RR@10", "MRR@10", "RR(rel=1)@10", parse("RR@10")])
def test_a_measure_is_found_by_every_spelling(spelling):
    evaluation = evaluate(TWO, {"q1": ["a"], "q2": ["x"]}, measures=["RR@10", "ndcg_cut_10"])
    assert evaluation.mean(spelling) == 0.5
    assert evaluation.value(spelling, "q1") == 1.0
    assert evaluation.summaries[spelling].n == 2
    assert spelling in evaluation.summaries
    assert evaluation.mean("nDCG@10") == evaluation.mean("ndcg_cut.10") == 0.5


def test_a_measure_that_was_not_evaluated_or_does_not_exist_is_refused():
    evaluation = evaluate(TWO, {"q1": ["a"], "q2": ["x"]}, measures=["RR@10"])
    with pytest.raises(UsageError, match=r"P@5 was not evaluated; expected RR@10\."):
        evaluation.mean("P@5")
    with pytest.raises(UsageError, match="unknown measure 'RRR'"):
        evaluation.value("RRR@10", "q1")
    assert evaluation["RR@10"] is evaluation["MRR@10"] is evaluation.summaries["RR@10"]
    for found in (evaluation, evaluation.summaries):
        with pytest.raises(NotEvaluatedError) as refused:
            found["R@20"]
        assert str(refused.value) == (
            "R@20 was not evaluated; expected RR@10.\nHint: evaluate with measures=['RR@10', 'R@20']."
        )
    assert isinstance(refused.value, KeyError)
    assert "P@5" not in evaluation.summaries
    assert evaluation.summaries.get("P@5") is None


def test_a_convention_is_given_by_name_or_as_a_value():
    run = {"q1": ["a"], "q2": ["x", "b"]}
    named = evaluate(TWO, run, measures=["RR"], convention="cupertino")
    given = evaluate(TWO, run, measures=["RR"], convention=CONVENTIONS["cupertino"])
    assert given.ranking.convention is named.ranking.convention
    strict = replace(CONVENTIONS["trec"], name="first only", rr_depth=1)
    assert evaluate(TWO, run, measures=["RR"], convention=strict).mean("RR") == 0.5
    with pytest.raises(UsageError, match="different conventions"):
        compare(named, evaluate(TWO, run, measures=["RR"], convention=strict))


def test_lists_keep_their_order_and_scores_sort():
    assert evaluate(TWO, {"q1": ["x", "a"], "q2": ["b"]}, measures=["RR"]).value(parse("RR"), "q1") == 0.5
    scored = evaluate(TWO, {"q1": {"x": 1, "a": 2}, "q2": {"b": 1}}, measures=["RR"])
    assert scored.value(parse("RR"), "q1") == 1.0


def test_failures_score_zero_and_are_named():
    answers = {
        "q1": Answer(Outcome.ANSWERED, (Hit("a"),)),
        "q2": Answer(Outcome.TIMEOUT, reason="no answer in 30 s"),
    }
    evaluation = evaluate(TWO, Run("r", answers), measures=["RR"])
    assert evaluation.failures == (("q2", "timeout", "no answer in 30 s"),)
    assert evaluation.summaries[parse("RR")].mean == 0.5


def test_what_a_reader_must_know_is_said():
    testset = TestSet("s", (Query("q1"), Query("q2")), {"q1": {"a": 1}, "q2": {"b": 0}})
    answers = {"q1": Answer(Outcome.ANSWERED, (Hit("a"), Hit("a"))), "zz": Answer(Outcome.ANSWERED, (Hit("a"),))}
    evaluation = evaluate(testset, Run("r", answers), measures=["RR"])
    assert list(evaluation.warnings) == [
        "queries of the run that are not in the test set, ignored: 1 (zz)",
        "judged, none relevant: 1 of 2 queries (counted as 0): q2",
        "not returned: no answer in the run for 1 of 2 queries (counted as 0): q2",
        "duplicate results dropped, the first of each kept: 1 in 1 of 2 queries",
    ]


def test_a_run_of_another_version_of_the_test_set_is_said():
    run = Run("r", {"q1": Answer(Outcome.EMPTY)}, testset_digest="sha256:other")
    assert "another version" in evaluate(TWO, run, measures=["RR"]).warnings[0]


EVERY = TestSet("p", (Query("q1"),), targets={"q1": (Pattern("^a", credit="every"),)})


def test_a_measure_asked_by_name_is_refused_where_no_query_allows_it():
    with pytest.raises(MeasureError) as caught:
        evaluate(EVERY, {"q1": ["a"]}, measures=["RR", "nDCG@10", "Judged@10"])
    assert [problem.message for problem in caught.value.problems] == [
        "nDCG@10 cannot be computed for any query: how many documents match its pattern is not known (expected_count)",
        "Judged@10 cannot be computed for any query: it is judged by a rule, so no result is unjudged",
    ]


def test_a_run_without_results_does_not_show_that_its_system_states_no_costs():
    (measure,) = evaluate(TWO, Run("r", {"q1": Answer(Outcome.EMPTY)}), measures=["TokensToHit"]).measures
    assert str(measure) == "TokensToHit"
    with pytest.raises(MeasureError, match="has no token counts for its results"):
        evaluate(TWO, {"q1": ["a"]}, measures=["TokensToHit"])


def test_by_default_such_a_measure_is_left_out_and_said():
    evaluation = evaluate(EVERY, {"q1": ["a"]})
    assert [str(measure) for measure in evaluation.measures] == ["RR@10", "P@5", "Success@5"]
    assert sum("is left out" in warning for warning in evaluation.warnings) == 4


def test_a_partly_unscored_measure_has_its_n_and_its_reason():
    testset = TestSet(
        "p", (Query("q1"), Query("q2")), targets={"q1": (Pattern("^a", credit="every"),), "q2": (Pattern("^b"),)}
    )
    evaluation = evaluate(testset, {"q1": ["a"], "q2": ["b"]}, measures=["AP"])
    assert evaluation.summaries[parse("AP")].n == 1
    assert evaluation.value(parse("AP"), "q1") is None
    assert "expected_count" in evaluation.unscored[parse("AP")]["q1"]
    assert "AP has no value for 1 of 2 queries" in evaluation.warnings[0]


def test_no_common_query_and_mixed_lists_are_errors():
    with pytest.raises(NoCommonQueryError):
        evaluate(TWO, {"zz": ["a"]})
    with pytest.raises(UsageError, match="mixes"):
        evaluate(TWO, {"q1": ["a"], "q2": {"b": 1.0}})
    with pytest.raises(UsageError, match="did you mean trec"):
        evaluate(TWO, {"q1": ["a"]}, convention="trek")


def test_evaluate_does_not_import_scipy():
    program = (
        "import sys, cranfield; from cranfield import Query, TestSet, evaluate;"
        "evaluate(TestSet('s', (Query('q'),), {'q': {'a': 1}}), {'q': ['a']});"
        "sys.exit(any(name.split('.')[0] == 'scipy' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_more_matches_of_a_pattern_than_expected_are_said():
    testset = TestSet("set", (Query("q"),), targets={"q": (Pattern("^a", credit="every", expected_count=2),)})
    evaluation = evaluate(testset, {"q": ["a1", "a2", "a3"]}, measures=["R@10"])
    assert evaluation.value(parse("R@10"), "q") == 1.5  # 3 of 2
    (warning,) = evaluation.warnings
    assert warning.startswith("more results match a pattern than its expected_count in 1 of 1 queries")
    assert warning.endswith("(R, AP and nDCG may exceed 1 there): q")
    assert evaluate(testset, {"q": ["a1", "a2"]}, measures=["R@10"]).warnings == ()


def test_grades_between_0_and_1_are_not_said_to_count_as_0_in_ndcg():
    testset = TestSet("set", (Query("q"),), {"q": {"a": 0.5}})
    evaluation = evaluate(testset, {"q": ["a"]}, measures=["nDCG@10", "RR"])
    assert [evaluation.value(measure, "q") for measure in evaluation.measures] == [1.0, 0.0]
    (warning,) = evaluation.warnings
    assert warning == "judged, none relevant: 1 of 1 queries (with a value in nDCG@10; counted as 0 in RR): q"


def test_a_text_is_no_list_of_ids():
    with pytest.raises(UsageError, match="the answer to query 'q' is not a list; expected a list of ids"):
        evaluate(TestSet("set", (Query("q"),), {"q": {"a": 1}}), {"q": "abc"})


def test_an_interval_is_not_cut_where_a_convention_lets_values_out_of_their_range() -> None:
    """Both spans' results are paid for one span, 1 + 1/log2(3) = 1.63 over 1; the other query has 0."""
    testset = TestSet("two", (Query("q1"), Query("q2")), targets={q: (Span("a", 1, 9),) for q in ("q1", "q2")})
    run = {"q1": ["a:1-5", "a:5-9"], "q2": ["b:1-2"]}
    evaluation = evaluate(testset, run, measures=["nDCG@10"], convention="octocode")
    assert evaluation.summaries[evaluation.measures[0]].ci_high > 1
