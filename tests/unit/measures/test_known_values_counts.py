"""Values of sums, counts, order and cost worked by hand, each with its arithmetic."""

import itertools
import random
from dataclasses import replace
from math import log2

import numpy as np
import pytest

from cranfield.measures import compute, parse
from cranfield.measures.families.counts import ascending_pairs
from cranfield.model import Answer, Hit, Outcome, Pattern, Query, Run, TestSet, convention_named
from cranfield.ranking import rank_run


def ranking_of(grades, hits, *, patterns=None, order="given"):
    testset = TestSet("one", (Query("q"),), {} if patterns else {"q": grades}, {"q": patterns} if patterns else {})
    run = Run("run", {"q": Answer(Outcome.ANSWERED, tuple(hits))}, order=order)
    return rank_run(testset, run, convention_named("trec"))


def score(measure, ranking):
    values, scored, reasons = compute(parse(measure), ranking)
    return float(values[0]) if scored[0] else reasons["q"]


def value(measure, grades, retrieved, **options):
    return score(measure, ranking_of(grades, [Hit(doc) for doc in retrieved], **options))


GRADED = {"three": 3, "two": 2, "one": 1, "none": 0}
FOUR = ["three", "x", "none", "two"]

CASES = [
    ("CG", GRADED, FOUR, 3 + 2),
    ("CG@3", GRADED, FOUR, 3),
    ("CG(gains={3: 10})", GRADED, FOUR, 10 + 2),
    # 3/log2(2) + 2/log2(5)
    ("DCG", GRADED, FOUR, 3 + 2 / log2(5)),
    ("DCG@3", GRADED, FOUR, 3),
    # 2^3 - 1 = 7 and 2^2 - 1 = 3
    ("DCG(dcg='exp-log2')", GRADED, FOUR, 7 + 3 / log2(5)),
    # grades 3, 2, 1, 0 in order: 3 + 2/log2(3) + 1/2 = 4.7619
    ("DCG", GRADED, ["three", "two", "one", "none"], 3 + 2 / log2(3) + 1 / 2),
    ("Hits", GRADED, FOUR, 2),
    ("Hits@1", GRADED, FOUR, 1),
    ("Hits(rel=3)", GRADED, FOUR, 1),
    # P@2 = 1/2, R@2 = 1/3: 2 (1/6) / (5/6)
    ("F1@2", GRADED, FOUR, 2 * (1 / 2 * 1 / 3) / (1 / 2 + 1 / 3)),
    # the whole list: P = 2/4, R = 2/3
    ("F1", GRADED, FOUR, 2 * (2 / 4 * 2 / 3) / (2 / 4 + 2 / 3)),
    # k beyond the list counts as k: P@10 = 2/10
    ("F1@10", GRADED, FOUR, 2 * (2 / 10 * 2 / 3) / (2 / 10 + 2 / 3)),
    ("F1@2", GRADED, ["x"], 0.0),
    ("F1", GRADED, [], 0.0),
    ("F1@2", {"a": 0}, ["a"], 0.0),
    ("Coverage", GRADED, FOUR, 2 / 3),
    ("Coverage@1", GRADED, FOUR, 1 / 3),
    ("Coverage(rel=2)", GRADED, FOUR, 2 / 2),
    ("Coverage", {"a": 0}, ["a"], 0.0),
    # six pairs of four grades. In order: three above two, one and none, and two above one, which is missing. Out of order:
    # two below none, and the missing one below none
    ("PairOrder", GRADED, FOUR, 4 / 6),
    # at 1 only three is there: it stands above the three others, and of those no pair is in order
    ("PairOrder@1", GRADED, FOUR, 3 / 6),
    ("PairOrder", GRADED, ["three", "two", "one", "none"], 1.0),
    ("PairOrder", GRADED, ["none", "one", "two", "three"], 0.0),
    ("PairOrder", GRADED, ["x"], 0.0),
    # equal grades make no pair: (a, c) and (b, c)
    ("PairOrder", {"a": 2, "b": 2, "c": 1}, ["b", "c", "a"], 1 / 2),
    # grades need not be whole, and those under 0 are none
    ("PairOrder", {"a": 0.5, "b": 0.25, "c": -1}, ["c", "b", "a"], 0.0),
    ("RankOfFirst", GRADED, ["x", "none", "one"], 3),
    ("RankOfFirst(rel=2)", GRADED, ["one", "two"], 2),
    ("RankOfFirst", GRADED, ["x"], "nothing relevant was found"),
    ("RankOfFirst@2", GRADED, ["x", "y", "one"], "nothing relevant was found"),
    ("PairOrder", {"a": 1, "b": 1}, ["a"], "no two of its items have different grades"),
    ("PairOrder", {"a": 1, "b": -1}, ["a"], "no two of its items have different grades"),
    ("Tied", GRADED, ["x"], "none of its first results is judged"),
]


@pytest.mark.parametrize(("measure", "grades", "retrieved", "expected"), CASES)
def test_value(measure, grades, retrieved, expected):
    got = value(measure, grades, retrieved)
    assert got == (expected if isinstance(expected, str) else pytest.approx(expected, abs=1e-12))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("hits@5", "Hits@5"),
        ("f1", "F1"),
        ("dcg", "DCG"),
        ("DCG(d)@5", "dcg(d)@5"),
        ("CG(d)", "cg(d)"),
    ],
)
def test_other_names_are_understood(name, meant):
    assert parse(name) == parse(meant)


FILES = (Pattern("^src/a"), Pattern("^src/b"), Pattern("^src/c", grade=2))


@pytest.mark.parametrize(
    ("measure", "retrieved", "expected"),
    [
        # two results of file a are one file: a and c of three
        ("Coverage", ["src/a:1", "src/a:9", "src/c:3"], 2 / 3),
        ("Coverage@2", ["src/a:1", "src/a:9", "src/c:3"], 1 / 3),
        # pairs (c, a) and (c, b): a stands above c, b is not there
        ("PairOrder", ["src/a:1", "src/c:3"], 1 / 2),
        # the first result of c counts: it is above a
        ("PairOrder", ["src/c:3", "src/a:1", "src/c:9"], 2 / 2),
    ],
)
def test_files_by_pattern(measure, retrieved, expected):
    assert value(measure, None, retrieved, patterns=FILES) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("measure", "tokens", "expected"),
    [
        # x, y, one, two: 10 + 20 + 30
        ("TokensToHit", [10, 20, 30, 40], 60),
        ("TokensToHit(rel=2)", [10, 20, 30, 40], 100),
        # none is that relevant: the whole list
        ("TokensToHit(rel=3)", [10, 20, 30, 40], 100),
        # what stands below is not read; what stands above and has no cost makes the sum unknown
        ("TokensToHit", [10, 20, 30, None], 60),
        (
            "TokensToHit",
            [None, 20, 30, 40],
            "nothing was returned, or a result that is read has no token count",
        ),
    ],
)
def test_tokens_to_the_first_hit(measure, tokens, expected):
    hits = [Hit(doc, tokens=n) for doc, n in zip(["x", "y", "one", "two"], tokens, strict=True)]
    assert score(measure, ranking_of(GRADED, hits)) == expected


def test_a_run_without_costs_has_no_tokens_to_count():
    ranking = replace(ranking_of(GRADED, [Hit("one")]), tokens=None, tokens_returned=None)
    assert score("TokensToHit", ranking) == "the run has no token counts for its results"


def test_a_system_that_returns_nothing_does_not_win_on_tokens():
    testset = TestSet("two", (Query("q"), Query("r")), {"q": {"a": 1}, "r": {"a": 1}})
    answers = {"q": Answer(Outcome.ANSWERED, (Hit("a", tokens=5),)), "r": Answer(Outcome.EMPTY)}
    values, scored, _ = compute(parse("TokensToHit"), rank_run(testset, Run("run", answers), convention_named("trec")))
    assert (values.tolist(), scored.tolist()) == ([5.0, 0.0], [True, False])


def test_tied_share_counts_judged_results_only():
    # ranks 1 and 2 tie, rank 3 stands alone, ranks 4 and 5 tie; one, none and two are judged: one and two are tied
    scores = {"one": 9, "x": 9, "none": 7, "two": 5, "y": 5}
    ranking = ranking_of(GRADED, [Hit(doc, score) for doc, score in scores.items()], order="descending")
    assert score("Tied", ranking) == pytest.approx(2 / 3)
    assert score("Tied@3", ranking) == pytest.approx(1 / 2)


def test_pairs_are_counted_as_one_by_one():
    draw = random.Random(3)
    for _ in range(50):
        lists = [[draw.randint(0, 9) for _ in range(draw.randint(0, 12))] for _ in range(4)]
        query = np.repeat(np.arange(4), [len(one) for one in lists])
        counted = ascending_pairs(query, np.array(list(itertools.chain(*lists)), dtype=np.int64), 4)
        assert counted.tolist() == [sum(a < b for a, b in itertools.combinations(one, 2)) for one in lists]


def test_order_of_pairs_is_that_of_a_count_one_by_one():
    draw = random.Random(4)
    names = [f"d{i}" for i in range(20)]
    for _ in range(100):
        grades = {d: draw.choice([-1, 0, 0.25, 0.5, 1, 2, 3]) for d in draw.sample(names, draw.randint(2, 15))}
        retrieved = draw.sample(names, draw.randint(1, 18))
        place = {doc: rank for rank, doc in enumerate(retrieved)}
        pairs = [(a, b) for a, b in itertools.permutations(grades, 2) if grades[a] > grades[b] >= 0]
        in_order = sum(place.get(a, 99) < place.get(b, 99) for a, b in pairs)
        expected = in_order / len(pairs) if pairs else "no two of its items have different grades"
        assert value("PairOrder", grades, retrieved) == (pytest.approx(expected) if pairs else expected)


def test_a_gain_that_no_float_holds_has_no_value():
    assert value("DCG(dcg='exp-log2')", {"a": 5000}, ["a"]) == "its grades are too large for this gain"
