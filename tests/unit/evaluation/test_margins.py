"""How far a value could move, held to every assignment and every order of small cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield.evaluation.margins import (
    BETWEEN,
    FALLING_GAINS,
    MAX_UNJUDGED,
    RISES_WITH_RANK,
    bounds,
    tie_bounds,
    unjudged_margin,
    why_unbounded,
    why_untied,
)
from cranfield.measures import CATALOGUE, compute, parse
from cranfield.model import CONVENTIONS, Answer, Hit, Outcome, Pattern, Query, Run, TestSet
from cranfield.ranking import rank_run
from cranfield.ranking.value import (
    best_case,
    n_judged_tied,
    only_queries,
    ties_reversed,
    unjudged_results,
    worst_case,
)

TREC = CONVENTIONS["trec"]
DOCUMENTS = [f"d{i}" for i in range(9)]
WITHOUT_A_CUTOFF = [name for name in sorted(RISES_WITH_RANK) if CATALOGUE[name].cutoff != "required"]
WITH_A_CUTOFF = [f"{name}@3" for name in sorted(RISES_WITH_RANK) if CATALOGUE[name].cutoff != "none"]
WITH_PARAMETERS = [
    "nDCG(dcg='exp-log2')@3",
    "nDCG(gains={1: 5, 2: 2})@4",
    "nDCG(judged_only=True)@3",
    "AP(rel=2)",
    "P(judged_only=True)@3",
]
UNDER_TREC = [(spelling, "trec") for spelling in WITH_A_CUTOFF + WITH_PARAMETERS]
UNDER_TREC += [
    pytest.param(
        name, "trec", marks=[] if CATALOGUE[name].cutoff == "none" or name in {"AP", "nDCG"} else pytest.mark.slow
    )
    for name in WITHOUT_A_CUTOFF
]
"""In the fast run most measures have a cutoff alone, which takes the same way and one step more."""
DIFFERENT = ["nDCG@3", "AP@3", "P@3", "RR@3"]
"""What the conventions change."""
OTHERS = ("quepid", "opensearch", "ir_measures")
UNDER_OTHERS = [(spelling, convention) for convention in OTHERS for spelling in DIFFERENT]
UNDER_OTHERS += [("R@3", "octocode"), ("nDCG@3", "cupertino"), ("nDCG@3", "octocode")]
UNDER_SEARCHTWEAK = [(spelling, "searchtweak") for spelling in DIFFERENT]
few = settings(max_examples=min(40, settings().max_examples // 3))


def ranking_of(grades, scores, convention=TREC, depth=None):
    """One query; equal scores tie."""
    hits = tuple(Hit(doc_id, score) for doc_id, score in scores.items())
    run = Run("run", {"q": Answer(Outcome.ANSWERED, hits)}, depth=depth, order="descending")
    return rank_run(TestSet("set", (Query("q"),), {"q": grades}), run, convention)


def value(measure, ranking):
    values, scored, _ = compute(measure, ranking)
    return float(values[0]) if scored[0] else None


def spread(found):
    known = [one for one in found if one is not None]
    return (min(known), max(known)) if known else (np.nan, np.nan)


grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-1, 2), min_size=1, max_size=6)
lists = st.lists(st.sampled_from(DOCUMENTS), unique=True, min_size=1, max_size=6)


@pytest.mark.parametrize(("spelling", "convention"), UNDER_TREC + UNDER_OTHERS + UNDER_SEARCHTWEAK)
@few
@given(grades=grades, docs=lists)
def test_bounds_are_the_extremes_of_every_assignment(spelling, convention, grades, docs):
    measure, rules = parse(spelling), CONVENTIONS[convention]
    scores = {doc_id: -float(place) for place, doc_id in enumerate(docs)}
    shown = docs if measure.cutoff is None else docs[: measure.cutoff]
    unjudged = [doc_id for doc_id in shown if grades.get(doc_id, -1) < 0]
    ranking = ranking_of(grades, scores, rules)
    levels = range((max(*grades.values(), 0) or 1) + 1)
    found = [
        value(measure, ranking_of(grades | dict(zip(unjudged, chosen, strict=True)), scores, rules))
        for chosen in itertools.product(levels, repeat=len(unjudged))
    ]
    low, high = bounds(measure, ranking)
    if np.isnan(low[0]) and (why := unjudged_margin(measure, ranking).why):
        assert why in {BETWEEN, FALLING_GAINS}
        assert len(levels) == 3
        return
    assert (low[0], high[0]) == pytest.approx(spread(found), abs=1e-12, nan_ok=True)


def test_bounds_by_hand():
    # a relevant, u and v unjudged, R = 1. P@3 is 1/3 at least, 3/3 at most.
    ranking = ranking_of({"a": 1}, {"u": 3.0, "a": 2.0, "v": 1.0})
    assert [float(end[0]) for end in bounds(parse("P@3"), ranking)] == pytest.approx([1 / 3, 1.0])
    # AP: as it is 1/2; v alone (1/2 + 2/3) / 2 = .583; u alone (1/1 + 2/2) / 2 = 1
    assert [float(end[0]) for end in bounds(parse("AP"), ranking)] == pytest.approx([1 / 2, 1.0])
    # the best one need not be the one with most relevant: of AP with a gap after rank 1, one relevant result at rank 1
    # gives 1/1 of 1; with rank 4 too (1 + 2/4) / 2
    gap = ranking_of({"n": 0, "m": 0}, {"u": 4.0, "n": 3.0, "m": 2.0, "v": 1.0})
    assert float(bounds(parse("AP"), gap)[1][0]) == 1.0


def test_a_query_judged_by_patterns_has_its_value_for_both_bounds():
    testset = TestSet("set", (Query("p"), Query("q")), {"q": {"a": 1}}, {"p": (Pattern("^a"),)})
    answer = Answer(Outcome.ANSWERED, (Hit("x"), Hit("a"), Hit("y")))
    ranking = rank_run(testset, Run("run", {"p": answer, "q": answer}), TREC)
    low, high = bounds(parse("P@3"), ranking)
    assert low.tolist() == pytest.approx([1 / 3, 1 / 3])
    assert high.tolist() == pytest.approx([1 / 3, 3 / 3])


@pytest.mark.parametrize("name", sorted(set(CATALOGUE) - RISES_WITH_RANK))
def test_where_the_argument_does_not_hold_there_are_no_bounds(name):
    spec = CATALOGUE[name]
    cutoff = 3 if spec.cutoff_kind == "rank" else 0.5
    of_others = "RR + P@3" if spec.composed is not None else ""
    measure = parse(of_others or (name if spec.cutoff != "required" else f"{name}@{cutoff}"))
    ranking = ranking_of({"a": 1}, {"u": 3.0, "a": 3.0})
    assert why_unbounded(measure, ranking)
    assert np.isnan(bounds(measure, ranking)).all()
    assert np.isnan(tie_bounds(measure, ranking)).all()


@pytest.mark.parametrize("gains", ["{0: 1}", "{1: -1}", "{-1: 2}"])
def test_gains_under_which_the_argument_fails_have_no_bounds(gains):
    measure = parse(f"nDCG(gains={gains})@3")
    ranking = ranking_of({"a": 1, "n": 0}, {"u": 3.0, "a": 2.0})
    assert "gains" in why_unbounded(measure, ranking)
    assert np.isnan(bounds(measure, ranking)).all()


def test_too_many_unjudged_results_have_no_bounds_and_their_neighbours_have():
    testset = TestSet("set", (Query("long"), Query("short")), {"long": {"a": 1}, "short": {"a": 1}})
    long = tuple(Hit(f"x{i}") for i in range(MAX_UNJUDGED + 1))
    answers = {"long": Answer(Outcome.ANSWERED, long), "short": Answer(Outcome.ANSWERED, (Hit("u"), Hit("a")))}
    ranking = rank_run(testset, Run("run", answers), TREC)
    low, high = bounds(parse("RR"), ranking)
    assert (np.isnan(low).tolist(), np.isnan(high).tolist()) == ([True, False], [True, False])
    assert (low[1], high[1]) == (0.5, 1.0)
    assert not np.isnan(bounds(parse("RR@10"), ranking)).any()


def test_bounds_of_many_queries_are_those_of_each(monkeypatch):
    monkeypatch.setattr("cranfield.evaluation.margins.ROWS_AT_A_TIME", 50)
    rng = np.random.default_rng(5)
    queries = [f"q{i}" for i in range(30)]
    judged = {q: {f"d{d}": int(rng.integers(-1, 4)) for d in rng.choice(40, 12, replace=False)} for q in queries}
    answers = {
        q: Answer(
            Outcome.ANSWERED, tuple(Hit(f"d{d}") for d in rng.choice(40, int(rng.integers(1, 20)), replace=False))
        )
        for q in queries
    }
    ranking = rank_run(TestSet("set", tuple(map(Query, queries)), judged), Run("run", answers), TREC)
    for spelling in ("nDCG@10", "AP", "P@5"):
        low, high = bounds(parse(spelling), ranking)
        values, _, _ = compute(parse(spelling), ranking)
        assert ((low <= values + 1e-12) & (values <= high + 1e-12)).all()
        for place in (0, 7, 29):
            alone = only_queries(ranking, np.arange(30) == place)
            if alone.expected_level.max() == ranking.expected_level.max():
                assert [float(end[0]) for end in bounds(parse(spelling), alone)] == [low[place], high[place]]


@given(grades=grades, docs=lists)
def test_unjudged_results_are_those_without_a_grade_of_0_or_more(grades, docs):
    ranking = ranking_of(grades, {doc_id: -float(place) for place, doc_id in enumerate(docs)})
    query, rank = unjudged_results(ranking, None)
    assert query.tolist() == [0] * len(query)
    assert rank.tolist() == [place for place, d in enumerate(docs, start=1) if grades.get(d, -1) < 0]


def orders(scores):
    """Every list that sorting by score allows."""
    tied = [
        [doc_id for doc_id, _ in group]
        for _, group in itertools.groupby(sorted(scores.items(), key=lambda pair: -pair[1]), key=lambda pair: pair[1])
    ]
    for chosen in itertools.product(*(itertools.permutations(group) for group in tied)):
        yield list(itertools.chain.from_iterable(chosen))


tied_scores = st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from([1.0, 2.0, 3.0]), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("spelling", "convention"), [*UNDER_TREC, *UNDER_OTHERS, ("nDCG", "searchtweak"), ("AP", "searchtweak")]
)
@few
@given(grades=grades, scores=tied_scores)
def test_best_and_worst_case_are_the_extremes_of_every_order_of_equal_scores(spelling, convention, grades, scores):
    measure, rules = parse(spelling), CONVENTIONS[convention]
    found = [
        value(measure, ranking_of(grades, {d: -float(place) for place, d in enumerate(order)}, rules))
        for order in orders(scores)
    ]
    low, high = tie_bounds(measure, ranking_of(grades, scores, rules))
    assert (low[0], high[0]) == pytest.approx(spread(found), abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("spelling", DIFFERENT)
def test_what_divides_by_the_results_within_the_cutoff_has_no_best_case(spelling):
    # a and n tie; nDCG@1 of the results re-sorted is 1 or 0 with a first, and 0 of 0 with n first
    ranking = ranking_of({"a": 1, "n": 0}, {"a": 1.0, "n": 1.0}, CONVENTIONS["searchtweak"])
    assert "order" in why_untied(parse(spelling), ranking)
    assert np.isnan(tie_bounds(parse(spelling), ranking)).all()


def rows(ranking):
    return list(zip(ranking.rank.tolist(), ranking.level.tolist(), strict=True))


def test_within_a_tie_judged_results_go_first_by_gain_or_last():
    # ranks 1 to 5 tie: u and v unjudged, n judged 0, a 1, b 2; then c alone
    ranking = ranking_of({"n": 0, "a": 1, "b": 2, "c": 1}, dict.fromkeys("uvnab", 2.0) | {"c": 1.0})
    assert rows(ranking) == [(3, 0), (4, 2), (5, 1), (6, 1)]  # v u n b a c
    assert rows(best_case(ranking)) == [(1, 2), (2, 1), (3, 0), (6, 1)]
    assert rows(worst_case(ranking)) == [(3, 0), (4, 1), (5, 2), (6, 1)]
    assert n_judged_tied(ranking).tolist() == [3]
    assert n_judged_tied(best_case(ranking)).tolist() == [0]  # settled


def test_a_pooled_result_is_not_counted_among_the_judged_ones_that_tie():
    ranking = ranking_of({"p": -1, "a": 1}, {"p": 1.0, "a": 1.0, "x": 1.0})
    assert n_judged_tied(ranking).tolist() == [1]


def test_what_a_tie_pushes_below_the_depth_leaves_the_list():
    # four tie, two are kept: d and c by descending id, c relevant at rank 2. It could have been at rank 3 or 4.
    ranking = ranking_of({"c": 1}, dict.fromkeys("abcd", 1.0), depth=2)
    assert rows(ranking) == [(2, 1)]
    assert rows(best_case(ranking)) == [(1, 1)]
    assert rows(worst_case(ranking)) == []
    assert [float(end[0]) for end in tie_bounds(parse("RR"), ranking)] == [0.0, 1.0]


def test_gains_decide_what_is_best_in_a_tie():
    # grade 1 is worth 5 and grade 2 is worth 2: best 5 + 2/log2(3), worst 2 + 5/log2(3), over the best
    ranking = ranking_of({"a": 1, "b": 2}, {"a": 1.0, "b": 1.0})
    best, worst = 5 + 2 / np.log2(3), 2 + 5 / np.log2(3)
    ends = [float(end[0]) for end in tie_bounds(parse("nDCG(gains={1: 5, 2: 2})@2"), ranking)]
    assert ends == pytest.approx([worst / best, 1.0])


@given(grades=grades, scores=tied_scores)
def test_ties_reversed_are_ties_by_ascending_id(grades, scores):
    ascending = {d: (score, DOCUMENTS.index(d)) for d, score in scores.items()}
    order = sorted(scores, key=lambda d: (-ascending[d][0], ascending[d][1]))
    expected = ranking_of(grades, {d: -float(place) for place, d in enumerate(order)})
    assert rows(ties_reversed(ranking_of(grades, scores))) == rows(expected)


def test_without_a_tie_best_and_worst_are_the_value():
    ranking = ranking_of({"a": 1}, {"x": 2.0, "a": 1.0})
    assert [end.tolist() for end in tie_bounds(parse("RR"), ranking)] == [[0.5], [0.5]]


def test_a_grade_between_gives_ndcg_its_highest_value_and_other_measures_have_no_bounds():
    run = Run("run", {"q": Answer(Outcome.ANSWERED, (Hit("n"), Hit("a"), Hit("u"))), "p": Answer(Outcome.ANSWERED, ())})
    testset = TestSet("set", (Query("q"), Query("p")), {"q": {"n": 0, "a": 2}, "p": {"z": 3}})
    # n 0, a 2, u g: (2 / log2(3) + g / 2) over 2 + g / log2(3) for g <= 2, over 3 + 2 / log2(3) for 3
    values = [(2 / np.log2(3) + g / 2) / (max(g, 2) + min(g, 2) / np.log2(3)) for g in range(4)]
    low, high = bounds(parse("nDCG@3"), rank_run(testset, run, TREC))
    assert max(values) == values[2] > values[3]
    assert (low[0], high[0]) == pytest.approx((min(values), max(values)))
    for spelling in ("nERR@3", "RBP@3"):
        assert unjudged_margin(parse(spelling), rank_run(testset, run, TREC)).why == BETWEEN
