"""Order, duplicates, depth and credit of collected lists."""

import pytest

from cranfield.base.errors import RunFormatError
from cranfield.model import Answer, Hit, Outcome, Pattern, Query, Run, TestSet, convention_named
from cranfield.ranking import ResultState, rank_run

TREC = convention_named("trec")
TESTSET = TestSet("set", (Query("q"),), {"q": {"a": 2, "b": 1, "n": 0, "p": -1}})


def rank(hits, testset=TESTSET, **run):
    answer = Answer(Outcome.ANSWERED, tuple(hits))
    return rank_run(testset, Run("run", {"q": answer}, **run), TREC)


def test_the_order_given_stands_and_scores_are_ignored():
    ranking = rank([Hit("b", 1.0), Hit("a", 2.0)])
    assert [hit.id for hit in ranking.top["q"]] == ["b", "a"]


@pytest.mark.parametrize(("order", "expected"), [("descending", ["b", "c", "a"]), ("ascending", ["a", "c", "b"])])
def test_declared_score_order(order, expected):
    hits = [Hit("a", -3.0), Hit("b", -1.0), Hit("c", -2.0)]
    assert [hit.id for hit in rank(hits, order=order).top["q"]] == expected


def test_score_order_needs_a_score_on_every_hit():
    with pytest.raises(RunFormatError, match="hit 2 has no score"):
        rank([Hit("a", 1.0), Hit("b")], order="descending")


def test_duplicates_fall_before_the_depth_is_cut():
    ranking = rank([Hit("a"), Hit("a"), Hit("b"), Hit("n")], depth=2)
    assert [hit.id for hit in ranking.top["q"]] == ["a", "b"]
    assert ranking.n_returned.tolist() == [2]
    assert ranking.n_duplicates.tolist() == [1]


def test_states_and_worth():
    ranking = rank([Hit("x"), Hit("p"), Hit("n"), Hit("a")])
    assert [hit.state for hit in ranking.top["q"]] == [
        ResultState.UNJUDGED,
        ResultState.POOLED,
        ResultState.JUDGED,
        ResultState.JUDGED,
    ]
    assert ranking.rank.tolist() == [2, 3, 4]
    assert ranking.gain.tolist() == [0.0, 0.0, 2.0]
    assert ranking.level.tolist() == [-1, 0, 2]
    # best first; the histogram holds what was judged not relevant too
    assert ranking.expected_gain.tolist() == [2.0, 1.0, 0.0, 0.0]
    assert ranking.expected_level.tolist() == [2, 1, 0, -1]
    assert ranking.expected_count.tolist() == [1, 1, 1, 1]


def test_a_second_match_of_a_once_pattern_names_its_item_and_earns_nothing():
    testset = TestSet("set", (Query("q"),), targets={"q": (Pattern("^a"),)})
    first, second, other = rank([Hit("a1"), Hit("a2"), Hit("b")], testset).top["q"]
    assert (first.item, first.credited, first.gain) == ("^a", True, 1.0)
    assert (second.item, second.credited, second.gain) == ("^a", False, 0.0)
    assert (other.item, other.state) == (None, ResultState.JUDGED)


def test_a_failed_query_has_its_reason_and_no_rows():
    run = Run("run", {"q": Answer(Outcome.TIMEOUT, reason="no answer in 1 s")})
    ranking = rank_run(TESTSET, run, TREC)
    assert ranking.outcomes == (Outcome.TIMEOUT,)
    assert ranking.reasons == {"q": "no answer in 1 s"}
    assert ranking.n_returned.tolist() == [0]


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_score_order_refuses_a_score_that_is_no_finite_number(score):
    with pytest.raises(RunFormatError, match="hit 1 has no score; expected a finite score"):
        rank([Hit("a", score), Hit("b", 1.0)], order="descending")


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.NONZERO_EXIT, Outcome.UNPARSABLE])
def test_hits_of_a_failed_answer_earn_nothing(outcome):
    run = Run("run", {"q": Answer(outcome, (Hit("a"), Hit("a"), Hit("b")), "failed half-way")})
    ranking = rank_run(TESTSET, run, TREC)
    assert ranking.rank.tolist() == []
    assert ranking.top["q"] == ()
    assert (ranking.n_returned.tolist(), ranking.n_duplicates.tolist()) == ([0], [0])


def test_a_grade_of_any_size_has_a_level():
    testset = TestSet("set", (Query("q"),), {"q": {"a": 1e300, "b": -1e300}})
    ranking = rank([Hit("b"), Hit("a")], testset)
    assert ranking.level.tolist() == [-(2**31 - 1), 2**31 - 1]
    assert ranking.gain.tolist() == [0.0, 1e300]


def test_scores_that_no_32_bit_float_holds_tie_without_a_warning():
    hits = (Hit("a", 1e308), Hit("b", 1e300), Hit("n", 1.0))
    run = Run("run", {"q": Answer(Outcome.ANSWERED, hits)}, order="descending")
    ranking = rank_run(TESTSET, run, convention_named("trec9"))  # both are infinite at that width: the larger id leads
    assert [hit.id for hit in ranking.top["q"]] == ["b", "a", "n"]
