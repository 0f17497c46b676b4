"""Holes: their effect, their order, and the verdicts that their judgments can bring, held to every assignment of small cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield import Query, TestSet, evaluate
from cranfield.base.errors import UsageError
from cranfield.evaluation.compare import compare
from cranfield.evaluation.joint import OpenLists, open_lists
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.unjudged import grade_shares, verdicts_of
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.judging.pools.holes import find_holes
from cranfield.model import Meta

few = settings(max_examples=min(6, settings().max_examples // 16))
DOCUMENTS = ["a", "b", "c"]


def compared(judgments, first, second, *, measure="nDCG@2", **options):
    testset = TestSet("set", tuple(map(Query, judgments)), judgments)
    sides = (evaluate(testset, run, measures=[measure], name=name) for name, run in (("A", first), ("B", second)))
    return compare(*sides, CompareOptions(**{"alpha": 0.6} | options))


def pair_of(comparison, grades=(0.0, 1.0)):
    pair = open_lists(comparison.primary, (comparison.baseline.ranking, comparison.candidate.ranking), grades)
    assert isinstance(pair, OpenLists)
    return pair


three = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 1), min_size=1, max_size=2),
        st.permutations(DOCUMENTS),
        st.permutations(DOCUMENTS),
    ),
    min_size=3,
    max_size=3,
)


@given(queries=three, margin=st.sampled_from([None, 0.3]))
@few
def test_reachable_and_excluded_verdicts_are_those_of_every_assignment(queries, margin):
    judgments = {f"q{n}": grades for n, (grades, _, _) in enumerate(queries)}
    first = {f"q{n}": a[:2] for n, (_, a, _) in enumerate(queries)}
    second = {f"q{n}": b[:2] for n, (_, _, b) in enumerate(queries)}
    comparison = compared(judgments, first, second, margin=margin)
    found = find_holes(comparison)
    unjudged = [
        (query, doc) for query in judgments for doc in DOCUMENTS
        if doc not in judgments[query] and doc in (*first[query], *second[query])
    ]  # fmt: skip
    assert {(hole.query, hole.doc) for hole in found.holes} == set(unjudged)
    verdicts, deltas = set(), []
    for chosen in itertools.product((0, 1), repeat=len(unjudged)):
        full = {query: dict(grades) for query, grades in judgments.items()}
        for (query, doc), grade in zip(unjudged, chosen, strict=True):
            full[query][doc] = grade
        one = compared(full, first, second, margin=margin)
        verdicts.add(one.verdict.code)
        deltas.append(one.measures[one.primary].delta)
    assert set(found.reachable) <= verdicts
    assert not set(found.excluded) & verdicts
    assert found.exact
    assert (found.worst.delta, found.best.delta) == pytest.approx((min(deltas), max(deltas)))
    if found.is_final:
        assert verdicts == {found.verdict}


def clear_pair(n=12, *, judged=True):
    """B has the relevant document first, A second; each list has an unjudged result at the other rank, unless it is judged."""
    judgments = {f"q{i}": {"hit": 1} | ({"x": 0, "y": 0} if judged else {}) for i in range(n)}
    first = {query: ["x", "hit"] for query in judgments}
    second = {query: ["hit", "y"] for query in judgments}
    return compared(judgments, first, second, alpha=0.05, measure="P@1")


def test_without_a_hole_the_verdict_is_final():
    found = find_holes(clear_pair())
    assert found.holes == ()
    assert found.reachable == (VerdictCode.BETTER,)
    assert set(found.excluded) == {VerdictCode.WORSE, VerdictCode.NOT_SIGNIFICANT}
    assert found.is_final
    assert found.fewest == ()


def test_holes_of_one_side_can_make_a_clear_verdict_insignificant_and_no_more():
    found = find_holes(clear_pair(judged=False))
    # P@1: of each query B has 1 and A 0, or 1 if x is relevant. y is below the cutoff.
    assert len(found.holes) == 12
    assert {hole.doc for hole in found.holes} == {"x"}
    assert (found.worst.delta, found.best.delta) == (0.0, 1.0)
    assert set(found.reachable) == {VerdictCode.BETTER, VerdictCode.NOT_SIGNIFICANT}
    assert found.excluded == (VerdictCode.WORSE,)
    assert found.unknown == ()
    # 6 of 12 queries that differ are the fewest that are significant at .05
    assert found.fewest == ((VerdictCode.NOT_SIGNIFICANT, 7),)
    assert [hole.effect for hole in found.holes] == pytest.approx([1 / 12] * 12)
    assert all(hole.turns == () for hole in found.holes)


def test_a_judgment_that_alone_turns_the_verdict_is_marked():
    judgments = {f"q{i}": {"hit": 1, "x": 0} for i in range(6)} | {"q0": {"hit": 1}}
    comparison = compared(
        judgments, {q: ["x"] for q in judgments}, {q: ["hit"] for q in judgments}, alpha=0.05, measure="P@1"
    )
    found = find_holes(comparison)
    assert found.verdict is VerdictCode.BETTER
    (hole,) = found.holes
    assert (hole.query, hole.doc, hole.rank_a, hole.rank_b) == ("q0", "x", 1, None)
    assert hole.turns == (VerdictCode.NOT_SIGNIFICANT,)
    assert found.fewest == ((VerdictCode.NOT_SIGNIFICANT, 1),)


def test_another_test_than_permutation_excludes_nothing():
    comparison = clear_pair(judged=False)
    declared = compare(comparison.baseline, comparison.candidate, CompareOptions(test="t"))
    found = find_holes(declared)
    assert found.excluded == ()
    assert VerdictCode.WORSE in found.unknown
    assert not found.is_final


def test_verdicts_include_equivalent_where_a_margin_is_declared():
    comparison = clear_pair()
    assert VerdictCode.EQUIVALENT not in verdicts_of(comparison)
    declared = compare(comparison.baseline, comparison.candidate, CompareOptions(margin=0.1))
    assert VerdictCode.EQUIVALENT in verdicts_of(declared)


def test_a_measure_without_bounds_is_refused_with_the_reason():
    judgments = {"q": {"a": 1, "n": 0}}
    with pytest.raises(UsageError, match="no method"):
        find_holes(compared(judgments, {"q": ["a", "u"]}, {"q": ["u", "a"]}, measure="bpref"))


def test_shares_of_grades_follow_the_judged_results_by_band_of_ranks():
    judgments = {f"q{i}": {"a": 1, "b": 0, "c": 0} for i in range(20)}
    lists = {query: ["a", "b", "c", "u"] for query in judgments}
    shares = grade_shares(pair_of(compared(judgments, lists, lists, measure="nDCG@4")))
    overall = np.array([41, 21]) / 62
    # rank 1: 20 of grade 1, and 4 more as over all; ranks 2-3: 40 of grade 0
    assert shares[0] == pytest.approx((np.array([0, 20]) + 4 * overall) / 24)
    assert shares[1] == pytest.approx((np.array([40, 0]) + 4 * overall) / 44)
    assert shares[2] == pytest.approx(overall)


@pytest.mark.parametrize("expected", [True, False])
@pytest.mark.parametrize("batch", [1, 3])
def test_the_order_has_each_hole_once_and_is_made_anew_after_each_judgment(expected, batch, checkout, load_script):
    bench = load_script(checkout / "bench" / "holes.py")
    judgments = {f"q{i}": {"r": 1} for i in range(4)}
    first = {query: ["u", "v", "r"] for query in judgments}
    second = {query: ["r", "w", "v"] for query in judgments}
    pair = pair_of(compared(judgments, first, second, measure="nDCG@3"))
    truth = {"u": 1.0, "v": 0.0, "w": 1.0}
    order = list(bench.judging_order(pair, lambda hole: truth[pair.doc_ids[hole]], expected=expected, batch=batch))
    assert sorted(hole for hole, _ in order) == list(range(len(pair.query)))
    fixed = np.full(len(pair.query), np.nan)
    shares = grade_shares(pair)[np.floor(np.log2(np.where(pair.rank > 0, pair.rank, 99).min(axis=1))).astype(int)]
    for hole, grade in order:
        _, holes, change = pair.effects(np.arange(4), fixed)
        weight = np.sqrt((shares[holes] * change**2).sum(axis=1)) if expected else np.abs(change).max(axis=1)
        if batch == 1:
            assert weight[holes.tolist().index(hole)] == pytest.approx(weight.max())
        fixed[hole] = grade


def test_holes_come_by_expected_effect_and_repeat():
    comparison = clear_pair(judged=False)
    found, again = find_holes(comparison), find_holes(comparison)
    assert found == again
    expected = [hole.expected_effect for hole in found.holes]
    assert expected == sorted(expected, reverse=True)


def test_effects_start_from_the_lowest_grade_which_may_not_be_what_is_now():
    comparison = clear_pair(judged=False)
    found = find_holes(comparison)
    assert found.supposed.delta == comparison.measures[comparison.primary].delta
    # On a scale from 1, whatever is judged is relevant: B never has more than A.
    judgments = {f"q{i}": {"hit": 1} for i in range(6)}
    testset = TestSet("set", tuple(map(Query, judgments)), judgments, meta=Meta(scale=(1, 2)))
    runs = (("A", {query: ["x"] for query in judgments}), ("B", {query: ["hit"] for query in judgments}))
    sides = (evaluate(testset, run, measures=["P@1"], name=name) for name, run in runs)
    found = find_holes(compare(*sides, CompareOptions()))
    assert (found.verdict, found.lowest) == (VerdictCode.BETTER, 1)
    assert (found.supposed.delta, found.supposed.verdict) == (0.0, VerdictCode.NOT_SIGNIFICANT)
    # A query without any judgment counts once it is judged.
    found = find_holes(compared({"q": {"a": 1}, "n": {}}, {"q": ["a"], "n": ["x"]}, {"q": ["x"], "n": ["y"]}))
    assert (found.n_queries, found.supposed.delta) == (2, -0.5)
