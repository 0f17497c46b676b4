"""The verdict by class: the rule, who decides, who cannot, and the verdict of the mean."""

from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cranfield import Limits, Query, TestSet, compare, evaluate
from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.evaluation.many import compare_many
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.unseen import Caveat, CaveatKind
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.model import Negative
from cranfield.stats.stratified import stratified_t

BETTER, WORSE, MIXED = VerdictCode.BETTER, VerdictCode.WORSE, VerdictCode.MIXED
EQUIVALENT, OPEN = VerdictCode.EQUIVALENT, VerdictCode.NOT_SIGNIFICANT
UP, DOWN = (2, 1), (1, 2)
"""Rank of the relevant document on the baseline and on the candidate: RR +.5 and -.5."""
SAME, RISE = (1, 1), (100, 50)


def compared(groups, *, classes=(), negative=0, key="type", **options):
    """Two systems on queries with a stratum `type`; `groups` is its value to the ranks of its queries."""
    queries, before, after, judged = [], {}, {}, {}
    for group, ranks in groups.items():
        for place, (a, b) in enumerate(ranks):
            query_id = f"{group or 'none'}{place}"
            strata = {key: group} if group and group not in classes else {}
            queries.append(Query(query_id, strata=strata, query_class=group if group in classes else ""))
            before[query_id], after[query_id] = (
                [*(f"x{i}" for i in range(1, rank)), "hit"] if rank else ["x"] for rank in (a, b)
            )
            judged[query_id] = {"hit": 1}
    for place in range(negative):
        queries.append(Query(f"n{place}", negative=Negative()))
        before[f"n{place}"], after[f"n{place}"] = [], ["x"]
    testset = TestSet("set", tuple(queries), judged)
    sides = [evaluate(testset, run, measures=["RR"], name=name) for name, run in (("old", before), ("new", after))]
    return compare(*sides, **options)


def codes(result):
    return {row.label: row.code for row in result.by_class.rows}


@pytest.mark.parametrize(
    ("groups", "margin", "code", "pooled", "of_classes"),
    [
        # 12 of 12 up: p = 2 / 2^12
        ({"a": [UP] * 12, "b": [UP] * 12}, None, BETTER, BETTER, {"a": BETTER, "b": BETTER}),
        ({"a": [DOWN] * 12, "b": [SAME] * 6}, None, WORSE, WORSE, {"a": WORSE, "b": OPEN}),
        ({"a": [UP] * 30, "b": [DOWN] * 8}, None, MIXED, BETTER, {"a": BETTER, "b": WORSE}),
        ({"a": [UP] * 10, "b": [DOWN] * 10}, None, MIXED, OPEN, {"a": BETTER, "b": WORSE}),
        # 6 up in each of 3 classes: p = 2 / 2^6 = .031, over 3 classes .094; all 18: 2 / 2^18
        ({k: [UP] * 6 for k in "abc"}, None, OPEN, BETTER, dict.fromkeys("abc", OPEN)),
        # a is better by itself, and 40 queries that go both ways hide it
        ({"a": [UP] * 10, "b": [UP, DOWN] * 30 + [DOWN] * 6}, None, OPEN, OPEN, {"a": BETTER, "b": OPEN}),
        # b is worse, and the mean over all queries better, by queries of classes too small to decide
        (
            {"b": [DOWN] * 8, **{f"s{i}": [UP] * 5 for i in range(9)}},
            None,
            OPEN,
            BETTER,
            {"b": WORSE, **{f"s{i}": OPEN for i in range(9)}},
        ),
        ({"a": [SAME] * 8, "b": [SAME] * 8}, 0.1, EQUIVALENT, EQUIVALENT, dict.fromkeys("ab", EQUIVALENT)),
        # .01 on every query: within the margin as a mean, and a gain of each class
        ({"a": [RISE] * 20, "b": [RISE] * 20}, 0.02, EQUIVALENT, EQUIVALENT, dict.fromkeys("ab", EQUIVALENT)),
        # the mean is equivalent, and one class is not: its loss is larger than the margin
        (
            {"a": [SAME] * 100, "b": [DOWN] * 8},
            0.1,
            WORSE,
            EQUIVALENT,
            {"a": EQUIVALENT, "b": WORSE},
        ),
    ],
)
def test_the_rule(groups, margin, code, pooled, of_classes):
    result = compared(groups, strata="type", margin=margin)
    assert codes(result) == of_classes
    assert result.by_class.pooled is result.pooled_code is pooled
    assert result.verdict.code is code
    assert compared(groups, verdict="pooled", margin=margin).verdict.code is pooled
    assert (f"{pooled.text} (verdict: pooled)" in " ".join(result.verdict.reasons)) is (code is not pooled)


SWAPPED = {BETTER: WORSE, WORSE: BETTER}


@settings(max_examples=settings().max_examples // 2, deadline=None)
@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.sampled_from([UP, DOWN, SAME]), min_size=1, max_size=14)))
def test_better_and_worse_follow_the_rule_and_mirror_when_the_systems_are_swapped(groups):
    assume(len(groups) > 1 and any(len(ranks) > 1 for ranks in groups.values()))
    result = compared(groups, strata="type")
    mirrored = compared({k: [(b, a) for a, b in ranks] for k, ranks in groups.items()}, strata="type")
    assert mirrored.verdict.code is SWAPPED.get(result.verdict.code, result.verdict.code)
    found, low, high = set(codes(result).values()), result.by_class.overall.ci_low, result.by_class.overall.ci_high
    assert (result.verdict.code is MIXED) == (found >= {BETTER, WORSE})
    nothing_decides = result.by_class.n_tested == 0
    confirmed = {code: nothing_decides or found >= {code} for code in (BETTER, WORSE)}
    rises, falls = low is not None and low > 0, high is not None and high < 0
    assert (result.verdict.code is BETTER) == (confirmed[BETTER] and WORSE not in found and rises)
    assert (result.verdict.code is WORSE) == (confirmed[WORSE] and BETTER not in found and falls)


@pytest.mark.parametrize(
    ("groups", "lead"),
    [
        (
            {k: [UP] * 6 for k in "abc"},
            "No class confirms the difference between old and new. Of 3 classes, none better, none worse. Over all queries RR 0.5000",
        ),
        ({"b": [DOWN] * 8, **{f"s{i}": [UP] * 5 for i in range(9)}}, "No class confirms the difference between"),
        ({"a": [UP, DOWN] * 6, "b": [SAME] * 8}, "No significant difference between old and new. Of 2 classes"),
        (
            {"a": [UP] * 30, "b": [DOWN] * 8},
            "new against old is mixed: better in a, worse in b. Of 2 classes, 1 better (a), 1 worse (b). Over all queries RR",
        ),
    ],
)
def test_the_sentence_does_not_deny_the_interval_that_it_shows(groups, lead):
    assert compared(groups, strata="type").verdict.sentence.startswith(lead)


def test_p_is_adjusted_over_the_classes_that_have_enough_queries_to_decide():
    result = compared({"a": [UP] * 8, "b": [SAME] * 7, "c": [UP] * 5, "d": [UP]}, strata="type")
    rows = {row.label: row for row in result.by_class.rows}
    assert [label for label, row in rows.items() if row.can_decide] == ["a", "b"]
    assert result.by_class.n_tested == 2
    assert rows["a"].result.p_adjusted == pytest.approx(2 * 2 / 2**8)
    assert rows["c"].result.p_adjusted is None
    assert rows["d"].too_few == "1 query is too few for any p of 0.05 or less: 6 must differ, all in one direction"
    assert "too few queries to decide, fewer than 6: c, d" in result.verdict.reasons


def test_queries_without_the_stratum_are_a_class_of_their_own():
    result = compared({"a": [UP] * 8, "": [DOWN] * 8}, strata="type")
    assert codes(result) == {"a": BETTER, "": WORSE}
    assert result.verdict.code is MIXED
    assert "worse in queries without a class" in result.verdict.sentence


def test_query_classes_decide_by_their_own_measure_and_test_without_being_named():
    result = compared({"prose": [UP] * 8, "root": [DOWN] * 8, "": [SAME] * 8}, classes=("prose", "root"), negative=8)
    assert {row.label: (str(row.measure), row.test) for row in result.by_class.rows} == {
        "root": ("RR@10", "permutation"),
        "prose": ("nDCG@10", "permutation"),
        "negative": ("Silence", "mcnemar"),
        "": ("RR", "permutation"),
    }
    assert codes(result) == {"root": WORSE, "prose": BETTER, "negative": WORSE, "": OPEN}
    assert result.verdict.code is MIXED


@pytest.mark.parametrize("options", [{}, {"verdict": "pooled"}])
def test_negative_queries_beside_queries_without_a_class_are_a_line_and_no_class(options):
    result = compared({"": [UP] * 12}, negative=12, **options)
    assert result.measures[result.primary].n == 12
    assert (result.by_class, result.verdict.code) == (None, BETTER)
    assert "class" not in result.verdict.sentence
    # all 12 were silent, none is: McNemar's p is 2 / 2^12 = .0005
    (line,) = [reason for reason in result.verdict.reasons if "negative" in reason]
    assert line == ("negative queries, outside the verdict: Silence 1.0000 to 0.0000, worse (n = 12, p .0005, mcnemar)")
    assert not isinstance(line, Caveat), "a loss is a caveat"


def test_a_few_negative_queries_are_a_finding_without_a_test():
    (line,) = [each for each in compared({"": [UP] * 12}, negative=3).verdict.reasons if "negative" in each]
    assert line == (
        "negative queries, outside the verdict: Silence 1.0000 to 0.0000, no significant difference (n = 3, too few for a test)"
    )
    assert line.kind == (CaveatKind.FINDING,)
    assert any(
        "negative" in reason
        for reason in compared({"a": [UP] * 8, "b": [UP] * 8}, negative=3, strata="type").verdict.reasons
    )


def test_one_class_is_the_pooled_verdict():
    assert compared({"a": [UP] * 12}).by_class is None
    assert compared({"prose": [UP] * 12}, classes=("prose",)).by_class is None
    named = compared({"a": [UP] * 12}, strata="type")
    assert (named.by_class, named.verdict.code) == (None, BETTER)
    assert "every query has the same type: the mean over all queries decides" in named.verdict.reasons


def test_a_comparison_that_does_not_count_has_no_verdict_of_any_class():
    result = compared({"a": [UP] * 12, "b": [UP] * 12}, strata="type", limits=Limits(min_judged_share=1))
    assert (result.by_class, result.verdict.code) == (None, VerdictCode.INVALID)


def test_classes_that_fall_without_significance_are_named_in_the_sentence():
    groups = {"a": [UP] * 12, "b": [DOWN] * 3, "c": [DOWN] * 3 + [SAME] * 8}
    result = compared(groups, strata="type")
    assert [row.label for row in result.by_class.falling] == ["b", "c"]
    assert (
        ". Of 3 classes, 1 better (a), none worse; 2 lower without significance (b, c). Over" in result.verdict.sentence
    )


def test_where_less_is_better_a_rise_of_the_measure_is_a_fall_of_the_class():
    queries = tuple(Query(f"{k}{i}", strata={"type": k}) for k, i in product("ab", range(8)))
    testset = TestSet("set", queries, {q.id: {"hit": 1} for q in queries})
    runs = [{q.id: [*(["x"] * 0), *(f"x{i}" for i in range(n)), "hit"] for q in queries} for n in (1, 3)]
    sides = [evaluate(testset, run, measures=["RankOfFirst"], name=name) for name, run in zip("ab", runs, strict=True)]
    result = compare(*sides, strata="type")
    assert set(codes(result).values()) == {WORSE}
    assert {row.move for row in result.by_class.rows} == {"falls"}
    assert result.verdict.code is WORSE


def test_the_declared_t_test_takes_its_error_within_classes():
    groups = {"a": [UP, UP, SAME] * 4, "b": [SAME, DOWN, SAME] * 4}
    result = compared(groups, strata="type", test="t")
    about = result.measures[result.primary]
    labels = [query_id[0] for query_id in about.differences]
    expected = stratified_t(list(about.differences.values()), labels)
    assert (about.ci_low, about.ci_high) == (expected.ci_low, expected.ci_high)
    assert about.tests["t"].p_two_sided == result.by_class.overall.p_two_sided == expected.p_two_sided
    assert f"{expected.ci_low:+.4f}".replace("-", "−") in result.verdict.sentence
    assert "within classes" in about.interval_method
    assert compared(groups, verdict="pooled", test="t").measures[result.primary].ci_low < expected.ci_low


@pytest.mark.parametrize("test", ["wilcoxon", "sign", "bootstrap"])
def test_every_test_that_can_be_declared_decides_the_classes(test):
    result = compared({"a": [UP] * 12, "b": [DOWN] * 12}, strata="type", test=test)
    assert codes(result) == {"a": BETTER, "b": WORSE}


def test_a_class_whose_test_has_no_p_does_not_decide_and_says_why():
    result = compared({"a": [UP] * 12, "b": [DOWN] * 3 + [SAME] * 9}, strata="type", test="wilcoxon")
    assert [row.can_decide for row in result.by_class.rows] == [True, False]
    assert "too few queries that differ for the wilcoxon test: b" in result.verdict.reasons
    assert not any("fewer than 6" in reason for reason in result.verdict.reasons)


def test_a_class_shows_the_estimate_that_its_interval_is_about():
    # differences of a: .5 six times, -.9 and -.9: mean .15, median of the eight .5; b: -.5 and 0
    ranks = {"a": [UP] * 7 + [(1, 10)] * 3, "b": [DOWN] * 4 + [SAME] * 8}
    row = compared(ranks, strata="type", test="sign").by_class.rows[0]
    assert row.delta == pytest.approx((7 * 0.5 - 3 * 0.9) / 10)
    assert row.shown == row.estimate == pytest.approx(0.5)
    assert row.ci_low <= row.shown <= row.ci_high
    assert row.move == "rises"
    mean = compared(ranks, strata="type").by_class.rows[0]
    assert (mean.shown, mean.estimate) == (mean.delta, None)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"strata": "typ"}, UnknownNameError, "did you mean type"),
        ({"strata": "id"}, UsageError, "a different value for each query"),
        ({"strata": "type", "verdict": "pooled"}, UsageError, "leave one of them out"),
        ({"verdict": "poled"}, UsageError, "did you mean pooled"),
    ],
)
def test_what_cannot_decide_is_refused(options, error, message):
    queries = tuple(Query(f"q{i}", strata={"type": "a", "id": str(i)}) for i in range(8))
    testset = TestSet("set", queries, {q.id: {"hit": 1} for q in queries})
    sides = [evaluate(testset, {q.id: ["hit"] for q in queries}, measures=["RR"], name=name) for name in "ab"]
    with pytest.raises(error, match=message):
        compare(*sides, **options)


def test_of_three_systems_one_mean_decides_and_a_reason_names_the_classes_in_which_the_best_is_not_first():
    queries = tuple(Query(f"{k}{i}", strata={"type": k}) for k, n in (("a", 20), ("b", 8)) for i in range(n))
    testset = TestSet("set", queries, {q.id: {"hit": 1} for q in queries})
    ranks = {"x": {"a": 4, "b": 1}, "y": {"a": 1, "b": 2}, "z": {"a": 5, "b": 3}}
    runs = {n: {q.id: [*(f"x{i}" for i in range(1, of[q.id[0]])), "hit"] for q in queries} for n, of in ranks.items()}
    sides = [evaluate(testset, run, measures=["RR"], name=name) for name, run in runs.items()]
    note = "the mean over all queries decides here; compare two of the systems for a verdict by class"
    options = CompareOptions(strata="type", draws=2000)
    found = compare_many(sides, options).verdict
    assert found.best == ("y",)
    assert f"{note} (y is not first in 1 of 2 classes: b)" in found.reasons
    assert not any(note in reason for reason in compare_many(sides, CompareOptions(draws=2000)).verdict.reasons)
    alike = [evaluate(testset, runs["y"], measures=["RR"], name=name) for name in "xyz"]
    assert note in compare_many(alike, options).verdict.reasons


def test_a_class_that_differs_alone_is_in_the_lead_of_the_sentence():
    result = compared({"a": [DOWN] * 10, "b": [UP, DOWN] * 30 + [UP] * 6}, strata="type")
    assert (codes(result), result.verdict.code) == ({"a": WORSE, "b": OPEN}, OPEN)
    lead = "No significant difference between old and new over all queries, but new is worse in a. Of 2"
    assert result.verdict.sentence.startswith(lead)


def test_what_agrees_with_the_test_over_all_queries_is_no_disagreement():
    gain = {"a": [UP] * 12, "b": [SAME] * 100}
    within = compared(gain, strata="type", margin=0.15)
    assert (within.by_class.pooled, within.verdict.code) == (EQUIVALENT, BETTER)
    assert within.verdict.disagreements == ()
    mixed = compared({"a": [UP] * 30, "b": [DOWN] * 8}, strata="type")
    assert (mixed.verdict.code, mixed.verdict.disagreements) == (MIXED, ())
    assert compared({k: [UP] * 6 for k in "abc"}, strata="type").verdict.disagreements == ()
    assert compared(gain, verdict="pooled", margin=0.15).verdict.disagreements != ()


@pytest.mark.parametrize(("ranks", "code"), [(DOWN, VerdictCode.WORSE), (UP, VerdictCode.BETTER)])
def test_where_no_class_can_decide_the_test_over_all_queries_does(ranks, code):
    result = compared({group: [ranks] * 4 for group in "abcdefgh"}, strata="type")
    assert (result.by_class.n_tested, result.verdict.code) == (0, code)
    assert "no class has enough queries to decide: the test over all queries decides" in result.verdict.reasons
