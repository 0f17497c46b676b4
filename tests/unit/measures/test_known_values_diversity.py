"""Measures by subtopic: values worked out by hand."""

import math

import pytest

from cranfield.formats.testsets.judgments import qrels_from_rows
from cranfield.measures import CATALOGUE, compute, parse
from cranfield.model import Query, TestSet, convention_named
from cranfield.ranking.memory import rank_mapping

# d1 is about A, d2 about A and B, d3 about B; nobody returned d3.
SUBTOPICS = {"d1": "A", "d2": "AB", "d3": "B"}
LOG3 = math.log2(3)


def value(spelling, subtopics, results, grades=None):
    rows = [
        ("q", doc_id, float((grades or {}).get(doc_id + subtopic, 1)), subtopic)
        for doc_id, named in subtopics.items()
        for subtopic in named
    ]
    testset = qrels_from_rows(rows, by_subtopic=True)
    run = {"q": {doc_id: -float(rank) for rank, doc_id in enumerate(results)}}
    values, scored, _ = compute(parse(spelling), rank_mapping(testset, run, convention_named("trec")).ranking)
    assert scored.all()
    return values[0]


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        # gains: d1 serves A, 1; x nothing; d2 serves A again, 1/2, and B, 1
        # 1 / log2(2) + 1.5 / log2(4) = 1.75; a list that always serves both: 2 (1 + (1/2) / log2(3) + (1/4) / 2)
        ("alpha_DCG@3", 1.75 / (2 * (1 + 0.5 / LOG3 + 0.125))),
        ("alpha_DCG@1", 1 / 2),
        # the greedy list: d2, 2; then d3 (d1 gains the same and has the smaller id), 1/2; then d1, 1/2
        ("alpha_nDCG@3", 1.75 / (2 + 0.5 / LOG3 + 0.5 / 2)),
        ("alpha_nDCG", 1.75 / (2 + 0.5 / LOG3 + 0.5 / 2)),
        ("alpha_nDCG@1", 1 / 2),
        # nothing is taken away: 1 + 2 / 2, over 2 + 1 / log2(3) + 1 / 2
        ("alpha_nDCG(alpha=0)@3", 2 / (2 + 1 / LOG3 + 0.5)),
        # everything is: d2 brings B alone, 1 / 2; the greedy list has all with d2
        ("alpha_nDCG(alpha=1)@3", 1.5 / 2),
        ("ERR_IA@3", (1 + 1.5 / 3) / (2 * (1 + 0.5 / 2 + 0.25 / 3))),
        ("nERR_IA@3", (1 + 1.5 / 3) / (2 + 0.5 / 2 + 0.5 / 3)),
        ("NRBP", (1 + 1.5 / 4) * (1 - 1 / 4) / 2),
        ("NRBP(beta=0.8)", (1 + 1.5 * 0.64) * (1 - 0.4) / 2),
        ("nNRBP", (1 + 1.5 / 4) / (2 + 0.5 / 2 + 0.5 / 4)),
        # A: (1/1 + 2/3) / 2; B: (1/3) / 2, as d3 is not there
        ("AP_IA", ((1 + 2 / 3) / 2 + (1 / 3) / 2) / 2),
        ("P_IA@3", (2 / 3 + 1 / 3) / 2),
        ("P_IA@5", (2 / 5 + 1 / 5) / 2),
        ("StRecall@2", 1 / 2),
        ("StRecall@3", 1.0),
        ("StRecall", 1.0),
        # without x, d2 stands second
        ("StRecall(judged_only=True)@2", 1.0),
        ("P_IA(judged_only=True)@2", 3 / 4),
    ],
)
def test_a_list_of_three(spelling, expected):
    assert value(spelling, SUBTOPICS, ["d1", "x", "d2"]) == pytest.approx(expected, abs=1e-12)


def test_the_grade_that_counts_as_relevant_can_be_chosen():
    grades = {"d1A": 2, "d2B": 2}  # at 2: d1 is about A, d2 about B
    assert value("StRecall(rel=2)@1", SUBTOPICS, ["d1", "x", "d2"], grades) == 1 / 2
    assert value("AP_IA(rel=2)", SUBTOPICS, ["d1", "x", "d2"], grades) == pytest.approx((1 + 1 / 3) / 2)


def test_a_subtopic_that_nothing_relevant_is_judged_for_does_not_count():
    grades = {"d2B": 0, "d3B": 0}
    assert value("StRecall@1", SUBTOPICS, ["d1", "x", "d2"], grades) == 1.0


@pytest.mark.parametrize("name", [name for name, spec in CATALOGUE.items() if spec.needs == "subtopic"])
def test_where_nothing_is_relevant_every_value_is_0(name):
    spelling = name if CATALOGUE[name].cutoff == "none" else f"{name}@5"
    assert value(spelling, {"d1": "A"}, ["d1"], {"d1A": 0}) == 0.0
    assert value(spelling, SUBTOPICS, ["x"]) == 0.0


@pytest.mark.parametrize("name", [name for name, spec in CATALOGUE.items() if spec.needs == "subtopic"])
def test_without_subtopics_there_is_no_value_and_the_reason_is_said(name):
    spelling = name if CATALOGUE[name].cutoff == "none" else f"{name}@5"
    testset = TestSet("plain", (Query("q"),), {"q": {"d1": 1}})
    ranking = rank_mapping(testset, {"q": {"d1": 1.0}}, convention_named("trec")).ranking
    _, scored, reasons = compute(parse(spelling), ranking)
    assert not scored.any()
    assert reasons == {"q": "the test set has no judgments by subtopic"}


def test_a_list_can_be_better_than_the_greedy_one():
    # All three serve four subtopics, and the greedy list begins with y, the largest id: 4 + 2.5 / log2(3), as either of the
    # others then serves one that is new and three again. w and x together: 4 + (1/2 + 1/2 + 1 + 1) / log2(3)
    subtopics = {"w": "abcd", "x": "bcef", "y": "abcf"}
    assert value("alpha_nDCG@2", subtopics, ["w", "x"]) == pytest.approx((4 + 3 / LOG3) / (4 + 2.5 / LOG3), abs=1e-12)
    assert CATALOGUE["alpha_nDCG"].range[1] == pytest.approx(1 / (1 - 1 / math.e))


def test_the_greedy_list_is_worth_1():
    for spelling in ("alpha_nDCG@3", "nERR_IA@3", "nNRBP"):
        assert value(spelling, SUBTOPICS, ["d2", "d3", "d1"]) == pytest.approx(1.0)


def test_gains_that_are_equal_but_for_rounding_are_equal():
    # With alpha 0.9 served subtopics are worth 0.1, 0.01 and so on; a and b gain 1 + 0.1 + 0.01, summed in another order.
    subtopics = {"c1": "XYZ", "c2": "Y", "a": "XYW", "b": "YXV"}
    assert value("alpha_nDCG(alpha=0.9)@4", subtopics, ["c1", "b", "a", "c2"]) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("spelling", ["alpha_DCG@2147483647", "ERR_IA@2147483647", "alpha_DCG(alpha=1)@1000"])
def test_a_cutoff_beyond_every_list_takes_no_memory_of_its_size(spelling):
    import tracemalloc

    from cranfield.measures import compute, parse
    from cranfield.model import Answer, GroupedJudgment, Hit, Outcome, Query, Run, TestSet, convention_named
    from cranfield.ranking import rank_run

    groups = {"q": (GroupedJudgment("a", "1", 1),)}
    testset = TestSet("set", (Query("q"),), {"q": {"a": 1}}, groups=groups, grouping="subtopic")
    ranking = rank_run(testset, Run("run", {"q": Answer(Outcome.ANSWERED, (Hit("a"),))}), convention_named("trec"))
    tracemalloc.start()
    values, _, _ = compute(parse(spelling), ranking)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0 < values[0] <= 1
    assert peak < 10_000_000
