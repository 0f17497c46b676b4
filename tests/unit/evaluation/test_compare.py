"""The verdict rule, the partitions, adjustment, and what is refused."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Answer, Hit, Limits, Outcome, Query, Run, TestSet, compare, evaluate, parse
from cranfield.base.errors import UsageError
from cranfield.evaluation.compare import BUCKETS, MOVES
from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.model import Judging, JudgingGuideline, Meta

RR = parse("RR")


def set_of(n, strata=None):
    queries = tuple(Query(f"q{i}", strata=strata(i) if strata else {}) for i in range(n))
    return TestSet("set", queries, {query.id: {"hit": 1} for query in queries})


def lists_of(ranks):
    """A list whose relevant document is at each rank; None: not there."""
    return {
        f"q{i}": [f"x{j}" for j in range(1, rank or 11)] + (["hit"] if rank else []) for i, rank in enumerate(ranks)
    }


def compared(before, after, *, measures=("RR",), strata=None, **options):
    testset = set_of(len(before), strata)
    sides = [
        evaluate(testset, lists_of(ranks), measures=measures, name=name)
        for name, ranks in (("old", before), ("new", after))
    ]
    return compare(*sides, **options)


def test_better_worse_and_no_significant_difference():
    assert compared([2] * 12, [1] * 12).verdict.name == "better"
    assert compared([1] * 12, [2] * 12).verdict.name == "worse"
    assert compared([1, 2] * 6, [2, 1] * 6).verdict.name == "no significant difference"


def test_a_constant_improvement_is_significant():
    result = compared([2] * 10, [1] * 10)
    assert result.measures[RR].delta == 0.5
    # exact: 2 of the 2**10 sign patterns are as far from zero
    assert result.measures[RR].tests["permutation"].p_two_sided == pytest.approx(2 / 2**10)


def test_identical_runs_have_no_significant_difference_and_equivalent_only_with_a_margin():
    same = [1, 2, 3, None, 1, 2] * 4
    plain = compared(same, same)
    assert plain.verdict.name == "no significant difference"
    (unchanged,) = plain.verdict.reasons
    (identical,) = plain.evidence
    assert (identical.check, identical.consequence, identical.count) == ("identical-runs", "caveat", 2)
    assert identical.sentence == (
        f"the runs of old and new are identical ({plain.baseline.run_digest[:19]}…): check that they come from different systems"
    )
    assert "no query differs" in unchanged
    assert compared(same, same, margin=0.01).verdict.name == "equivalent"


def test_equivalence_comes_before_better_and_keeps_the_direction():
    # 40 queries at rank 1; all 40 rise from rank 100 to 50: RR .01 to .02, difference .01 everywhere
    before, after = [100] * 40, [50] * 40
    assert compared(before, after).verdict.name == "better"
    within = compared(before, after, margin=0.02)
    assert within.verdict.name == "equivalent"
    assert "leaning better" in within.verdict.sentence


def test_the_margin_is_that_of_the_primary_measure_alone():
    result = compared([2] * 12, [1] * 12, measures=("RR", "P@1"), margin=0.1)
    assert "tost" in result.measures[RR].tests
    assert "tost" not in result.measures[parse("P@1")].tests


def test_the_sentence_can_be_pasted():
    assert compared([2] * 12, [1] * 12).verdict.sentence == (
        "new is better than old: RR 0.5000 to 1.0000, +0.5000 "
        "(95 % CI +0.5000 to +0.5000, p .0005, n = 12, permutation)."
    )


def test_an_interval_of_something_else_than_the_mean_says_of_what():
    sentence = compared([2] * 12 + [1] * 4, [1] * 16, test="wilcoxon").verdict.sentence
    assert sentence.endswith(
        "RR 0.6250 to 1.0000, mean difference +0.3750, Hodges-Lehmann estimate +0.5000 (95 % CI +0.5000 to +0.5000, p .0005, "
        "12 of 16 queries differ, wilcoxon)."
    )
    sentence = compared([2] * 12 + [1] * 4, [1] * 16, test="sign").verdict.sentence
    assert "median difference +0.5000 (95 % CI +0.5000 to +0.5000, p .0005, 12 of 16 queries differ, sign)" in sentence


@pytest.mark.parametrize("test", ["wilcoxon", "sign"])
def test_a_mean_outside_the_interval_has_its_reason(test):
    # 12 of 40 queries rise by 1/2: every non-zero difference is 1/2, and the mean of all 40 is .15.
    comparison = compared([2] * 12 + [1] * 28, [1] * 40, test=test)
    about = comparison.measures[comparison.primary]
    assert (about.estimate, about.ci_low, about.ci_high) == (0.5, 0.5, 0.5)
    assert about.delta == pytest.approx(0.15)
    assert about.mean_is_outside
    reason, *scipy = comparison.verdict.reasons
    if test == "wilcoxon":
        # All 12 sizes tie, at the mean rank 6.5: W+ = 78, its variance 12 * 6.5^2 / 4 = 126.75, so z = 39 / 11.258 = 3.4641,
        # and 2 (1 - Phi(3.4641)) = .000532. Exact: 2 / 2^12 = .000488.
        assert scipy == ["exact p; SciPy's normal approximation p .000532, one-sided .000266"]
    assert reason.startswith("the mean difference is +0.1500, outside the CI: the CI is of the ")


def test_a_declared_test_that_was_not_made_has_its_reason():
    # 5 of 8 queries differ, and Wilcoxon's test needs 6.
    comparison = compared([2] * 5 + [1] * 3, [1] * 8, test="wilcoxon")
    assert (
        "the Wilcoxon signed-rank test was not computed: too few non-zero pairs (n < 6)" in comparison.verdict.reasons
    )


def test_a_mean_that_points_the_other_way_is_in_the_reasons():
    # 16 queries rise a little (1/9 to 1/8), 3 fall from 1 to 0: most rise, and the mean falls.
    comparison = compared([9] * 16 + [1] * 3, [8] * 16 + [None] * 3, test="sign")
    assert comparison.verdict.name == "better"
    assert any("of the opposite sign to the median difference" in reason for reason in comparison.verdict.reasons)


@pytest.mark.parametrize("test", ["permutation", "wilcoxon", "t", "sign", "bootstrap"])
@pytest.mark.parametrize("seed", range(5))
def test_the_estimate_lies_in_its_interval(test, seed):
    draw = random.Random(seed)
    before, after = ([draw.randrange(1, 9) for _ in range(30)] for _ in range(2))
    for about in compared(before, after, test=test).measures.values():
        assert about.ci_low <= about.estimate <= about.ci_high
        assert about.estimate == about.tests[test].estimate


@pytest.mark.parametrize("test", ["permutation", "bootstrap"])
def test_draws_that_could_find_no_difference_make_the_verdict_invalid(test):
    before, after = [3, 4] * 20, [1, 2] * 20
    few, enough = (compared(before, after, test=test, draws=draws) for draws in (38, 40))
    assert few.verdict.name == "invalid"
    assert few.verdict.reasons == ("38 draws cannot give a p below 0.053, which is above alpha 0.05: use 40 draws",)
    assert enough.verdict.name != "invalid"
    # 20 queries or fewer are enumerated, whatever the draws.
    assert compared(before[:20], after[:20], draws=2).verdict.name == "better"


def test_too_few_queries_say_how_many_differ():
    comparison = compared([2] * 3 + [1] * 27, [1] * 30, test="wilcoxon")
    assert (
        "30 queries, of which 3 differ, are too few for a bounded interval at this alpha" in comparison.verdict.reasons
    )
    # 3 queries of 30 from RR 1/2 to 1: a mean of 28.5 / 30 becomes 1.
    assert comparison.verdict.sentence.endswith(
        "RR 0.9500 to 1.0000, mean difference +0.0500 (3 of 30 queries differ, wilcoxon)."
    )


def failing(n_failed, n=20):
    testset = set_of(n)
    answers = {
        f"q{i}": Answer(Outcome.TIMEOUT, reason="no answer in 1 s")
        if i < n_failed
        else Answer(Outcome.ANSWERED, (Hit("hit"),))
        for i in range(n)
    }
    good = {f"q{i}": Answer(Outcome.ANSWERED, (Hit("x"), Hit("hit"))) for i in range(n)}
    return (
        evaluate(testset, Run("good", good), measures=["RR"]),
        evaluate(testset, Run("flaky", answers), measures=["RR"]),
    )


def test_too_many_failures_make_it_invalid_whatever_the_numbers():
    good, flaky = failing(3)
    verdict = compare(good, flaky).verdict
    assert verdict.name == "invalid"
    assert verdict.reasons == (
        "flaky: 3 of 20 queries failed or have no answer (15.0 %): no answer in 1 s; the limit is 10.0 % (limits.max_failed_share)",
    )
    assert compare(good, flaky, limits=Limits(max_failed_share=0.15)).verdict.name != "invalid"
    assert compare(good, flaky, limits=Limits(max_failed_share=None)).verdict.name != "invalid"


def test_too_little_judged_makes_it_invalid():
    result = compared([2] * 12, [1] * 12, limits=Limits(min_judged_share=0.9))
    assert result.verdict.name == "invalid"
    assert "Judged@10 is 50.0 %" in result.verdict.reasons[0]


ranks = st.none() | st.integers(1, 12)


@given(st.lists(st.tuples(ranks, ranks), min_size=1, max_size=12))
def test_every_query_is_in_exclusive_keys_bucket_and_one_move(pairs):
    result = compared([a for a, _ in pairs], [b for _, b in pairs], measures=("nDCG@10",))
    for partition, names in ((result.buckets, BUCKETS), (result.moves, MOVES)):
        assert tuple(partition) == names
        placed = [query_id for queries in partition.values() for query_id in queries]
        assert sorted(placed) == sorted(f"q{i}" for i in range(len(pairs)))


@pytest.mark.parametrize(
    ("before", "after", "bucket", "move"),
    [
        (1, 1, "unchanged", "stayed at rank 1"),
        (2, 1, "improved", "moved to rank 1"),
        (1, 3, "worsened", "moved from rank 1"),
        (3, 2, "improved", "rose below rank 1"),
        (2, 3, "worsened", "fell below rank 1"),
        (4, 4, "unchanged", "same rank below 1"),
        (None, 1, "newly found", "moved to rank 1"),
        (None, 5, "newly found", "newly found below rank 1"),
        (1, None, "lost", "moved from rank 1"),
        (5, None, "lost", "lost from below rank 1"),
        (None, None, "never found", "never found"),
        # beyond the cutoff of the primary measure it is not found; the second partition looks at the whole list
        (12, 11, "never found", "rose below rank 1"),
        (12, 3, "newly found", "rose below rank 1"),
    ],
)
def test_where_a_query_falls(before, after, bucket, move):
    result = compared([before], [after], measures=("RR@10",))
    assert [name for name, queries in result.buckets.items() if queries] == [bucket]
    assert [name for name, queries in result.moves.items() if queries] == [move]


def test_failure_takes_precedence():
    good, flaky = failing(2)
    assert compare(good, flaky).buckets["failed in candidate"] == ("q0", "q1")
    assert compare(flaky, good).buckets["failed in baseline"] == ("q0", "q1")
    assert compare(flaky, flaky).buckets["failed in both"] == ("q0", "q1")


def test_the_declared_p_stands_and_the_others_are_adjusted():
    before = [2, 3, 1, 4, 2, None, 3, 2, 1, 5, 2, 3]
    after = [1, 2, 1, 2, 1, 4, 3, 1, 2, 2, 1, 1]
    result = compared(before, after, measures=("RR@10", "AP", "P@1", "nDCG@10"))
    declared = result.measures[parse("RR@10")].tests["permutation"]
    assert declared.p_adjusted == declared.p_two_sided
    others = [result.measures[parse(m)].tests["permutation"] for m in ("AP", "P@1", "nDCG@10")]
    smallest = min(others, key=lambda test: test.p_two_sided)
    # Holm over the three other measures: the smallest is multiplied by 3
    assert smallest.p_adjusted == pytest.approx(min(1.0, 3 * smallest.p_two_sided))


def test_measures_that_disagree_with_the_verdict_are_named():
    # RR rises on all; two more relevant documents leave the top ten: R@10 falls on all
    queries = tuple(Query(f"q{i}") for i in range(12))
    testset = TestSet("set", queries, {q.id: {"a": 1, "b": 1, "c": 1} for q in queries})
    old = evaluate(testset, {q.id: ["x", "a", "b", "c"] for q in queries}, measures=["RR", "R@10"], name="old")
    new = evaluate(testset, {q.id: ["a"] for q in queries}, measures=["RR", "R@10"], name="new")
    verdict = compare(old, new).verdict
    assert verdict.name == "better"
    assert verdict.disagreements[0].startswith("R@10: significantly worse (−0.6667")


def test_a_measure_where_less_is_better_agrees_when_it_falls():
    # the relevant document rises from rank 3 to rank 1: RR rises, the rank of the first falls by 2
    verdict = compared([3] * 12, [1] * 12, measures=("RR", "RankOfFirst")).verdict
    assert verdict.name == "better"
    assert verdict.disagreements == ()


def test_strata_have_their_own_n_means_and_interval():
    result = compared([2] * 6, [1, 1, 1, 2, 2, 2], strata=lambda i: {"class": "A" if i < 3 else "B"})
    rows = {(row.key, row.value): row for row in result.strata}
    assert rows["class", "A"].delta == 0.5
    assert rows["class", "B"].delta == 0.0
    assert rows["class", "A"].n == 3


def test_a_key_that_labels_each_query_is_no_stratum():
    result = compared([2] * 3, [1] * 3, strata=lambda i: {"class": "A", "note": f"only q{i}"})
    assert {row.key for row in result.strata} == {"class"}


def test_unanswered_queries_left_out_on_one_side_are_dropped_and_named():
    testset = set_of(3)
    a = evaluate(testset, {"q0": ["hit"], "q1": ["hit"]}, measures=["RR"], missing="skip", name="a")
    b = evaluate(testset, {"q1": ["hit"], "q2": ["hit"]}, measures=["RR"], missing="skip", name="b")
    result = compare(a, b)
    assert result.measures[RR].n == 1
    assert result.dropped == {"q0": "b has no answer for it", "q2": "a has no answer for it"}


def test_the_same_seed_gives_the_same_answer():
    before, after = [1, 2, 3, 4, 5] * 8, [2, 1, 3, 3, None] * 8
    first, second = (compared(before, after, seed=3) for _ in range(2))
    assert first.measures == second.measures
    assert math.isfinite(first.measures[RR].ci_low)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"primary": "AP"}, "primary measure AP was not evaluated on every system; expected one of RR."),
        ({"test": "mcnemar"}, "test mcnemar gives no confidence interval for the verdict"),
        ({"test": "permuttation"}, "unknown test 'permuttation'"),
        ({"alpha": 0}, "alpha is 0; expected a number between 0 and 1."),
        ({"alpha": 1e-17}, "alpha is 1e-17; expected 1e-12 or more"),
        ({"margin": -1}, "margin is -1; expected a number above 0"),
        ({"seed": -1}, "seed is -1"),
        (
            {"test": "wilcoxon", "margin": 0.1},
            "a margin applies to the mean difference, but test wilcoxon is about the",
        ),
    ],
)
def test_a_bad_option_says_so(options, message):
    with pytest.raises(UsageError) as caught:
        compared([1, 2], [2, 1], **options)
    assert message in str(caught.value)


def test_two_test_sets_or_conventions_are_not_compared():
    a = evaluate(set_of(2), lists_of([1, 1]), measures=["RR"])
    b = evaluate(set_of(3), lists_of([1, 1, 1]), measures=["RR"])
    with pytest.raises(UsageError, match="different test sets;"):
        compare(a, b)
    c = evaluate(set_of(2), lists_of([1, 1]), measures=["RR"], convention="cupertino")
    with pytest.raises(UsageError, match="different conventions"):
        compare(a, c)


def judged_by(guideline, n):
    judging = Judging("book", 1, "median", guidelines=(JudgingGuideline(1, guideline, n),))
    return replace(set_of(n), meta=Meta(judging=judging))


@pytest.mark.parametrize(
    ("guideline", "message"), [("b", "test sets, judged by different guidelines;"), ("a", "sets;")]
)
def test_figures_by_other_guidelines_are_not_compared_and_that_is_said(guideline, message):
    first, second = judged_by("a", 2), judged_by(guideline, 3)
    sides = [evaluate(each, lists_of([1] * len(each.queries)), measures=["RR"]) for each in (first, second)]
    with pytest.raises(UsageError, match=message):
        compare(*sides)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_very_few_queries_never_crash_and_decide_nothing(n):
    result = compared([2] * n, [1] * n)
    assert result.verdict.name == "no significant difference"


@pytest.mark.parametrize("alpha", [1e-12, 0.8, 0.95, 0.999999])
def test_an_alpha_beyond_the_usual_power_has_no_detectable_effect_and_no_crash(alpha):
    result = compared([1, 2, 3, 4] * 2, [2, 2, 1, 3] * 2, alpha=alpha)
    assert (result.measures[RR].mde is None) == (alpha >= 0.8)


def test_a_query_that_only_grades_under_1_move_is_improved_or_worsened():
    testset = TestSet("set", (Query("q1"), Query("q2"), Query("q3")), {f"q{i}": {"a": 0.5} for i in (1, 2, 3)})
    before = evaluate(testset, {"q1": ["x", "a"], "q2": ["a"], "q3": ["x"]}, measures=["nDCG@10"])
    after = evaluate(testset, {"q1": ["a"], "q2": ["x", "a"], "q3": ["x"]}, measures=["nDCG@10"])
    buckets = {name: ids for name, ids in compare(before, after).buckets.items() if ids}
    assert buckets == {"improved": ("q1",), "worsened": ("q2",), "never found": ("q3",)}


def test_a_judged_share_of_exactly_the_limit_is_within_it():
    # 8 of 10 results on each of 6 queries; six times 0.8 adds up to 4.799999999999999 in floats.
    ids = [f"q{number}" for number in range(6)]
    grades = {one: {f"d{rank}": 1 for rank in range(8)} for one in ids}
    testset = TestSet("t", tuple(Query(one) for one in ids), grades)
    one = evaluate(testset, {one: [f"d{rank}" for rank in range(10)] for one in ids}, measures=["nDCG@10"])
    assert inspect_systems([one], one.measures[0], Limits(max_failed_share=None, min_judged_share=0.8)) == ()
    assert len(inspect_systems([one], one.measures[0], Limits(max_failed_share=None, min_judged_share=0.81))) == 1
