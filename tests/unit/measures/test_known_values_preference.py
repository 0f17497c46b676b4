"""Preferences and several judges: values worked by hand, each with its arithmetic."""

import pytest

from cranfield.measures import compute, parse
from cranfield.model import Answer, GroupedJudgment, Hit, Outcome, Query, Run, TestSet, convention_named
from cranfield.ranking import rank_run


def judged(text, grouping):
    """`group/subgroup A=3 B=2; group C=1` as judgments."""
    judgments = []
    for part in text.split(";"):
        group, *values = part.split()
        name, _, subgroup = group.partition("/")
        judgments += [
            GroupedJudgment(doc, name, float(value), subgroup) for doc, value in (one.split("=") for one in values)
        ]
    best = {}
    for one in sorted(judgments, key=lambda one: one.doc_id):
        best[one.doc_id] = max(one.value, best.get(one.doc_id, one.value))
    return TestSet("one", (Query("q"),), {"q": best}, groups={"q": tuple(judgments)}, grouping=grouping)


def values(measure, testset, retrieved):
    run = Run("run", {q: Answer(Outcome.ANSWERED, tuple(map(Hit, retrieved))) for q in testset.query_ids})
    return compute(parse(measure), rank_run(testset, run, convention_named("trec")))


def value(measure, testset, retrieved):
    found, scored, _ = values(measure, testset, retrieved)
    assert scored[0]
    return float(found[0])


CHAIN = "one A=3 B=2 C=0"
OPPOSED = "one A=2 B=1 C=1; two B=2 A=1"
SIX = "u/s d1=3 d2=2 d3=0 d4=6 d5=0 d6=2"
PARTIAL = "u/s1 d1=3 d2=2 d3=1; u/s2 d2=5 d4=4"

PREFERENCES = [
    # A before B and C: two of three; C before B
    ("NumPref", CHAIN, "ACB", 3),
    ("NumPrefMet", CHAIN, "ACB", 2),
    ("Pref", CHAIN, "ACB", 2 / 3),
    ("PrefRet", CHAIN, "ACB", 2 / 3),
    # B alone: A > B fails, B > C is met, A > C is of two that were not returned
    ("NumPrefMet", CHAIN, "B", 1),
    ("NumPrefMetRet", CHAIN, "B", 0),
    ("Pref", CHAIN, "B", 1 / 3),
    ("PrefImp", CHAIN, "B", 1 / 2),
    ("PrefRet", CHAIN, "B", 0),
    # unjudged results do not count, wherever they stand
    ("Pref", CHAIN, "xAyCzB", 2 / 3),
    # two who disagree on A and B: met are A > B and A > C of three
    ("Pref", OPPOSED, "ABC", 2 / 3),
    # (A, B) satisfies one of two, (A, C) its one: (1/2 + 1) / 2
    ("PrefPair", OPPOSED, "ABC", 3 / 4),
    # C not returned: (A, C) is still met by A; of what was returned whole, (A, B) alone
    ("PrefPair", OPPOSED, "AB", 3 / 4),
    ("PrefPairRet", OPPOSED, "AB", 1 / 2),
    # C alone: (A, C) fails, (A, B) was not returned: 0 of 2 pairs, or of the one that was returned by half
    ("PrefPair", OPPOSED, "C", 0),
    ("PrefPairImp", OPPOSED, "A", (1 / 2 + 1) / 2),
    # 2 of 2, and 0 of 1
    ("PrefGroup", OPPOSED, "ABC", 1 / 2),
    # neither has a pair returned whole: both are 0
    ("PrefGroupRet", OPPOSED, "A", 0),
    ("PrefGroupImp", OPPOSED, "B", (0 / 1 + 1 / 1) / 2),
    # 5 with d4 preferred, 4 with d1, 2 each with d2 and d6
    ("NumPref", SIX, "x", 13),
    # d1 > d2, d1 > d3, d2 > d3, d2 > d4, and d1 > d4 follows; nothing between d3 and d4
    ("NumPref", PARTIAL, "x", 5),
    ("Pref", PARTIAL, ["d1", "d2", "d4", "d3"], 1),
    ("Pref", PARTIAL, ["d4", "d1"], (1 + 1) / 5),  # d1 > d2 and d1 > d3 are met by d1 alone; d4 stands before d1
    ("PrefPair", PARTIAL, ["d4", "d1"], 2 / 5),
    ("PrefGroup", PARTIAL, ["d4", "d1"], 2 / 5),
    # one relevant document and none that is not: one is added below it
    ("PrefGroupBalanced", "one A=1", "A", 1 / 1),
    ("PrefGroupBalanced", "one A=1", "x", 0 / 1),
    ("PrefGroupBalancedRet", "one A=1 B=2", "A", 1 / 2),  # R - N = 1 returned: 1 * 1 of 2 * 1
    # one relevant, two not: the first of these is used, and meets both of them, in order 0 times of 2
    ("PrefGroupBalanced", "one A=1 B=0 C=0", "ABC", (1 + 0) / (1 + 2)),
    ("PrefGroupBalanced", "one A=1 B=0 C=0", "BAC", 0),
    # two relevant, three not, all returned: 4 of 4 with C and D; of C, D, E against C and D in order: C before D
    ("PrefGroupBalanced", "one A=1 B=1 C=0 D=0 E=0", "ABCDE", (4 + 1) / (4 + 6)),
    # with subgroups only pairs that somebody ordered: A > B and A > C, of which A > C is left out
    ("PrefGroupBalanced", "one/s A=1 B=0; one/t A=1 C=0", "BAC", 0 / 1),
    ("PrefGroupBalanced", "one/s A=1 B=0; one/t A=1 C=0", "ABC", 1 / 1),
    ("PrefGroupBalancedRet", "one/s A=1 B=0; one/t A=1 C=0", "ABC", 1 / 1),
    # a group without a pair makes the query's value 0, as in trec_eval
    ("PrefGroupBalanced", "one A=1; two B=0", "AB", 0),
]


@pytest.mark.parametrize(("measure", "judgments", "retrieved", "expected"), PREFERENCES)
def test_preferences(measure, judgments, retrieved, expected):
    assert value(measure, judged(judgments, "preference"), list(retrieved)) == pytest.approx(expected, abs=1e-12)


TWO = "ann A=1 B=0; bob A=0 B=2"

JUDGES = [
    # found at rank 1 by one, at rank 2 by the other
    ("APJudge", TWO, "AB", (1 / 1 + 1 / 2) / 2),
    ("APJudge(rel=2)", TWO, "AB", (0 + 1 / 2) / 2),
    ("PJudge@1", TWO, "AB", (1 + 0) / 2),
    ("PJudge@4", TWO, "AB", (1 / 4 + 1 / 4) / 2),
    ("RprecMultJudge@1", TWO, "BA", (0 + 1) / 2),
    # half of one document is one: floor(0.5 * 1 + 0.9)
    ("RprecMultJudge@0.5", TWO, "BA", (0 + 1) / 2),
    # ann judged A only, and bob B only: each list is of one result
    ("APJudge", "ann A=1; bob B=1", "xBA", (1 / 3 + 1 / 2) / 2),
    ("APJudge(own_list=True)", "ann A=1; bob B=1", "xBA", 1),
    ("PJudge(own_list=True)@1", "ann A=1; bob B=0 A=0", "BA", (1 + 0) / 2),
    # a grade under 0 is no judgment
    ("APJudge(own_list=True)", "ann A=1 B=-1", "BA", 1),
    ("APJudge", "ann A=1 B=-1", "BA", 1 / 2),
]


@pytest.mark.parametrize(("measure", "judgments", "retrieved", "expected"), JUDGES)
def test_judges(measure, judgments, retrieved, expected):
    assert value(measure, judged(judgments, "judge"), list(retrieved)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("measure", "grouping", "why"),
    [
        ("Pref", "preference", "it has no preferences"),
        ("NumPref", "preference", "it has no preferences"),
        ("PrefPair", "preference", "it has no preferences"),
        ("PrefGroupBalanced", "preference", "it has no preferences"),
        ("APJudge", "judge", "it has no judgments by judge"),
        ("Pref", "judge", "the test set has no preferences"),
        ("APJudge", None, "the test set has no judgments by judge"),
    ],
)
def test_a_query_nobody_judged_that_way_has_no_value(measure, grouping, why):
    groups = {"q1": (GroupedJudgment("A", "one", 1.0), GroupedJudgment("B", "one", 0.0))} if grouping else {}
    grades = {"q1": {"A": 1.0, "B": 0.0}, "q2": {"A": 1.0}}
    testset = TestSet("two", (Query("q1"), Query("q2")), grades, groups=groups, grouping=grouping)
    _, scored, reasons = values(measure, testset, ["A", "B"])
    assert not scored[1]
    assert reasons["q2"] == why


def test_preferences_that_follow_from_others_reach_any_distance():
    # a chain of pairs d0 > d1, d1 > d2, …: 20 documents, 20 * 19 / 2 preferences
    links = "; ".join(f"u/s{i} d{i:02}={2} d{i + 1:02}={1}" for i in range(19))
    testset = judged(links, "preference")
    assert value("NumPref", testset, ["d00"]) == 190
    assert value("Pref", testset, [f"d{i:02}" for i in range(20)]) == 1
    assert value("Pref", testset, [f"d{i:02}" for i in reversed(range(20))]) == 0
