"""Weighted sums of measures over strata: their value, their contributions by query, their interval and their spelling."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import compare, compare_many, evaluate
from cranfield.base.errors import MeasureError, UsageError
from cranfield.evaluation.pairing import pair_values
from cranfield.measures import compute, deepest_cutoff, parse
from cranfield.measures.catalogue import measure_key
from cranfield.measures.families.composite import terms_of
from cranfield.measures.own import define, forget
from cranfield.model import Answer, Hit, Outcome, Query, Run, TestSet, convention_named
from cranfield.ranking import rank_run

SUM = "0.35 * RR[tier=hard] + 0.25 * RR[tier=easy] + 0.4 * nDCG@10"
TIERS = {"q1": "hard", "q2": "easy", "q3": "easy", "q4": "", "q5": "hard"}


def judged(tiers, grades=None):
    queries = tuple(Query(q, strata={"tier": tier} if tier else {}) for q, tier in tiers.items())
    return TestSet("set", queries, grades or {q: {"good": 1} for q in tiers})


def run_of(ranks):
    """Lists whose one relevant result is at a rank; 0: it was not returned."""
    lists = {q: [f"x{i}" for i in range(max(rank, 1))] for q, rank in ranks.items()}
    lists = {q: [*docs[:-1], "good"] if ranks[q] else docs for q, docs in lists.items()}
    return Run("run", {q: Answer(Outcome.ANSWERED, tuple(map(Hit, docs))) for q, docs in lists.items()})


def evaluated(spelling, ranks, tiers=None, name="run"):
    return evaluate(judged(tiers or TIERS), run_of(ranks), measures=[spelling], name=name)


def test_the_mean_of_the_contributions_is_the_weighted_sum_of_the_means_of_the_strata():
    # RR: hard 1/2 and 1, easy 1 and 0; nDCG@10 of one relevant result: 1/log2(rank + 1)
    found = evaluated(SUM, {"q1": 2, "q2": 1, "q3": 0, "q4": 4, "q5": 1})
    ndcg = [1 / math.log2(3), 1, 0, 1 / math.log2(5), 1]
    value = 0.35 * (1 / 2 + 1) / 2 + 0.25 * (1 + 0) / 2 + 0.4 * sum(ndcg) / 5
    assert found.mean(SUM) == pytest.approx(value, abs=1e-12)
    # 5 queries of which 2 are hard, 2 are easy and 5 have nDCG
    contributions = {
        "q1": 0.35 * 5 / 2 * 1 / 2 + 0.4 * ndcg[0],
        "q2": 0.25 * 5 / 2 * 1 + 0.4 * 1,
        "q3": 0.0,
        "q4": 0.4 * ndcg[3],
        "q5": 0.35 * 5 / 2 * 1 + 0.4 * 1,
    }
    assert {q: found.value(SUM, q) for q in TIERS} == pytest.approx(contributions, abs=1e-12)


def test_a_measure_of_one_stratum_is_its_mean_there_and_has_no_value_elsewhere():
    found = evaluated("RR[tier=hard]", {"q1": 2, "q2": 1, "q3": 0, "q4": 4, "q5": 1})
    assert {q: found.value("RR[tier=hard]", q) for q in TIERS} == {
        "q1": 1 / 2,
        "q2": None,
        "q3": None,
        "q4": None,
        "q5": 1.0,
    }
    assert set(next(iter(found.unscored.values())).values()) == {"it is in no stratum of the sum"}


def test_a_query_without_a_value_of_a_term_counts_in_the_others_alone():
    tiers = {"q1": "hard", "q2": "hard", "q3": "easy"}
    testset = judged(tiers, {"q1": {"good": 1}, "q2": {"good": 2}, "q3": {"good": 2}})
    spelling = "0.5 * R(only_grade=2)@1[tier=hard] + 0.5 * RR"
    found = evaluate(testset, run_of({"q1": 1, "q2": 2, "q3": 1}), measures=[spelling])
    # of the hard queries only q2 expects grade 2, and does not have it at rank 1
    assert found.mean(spelling) == pytest.approx(0.5 * 0 / 1 + 0.5 * (1 + 1 / 2 + 1) / 3)


def test_a_term_without_any_value_leaves_no_sum():
    spelling = "RR + R(only_grade=3)@5[tier=hard]"
    with pytest.raises(MeasureError, match=r"R\(only_grade=3\)@5\[tier=hard\] has no value for any query"):
        evaluated(spelling, dict.fromkeys(TIERS, 1))


def test_a_measure_whose_lower_values_are_better_has_a_negative_weight():
    about = {"title": "cost", "sentence": "Share of ten results.", "higher_is_better": False}
    define("Cost", lambda view: min(view.n_returned, 10) / 10, **about)
    try:
        spelling = "RR[tier=hard] - 0.5 * Cost"
        found = evaluated(spelling, {"q1": 2, "q2": 1, "q3": 0, "q4": 4, "q5": 1})
        # returned: 2, 1, 1, 4 and 1 results
        assert found.mean(spelling) == pytest.approx((1 / 2 + 1) / 2 - 0.5 * (2 + 1 + 1 + 4 + 1) / 10 / 5)
        assert str(parse("-0.5 * Cost + RR")) == "-0.5 * Cost + RR"
        with pytest.raises(MeasureError, match="lower is better for Cost; expected a weight under 0"):
            parse("RR + Cost")
    finally:
        forget("Cost")
    with pytest.raises(MeasureError, match="higher is better for P@5; expected a weight above 0"):
        parse("RR - 0.5 * P@5")


ranks = st.lists(st.integers(0, 4), min_size=6, max_size=12)
weights = st.lists(st.floats(0.01, 3), min_size=3, max_size=3)


@given(ranks, weights)
def test_the_mean_is_that_of_the_strata_for_all_lists_and_weights(places, weight):
    tiers = {f"q{i}": ("hard", "easy", "")[i % 3] for i in range(len(places))}
    lists = dict(zip(tiers, places, strict=True))
    spelling = f"{weight[0]} * RR[tier=hard] + {weight[1]} * Success@2[tier=easy] + {weight[2]} * nDCG@3"
    whole = evaluate(judged(tiers), run_of(lists), measures=[spelling, "RR", "Success@2", "nDCG@3"])

    def mean(measure, tier=None):
        return np.mean([whole.value(measure, q) for q, of in tiers.items() if tier in (None, of)])

    expected = weight[0] * mean("RR", "hard") + weight[1] * mean("Success@2", "easy") + weight[2] * mean("nDCG@3")
    assert whole.mean(parse(spelling)) == pytest.approx(expected, abs=1e-9)


def test_the_interval_is_that_of_a_stratified_mean():
    """Resampling within the strata has the same spread; strata that differ in their means alone have none."""
    rng = np.random.default_rng(5)
    tiers = {f"q{i}": "hard" if i % 5 == 0 else "easy" for i in range(200)}
    spelling = "0.6 * RR[tier=hard] + 0.4 * RR[tier=easy]"
    lists = {q: int(rng.integers(1, 6)) for q in tiers}
    found = evaluate(judged(tiers), run_of(lists), measures=[spelling, "RR"])
    groups = [np.array([found.value("RR", q) for q in tiers if tiers[q] == tier]) for tier in ("hard", "easy")]
    drawn = sum(
        w * rng.choice(group, (20_000, len(group))).mean(axis=1) for w, group in zip((0.6, 0.4), groups, strict=True)
    )
    summary = found.summaries[spelling]
    assert (summary.ci_high - summary.ci_low) / 2 == pytest.approx(
        2.0 * drawn.std(), rel=0.03
    )  # t of 54 degrees of freedom
    assert (summary.ci_high + summary.ci_low) / 2 == pytest.approx(summary.mean, abs=1e-12)
    assert (summary.median, summary.std, summary.total) == (None, None, None)
    flat = evaluated(spelling, {q: 1 if tier == "hard" else 2 for q, tier in tiers.items()}, tiers).summaries[spelling]
    assert (flat.mean, flat.ci_low, flat.ci_high) == pytest.approx((0.8, 0.8, 0.8))


def test_the_interval_stays_within_the_values_that_the_sum_can_have():
    tiers = dict.fromkeys(["q1", "q2", "q3", "q4"], "hard")
    summary = evaluated("2 * RR[tier=hard]", {"q1": 1, "q2": 1, "q3": 1, "q4": 4}, tiers).summaries["2 * RR[tier=hard]"]
    assert summary.ci_high == 2.0
    assert summary.ci_low > 0.0


def test_a_comparison_tests_the_contributions_and_has_no_breakdown():
    sides = [
        evaluated(SUM, {"q1": 2, "q2": 1, "q3": 0, "q4": 4, "q5": 1}, name="a"),
        evaluated(SUM, {"q1": 1, "q2": 1, "q3": 3, "q4": 4, "q5": 1}, name="b"),
    ]
    found = compare(*sides)
    about = found.measures[parse(SUM)]
    assert about.delta == pytest.approx(sides[1].mean(SUM) - sides[0].mean(SUM), abs=1e-12)
    assert about.n_nonzero == 2
    assert found.strata == ()
    assert compare_many([*sides, evaluated(SUM, dict.fromkeys(TIERS, 1), name="c")]).strata == ()
    with pytest.raises(UsageError, match="has no verdict by tier"):
        compare(*sides, strata="tier")


def test_pairs_are_those_of_an_evaluation_of_the_shared_queries():
    """A convention may leave queries out of one side: then the strata of both sides are those of the queries that are left."""
    answers = run_of({"q1": 2, "q2": 1, "q3": 3, "q4": 4, "q5": 1}).answers
    part = {q: answer for q, answer in answers.items() if q != "q1"}
    sides = [
        evaluate(judged(TIERS), Run("run", each), measures=[SUM], missing="skip", name=name)
        for name, each in (("a", answers), ("b", part))
    ]
    paired = pair_values(sides, parse(SUM))
    assert paired.query_ids == ("q2", "q3", "q4", "q5")
    assert paired.values[:, 0] == pytest.approx(paired.values[:, 1], abs=1e-12)
    assert paired.values[:, 1].mean() == pytest.approx(sides[1].mean(SUM), abs=1e-12)


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        (SUM, SUM),
        ("0.350*MRR[tier = hard]+.4 * ndcg_cut_10", "0.35 * RR[tier=hard] + 0.4 * nDCG@10"),
        ("1 * BestRR@10[kind='a, b']", "RR(only_best=True)@10[kind=a, b]"),
        ("r-precision + nDCG(gains={1: -3, 2: 9})@5", "Rprec + nDCG(gains={1: -3, 2: 9})@5"),
        ("RR[\"it's\"='x=y']", "RR[\"it's\"='x=y']"),
        ("RR[class=G]", "RR[class=G]"),
    ],
)
def test_one_spelling(text, spelling):
    measure = parse(text)
    assert (str(measure), parse(str(measure)), measure.canonical) == (spelling, measure, spelling)


def test_the_deepest_cutoff_is_that_of_a_term():
    assert parse("0.5 * R@50[tier=hard] + 0.2 * nDCG@10").depth == 50
    assert parse("0.5 * R@50[tier=hard] + AP").depth is None
    assert deepest_cutoff(["0.5 * R@50[tier=hard] + AP"]) == 50
    assert measure_key(parse("0.5 * RR[tier=hard]")) != measure_key(parse("0.5 * RR[tier=easy]"))


names = st.text(st.characters(exclude_characters='"[]'), min_size=1, max_size=6)
terms = st.tuples(st.floats(1e-9, 1e6), st.sampled_from(["RR", "P(rel=2)@5", "nDCG(gains={1: -3})"]), names, names)


@given(st.lists(terms, min_size=1, max_size=4))
def test_what_is_printed_is_read(rows):
    measure = parse(" + ".join(f'{weight!r} * {name}["{key}"="{value}"]' for weight, name, key, value in rows))
    assert parse(str(measure)) == measure
    assert [(term.weight, str(term.measure), term.key, term.value) for term in terms_of(measure)] == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "0 * RR + x * P@5[b]",
            "term 1 of '0 * RR + x * P@5[b]': the weight is '0'; expected a number above 0 and up to 1000000.",
        ),
        ("RR + x * P@5[b]", "term 2 of 'RR + x * P@5[b]': the stratum is 'b'; expected KEY=VALUE, as in [tier=hard]."),
        ("RR + 0.5 * RRR", "term 2 of 'RR + 0.5 * RRR': unknown measure 'RRR'"),
        ("RR + 0.5 * P", "term 2 of 'RR + 0.5 * P': P: has no cutoff"),
        ("RR + RankOfFirst", "RankOfFirst has values for other queries with each run"),
        ("RR + NumRel", "NumRel is no mean of a quality over queries"),
        ("RR + Judged@5", "Judged@5 is no mean of a quality over queries"),
        ("RR +", "term 2 of 'RR +': cannot read ''; expected WEIGHT * MEASURE[KEY=VALUE], as in"),
        ("Composite", "Composite is written as a sum; expected WEIGHT * MEASURE[KEY=VALUE]"),
    ],
)
def test_a_sum_that_is_none_says_which_term_is_wrong(text, message):
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert message in str(caught.value)


def test_a_stratum_that_the_test_set_does_not_have_is_named_with_those_it_has():
    with pytest.raises(MeasureError) as caught:
        evaluated("RR[tier=hrad] + P@1[level=1]", dict.fromkeys(TIERS, 1))
    assert [problem.expected for problem in caught.value.problems] == ["easy, hard", "tier"]
    assert "did you mean hard?" in str(caught.value.problems[0].hint)
    with pytest.raises(MeasureError, match="no query has strata; expected strata with tier: hard"):
        evaluated("RR[tier=hard]", {"q1": 1}, {"q1": ""})


@pytest.mark.parametrize("convention", ["ir_measures", "searchtweak"])
def test_a_convention_that_ranks_for_each_measure_has_no_sum(convention):
    ranking = rank_run(judged(TIERS), run_of(dict.fromkeys(TIERS, 1)), convention_named(convention))
    with pytest.raises(MeasureError, match=f"the convention {convention}, in which each measure has"):
        compute(parse(SUM), ranking)
