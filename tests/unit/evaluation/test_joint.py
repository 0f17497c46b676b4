"""Bounds of a difference over one grade for each document of both lists, held to every assignment of small cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield.evaluation import joint
from cranfield.evaluation.joint import METHODS, SEPARABLE, OpenLists, grades_of, open_lists
from cranfield.evaluation.margins import RISES_WITH_RANK
from cranfield.measures import CATALOGUE, compute, parse
from cranfield.model import CONVENTIONS, Answer, Hit, Meta, Outcome, Pattern, Query, Run, TestSet
from cranfield.ranking import rank_run

DOCUMENTS = [f"d{i}" for i in range(8)]
CUT = [f"{name}@3" for name in sorted(METHODS) if CATALOGUE[name].cutoff != "none"]
WHOLE = [name for name in sorted(METHODS) if CATALOGUE[name].cutoff != "required"]
PARAMETERS = [
    "nDCG(dcg='exp-log2')@3",
    "nDCG(gains={1: 5, 2: 2})@4",
    "nDCG(judged_only=True)@3",
    "R(rel=2)@3",
    "P(rel=2)@3",
    "RR(rel=2)",
    "RBP(rel=1)@3",
    "RBP(max_rel=2)",
    "AP(rel=2)",
    "AP(judged_only=True)@3",
]
CASES = [(spelling, "trec") for spelling in CUT + WHOLE + PARAMETERS]
CASES += [(s, c) for c in ("quepid", "cupertino", "octocode") for s in ("nDCG@3", "AP@3", "P@3", "RR@3", "R@3")]
CASES += [(spelling, "searchtweak") for spelling in ("nDCG@3", "AP@3", "P@3", "RR@3")]
few = settings(max_examples=min(8, settings().max_examples // 12))
graded = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-1, 2), min_size=1, max_size=5)
lists = st.lists(st.sampled_from(DOCUMENTS), unique=True, min_size=1, max_size=4)


def rankings(grades, a, b, convention="trec"):
    """Two lists of one query."""
    testset = TestSet("set", (Query("q"),), {"q": grades})
    runs = (Run("run", {"q": Answer(Outcome.ANSWERED, tuple(map(Hit, docs)))}) for docs in (a, b))
    first, second = (rank_run(testset, run, CONVENTIONS[convention]) for run in runs)
    return first, second


def paired(measure, grades, a, b, convention="trec", levels=(0.0, 1.0, 2.0)):
    pair = open_lists(measure, rankings(grades, a, b, convention), levels)
    assert isinstance(pair, OpenLists), pair
    return pair


def difference(measure, sides):
    values = []
    for side in sides:
        found, scored, _ = compute(measure, side)
        values.append(found[0] if scored[0] else np.nan)
    return values[1] - values[0]


def every(measure, grades, a, b, convention, levels):
    """The difference under each assignment of grades, by ranking the lists again."""
    shown = slice(measure.depth)
    unjudged = [doc for doc in dict.fromkeys((*a[shown], *b[shown])) if grades.get(doc, -1) < 0]
    for chosen in itertools.product(levels, repeat=len(unjudged)):
        assigned = dict(zip(unjudged, chosen, strict=True))
        yield assigned, difference(measure, rankings(grades | assigned, a, b, convention))


FAST = {
    ("nDCG@3", "trec"),
    ("R@3", "trec"),
    ("P@3", "trec"),
    ("RR", "trec"),
    ("AP@3", "trec"),
    ("nDCG@3", "searchtweak"),
}


@pytest.mark.parametrize(
    ("spelling", "convention"),
    [pytest.param(*case, marks=() if case in FAST else pytest.mark.slow) for case in CASES],
)
@few
@given(
    grades=graded, a=lists, b=lists, levels=st.sampled_from([(0.0, 2.0), (0.0, 1.0, 2.0), (0.0, 1.0, 3.0), (1.0, 2.0)])
)
def test_joint_bounds_are_the_extremes_of_every_assignment(spelling, convention, grades, a, b, levels):
    measure = parse(spelling)
    found = [value for _, value in every(measure, grades, a, b, convention, levels) if not np.isnan(value)]
    pair = paired(measure, grades, a, b, convention, levels)
    if not pair.query_ids:
        assert not found
        return
    bounds = joint.joint_bounds(pair)
    assert bounds.exact.all()
    assert (bounds.low.mean(), bounds.high.mean()) == pytest.approx((min(found), max(found)), abs=1e-12)


@given(grades=graded, a=lists, b=lists)
@few
@pytest.mark.parametrize("spelling", ["nDCG@3", "AP", "P@3", "ERR@3"])
def test_the_joint_interval_lies_inside_that_of_each_list_with_grades_of_its_own(spelling, grades, a, b):
    measure, levels = parse(spelling), (0.0, 1.0, 2.0)
    pair = paired(measure, grades, a, b)
    if not pair.query_ids:
        return
    found = joint.joint_bounds(pair)
    n = int(pair.n_open[0])
    rows = np.array(list(itertools.product(levels, repeat=n)))
    values = pair.values(np.zeros(len(rows), dtype=np.intp), rows.ravel())
    assert values[:, 1].min() - values[:, 0].max() - 1e-12 <= found.low.mean()
    assert found.high.mean() <= values[:, 1].max() - values[:, 0].min() + 1e-12


@given(grades=graded, a=lists, b=lists)
@few
@pytest.mark.parametrize("spelling", sorted(SEPARABLE))
def test_where_assignments_are_too_many_the_interval_is_a_bound_and_says_so(spelling, grades, a, b):
    measure = parse(spelling if CATALOGUE[spelling].cutoff != "required" else f"{spelling}@3")
    pair = paired(measure, grades, a, b)
    if not len(pair.query):
        return
    found = joint.joint_bounds(pair)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint, "MAX_ASSIGNMENTS", 0)
        wide = joint.joint_bounds(pair)
    assert not wide.exact.any()
    assert np.isnan(wide.low_grades).all()
    assert wide.low.mean() <= found.low.mean() + 1e-12
    assert found.high.mean() <= wide.high.mean() + 1e-12


def test_one_grade_for_both_lists_by_hand():
    # u is unjudged and first in both lists: its grade moves both P@1 alike, so the difference is 0 whatever it is.
    # Each list alone could be 0 or 1, so lists with grades of their own say -1 to +1.
    pair = paired(parse("P@1"), {"a": 1}, ["u", "a"], ["u", "b"])
    found = joint.joint_bounds(pair)
    assert (found.low.mean(), found.high.mean()) == (0.0, 0.0)
    # nDCG@2 of [a, u] and [u, a], a relevant with 1: u of 0 gives .6309 - 1; u of 1 gives 0; u of 2 gives
    # (2 + .6309) / 2.6309 - (1 + 2 * .6309) / 2.6309 = 1 - .8597
    pair = paired(parse("nDCG@2"), {"a": 1}, ["a", "u"], ["u", "a"])
    found = joint.joint_bounds(pair)
    assert (found.low.mean(), found.high.mean()) == pytest.approx((-0.36907, 0.14028), abs=1e-5)
    assert (found.low_grades.tolist(), found.high_grades.tolist()) == ([0.0], [2.0])


def test_a_rounded_convention_has_a_bound():
    measure, grades, a, b = parse("nDCG@3"), {"d0": 2}, ["d0", "d1"], ["d2", "d0"]
    found = joint.joint_bounds(paired(measure, grades, a, b, "opensearch"))
    values = [value for _, value in every(measure, grades, a, b, "opensearch", (0.0, 1.0, 2.0))]
    assert not found.exact.any()
    assert found.low.mean() <= min(values)
    assert max(values) <= found.high.mean()


def test_a_query_that_nobody_judged_counts_once_it_is_judged():
    testset = TestSet("set", (Query("q"), Query("n")), {"q": {"a": 1}})
    answers = {q: Answer(Outcome.ANSWERED, (Hit("a"), Hit("b"))) for q in ("q", "n")}
    sides = tuple(rank_run(testset, Run("run", answers), CONVENTIONS["trec"]) for _ in range(2))
    pair = open_lists(parse("P@1"), sides, (0.0, 1.0))
    assert pair.query_ids == ("q", "n")
    assert np.isnan(pair.now[1]).all()
    assert pair.doc_ids == ("b",) * 0 + ("a",)  # of `q`, rank 1 is judged


def test_patterns_have_no_open_document():
    testset = TestSet("set", (Query("p"), Query("q")), {"q": {"a": 1}}, {"p": (Pattern("^a"),)})
    answer = Answer(Outcome.ANSWERED, (Hit("x"), Hit("a")))
    ranking = rank_run(testset, Run("run", {"p": answer, "q": answer}), CONVENTIONS["trec"])
    pair = open_lists(parse("P@2"), (ranking, ranking), (0.0, 1.0))
    assert [pair.query_ids[q] for q in pair.query.tolist()] == ["q"]
    assert joint.joint_bounds(pair).exact.all()


@pytest.mark.parametrize(
    ("spelling", "convention", "words"),
    [
        ("bpref", "trec", "no method"),
        ("nDCG@3", "ir_measures", "order of ties"),
        ("nDCG@3", "knowcode", "twice"),
        ("nDCG(gains={0: 1})@3", "trec", "gains"),
    ],
)
def test_what_has_no_bounds_says_why(spelling, convention, words):
    why = open_lists(parse(spelling), rankings({"a": 1, "n": 0}, ["u", "n"], ["a"], convention), (0.0, 1.0))
    assert isinstance(why, str)
    assert words in why


def test_hits_that_are_not_kept_and_work_that_is_too_much_are_refused(monkeypatch):
    docs = [f"x{i}" for i in range(12)]
    sides = rankings({"a": 1}, docs, docs[::-1])
    assert "beyond rank 10" in open_lists(parse("AP"), sides, (0.0, 1.0))
    monkeypatch.setattr(joint, "MAX_OPEN", 9)
    assert "more than 9" in open_lists(parse("P@10"), sides, (0.0, 1.0))
    monkeypatch.setattr(joint, "MAX_OPEN", 200)
    monkeypatch.setattr(joint, "MAX_GRADES", 10)
    assert "too many" in open_lists(parse("P@10"), sides, (0.0, 1.0))


@given(grades=graded, a=lists, b=lists)
@few
@pytest.mark.parametrize("spelling", ["nDCG@3", "RR", "AP@3"])
def test_the_effect_of_a_judgment_is_that_of_ranking_again(spelling, grades, a, b):
    measure = parse(spelling)
    pair = paired(measure, grades, a, b)
    if not pair.query_ids:
        return
    base, holes, change = pair.effects(np.array([0]), np.full(len(pair.query), np.nan))
    lowest = dict.fromkeys(pair.doc_ids, 0.0)
    assert base[0] == pytest.approx(difference(measure, rankings(grades | lowest, a, b)))
    for hole, row in zip(holes.tolist(), change, strict=True):
        for level, found in zip(pair.grades, row.tolist(), strict=True):
            again = rankings(grades | lowest | {pair.doc_ids[hole]: level}, a, b)
            assert found == pytest.approx(difference(measure, again) - base[0], abs=1e-12)


def test_grades_are_those_of_the_scale_or_up_to_the_highest():
    queries = (Query("q"),)
    assert grades_of(TestSet("set", queries, {"q": {"a": 3, "b": -1}})) == (0.0, 1.0, 2.0, 3.0)
    assert grades_of(TestSet("set", queries, {"q": {"a": 0}})) == (0.0, 1.0)
    assert grades_of(TestSet("set", queries, {"q": {"a": 0.5}})) == (0.0, 0.5)
    assert grades_of(TestSet("set", queries, {"q": {"a": 2}}, meta=Meta(scale=(1, 2, 5)))) == (1.0, 2.0, 5.0)
    assert grades_of(TestSet("set", queries, {"q": {"a": 1000}})) == (0.0, 1000.0)


def test_every_measure_with_bounds_of_a_list_has_joint_bounds():
    assert set(METHODS) == RISES_WITH_RANK
