"""Expected values over random orders of equal scores are the means over all of their orders."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from cranfield import evaluate
from cranfield.base.errors import MeasureError, UsageError
from cranfield.evaluation.options.blocks import ScoringOptions
from cranfield.measures import compute, parse_all
from cranfield.model import Answer, Hit, Outcome, Pattern, Query, Run, TestSet, convention_named
from cranfield.ranking import rank_file
from cranfield.ranking.memory import rank_mapping

SKLEARN = convention_named("sklearn")
TREC = convention_named("trec")
MEASURES = parse_all(
    [
        "nDCG",
        "nDCG@1",
        "nDCG@3",
        "nDCG(dcg='exp-log2')@4",
        "nDCG(gains={1: 5, 2: 3})@2",
        "DCG",
        "DCG@3",
        "CG",
        "CG@2",
        "P@1",
        "P@3",
        "P(rel=2)@4",
        "R@2",
        "R(rel=2)@3",
        "Hits",
        "Hits@3",
        "Success@1",
        "Success@3",
        "Success(rel=2)@2",
        "RR",
        "RR@2",
        "RR(rel=2)@4",
        "RR(only_best=True)",
        "Success(only_best=True)@2",
        "R(only_best=True)@2",
        "AP",
        "AP@1",
        "AP@3",
        "AP(rel=2)@4",
        "AP(divisor='reachable')@3",
        "Judged@1",
        "Judged@3",
        "Judged",
        "NumRet",
        "NumRel",
        "NumRelRet",
        "NumQ",
        "SetP",
        "SetR",
        "SetF",
        "SetAP",
        "SetRelP",
    ]
)


def judged(grades):
    return TestSet("set", tuple(map(Query, grades)), grades)


def orders(scores):
    """Every order of the documents that the scores allow, best first."""
    ties = [
        [doc for doc, score in scores.items() if score == level] for level in sorted(set(scores.values()), reverse=True)
    ]
    for blocks in itertools.product(*(itertools.permutations(tie) for tie in ties)):
        yield list(itertools.chain.from_iterable(blocks))


@given(
    grades=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-1, 3), min_size=1),
    scores=st.dictionaries(st.sampled_from("abcde"), st.integers(0, 2), min_size=1),
    conventions=st.sampled_from([("sklearn", "trec"), ("quepid", "quepid"), ("cupertino", "cupertino")]),
)
def test_a_value_is_the_mean_over_all_orders_of_the_ties(grades, scores, conventions):
    expected, listed = (replace(convention_named(name), file_order="score", credit="declared") for name in conventions)
    testset, expected = judged({"q": grades}), replace(expected, ties="expected")
    ranking = rank_mapping(testset, {"q": scores}, expected).ranking
    every = [
        rank_mapping(testset, {"q": {doc: -rank for rank, doc in enumerate(order)}}, listed).ranking
        for order in orders(scores)
    ]
    for measure in MEASURES:
        values, scored, reasons = compute(measure, ranking)
        assert scored[0], (measure, reasons)
        mean = math.fsum(compute(measure, each)[0][0] for each in every) / len(every)
        assert values[0] == pytest.approx(mean, abs=1e-12), measure


@pytest.mark.parametrize("engine", ["native", "python"])
def test_five_tied_results_are_worth_what_scikit_learn_gives_them(tmp_path, monkeypatch, engine):
    # grades 10, 5, 1 over five tied ranks: 16 times the mean of 1/log2(rank + 1), over 10 + 5/log2(3) + 1/2
    monkeypatch.setenv("CRANFIELD_ENGINE", engine)
    grades = {"d1": 10, "d2": 0, "d3": 0, "d4": 1, "d5": 5}
    file = tmp_path / "tied.run"
    file.write_text("".join(f"q Q0 {doc} {rank} 1.0 t\n" for rank, doc in enumerate(grades, start=1)))
    by_hand = 16 * sum(1 / math.log2(rank + 1) for rank in range(1, 6)) / 5 / (10 + 5 / math.log2(3) + 1 / 2)
    values, _, _ = compute(parse_all(["nDCG"])[0], rank_file(judged({"q": grades}), file, SKLEARN).ranking)
    assert values[0] == pytest.approx(0.6909785334518438, abs=1e-15)
    assert values[0] == pytest.approx(by_hand, abs=1e-15)
    assert values[0] == pytest.approx(ndcg_score([list(grades.values())], [[1.0] * 5]), abs=1e-15)


def test_random_tied_lists_are_worth_what_scikit_learn_gives_them():
    rng = np.random.default_rng(7)
    for _ in range(30):
        grades, scores = rng.integers(0, 4, 12), rng.integers(0, 4, 12)
        docs = [f"d{n}" for n in range(12)]
        testset = judged({"q": dict(zip(docs, grades.tolist(), strict=True))})
        ranking = rank_mapping(testset, {"q": dict(zip(docs, scores.tolist(), strict=True))}, SKLEARN).ranking
        for spelling, k in (("nDCG", None), ("nDCG@5", 5)):
            values, _, _ = compute(parse_all([spelling])[0], ranking)
            assert values[0] == pytest.approx(ndcg_score([grades], [scores], k=k), abs=1e-12)


def test_a_measure_without_a_formula_is_refused_by_name():
    with pytest.raises(
        MeasureError, match=r"ERR@10 cannot be computed for any query: no formula is implemented for its expected value"
    ):
        evaluate({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}, measures=["nDCG", "ERR@10"], ties="expected")


def test_a_measure_that_the_order_changes_in_another_way_is_refused():
    # a pattern that two tied results match is credited to the first of them; a condensed list has other ties
    twice = TestSet("set", (Query("q"),), targets={"q": (Pattern("^a"),)})
    ranking = rank_mapping(twice, {"q": {"a1": 1.0, "a2": 1.0}}, SKLEARN).ranking
    assert not compute(parse_all(["nDCG"])[0], ranking)[1].any()
    ranking = rank_mapping(judged({"q": {"a": 1}}), {"q": {"a": 1.0, "b": 1.0}}, SKLEARN).ranking
    assert not compute(parse_all(["P(judged_only=True)@1"])[0], ranking)[1].any()


def test_a_depth_that_cuts_ties_is_refused_and_the_option_overrides_the_convention():
    with pytest.raises(UsageError, match="cuts ties"):
        ScoringOptions(convention="sklearn", depth=3).resolved()
    assert ScoringOptions(ties="expected").resolved()[1].ties == "expected"
    assert ScoringOptions(ties="ascending", convention="sklearn").resolved()[1].ties == "ascending"
    with pytest.raises(UsageError, match="ties is 'random'"):
        ScoringOptions(ties="random")


def test_a_tie_that_the_depth_of_a_run_cuts_fills_the_ranks_that_are_left():
    hits = tuple(Hit(doc, 1.0) for doc in "abcd")
    run = Run("cut", {"q": Answer(Outcome.ANSWERED, hits)}, depth=2, order="descending")  # d and c are left
    found = evaluate({"q": {"d": 1}}, run, measures=["P@1", "P@2", "RR", "AP", "nDCG@2"], ties="expected")
    # d is at rank 1 or 2, each with probability 1/2
    assert [found.mean(measure) for measure in ("P@1", "P@2", "RR", "AP")] == [0.5, 0.5, 0.75, 0.75]
    assert found.mean("nDCG@2") == pytest.approx((1 + 1 / math.log2(3)) / 2)


def test_equal_scores_of_a_list_in_its_own_order_are_named_where_ties_were_asked_for():
    judgments, pairs = {"q": {"a": 1, "c": 2}}, [("a", 1.0), ("b", 1.0), ("c", 1.0)]
    ordered = evaluate(judgments, {"q": pairs}, measures=["nDCG"], ties="expected")
    # In the order of the list: (1 + 2 / 2) / (2 + 1 / log2(3)) = .7602; with equal scores the mean gain is 1: .8100.
    assert ordered.mean("nDCG") == pytest.approx(0.7601875334)
    assert str(ordered.warnings[0]).startswith(
        "2 results have the same score as the previous result, but these lists are ranked"
    )
    tied = evaluate(judgments, {"q": dict(pairs)}, measures=["nDCG"], ties="expected")
    assert tied.mean("nDCG") == pytest.approx(ndcg_score([[1, 0, 2]], [[1, 1, 1]])) == pytest.approx(0.8099531166)
    assert evaluate(judgments, {"q": ["a", "b", "c"]}, measures=["nDCG"], ties="expected").warnings == ()
    assert evaluate(judgments, {"q": pairs}, measures=["nDCG"]).warnings == ()
