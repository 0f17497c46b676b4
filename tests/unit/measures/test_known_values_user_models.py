"""Values of the user models worked by hand, each with its arithmetic."""

from dataclasses import replace
from math import exp2, isclose, log2, pi

import numpy as np
import pytest
from scipy.special import digamma, zeta

from cranfield.base.errors import MeasureError
from cranfield.measures import compute, parse
from cranfield.measures.sums import EULER, after, before, harmonic, inverse_squares, log_discounts, running, starts
from cranfield.model import Answer, Hit, Outcome, Pattern, Query, Run, TestSet, convention_named
from cranfield.ranking import rank_run


def ranking_of(grades, retrieved, *, patterns=None):
    testset = TestSet("one", (Query("q"),), {} if patterns else {"q": grades}, {"q": patterns} if patterns else {})
    run = Run("run", {"q": Answer(Outcome.ANSWERED, tuple(Hit(doc) for doc in retrieved))})
    return rank_run(testset, run, convention_named("trec"))


def value(measure, grades, retrieved, **options):
    values, scored, _ = compute(parse(measure), ranking_of(grades, retrieved, **options))
    assert scored[0]
    return float(values[0])


GRADED = {"three": 3, "two": 2, "one": 1, "none": 0}
BEST_FIRST = ["three", "two", "one", "none"]
HALF = {"a": 1, "b": 1, "c": 2}  # under max_rel=2: gains 1/2, 1/2 and 1
EARLY = 6 / pi**2  # weight of rank 1 where rank i weighs 1 / i^2: pi^2 / 6 is the sum of all

CASES = [
    # chances 7/8, 3/8, 1/8, 0: 7/8 + (1/2)(1/8)(3/8) + (1/3)(1/8)(5/8)(1/8)
    ("ERR(max_rel=3)", GRADED, BEST_FIRST, 7 / 8 + 1 / 2 * 1 / 8 * 3 / 8 + 1 / 3 * 1 / 8 * 5 / 8 * 1 / 8),
    # cut at 1: the first chance alone; a scale up to 4 halves it
    ("ERR(max_rel=3)@1", GRADED, BEST_FIRST, 7 / 8),
    ("ERR@1", GRADED, BEST_FIRST, 7 / 16),
    # an unjudged result takes its rank: (1/2)(7/16)
    ("ERR", GRADED, ["x", "three"], 1 / 2 * 7 / 16),
    # a grade above the scale counts as its end: 3/4
    ("ERR(max_rel=2)@1", GRADED, BEST_FIRST, 3 / 4),
    # grades need not be whole: (2^0.5 - 1) / 2
    ("ERR(max_rel=1)", {"a": 0.5}, ["a"], (exp2(0.5) - 1) / 2),
    # the ideal list is three, two, one: its ERR is .9017, and two alone brings 3/8
    ("nERR(max_rel=3)", GRADED, ["two"], (3 / 8) / (7 / 8 + 3 / 128 + 5 / 1536)),
    ("nERR(max_rel=3)@1", GRADED, ["two"], (3 / 8) / (7 / 8)),
    ("nERR", GRADED, BEST_FIRST, 1.0),
    ("nERR", {"a": 0}, ["a"], 0.0),
    # ranks 1 and 3 of patience 1/2: (1/2)(1 + 1/4); the rest of 1,000 ranks weighs 2^-1000
    ("RBP(p=0.5, rel=1)", {"a": 1, "c": 2}, ["a", "x", "c"], 1 / 2 * (1 + 1 / 4)),
    ("RBP(p=0.5, rel=2)", {"a": 1, "c": 2}, ["a", "x", "c"], 1 / 2 * 1 / 4),
    ("RBP(p=0.5, rel=1)@2", {"a": 1, "c": 2}, ["a", "x", "c"], 1 / 2),
    # graded, over the highest grade of the query: 1/2 at rank 1 and 2/2 at rank 3
    ("RBP(p=0.5)", {"a": 1, "c": 2}, ["a", "x", "c"], 1 / 2 * (1 / 2 + 1 / 4)),
    # over a scale up to 4, and over one that ends at 1
    ("RBP(p=0.5, max_rel=4)", {"a": 1, "c": 2}, ["a", "x", "c"], 1 / 2 * (1 / 4 + 2 / 4 * 1 / 4)),
    ("RBP(p=0.5, max_rel=1)", {"a": 1, "c": 2}, ["a", "x", "c"], 1 / 2 * (1 + 1 / 4)),
    # gains up to 1 stay as they are
    ("RBP(p=0.5)", {"a": 0.5}, ["a"], 1 / 2 * 0.5),
    ("RBP(p=0.5, gains={1: 0.25, 2: 1})", {"a": 1, "c": 2}, ["a", "x", "c"], 1 / 2 * (1 / 4 + 1 / 4)),
    # a user who sees 2 ranks: weights 2/3 and 1/3; one who sees every rank: 1 - p at rank 1
    ("RBP(p=0.5, rel=1, depth=2)", {"a": 1, "c": 2}, ["a", "x", "c"], 2 / 3),
    ("RBP(p=0.99, rel=1, depth=0)", {"a": 1}, ["a"], 1 - 0.99),
    ("RBP(p=0.99, rel=1)", {"a": 1}, ["a"], (1 - 0.99) / (1 - 0.99**1000)),
    # of two ranks returned the second has the weight 0.8 of 1.8; a list cut at 1 has one rank; of no rank nothing is gained
    ("RBP(p=0.8, page=True)", {"ls": 1}, ["noise", "ls"], 0.8 / 1.8),
    ("RBP(p=0.8, page=True)@1", {"ls": 1}, ["ls", "noise"], 1.0),
    ("RBP(p=0.8, page=True)@5", {"ls": 1}, ["noise", "ls"], 0.8 / 1.8),
    ("RBP(p=0.8, page=True)", {"ls": 1}, [], 0.0),
    ("RBP(p=0.5, rel=1, page=True)", {"a": 1, "c": 2}, ["a", "x", "c"], (1 + 1 / 4) / (1 + 1 / 2 + 1 / 4)),
    # 1/2 at rank 2: (1/2)/log2(3), over 1 + 1/log2(3)
    ("SDCG(max_rel=2)@2", HALF, ["x", "a"], (1 / 2 / log2(3)) / (1 + 1 / log2(3))),
    ("SDCG@2", HALF, ["a", "c"], 1.0),
    # min_rel=1: grade 1 is worth nothing, grade 2 half of the way to 3
    ("SDCG(min_rel=1, max_rel=3)@2", HALF, ["a", "c"], (1 / 2 / log2(3)) / (1 + 1 / log2(3))),
    # T=1 is reached at rank 3 (1/2 + 0 + 1/2), before k=5; without it the user stops at 5
    ("BPM(max_rel=2)@5", HALF, ["a", "x", "b", "c"], 1 / 3),
    ("BPM(T=3, max_rel=2)@5", HALF, ["a", "x", "b", "c"], 2 / 5),
    ("BPM(T=3, max_rel=2)@2", HALF, ["a", "x", "b", "c"], (1 / 2) / 2),
    # T=1/2: rank i weighs 1 / i^2, and of infinitely many ranks the sum is pi^2 / 6
    ("INSQ(T=0.5, depth=0)", {"a": 1}, ["a"], EARLY),
    ("INSQ(T=0.5, depth=0)", {"a": 1, "c": 1}, ["a", "x", "c"], EARLY * (1 + 1 / 9)),
    ("INSQ(T=0.5, depth=3)", {"a": 1, "c": 1}, ["a", "x", "c"], (1 + 1 / 9) / (1 + 1 / 4 + 1 / 9)),
    # nothing found: as INSQ, T_i stays at T, and the gain is 0
    ("INST", {"a": 1}, ["x"], 0.0),
    # T=1, a hit at rank 1: T_1 = 0, C_1 = (1 + 1 + 0 - 1)^2 / (1 + 1 + 0)^2 = 1/4, C_2 = (2/3)^2, … weights 1, 1/4, 1/9, …
    ("INST(depth=0)", {"a": 1}, ["a"], EARLY),
    ("INST(depth=3)", {"a": 1}, ["a"], 1 / (1 + 1 / 4 + 1 / 9)),
    # T=1, a hit at rank 2: C_1 = (2/3)^2, then T_2 = 0: C_2 = (2/3)^2; weights 1, 4/9, 16/81
    ("INST(depth=3)", {"a": 1}, ["x", "a"], (4 / 9) / (1 + 4 / 9 + 16 / 81)),
    # two hits: T_1 = 0, C_1 = 1/4; T_2 = -1, C_2 = (2 + 1 - 1 - 1)^2 / (2 + 1 - 1)^2 = 1/4; weights 1, 1/4, 1/16
    ("INST(depth=3)", {"a": 1, "b": 1}, ["a", "b"], (1 + 1 / 4) / (1 + 1 / 4 + 1 / 16)),
    # chance 1/2 to stop at rank 1, then 1 at rank 3: weights 1, 1/2, 1/2
    ("NERR8(max_rel=2)@4", HALF, ["a", "x", "c", "b"], (1 / 2 + 1 / 2) / (1 + 1 / 2 + 1 / 2)),
    # the same with 1 / i on each rank: 1, (1/2)(1/2), (1/3)(1/2)
    ("NERR9(max_rel=2)@4", HALF, ["a", "x", "c", "b"], (1 / 2 + 1 / 6) / (1 + 1 / 4 + 1 / 6)),
    # and with p = 1/2: 1, 1/4, 1/8
    ("NERR10(p=0.5, max_rel=2)", HALF, ["a", "x", "c", "b"], (1 / 2 + 1 / 8) / (1 + 1 / 4 + 1 / 8)),
    # and with T = 1/2: 1, (1/4)(1/2), (1/9)(1/2)
    ("NERR11(T=0.5, max_rel=2)", HALF, ["a", "x", "c", "b"], (1 / 2 + 1 / 18) / (1 + 1 / 8 + 1 / 18)),
    # nobody is satisfied: every rank down to k is read
    ("NERR8(max_rel=2)@4", HALF, ["a"], (1 / 2) / (1 + 3 / 2)),
    # the list is its own ideal
    ("Compat", {"a": 2, "b": 1}, ["a", "b"], 1.0),
    # p=1/2, ideal a b, list x a: depths 1 and 2 hold 0 and 1 of both; over those of the ideal, 1 and 2
    ("Compat(p=0.5)", {"a": 2, "b": 1}, ["x", "a"], (0 + 1 / 2 * 1 / 2) / (1 + 1 / 2 * 2 / 2)),
    ("Compat(p=0.5, normalize=False)", {"a": 2, "b": 1}, ["x", "a"], (1 / 2 * 1 / 2) / (1 + 1 / 2)),
    # of one grade, those that were found come first in their order: ideal b a, list b x a, depth 3
    (
        "Compat(p=0.5)",
        {"a": 1, "b": 1},
        ["b", "x", "a"],
        (1 + 1 / 2 * 1 / 2 + 1 / 4 * 2 / 3) / (1 + 1 / 2 + 1 / 4 * 2 / 3),
    ),
    # three deep for an ideal of three: a at 1, and b, c not found
    ("Compat(p=0.5)", {"a": 1, "b": 1, "c": 1}, ["a"], (1 + 1 / 4 + 1 / 12) / (1 + 1 / 2 + 1 / 4)),
    ("Compat", {"a": 0}, ["a"], 0.0),
    ("Compat", {"a": 1}, [], 0.0),
    # relevant at 1 and 4, others at 2 and 3: of the pairs (1,2) (1,3) (4,2) (4,3) two are right
    ("Accuracy", {"a": 1, "b": 1}, ["a", "x", "y", "b"], 2 / 4),
    ("Accuracy@3", {"a": 1, "b": 1}, ["a", "x", "y", "b"], 1.0),
    ("Accuracy(rel=2)", {"a": 1, "b": 2}, ["a", "b"], 0.0),
]


@pytest.mark.parametrize(("measure", "grades", "retrieved", "expected"), CASES)
def test_value(measure, grades, retrieved, expected):
    assert value(measure, grades, retrieved) == pytest.approx(expected, abs=1e-12)


def test_the_published_rounding_of_err():
    assert round(value("ERR(max_rel=3)", GRADED, BEST_FIRST), 4) == 0.9017


def test_a_scale_without_length_is_an_error():
    with pytest.raises(MeasureError, match="max_rel is 1 and min_rel is 1"):
        value("INST(min_rel=1, max_rel=1)", GRADED, BEST_FIRST)


@pytest.mark.parametrize("measure", ["SDCG(max_rel=3)@3", "BPM(max_rel=3)@3", "ERR(max_rel=3)", "RBP(max_rel=3)"])
def test_under_exponential_gain_the_scale_is_exponential_too(measure):
    # one result of grade 2 at rank 1: (2^2 - 1) / (2^3 - 1) where it was 2/3; ERR is exponential already
    linear = value(measure, GRADED, ["two"])
    exponential = replace(convention_named("trec"), name="exponential", gain="exponential")
    values, _, _ = compute(parse(measure), replace(ranking_of(GRADED, ["two"]), convention=exponential))
    factor = 1.0 if measure.startswith("ERR") else (3 / 7) / (2 / 3)
    assert float(values[0]) == pytest.approx(linear * factor)


@pytest.mark.parametrize(
    ("retrieved", "reason"),
    [
        (["a"], "a relevant and a non-relevant document"),
        (["x"], "a relevant and a non-relevant document"),
        ([], "a relevant and a non-relevant document"),
    ],
)
def test_accuracy_has_no_value_without_a_pair(retrieved, reason):
    _, scored, reasons = compute(parse("Accuracy"), ranking_of({"a": 1}, retrieved))
    assert not scored[0]
    assert reason in reasons["q"]


def test_a_better_result_that_rises_can_shorten_the_bejewelled_player():
    # T=1 in grades of 3. Ranks x, 2, 3: stop at 3 with 5/3. Ranks x, 3, 2: stop at 2 with 1.
    grades = {"two": 2, "three": 3}
    assert value("BPM(max_rel=3)@5", grades, ["x", "two", "three"]) == pytest.approx(5 / 3 / 3)
    assert value("BPM(max_rel=3)@5", grades, ["x", "three", "two"]) == pytest.approx(1 / 2)


EVERY = (Pattern("^a", grade=2, credit="every", expected_count=2), Pattern("^b", grade=1))
UNKNOWN = (Pattern("^a", credit="every"),)


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        # chances of grades 2, 1, 2 are 3/4, 1/4, 3/4; ideal 2, 2, 1
        (
            "nERR(max_rel=2)",
            (3 / 4 + 1 / 2 * 1 / 4 * 1 / 4 + 1 / 3 * 1 / 4 * 3 / 4 * 3 / 4)
            / (3 / 4 + 1 / 2 * 1 / 4 * 3 / 4 + 1 / 3 * 1 / 4 * 1 / 4 * 1 / 4),
        ),
        # list a1 b a2, ideal a1 a2 b, p=1/2: depths hold 1, 1 and 3 of both
        ("Compat(p=0.5)", (1 + 1 / 2 * 1 / 2 + 1 / 4 * 3 / 3) / (1 + 1 / 2 + 1 / 4)),
    ],
)
def test_a_pattern_stands_for_as_many_documents_as_it_says(measure, expected):
    assert value(measure, None, ["a1", "b", "a2"], patterns=EVERY) == pytest.approx(expected, abs=1e-12)


def test_more_matches_than_were_expected_make_no_list_better_than_the_ideal():
    # two documents were said to match: the third is in no ideal list. Depth 3: 1, 2, 2 of both, over 1, 2, 2
    patterns = (Pattern("^a", credit="every", expected_count=2),)
    assert value("Compat", None, ["a1", "a2", "a3"], patterns=patterns) == pytest.approx(1.0)


@pytest.mark.parametrize("measure", ["nERR", "Compat"])
def test_an_ideal_list_of_unknown_length_has_no_value(measure):
    _, scored, reasons = compute(parse(measure), ranking_of(None, ["a1"], patterns=UNKNOWN))
    assert not scored[0]
    assert "expected_count" in reasons["q"]


def test_an_ideal_list_of_ten_million_documents_takes_no_time():
    patterns = (Pattern("^a", credit="every", expected_count=10_000_000),)
    # chance 1/16 each: sum_i (1/16)(15/16)^(i - 1) / i = (1/15) ln 16; the one result found has 1/16
    assert value("nERR", None, ["a1"], patterns=patterns) == pytest.approx((1 / 16) / (np.log(16) / 15), abs=1e-9)
    # the list and the ideal share one document at every depth; p=1/2: sum_i p^(i - 1) / i = 2 ln 2, over 2
    assert value("Compat(p=0.5)", None, ["a1"], patterns=patterns) == pytest.approx(2 * np.log(2) / 2, abs=1e-9)


@pytest.mark.parametrize("measure", ["ERR", "nERR", "RBP", "SDCG@5", "BPM@5", "INST", "INSQ", "NERR8@5", "NERR10"])
def test_nothing_returned_and_nothing_relevant_are_worth_nothing(measure):
    assert value(measure, {"a": 1}, []) == 0
    assert value(measure, {"a": 0, "b": -1}, ["a", "b", "x"]) == 0


@pytest.mark.parametrize("measure", ["NERR8@2000000000", "NERR9@2000000000", "BPM@2000000000", "ERR@2000000000"])
def test_a_cutoff_far_below_the_list_needs_no_room(measure):
    assert 0 < value(measure, {"a": 1}, ["a"]) <= 1 + 1e-12


def test_running_products_do_not_depend_on_the_other_queries():
    draw = np.random.default_rng(5)
    for query in (np.repeat(np.arange(40), 3), np.repeat([0, 5], [70, 30]), np.arange(9), np.zeros(0, dtype=int)):
        values = draw.random(len(query))
        together = running(np.multiply, query, values)
        for one in set(query.tolist()):
            assert np.array_equal(together[query == one], np.cumprod(values[query == one]))


def test_rows_know_their_neighbours_within_their_query():
    query, values = np.array([0, 0, 2, 2, 2, 3]), np.array([1.0, 2, 3, 4, 5, 6])
    assert starts(query).tolist() == [0, 2, 5]
    assert before(query, values, 0.0).tolist() == [0, 1, 0, 3, 4, 0]
    assert after(query, values, 9.0).tolist() == [2, 9, 4, 5, 9, 9]


def test_sums_of_discounts_are_those_of_the_special_functions():
    x = np.geomspace(0.002, 1e9, 200)
    assert np.allclose(inverse_squares(x), zeta(2, x), rtol=1e-14, atol=0)
    n = np.array([0, 1, 2, 5, 11, 12, 13, 100, 10_000, 2**31], dtype=np.float64)
    assert np.allclose(harmonic(n), digamma(n + 1) + EULER, rtol=1e-14, atol=1e-15)
    assert isclose(log_discounts(3), 1 + 1 / log2(3) + 1 / 2)
    # in two portions, or in one
    assert isclose(log_discounts(1_100_000), float(np.sum(1 / np.log2(np.arange(2, 1_100_002)))), rel_tol=1e-12)
