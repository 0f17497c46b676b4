"""trec_eval's measures beyond the core, worked by hand, each with its arithmetic."""

import random
from dataclasses import replace
from math import log, log2

import pytest

from cranfield.measures import CATALOGUE, compute, parse
from cranfield.model import Answer, Hit, Outcome, Pattern, Query, Run, TestSet, convention_named
from cranfield.ranking import rank_run

TREC = convention_named("trec")
NINE = replace(TREC, name="nine", iprec="up")


def rankings(grades, lists, convention=TREC, patterns=None):
    testset = TestSet("set", tuple(Query(q) for q in lists), grades, patterns or {})
    run = Run("run", {q: Answer(Outcome.ANSWERED, tuple(Hit(d) for d in docs)) for q, docs in lists.items()})
    return rank_run(testset, run, convention)


def value(measure, grades, retrieved, convention=TREC):
    values, scored, reasons = compute(parse(measure), rankings({"q": grades}, {"q": list(retrieved)}, convention))
    assert scored[0], reasons
    return float(values[0])


ABC = dict.fromkeys("abc", 1)
ABCD = dict.fromkeys("abcd", 1)
E = 1e-5  # infAP's smoothing
GRADED = {"a": 3, "b": 2, "c": 1}
TWO = {"a": 2, "b": 1}
TWO_IDEAL = 2 + 1 / log2(3)

CASES = [
    # R = 3: two of the first three are relevant
    ("Rprec", ABC, "axbc", 2 / 3),
    # a list shorter than R is still divided by R
    ("Rprec", ABC, "a", 1 / 3),
    ("Rprec", {"a": 0}, "a", 0.0),
    ("Rprec", ABC, "", 0.0),
    # one document of grade 2: R = 1, and rank 1 holds grade 1
    ("Rprec(rel=2)", {"a": 1, "b": 2}, "ab", 0.0),
    # floor(0.5 x 3 + 0.9) = 2
    ("RprecMult@0.5", ABC, "axbc", 1 / 2),
    # floor(0.2 x 3 + 0.9) = 1
    ("RprecMult@0.2", ABC, "axbc", 1.0),
    # floor(0.01 x 3 + 0.9) = 0: no rank, nothing there
    ("RprecMult@0.01", ABC, "abc", 0.0),
    # floor(1.2 x 3 + 0.9) = 4
    ("RprecMult@1.2", ABC, "axbcy", 3 / 4),
    # floor(2 x 3 + 0.9) = 6, of which four were returned
    ("RprecMult@2", ABC, "axbc", 3 / 6),
    ("RprecMult@1", {"a": 0}, "a", 0.0),
    # at most three of the first five can be relevant; at most two of the first two
    ("RelP@5", ABC, "axb", 2 / 3),
    ("RelP@2", ABC, "axb", 1 / 2),
    ("RelP@5", {"a": 0}, "a", 0.0),
    # R = 2, N = 3. a has one judged non-relevant above: 1 - 1/2. b has two: 1 - 2/2. Unjudged u counts for nothing
    ("Bpref", {"a": 1, "b": 1, "n": 0, "m": 0, "o": 0}, "naumb", (1 / 2 + 0) / 2),
    # N = 1: one above is all there are: 1 - min(1, 3) / min(1, 3)
    ("Bpref", ABC | {"n": 0}, "na", 0.0),
    # without a judged non-relevant document each relevant result counts 1
    ("Bpref", {"a": 1, "b": 1}, "uab", 1.0),
    ("Bpref", {"a": 1, "b": 1}, "ua", 1 / 2),
    # a grade under 0 is in the pool, and not judged
    ("Bpref", {"a": 1, "p": -1, "n": 0}, "pa", 1.0),
    # at rel=2 a grade of 1 is judged non-relevant: R = 1, N = 1
    ("Bpref(rel=2)", {"a": 2, "b": 1}, "ba", 0.0),
    ("Bpref", {"n": 0}, "n", 0.0),
    ("Bpref", ABC, "", 0.0),
    ("GMBpref", {"a": 1, "b": 1, "n": 0, "m": 0, "o": 0}, "naumb", 1 / 4),
    ("GMAP", {"a": 1, "z": 1}, "abc", 1 / 2),
    ("infAP", {"a": 1}, "a", 1.0),
    # u is outside the pool: 1/2 for a itself, nothing for the rank above
    ("infAP", {"a": 1}, "ua", 1 / 2),
    # p is in the pool, not judged: 1/2 + 1/2 x 1/1 x e / (0 + 2e)
    ("infAP", {"a": 1, "p": -1}, "pa", 1 / 2 + 1 / 2 * 1 / 2),
    # n is judged: 1/2 + 1/2 x 1/1 x e / (1 + 2e)
    ("infAP", {"a": 1, "n": 0}, "na", 1 / 2 + 1 / 2 * E / (1 + 2 * E)),
    # the second: 1/2 + 1/2 x 1/1 x (1 + e) / (1 + 2e)
    ("infAP", {"a": 1, "b": 1}, "ab", (1 + 1 / 2 + 1 / 2 * (1 + E) / (1 + 2 * E)) / 2),
    ("infAP", {"n": 0}, "n", 0.0),
    # R = 4, found at ranks 1, 3 and 6: precisions 1, 2/3, 3/6
    ("IPrec@0", ABCD, "axbyzc", 1.0),
    ("IPrec@0.25", ABCD, "axbyzc", 1.0),
    ("IPrec@0.5", ABCD, "axbyzc", 2 / 3),
    ("IPrec@0.75", ABCD, "axbyzc", 3 / 6),
    ("IPrec@1", ABCD, "axbyzc", 0.0),
    # the second is more precise than the first: 1/2, then 2/3
    ("IPrec@0.5", {"a": 1, "b": 1}, "xab", 2 / 3),
    ("IPrec@0.5", {"n": 0}, "n", 0.0),
    ("IPrec@0.5", ABC, "", 0.0),
    # half of one document is one document: found; half of three is two: not found
    ("IPrec@0.5", {"a": 1}, "xa", 1 / 2),
    ("IPrec@0.5", ABC, "a", 0.0),
    # R = 2, one found at rank 1: shares 0 to 0.7 ask for 0 or 1 document, 0.8 (of 2: 1.6) and on for 2
    ("AP11", {"a": 1, "b": 1}, "a", 8 / 11),
    # R = 1: every share is met at rank 2
    ("AP11", {"a": 1}, "xa", 1 / 2),
    ("AP11", ABC, "", 0.0),
    # b has one non-relevant result above it
    ("binG", {"a": 1, "b": 1}, "axb", (1 / log2(2) + 1 / log2(3)) / 2),
    ("binG", ABC, "xya", (1 / log2(4)) / 3),
    ("binG", {"n": 0}, "n", 0.0),
    # s = 1, R = 2: ln(2 / 2); s = 2: ln(3 / 1); s = 0, R = 1: ln(1 / 2); R = 0: ln(1 / 1)
    ("YAAP", {"a": 1, "b": 1}, "ax", 0.0),
    ("YAAP", {"a": 1, "b": 1}, "ab", log(3)),
    ("YAAP", {"a": 1}, "x", log(1 / 2)),
    ("YAAP", {"n": 0}, "n", 0.0),
    # the ideal list costs 3, 5; the results gain 2, 5: one behind, then none
    ("G", GRADED, "ba", (2 / log2(2 + 1) + 3 / log2(2 + 0)) / 6),
    # the ideal list costs 3, 5, 6, and 1 for the rank after it: 7 - 1 behind
    ("G", GRADED, "xyzc", (1 / log2(8)) / 6),
    # a better result that rises past a lesser one may gain less than the lesser loses
    ("G", GRADED, "cba", (1 / log2(2 + 2) + 2 / log2(2 + 2) + 3 / log2(2 + 0)) / 6),
    ("G", GRADED, "cab", (1 / log2(2 + 2) + 3 / log2(2 + 1) + 2 / log2(2 + 0)) / 6),
    # a gain under 1 costs 1 all the same: 1 - 0.5 behind
    ("G(gains={1: 0.5})", {"a": 1}, "a", (0.5 / log2(2.5)) / 0.5),
    ("G", {"n": 0}, "n", 0.0),
    ("G", GRADED, "", 0.0),
    # a at rank 2; b is not found, and takes nDCG at the end: the same
    ("nDCGRel", TWO, "xa", (2 / log2(3)) / TWO_IDEAL),
    # b at rank 1, where the ideal list has 2; a is not found
    ("nDCGRel", TWO, "bx", (1 / 2 + 1 / TWO_IDEAL) / 2),
    ("nDCGRel", {"n": 0}, "n", 0.0),
    ("nDCGRel", TWO, "", 0.0),
    # a gain under 0 at rank 1 leaves less than nothing
    ("nDCGRel(gains={0: -2})", {"a": 1, "n": 0}, "n", 0.0),
    # the ideal list falls after ranks 1 and 2
    ("RnDCG", TWO, "ba", (1 / 2 + (1 + 2 / log2(3)) / TWO_IDEAL) / 2),
    # one rank more is no end of its own ...
    ("RnDCG", TWO, "bxa", (1 / 2 + 1 / TWO_IDEAL) / 2),
    # ... two are
    ("RnDCG", TWO, "bxya", (1 / 2 + 1 / TWO_IDEAL + (1 + 2 / log2(5)) / TWO_IDEAL) / 3),
    # the list ends before the second fall
    ("RnDCG", TWO, "b", (1 / 2 + 1 / TWO_IDEAL) / 2),
    # two levels of one gain: one fall, after rank 2; the ideal list is 3, 3
    ("RnDCG(gains={1: 3, 2: 3})", TWO, "b", 3 / (3 + 3 / log2(3))),
    ("RnDCG(rel=3)", TWO, "ab", 0.0),
    ("RnDCG(gains={1: 0, 2: 0})", TWO, "abx", 0.0),
    ("RnDCG", {"n": 0}, "n", 0.0),
    ("IdealDCG", TWO, "x", TWO_IDEAL),
    ("IdealDCG@1", TWO, "x", 2.0),
    ("IdealDCG(dcg='exp-log2')", TWO, "x", 3 + 1 / log2(3)),
    ("IdealDCG", {"n": 0}, "n", 0.0),
    ("NumQ", ABC, "", 1.0),
    ("NumRet", {"a": 2, "b": 1}, "abx", 3.0),
    ("NumRet(rel=2)", {"a": 2, "b": 1}, "abx", 1.0),
    ("NumRet(judged_only=True)", {"a": 2, "b": 0, "p": -1}, "abpx", 2.0),
    ("NumRel", {"a": 2, "b": 1, "n": 0, "p": -1}, "", 2.0),
    ("NumRel(rel=2)", {"a": 2, "b": 1, "n": 0}, "", 1.0),
    ("NumRelRet", {"a": 2, "b": 1}, "ax", 1.0),
    ("NumRelRet(rel=2)", {"a": 2, "b": 1}, "ab", 1.0),
    # n is judged; x is not, and p is only pooled
    ("NumNonRelJudgedRet", {"a": 1, "n": 0, "p": -1}, "anpx", 1.0),
    ("NumNonRelJudgedRet(rel=2)", {"a": 1, "n": 0, "p": -1}, "anpx", 2.0),
    # one of three results, one of two documents
    ("SetP", {"a": 1, "b": 1}, "axy", 1 / 3),
    ("SetP(relative=True)", {"a": 1, "b": 1}, "axy", 1 / 2),
    ("SetRelP", ABC, "ax", 1 / 2),
    ("SetR", {"a": 1, "b": 1}, "axy", 1 / 2),
    ("SetAP", {"a": 1, "b": 1}, "axy", 1 / 3 * 1 / 2),
    ("SetF", {"a": 1, "b": 1}, "axy", 2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2)),
    # recall weighs twice, and beta is not squared
    ("SetF(beta=2)", {"a": 1, "b": 1}, "axy", 3 * (1 / 3) * (1 / 2) / (2 / 3 + 1 / 2)),
    ("SetF(beta=0)", {"a": 1, "b": 1}, "axy", 1 / 3),
    *((measure, {"n": 0}, "n", 0.0) for measure in ("SetP", "SetRelP", "SetR", "SetAP", "SetF")),
    *((measure, ABC, "", 0.0) for measure in ("SetP", "SetRelP", "SetR", "SetAP", "SetF")),
    # one relevant result, two others
    ("Utility", ABC | {"n": 0}, "anx", 1 - 2),
    ("Utility(found=3, wrong=-0.5)", ABC, "axy", 3 - 1),
    # b and c were missed
    ("Utility(missed=-2)", ABC, "axy", 1 - 2 - 2 * 2),
    # of ten documents 3 were returned and 2 missed: 5 spared
    ("Utility(spared=0.5, documents=10)", ABC, "axy", 1 - 2 + 0.5 * 5),
    ("Utility", ABC, "", 0.0),
    # x is not judged, p only pooled; three results are looked at, five ranks divided by
    ("Unjudged@5", {"a": 1, "p": -1}, "axp", 2 / 5),
    ("Unjudged@1", {"a": 1}, "ax", 0.0),
    ("Unjudged@5", ABC, "", 0.0),
    # the ranks after the list, 0.5^2, and x: (1 - 0.5) x 0.5
    ("RBPResidual(p=0.5)", {"a": 1}, "ax", 0.25 + 0.25),
    ("RBPResidual(p=0.5)", {"a": 1, "p": -1}, "pxa", 1 - 0.5 * 0.25),
    ("RBPResidual", {"a": 1}, "x", 0.9 + 0.1),
    # where every result is judged, the ranks after the list do not count
    ("RBPResidual", {"a": 1, "n": 0}, "an", 0.0),
    ("RBPResidual", ABC, "", 0.0),
]


@pytest.mark.parametrize(("measure", "grades", "retrieved", "expected"), CASES)
def test_value(measure, grades, retrieved, expected):
    assert value(measure, grades, retrieved) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("measure", "documents", "nearest", "up"),
    [
        # found at ranks 1 and 3: precisions 1 and 2/3. 0.4 x 3 = 1.2: one document, or floor(2.1) = 2
        ("IPrec@0.4", 3, 1.0, 2 / 3),
        # 0.6 x 3 = 1.8: two, and floor(2.7) = 2
        ("IPrec@0.6", 3, 2 / 3, 2 / 3),
        # 0.1 x 5 = 0.5: one, and floor(1.4) = 1
        ("IPrec@0.1", 5, 1.0, 1.0),
        # 0.3 x 4 = 1.2: one, or two
        ("IPrec@0.3", 4, 1.0, 2 / 3),
        # of 2: 0.1 to 0.7 ask for 0 or 1 document, the rest for 2; rounded up, 0.1 to 0.5 ask for 1
        ("AP11", 2, (8 * 1 + 3 * 2 / 3) / 11, (6 * 1 + 5 * 2 / 3) / 11),
    ],
)
def test_how_many_documents_a_share_of_the_recall_asks_for(measure, documents, nearest, up):
    grades = dict.fromkeys("abcde"[:documents], 1)
    assert value(measure, grades, "axb", TREC) == pytest.approx(nearest, abs=1e-12)
    assert value(measure, grades, "axb", NINE) == pytest.approx(up, abs=1e-12)


def test_how_values_are_summed_up():
    by = {"GMAP": "geometric mean", "GMBpref": "geometric mean", "NumRet": "sum", "NumQ": "sum", "Utility": "mean"}
    assert {name: CATALOGUE[name].aggregate for name in by} == by


def test_a_worth_of_what_was_spared_needs_the_size_of_the_collection():
    for measure in ("Utility(spared=0.5)", "Utility(spared=0.5, documents=2)"):  # three were returned
        _, scored, reasons = compute(parse(measure), rankings({"q": ABC}, {"q": list("axy")}))
        assert not scored[0]
        assert "documents=" in reasons["q"]


EVERY = {"q": (Pattern("^a", credit="every"),)}
COUNTED = {"q": (Pattern("^a", credit="every", expected_count=3),)}


@pytest.mark.parametrize(
    "measure",
    [
        "Rprec",
        "RprecMult@1",
        "RelP@5",
        "GMAP",
        "IPrec@0.5",
        "AP11",
        "binG",
        "YAAP",
        "G",
        "nDCGRel",
        "RnDCG",
        "IdealDCG",
        "NumRel",
        "SetRelP",
        "SetR",
        "SetAP",
        "SetF",
        "Utility(missed=-1)",
    ],
)
def test_a_measure_that_needs_a_count_has_no_value_without_one(measure):
    _, scored, reasons = compute(parse(measure), rankings({}, {"q": ["a1"]}, patterns=EVERY))
    assert not scored[0]
    assert "how many documents match" in reasons["q"]


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        # a1, b, a2 of three expected
        ("Rprec", 2 / 3),
        ("RelP@2", 1 / 2),
        ("IPrec@0.5", 2 / 3),
        ("binG", (1 + 1 / log2(3)) / 3),
        ("YAAP", log((1 + 1 + 2 / 3) / (1 + 3 - 1 - 2 / 3))),
        # none behind, then one: 3 - 2
        ("G", (1 + 1 / log2(3)) / 3),
        # at ranks 1 and 3; the third is not found
        ("nDCGRel", (1 + 2 * (1 + 1 / 2) / (1 + 1 / log2(3) + 1 / 2)) / 3),
        ("RnDCG", (1 + 1 / 2) / (1 + 1 / log2(3) + 1 / 2)),
        ("NumRel", 3.0),
        ("NumRelRet", 2.0),
        ("SetP", 2 / 3),
        ("SetR", 2 / 3),
        ("Utility(missed=-1)", 2 - 1 - 1),
    ],
)
def test_patterns_whose_matches_are_counted(measure, expected):
    values, scored, _ = compute(parse(measure), rankings({}, {"q": ["a1", "b", "a2"]}, patterns=COUNTED))
    assert scored[0]
    assert values[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("measure", ["Bpref", "GMBpref", "infAP", "NumNonRelJudgedRet", "Unjudged@5", "RBPResidual"])
def test_a_measure_of_what_nobody_judged_does_not_apply_to_patterns(measure):
    _, scored, reasons = compute(parse(measure), rankings({}, {"q": ["a1", "b"]}, patterns=COUNTED))
    assert not scored[0]
    assert "it is judged by a rule" in reasons["q"]


@pytest.mark.parametrize(("queries", "documents"), [(3, 40), (40, 6)])
def test_what_stands_beside_a_query_changes_nothing_to_the_last_bit(queries, documents):
    draw = random.Random(queries)
    names = [f"d{i}" for i in range(documents)]
    grades = {
        f"q{q}": {d: draw.choice([0, 1, 2, 5]) for d in draw.sample(names, documents // 2)} for q in range(queries)
    }
    lists = {q: draw.sample(names, draw.randint(1, documents)) for q in grades}
    for measure in map(parse, ("G", "nDCGRel", "RnDCG", "Bpref", "infAP", "AP11")):
        together, _, _ = compute(measure, rankings(grades, lists))
        alone = [compute(measure, rankings({q: grades[q]}, {q: lists[q]}))[0][0] for q in grades]
        assert together.tolist() == alone
