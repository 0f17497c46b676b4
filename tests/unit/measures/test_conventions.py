"""Every choice of a convention, by a value worked by hand; and what each named convention makes of the same results."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from math import log2
from typing import get_args, get_type_hints

import pytest

from cranfield.evaluation.margins import unjudged_margin
from cranfield.evaluation.testset.consensus import with_consensus
from cranfield.measures import compute, parse
from cranfield.model import (
    CONVENTIONS,
    Answer,
    Convention,
    Hit,
    Outcome,
    Pattern,
    Query,
    Rating,
    Run,
    TestSet,
    convention_named,
)
from cranfield.model.convention import CHOICES, RANKING_CHOICES, differing, with_choice
from cranfield.ranking import rank_file, rank_run

TREC = CONVENTIONS["trec"]


def under(**choices):
    """`trec` with some choices of its own."""
    return replace(TREC, name="other", **choices)


def ranking_of(grades, retrieved, rules, *, patterns=None, outcome=Outcome.ANSWERED, query_id="q"):
    testset = TestSet(
        "one", (Query("q"),), {} if patterns else {"q": grades}, {"q": tuple(patterns)} if patterns else {}
    )
    run = Run("run", {query_id: Answer(outcome, tuple(Hit(doc_id) for doc_id in retrieved))})
    return rank_run(testset, run, rules)


def value(spelling, grades, retrieved, rules=TREC, **options):
    """One query's value; the reason where it has none."""
    values, scored, reasons = compute(parse(spelling), ranking_of(grades, retrieved, rules, **options))
    return float(values[0]) if scored[0] else reasons["q"]


# Choice by choice ----------------------------------------------------------------------------------------------------

GRADED = {"a": 3, "b": 2, "c": 1, "n": 0}
# a at rank 1, n at 2, b at 3; c is not retrieved, u nobody judged
FOUND = ["a", "n", "b"]


@pytest.mark.parametrize(
    ("spelling", "retrieved", "choices", "trec", "other"),
    [
        # gain: (3 + 2/2) and (7 + 3/2), over (3 + 2/log2(3) + 1/2) and (7 + 3/log2(3) + 1/2)
        (
            "nDCG@3",
            FOUND,
            {"gain": "exponential"},
            (3 + 2 / 2) / (3 + 2 / log2(3) + 1 / 2),
            (7 + 3 / 2) / (7 + 3 / log2(3) + 1 / 2),
        ),
        # gain 1 for each of the three: (1 + 1/2) / (1 + 1/log2(3) + 1/2)
        (
            "nDCG@3",
            FOUND,
            {"gain": "match"},
            (3 + 2 / 2) / (3 + 2 / log2(3) + 1 / 2),
            (1 + 1 / 2) / (1 + 1 / log2(3) + 1 / 2),
        ),
        # 2^g - 1 once, whichever way it is asked for
        (
            "nDCG(dcg='exp-log2')@3",
            FOUND,
            {"gain": "exponential"},
            (7 + 3 / 2) / (7 + 3 / log2(3) + 1 / 2),
            (7 + 3 / 2) / (7 + 3 / log2(3) + 1 / 2),
        ),
        # ideal: at cutoff 2 the judged two best are 3 + 2/log2(3); uncut 1/2 more
        ("nDCG@2", FOUND, {"ideal": "judged uncut"}, 3 / (3 + 2 / log2(3)), 3 / (3 + 2 / log2(3) + 1 / 2)),
        # ideal of what was retrieved: 3 and 2 re-sorted; at cutoff 2 the 3 alone
        ("nDCG@3", FOUND, {"ideal": "retrieved"}, 4 / (3 + 2 / log2(3) + 1 / 2), 4 / (3 + 2 / log2(3))),
        ("nDCG@2", FOUND, {"ideal": "retrieved"}, 3 / (3 + 2 / log2(3)), 1.0),
        ("nDCG", FOUND, {"ideal": "retrieved"}, 4 / (3 + 2 / log2(3) + 1 / 2), 4 / (3 + 2 / log2(3))),
        ("nDCG@3", FOUND, {"ideal": "one"}, 4 / (3 + 2 / log2(3) + 1 / 2), 4.0),
        # unjudged: u at rank 1 is not relevant, or not there
        ("RR", ["u", "a"], {"unjudged": "condensed"}, 1 / 2, 1.0),
        ("P@2", ["u", "a", "b"], {"unjudged": "condensed"}, 1 / 2, 2 / 2),
        ("P@2", ["u", "a"], {"unjudged": "unscored"}, 1 / 2, 1 / 2),
        ("P@2", ["u", "v", "a"], {"unjudged": "unscored"}, 0.0, "nothing within the cutoff is judged"),
        ("AP", ["u", "v", "a"], {"unjudged": "unscored"}, (1 / 3) / 3, (1 / 3) / 3),
        ("Judged@2", ["u", "v"], {"unjudged": "unscored"}, 0.0, 0.0),  # it says how far the others can be trusted
        ("Judged@2", ["u", "a"], {"unjudged": "condensed"}, 1 / 2, 1 / 2),
        # P@5 of three results, one of them unjudged, two relevant
        ("P@5", ["a", "u", "b"], {"precision_over": "judged"}, 2 / 5, 2 / 2),
        ("P@5", ["a", "u", "b"], {"precision_over": "returned"}, 2 / 5, 2 / 3),
        ("P@2", ["a", "u", "b"], {"precision_over": "returned"}, 1 / 2, 1 / 2),
        ("P@2", ["u", "v"], {"precision_over": "judged"}, 0.0, 0.0),  # none judged: nothing over nothing
        # AP over the three relevant, or the two that were found; within a cutoff, the one
        ("AP", ["a", "u", "b"], {"average_precision_over": "found"}, (1 + 2 / 3) / 3, (1 + 2 / 3) / 2),
        ("AP@2", ["a", "u", "b"], {"average_precision_over": "found"}, 1 / 3, 1.0),
        # RR: the first relevant result is at rank 4
        ("RR", ["u", "v", "n", "a"], {"rr_depth": 3}, 1 / 4, 0.0),
        ("RR@3", ["u", "v", "n", "a"], {"rr_depth": 4}, 0.0, 0.0),
        ("RR@9", ["u", "v", "n", "a"], {"rr_depth": 4}, 1 / 4, 1 / 4),
        # two decimals, halves up: 1/3 and 2/3; .125 is .13
        ("P@3", ["a"], {"decimals": 2}, 1 / 3, 0.33),
        ("P@3", ["a", "b"], {"decimals": 2}, 2 / 3, 0.67),
        ("P@8", ["a"], {"decimals": 2}, 0.125, 0.13),
        ("Judged@3", ["a", "u", "v"], {"decimals": 2}, 1 / 3, 1 / 3),
    ],
)
def test_a_choice(spelling, retrieved, choices, trec, other):
    assert value(spelling, GRADED, retrieved) == pytest.approx(trec, abs=1e-12)
    changed = value(spelling, GRADED, retrieved, under(**choices))
    assert changed == (other if isinstance(other, str) else pytest.approx(other, abs=1e-12))


@pytest.mark.parametrize(
    ("choices", "grades", "retrieved", "outcome", "trec", "other"),
    [
        ({"failed": "skip"}, {"a": 1}, [], Outcome.TIMEOUT, 0.0, "the system failed on it"),
        ({"failed": "skip"}, {"a": 1}, [], Outcome.NONZERO_EXIT, 0.0, "the system failed on it"),
        ({"failed": "skip"}, {"a": 1}, [], Outcome.EMPTY, 0.0, 0.0),
        ({"empty": "skip"}, {"a": 1}, [], Outcome.EMPTY, 0.0, "nothing was returned"),
        ({"empty": "skip"}, {"a": 1}, [], Outcome.TIMEOUT, 0.0, 0.0),
        ({"no_relevant": "skip"}, {"a": 0}, ["a"], Outcome.ANSWERED, 0.0, "judged, none relevant"),
        ({"no_relevant": "skip"}, {"a": 1}, ["x"], Outcome.ANSWERED, 0.0, 0.0),
    ],
)
@pytest.mark.parametrize("spelling", ["P@5", "RR", "AP", "nDCG@10", "R@10", "Success@5"])
def test_a_query_that_earned_nothing_counts_as_0_or_has_no_value(
    spelling, choices, grades, retrieved, outcome, trec, other
):
    assert value(spelling, grades, retrieved, outcome=outcome) == trec
    assert value(spelling, grades, retrieved, under(**choices), outcome=outcome) == other


def test_what_is_relevant_is_what_the_measure_says():
    rules = under(no_relevant="skip")
    assert value("P(rel=2)@5", {"a": 1}, ["a"], rules) == "judged, none relevant"
    assert value("P@5", {"a": 1}, ["a"], rules) == 1 / 5


def test_a_missing_query_is_no_empty_answer():
    rules = under(empty="skip", failed="skip")
    testset = TestSet("two", (Query("q"), Query("r")), {"q": {"a": 1}, "r": {"a": 1}})
    run = Run("run", {"r": Answer(Outcome.ANSWERED, (Hit("a"),))})
    values, scored, _ = compute(parse("RR"), rank_run(testset, run, rules, missing="zero"))
    assert (values.tolist(), scored.tolist()) == ([0.0, 1.0], [True, True])


def test_where_truth_is_a_pattern_every_result_is_judged():
    # b matches, x and y do not: 1 of 3 judged results within 3, and no result is left out of the list
    for choices in ({"precision_over": "judged"}, {"unjudged": "condensed"}, {"unjudged": "unscored"}):
        assert value("P@3", None, ["x", "y", "b"], under(**choices), patterns=[Pattern("^b")]) == pytest.approx(1 / 3)
        assert value("RR", None, ["x", "y", "b"], under(**choices), patterns=[Pattern("^b")]) == pytest.approx(1 / 3)
    assert value("RR(judged_only=True)", None, ["x", "b"], patterns=[Pattern("^b")]) == 1 / 2


def test_when_every_match_is_paid_recall_counts_an_item_no_oftener_than_it_was_expected():
    # two results are the one item, the other item is not found: 1 of 2 found; nDCG counts both of them
    patterns = [Pattern("^a", grade=2, expected_count=1), Pattern("^b", expected_count=1)]
    rules = under(credit="every")
    assert value("R@10", None, ["a1", "a2"], rules, patterns=patterns) == 1 / 2
    assert value("nDCG@10", None, ["a1", "a2"], rules, patterns=patterns) == pytest.approx(
        (2 + 2 / log2(3)) / (2 + 1 / log2(3))
    )
    several = [Pattern("^a", expected_count=3)]
    assert value("R@10", None, ["a1", "a2"], rules, patterns=several) == pytest.approx(2 / 3)


# A run file, under each choice of the door ---------------------------------------------------------------------------

LINES = """\
q Q0 a 1 1.0 t
q Q0 b 4 1.00000001 t
q Q0 c 3 2.0 t
q Q0 d 2 2.0 t
"""


@pytest.mark.parametrize(
    ("choices", "order"),
    [
        ({}, "dcba"),  # by score; d and c tie, d is the larger id
        ({"ties": "ascending"}, "cdba"),
        ({"ties": "given"}, "cdba"),
        ({"file_order": "given"}, "abcd"),
        ({"file_order": "rank"}, "adcb"),
        ({"score_width": 32}, "dcba"),  # b and a tie, b is the larger id
        ({"score_width": 32, "ties": "ascending"}, "cdab"),
        ({"score_width": 32, "ties": "given"}, "cdab"),
    ],
)
def test_the_order_of_a_run_file(tmp_path, choices, order):
    path = tmp_path / "a.run"
    path.write_text(LINES)
    for document in "abcd":
        testset = TestSet("set", (Query("q"),), {"q": {document: 1}})
        values, _, _ = compute(parse("RR"), rank_file(testset, path, under(**choices)).ranking)
        assert values[0] == 1 / (order.index(document) + 1)


def test_ties_of_rr_with_a_cutoff_fall_the_other_way_and_no_other_measure_does(tmp_path):
    path = tmp_path / "a.run"
    path.write_text("q Q0 a 1 1.0 t\nq Q0 b 2 1.0 t\nq Q0 c 3 1.0 t\n")
    testset = TestSet("set", (Query("q"),), {"q": {"a": 1}})
    ranking = rank_file(testset, path, convention_named("ir_measures")).ranking
    # descending: c b a; ascending: a b c
    found = {spelling: float(compute(parse(spelling), ranking)[0][0]) for spelling in ("RR", "RR@10", "AP", "P@1")}
    assert found == {"RR": 1 / 3, "RR@10": 1.0, "AP": 1 / 3, "P@1": 0.0}


# Names ---------------------------------------------------------------------------------------------------------------


def test_every_name_asked_for_is_there_and_trec_is_all_defaults():
    names = (
        "trec trec9 trec10 ir_measures ranx msmarco sklearn searchtweak cupertino octocode knowcode quepid opensearch"
    )
    assert list(CONVENTIONS) == names.split()
    assert replace(TREC, name="", sentence="", phrase="") == Convention("", "")
    assert differing(TREC, convention_named("trec10")) == ()


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("trec9", {"score_width": 32, "missing": "skip", "iprec": "up"}),
        ("ir_measures", {"score_width": 32, "orders": "ir_measures", "iprec": "up"}),
        ("ranx", {"iprec": "up"}),
        ("msmarco", {"ties": "ascending"}),
        ("sklearn", {"ties": "expected"}),
        (
            "searchtweak",
            {
                "file_order": "rank",
                "missing": "skip",
                "unjudged": "unscored",
                "ideal": "retrieved",
                "precision_over": "judged",
                "average_precision_over": "found",
                "failed": "skip",
                "empty": "skip",
            },
        ),
        ("cupertino", {"file_order": "given", "credit": "every", "gain": "match", "ideal": "one", "rr_depth": 10}),
        ("octocode", {"file_order": "given", "credit": "every", "rr_depth": 20, "failed": "skip"}),
        ("knowcode", {"file_order": "given", "repeats": "kept", "credit": "every"}),
        ("quepid", {"gain": "exponential", "ideal": "judged uncut", "precision_over": "returned"}),
        ("opensearch", {"gain": "exponential", "precision_over": "returned", "decimals": 2}),
    ],
)
def test_a_name_stands_for_these_choices_and_the_rest_are_those_of_trec(name, choices):
    convention = convention_named(name)
    assert {choice: getattr(convention, choice) for choice in differing(TREC, convention)} == choices


def test_a_convention_holds_still_and_every_choice_is_one_of_its_literals():
    with pytest.raises(FrozenInstanceError):
        TREC.gain = "match"
    hints = get_type_hints(Convention)
    for convention in CONVENTIONS.values():
        for choice in CHOICES:
            allowed = get_args(hints[choice])
            held = getattr(convention, choice)
            assert held in allowed or any(isinstance(kind, type) and isinstance(held, kind) for kind in allowed)
    assert {field.name for field in fields(Convention)} == {"name", "phrase", "sentence", "names", *CHOICES}
    assert set(CHOICES) > RANKING_CHOICES


@pytest.mark.parametrize("choice", CHOICES)
def test_only_choices_of_the_door_make_another_ranking(choice):
    rules = {other.name: with_choice(TREC, choice, other) for other in CONVENTIONS.values()}
    if choice not in RANKING_CHOICES:
        for convention in rules.values():
            ranking = ranking_of({"a": 2}, ["x", "a"], convention)
            assert ranking.gain.tolist() == ranking_of({"a": 2}, ["x", "a"], TREC).gain.tolist()
            assert ranking.rank.tolist() == [2]
    assert any(getattr(convention, choice) != getattr(TREC, choice) for convention in rules.values()) == (
        choice not in UNUSED
    )


UNUSED = {"duplicates", "no_relevant"}
"""Choices that no named convention makes otherwise than `trec`: whoever needs one makes a convention of their own."""


# The same results under every name -----------------------------------------------------------------------------------

SPREAD = {"a": 3, "b": 2, "c": 1, "d": 1, "n": 0}
LISTED = ["u", "b", "n", "c"]
# gains 0 (unjudged), 2, 0, 1 at ranks 1 to 4; a and d are not found. nDCG@3: 2/log2(3) over 3 + 2/log2(3) + 1/2.
DCG_3 = 2 / log2(3)
BEST_3 = 3 + 2 / log2(3) + 1 / 2


@pytest.mark.parametrize(
    ("name", "ndcg", "p", "ap", "rr"),
    [
        # P@5: two relevant of 5; AP: (1/2 + 2/4) / 4; RR: 1/2
        *((name, DCG_3 / BEST_3, 2 / 5, 1 / 4, 1 / 2) for name in ("trec", "trec9", "trec10", "ir_measures", "ranx")),
        *((name, DCG_3 / BEST_3, 2 / 5, 1 / 4, 1 / 2) for name in ("msmarco", "sklearn", "octocode", "knowcode")),
        # the ideal of what is within 3 is the 2 at rank 1; 2 of 3 judged; AP over the two found
        ("searchtweak", DCG_3 / 2, 2 / 3, (1 / 2 + 2 / 4) / 2, 1 / 2),
        # one match at rank 2 within 3: 1/log2(3), over 1
        ("cupertino", 1 / log2(3), 2 / 5, 1 / 4, 1 / 2),
        # gains 7, 3, 1, 1: 3/log2(3) over 7 + 3/log2(3) + 1/2, and 1/log2(5) for d at rank 4; two of the four returned
        ("quepid", 3 / log2(3) / (7 + 3 / log2(3) + 1 / 2 + 1 / log2(5)), 2 / 4, 1 / 4, 1 / 2),
        # the ideal cut at 3: 1.89279 / 9.39279 = .20152, to two decimals
        ("opensearch", 0.2, 2 / 4, 0.25, 0.5),
    ],
)
def test_one_list_under_every_convention(name, ndcg, p, ap, rr):
    rules = convention_named(name)
    found = [value(spelling, SPREAD, LISTED, rules) for spelling in ("nDCG@3", "P@5", "AP", "RR@10")]
    assert found == pytest.approx([ndcg, p, ap, rr], abs=1e-12)


def test_cumulative_gain_sums_the_ratings_where_discounted_gain_has_exponential_gains():
    # Quepid's CG@4 of ratings 0, 2, 0, 1 is their sum; its DCG@4 is (2^2 - 1)/log2(3) + (2^1 - 1)/log2(5)
    quepid = convention_named("quepid")
    assert value("CG@4", SPREAD, LISTED, quepid) == 3.0
    assert value("DCG@4", SPREAD, LISTED, quepid) == pytest.approx(3 / log2(3) + 1 / log2(5), abs=1e-15)


@pytest.mark.parametrize(
    ("name", "near_tie", "tie", "tie_within_10", "share"),
    [
        # a scores 1.00000001 and b 1, a is relevant: at 64 bits it is first, at 32 they tie and b is the larger id.
        # c and d both score 1, c is relevant: descending it is second, ascending first.
        # Relevant at ranks 1 and 4 of four: .3 of them is 1.2 results, to the nearest 1 (precision 1), up 2 (2/4).
        # trec9 and trec10 print these with trec_eval 9.0.8 and 10.0; ir_measures those with its 0.4.3.
        ("trec", 1.0, 1 / 2, 1 / 2, 1.0),
        ("trec10", 1.0, 1 / 2, 1 / 2, 1.0),
        ("trec9", 1 / 2, 1 / 2, 1 / 2, 2 / 4),
        ("ir_measures", 1 / 2, 1 / 2, 1.0, 2 / 4),
        ("ranx", 1.0, 1 / 2, 1 / 2, 2 / 4),
        ("msmarco", 1.0, 1.0, 1.0, 1.0),
    ],
)
def test_one_run_file_under_the_conventions_of_tools_that_read_one(tmp_path, name, near_tie, tie, tie_within_10, share):
    lines = ["near Q0 a 1 1.00000001 t", "near Q0 b 2 1.0 t", "tie Q0 c 1 1.0 t", "tie Q0 d 2 1.0 t"]
    lines += [f"share Q0 {doc_id} {9 - score} {score} t" for doc_id, score in (("e", 8), ("x", 7), ("y", 6), ("f", 5))]
    path = tmp_path / "a.run"
    path.write_text("\n".join(lines) + "\n")
    grades = {"near": {"a": 1}, "tie": {"c": 1}, "share": dict.fromkeys("efgh", 1)}
    ranking = rank_file(TestSet("set", tuple(map(Query, grades)), grades), path, convention_named(name)).ranking
    rr, rr_10, iprec = (compute(parse(spelling), ranking)[0].tolist() for spelling in ("RR", "RR@10", "IPrec@0.3"))
    assert [rr[0], rr[1], rr_10[1], iprec[2]] == pytest.approx([near_tie, tie, tie_within_10, share])


# SearchTweak: slots of judgments at each position, None where nobody judged ---------------------------------------------


def tweaked(spelling, *slots, scale="binary", to=None):
    """A measure of the aggregated values at ranks 1, 2, …"""
    documents = [f"d{place}" for place in range(1, len(slots) + 1)]
    ratings = tuple(
        Rating(doc, f"rater {number}", grade)
        for doc, one in zip(documents, slots, strict=True)
        for number, grade in enumerate(one if isinstance(one, list) else [one])
    )
    rated = TestSet("rated", (Query("q"),), {}, ratings={"q": ratings})
    grades = with_consensus(rated, "searchtweak", to=to, scale=scale).grades.get("q", {})
    return value(spelling, grades, documents, convention_named("searchtweak"))


NULL = "nothing within the cutoff is judged"
DCG_4 = 3 + 2 / log2(3) + 1 / 2  # 4.7619


@pytest.mark.parametrize(
    ("spelling", "slots", "expected"),
    [
        # relevant at 1, 3 and 5 of five: (1/1 + 2/3 + 3/5) / 3 = .7556
        ("AP@5", [1, 0, 1, 0, 1], (1 + 2 / 3 + 3 / 5) / 3),
        # majorities 1, 0 and a tie: one relevant of two judged
        ("P@3", [[1, 1, 0], [0, 0, 1], [1, 0, None]], 1 / 2),
        # AP takes the same tie at rank 2 for 0, and keeps the rank: (1/1 + 2/3) / 2
        ("AP@3", [1, [1, 0], 1], (1 + 2 / 3) / 2),
        ("P@3", [1, [1, 0], 1], 2 / 2),
        ("P@3", [None, None, 1], 1 / 1),
        ("AP@3", [None, None, 1], 1 / 3),
        ("RR@3", [None, 0, 1], 1 / 3),
        # nothing is graded: no value; something is, and nothing relevant: 0
        *((spelling, [None, None, None], NULL) for spelling in ("P@3", "AP@3", "RR@3", "CG@3", "DCG@3", "nDCG@3")),
        *((spelling, [[1, 0], [0, 1]], NULL) for spelling in ("P@3", "AP@3", "RR@3")),
        *((spelling, [None, 0, None], 0.0) for spelling in ("P@3", "AP@3", "RR@3", "CG@3", "DCG@3", "nDCG@3")),
        # what is graded lies beyond the cutoff
        ("P@2", [None, None, 1], NULL),
        ("nDCG@2", [None, None, 1], NULL),
    ],
)
def test_searchtweak_on_the_binary_scale(spelling, slots, expected):
    found = tweaked(spelling, *slots)
    assert found == (expected if isinstance(expected, str) else pytest.approx(expected, abs=1e-12))


@pytest.mark.parametrize(
    ("spelling", "slots", "expected"),
    [
        ("CG@4", [3, 2, 1, 0], 6.0),
        ("DCG@4", [3, 2, 1, 0], DCG_4),
        ("nDCG@4", [3, 2, 1, 0], 1.0),
        # an ungraded position adds nothing: 3 + 1/log2(4), over 3 + 1/log2(3)
        ("DCG@3", [3, None, 1], 3 + 1 / 2),
        ("nDCG@3", [3, None, 1], (3 + 1 / 2) / (3 + 1 / log2(3))),
        # the results re-sorted are the ideal, so a list of all 1 has 1
        ("nDCG@3", [1, 1, 1], 1.0),
        # several graders: the mean, 2.5 and 1 at ranks 2 and 1: (1 + 2.5/log2(3)) / (2.5 + 1/log2(3))
        ("nDCG@2", [[1, 1], [3, 2, None]], (1 + 2.5 / log2(3)) / (2.5 + 1 / log2(3))),
    ],
)
def test_searchtweak_on_the_graded_scale(spelling, slots, expected):
    assert tweaked(spelling, *slots, scale="graded") == pytest.approx(expected, abs=1e-12)


def test_searchtweak_err():
    # (2^g - 1) / 2^3: 7/8, 3/8, 1/8, 0. 7/8 + (1/2)(1/8)(3/8) + (1/3)(1/8)(5/8)(1/8) = .9017
    by_hand = 7 / 8 + (1 / 8) * (3 / 8) / 2 + (1 / 8) * (5 / 8) * (1 / 8) / 3
    assert tweaked("ERR(max_rel=3)@4", 3, 2, 1, 0, scale="graded") == pytest.approx(by_hand, abs=1e-12)
    assert round(by_hand, 4) == 0.9017


def test_the_published_roundings_of_searchtweak():
    assert round(tweaked("AP@5", 1, 0, 1, 0, 1), 4) == 0.7556
    assert round(tweaked("DCG@4", 3, 2, 1, 0, scale="graded"), 4) == 4.7619


@pytest.mark.parametrize(
    ("spelling", "scale", "to", "slots", "expected"),
    [
        # detail to binary, slot by slot: 1, 5, 8 is 0, 1, 1: relevant; 1, 1, 10 is not; 1, 2 is a tie
        ("P@3", "detail", "binary", [[1, 5, 8], [1, 1, 10], [1, 2]], 1 / 2),
        # detail to graded: 1, 2-4, 5-7, 8-10 is 0 to 3: grades 3, 2, 1, 0
        ("DCG@4", "detail", "graded", [8, 7, 4, 1], DCG_4),
        # the detail scale itself: 10 + 1/log2(3)
        ("DCG(d)@2", "detail", None, [10, 1], 10 + 1 / log2(3)),
        ("CG(d)@2", "detail", None, [10, 1], 11.0),
        ("nDCG(d)@2", "detail", None, [1, 10], (1 + 10 / log2(3)) / (10 + 1 / log2(3))),
        ("DCG@2", "binary", "graded", [1, 0], 3.0),
        ("P@2", "graded", "binary", [1, 0], 1 / 2),
    ],
)
def test_searchtweak_maps_scales_before_anything_else(spelling, scale, to, slots, expected):
    assert tweaked(spelling, *slots, scale=scale, to=to) == pytest.approx(expected, abs=1e-12)


def test_searchtweak_means_are_over_queries_that_have_a_value():
    queries = ("good", "ungraded", "nothing", "failed", "bad")
    answers = {
        "good": Answer(Outcome.ANSWERED, (Hit("a"),)),
        "ungraded": Answer(Outcome.ANSWERED, (Hit("u"),)),
        "nothing": Answer(Outcome.EMPTY),
        "failed": Answer(Outcome.TIMEOUT),
        "bad": Answer(Outcome.ANSWERED, (Hit("n"),)),
    }
    testset = TestSet("set", tuple(map(Query, queries)), {query: {"a": 1, "n": 0} for query in queries})
    run = Run("run", answers)
    means = {}
    for name in ("searchtweak", "trec"):
        values, scored, _ = compute(parse("P@1"), rank_run(testset, run, convention_named(name)))
        means[name] = float(values[scored].mean())
    assert means == {"searchtweak": 1 / 2, "trec": 1 / 5}  # 1 and 0; 1, 0, 0, 0 and 0


def test_bounds_know_that_judging_gives_searchtweak_a_value():
    # nothing judged: no value now; were both judged, P@2 is 0 to 1
    margin = unjudged_margin(parse("P@2"), ranking_of({"z": 1}, ["u", "v"], convention_named("searchtweak")))
    assert (margin.low.tolist(), margin.high.tolist()) == ([0.0], [1.0])


def test_a_value_too_great_to_be_rounded_stays_as_it_is():
    ranking = ranking_of({"a": 1}, ["a"], convention_named("opensearch"))
    values, scored, _ = compute(parse("CG(gains={1: 1e307})"), ranking)
    assert (values.tolist(), scored.tolist()) == ([1e307], [True])
