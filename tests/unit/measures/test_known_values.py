"""Values worked by hand, each with its arithmetic."""

from math import log2

import pytest

from cranfield.measures import compute, parse
from cranfield.model import Answer, Hit, Outcome, Pattern, Query, Run, TestSet, convention_named
from cranfield.ranking import rank_run


def ranking_of(grades, retrieved, *, convention="trec", outcome=Outcome.ANSWERED, patterns=None):
    testset = TestSet(
        "one",
        (Query("q"),),
        {} if patterns else {"q": grades},
        {"q": patterns} if patterns else {},
    )
    run = Run("run", {"q": Answer(outcome, tuple(Hit(doc) for doc in retrieved))})
    return rank_run(testset, run, convention_named(convention))


def value(measure, grades, retrieved, **options):
    values, scored, _ = compute(parse(measure), ranking_of(grades, retrieved, **options))
    assert scored[0]
    return float(values[0])


GRADED = {"doc1": 3, "doc2": 2, "doc3": 1, "doc4": 0}
FIVE = dict.fromkeys("12345", 1)
TWO_OF_FOUR = ["x", "A", "B", "y", "z"]

CASES = [
    # three of five relevant documents in the top ten
    ("R@10", FIVE, list("1a2b3cdefg"), 3 / 5),
    # first relevant at rank 3
    ("RR", {"d": 1}, ["a", "b", "d"], 1 / 3),
    ("RR@2", {"d": 1}, ["a", "b", "d"], 0.0),
    # the best answer is at rank 2, below a passable one
    ("BestRR", {"edit": 2, "edit-gtk": 1, "edit-qt": 1}, ["edit-gtk", "edit", "other"], 1 / 2),
    ("BestRR", {"ls": 1}, ["noise", "ls"], 1 / 2),
    ("BestRR@1", {"ls": 1}, ["noise", "ls"], 0.0),
    ("BestRR", {"edit": 2, "edit-gtk": 1}, ["edit-gtk"], 0.0),
    ("BestSuccess@1", {"edit": 2, "edit-gtk": 1}, ["edit-gtk", "edit"], 0.0),
    ("BestSuccess@2", {"edit": 2, "edit-gtk": 1}, ["edit-gtk", "edit"], 1.0),
    # of grades with decimals the highest is the best, though both are rounded down to 2
    ("BestRR", {"a": 2.5, "b": 2.25}, ["b", "a"], 1 / 2),
    ("RR(rel=2, only_best=True)", {"ls": 1}, ["ls"], 0.0),
    # grades are tiers: of two items of tier 1 one is found; at tier 2 and up, one of two
    ("R(only_grade=1)@2", {"a": 3, "b": 2, "c": 1, "d": 1}, ["c", "b"], 1 / 2),
    ("R(rel=2)@2", {"a": 3, "b": 2, "c": 1, "d": 1}, ["c", "b"], 1 / 2),
    ("Success(only_grade=3)@2", {"a": 3, "b": 2, "c": 1}, ["c", "b"], 0.0),
    ("RankOfFirst(only_grade=2)", {"a": 3, "b": 2, "c": 1}, ["c", "b"], 2.0),
    # linear: (3 + 0/log2(3) + 2/log2(4)) / (3 + 2/log2(3) + 1/log2(4)) = 4 / 4.7619
    ("nDCG@10", GRADED, ["doc1", "doc4", "doc2"], (3 + 2 / 2) / (3 + 2 / log2(3) + 1 / 2)),
    # exponential: (7 + 3/2) / (7 + 3/log2(3) + 1/2) = 8.5 / 9.3928
    ("nDCG(dcg='exp-log2')@10", GRADED, ["doc1", "doc4", "doc2"], (7 + 3 / 2) / (7 + 3 / log2(3) + 1 / 2)),
    # grades 2 and 1 found at ranks 2 and 3: DCG 2/log2(3) + 1/2 = 1.76, ideal 2 + 1/log2(3) = 2.63
    ("nDCG@10", {"A": 2, "B": 1}, TWO_OF_FOUR, (2 / log2(3) + 1 / 2) / (2 + 1 / log2(3))),
    ("Success@5", {"A": 2, "B": 1}, TWO_OF_FOUR, 1.0),
    ("Success@1", {"A": 2, "B": 1}, TWO_OF_FOUR, 0.0),
    ("RR", {"A": 2, "B": 1}, TWO_OF_FOUR, 1 / 2),
    ("R@10", {"A": 2, "B": 1}, TWO_OF_FOUR, 1.0),
    # one right answer: 1/log2(rank + 1)
    ("nDCG@10", {"d": 1}, ["d"], 1.0),
    ("nDCG@10", {"d": 1}, ["a", "d"], 0.6309297535714575),
    ("nDCG@10", {"d": 1}, [*"0123456789", "d"], 0.0),
    ("nDCG@10", {"d": 1}, [*"012345678", "d"], 0.2890648263178879),
    # the ideal list is cut at k: two at most, (1 + 1/log2(3))
    ("nDCG@2", FIVE, ["1", "x"], 1 / (1 + 1 / log2(3))),
    # relevant at 1, 3, 5 of three: (1/1 + 2/3 + 3/5) / 3
    ("AP", {"a": 1, "c": 1, "e": 1}, list("abcde"), (1 + 2 / 3 + 3 / 5) / 3),
    # one of two never found: (1/1) / 2
    ("AP", {"a": 1, "z": 1}, list("abc"), 1 / 2),
    ("AP@2", {"a": 1, "c": 1}, list("abc"), 1 / 2),
    # ranks 1 and 3 of three, four relevant: (1/1 + 2/3), over all four, the three that fit, the two that are there
    ("AP@3", {"a": 1, "c": 1, "x": 1, "y": 1}, list("abc"), (1 + 2 / 3) / 4),
    ("AP(divisor='reachable')@3", {"a": 1, "c": 1, "x": 1, "y": 1}, list("abc"), (1 + 2 / 3) / 3),
    ("AP(divisor='retrieved')@3", {"a": 1, "c": 1, "x": 1, "y": 1}, list("abc"), (1 + 2 / 3) / 2),
    ("AP(divisor='reachable')", {"a": 1, "c": 1, "x": 1, "y": 1}, list("abc"), (1 + 2 / 3) / 4),
    ("AP(divisor='retrieved')@3", {"x": 1}, list("abc"), 0.0),
    # grades 2 at rank 1 and 1 at rank 3, (1 - p) p^(i - 1) = 1/2, 1/4, 1/8: 2/2 + 1/8
    ("RBP(p=0.5, scaled=False, depth=0)", {"a": 2, "c": 1}, list("abc"), 2 / 2 + 1 / 8),
    # precision divides by k even when fewer are returned
    ("P@5", {"a": 1}, ["a"], 1 / 5),
    ("P(rel=2)@2", {"a": 1, "b": 2}, ["a", "b"], 1 / 2),
    ("R(rel=2)@1", {"a": 1, "b": 2}, ["b"], 1.0),
    # grade 0 is judged, and so is a; x is not: 2 of 3
    ("Judged@3", {"a": 1, "b": 0}, ["a", "b", "x"], 2 / 3),
    ("Judged", {"a": 1, "b": 0}, ["a", "b", "x"], 2 / 3),
    # two results only: over 2, not over 10
    ("Judged@10", {"a": 1}, ["a", "x"], 1 / 2),
    # a grade under 0 is pooled, not judged, and not relevant
    ("Judged@2", {"a": 1, "b": -1}, ["a", "b"], 1 / 2),
    ("P@2", {"a": 1, "b": -1}, ["b", "a"], 1 / 2),
    ("nDCG@2", {"a": 1, "b": -2}, ["b", "a"], 1 / log2(3)),
    # nothing relevant is judged: 0, as trec_eval
    ("AP", {"a": 0}, ["a"], 0.0),
    ("nDCG@10", {"a": 0}, ["a"], 0.0),
    ("R@10", {"a": 0}, ["a"], 0.0),
    # a grade need not be whole: gain 0.5 at rank 1 of ideal 0.5
    ("nDCG@1", {"a": 0.5}, ["a"], 1.0),
]


@pytest.mark.parametrize(("measure", "grades", "retrieved", "expected"), CASES)
def test_value(measure, grades, retrieved, expected):
    assert value(measure, grades, retrieved) == pytest.approx(expected, abs=1e-12)


def test_the_published_roundings():
    assert round(value("nDCG@10", GRADED, ["doc1", "doc4", "doc2"]), 3) == 0.840
    assert round(value("nDCG(dcg='exp-log2')@10", GRADED, ["doc1", "doc4", "doc2"]), 3) == 0.905
    assert round(value("nDCG@10", {"A": 2, "B": 1}, TWO_OF_FOUR), 2) == 0.67


ONCE = (Pattern("^a"),)
EVERY = (Pattern("^a", credit="every", expected_count=3),)


@pytest.mark.parametrize(
    ("measure", "patterns", "expected"),
    [
        # a1, b, a2: the one expected item is earned at rank 1
        ("nDCG@10", ONCE, 1.0),
        ("P@3", ONCE, 1 / 3),
        ("R@10", ONCE, 1.0),
        ("AP", ONCE, 1.0),
        # every match of three counts: ranks 1 and 3
        ("P@3", EVERY, 2 / 3),
        ("R@10", EVERY, 2 / 3),
        ("AP", EVERY, (1 + 2 / 3) / 3),
        ("nDCG@10", EVERY, (1 + 1 / 2) / (1 + 1 / log2(3) + 1 / 2)),
    ],
)
def test_credit_decides_what_a_second_match_is_worth(measure, patterns, expected):
    assert value(measure, None, ["a1", "b", "a2"], patterns=patterns) == pytest.approx(expected, abs=1e-12)


def test_under_cupertino_every_match_gains_one_and_ndcg_may_exceed_one():
    got = value("nDCG@10", None, ["a1", "b", "a2"], patterns=(Pattern("^a", grade=3),), convention="cupertino")
    assert got == pytest.approx(1 + 1 / 2)


@pytest.mark.parametrize("measure", ["nDCG@10", "AP", "R@10"])
def test_a_measure_that_needs_a_count_has_no_value_without_one(measure):
    ranking = ranking_of(None, ["a1"], patterns=(Pattern("^a", credit="every"),))
    _, scored, reasons = compute(parse(measure), ranking)
    assert not scored[0]
    assert "expected_count" in reasons["q"]


@pytest.mark.parametrize("measure", ["RR", "P@5", "Success@5"])
def test_a_measure_that_needs_no_count_has_one(measure):
    assert value(measure, None, ["a1"], patterns=(Pattern("^a", credit="every"),)) > 0


def test_judged_share_does_not_apply_to_patterns():
    _, scored, reasons = compute(parse("Judged@10"), ranking_of(None, ["a1"], patterns=ONCE))
    assert not scored[0]
    assert "it is judged by a rule" in reasons["q"]


def test_a_result_that_matches_two_items_is_paid_for_the_best_unpaid():
    # a1 is both; it earns grade 2. a2 is both too; grade 2 is paid, so it earns grade 1.
    patterns = (Pattern("^a", grade=1), Pattern("[0-9]$", grade=2))
    assert value("nDCG@10", None, ["a1", "a2"], patterns=patterns) == pytest.approx(1.0)


def test_a_gain_that_no_float_holds_is_unscored_with_its_reason():
    testset = TestSet("set", (Query("q"), Query("r")), {"q": {"a": 2000, "b": 1}, "r": {"a": 1}})
    measure = parse("nDCG(dcg='exp-log2')@10")  # 2^2000 - 1
    for retrieved in ("a", "b", "x"):
        run = Run("run", {"q": Answer(Outcome.ANSWERED, (Hit(retrieved),)), "r": Answer(Outcome.ANSWERED, (Hit("a"),))})
        values, scored, reasons = compute(measure, rank_run(testset, run, convention_named("trec")))
        assert (values.tolist(), scored.tolist()) == ([0.0, 1.0], [False, True])
        assert reasons == {"q": "its grades are too large for this gain"}
