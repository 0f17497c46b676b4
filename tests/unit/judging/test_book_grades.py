"""The grades of a book: which source decides, and what becomes of documents without a grade."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from math import log2

import pytest
from tests.unit.judging.book_contents import SOURCE, book

from cranfield.app.evaluate import evaluate
from cranfield.app.loading import load
from cranfield.base.errors import UsageError
from cranfield.books.settings import SCALES, BookSettings, Mode
from cranfield.books.store.values import FrozenInfo
from cranfield.evaluation.testset.consensus import with_consensus
from cranfield.evaluation.testset.judging_notes import judging_notes
from cranfield.formats.convert import write_testset
from cranfield.judging.book.freeze import NoAgreementError, freeze
from cranfield.judging.book.grades import BothMeans, rated_book
from cranfield.judging.book.onto import put_onto
from cranfield.judging.use_cases import book_sensitivity
from cranfield.model import JudgingOverruled, Meta, Negative, Pattern, Query, Rating, TestSet

TODAY = date(2026, 11, 23)
BOOK = {
    "q1": {
        "a": {"ann": 3, "bob": 1, "carried": 0},
        "b": {"ann": 0, "bob": 3},
        "c": {"ann": "expert"},
        "d": {},
        "e": {"rule": 1, "gpt": 3},
        "f": {"carried": 2, "rule": 1},
        "g": {"gpt": 2},
    },
    "q2": {"a": {"ann": 2, "rule": 1}},
}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"a": 1, "b": 0, "c": -1, "d": -1, "e": 1, "f": 2, "g": -1}),  # the lower of two is the median
        ({"rule": "mean"}, {"a": 2, "b": 1.5, "c": -1, "d": -1, "e": 1, "f": 2, "g": -1}),
        ({"rule": "majority"}, {"a": 1, "b": -1, "c": -1, "d": -1, "e": 1, "f": 1, "g": -1}),  # b: tied
        ({"models": True}, {"a": 1, "b": 0, "c": -1, "d": -1, "e": 1, "f": 2, "g": 2}),
        ({"without": ("bob",)}, {"a": 3, "b": 0, "c": -1, "d": -1, "e": 1, "f": 2, "g": -1}),
    ],
)
def test_one_source_decides_and_what_nobody_judged_is_unjudged(options, expected):
    assert rated_book(book(BOOK), **options).testset.grades["q1"] == expected


def test_sources_that_say_otherwise_are_listed():
    found = rated_book(book(BOOK)).differences
    assert [(d.query_id, d.doc_id, d.grade, d.decided_by, d.other, d.rater) for d in found] == [
        ("q1", "a", 1, "person", 0, "carried"),
        ("q1", "e", 1, "rule", 3, "gpt"),
        ("q1", "f", 2, "carried", 1, "rule"),
        ("q2", "a", 2, "person", 1, "rule"),
    ]


def test_an_adjudicated_grade_wins_and_the_originals_are_kept():
    contents = book(BOOK, final={"q1": {"b": 2}})
    rated = rated_book(contents)
    assert rated.testset.grades["q1"]["b"] == 2
    assert rated.decided_by["q1", "b"] == "adjudicate"
    assert [(r.rater, r.grade, r.final) for r in rated.testset.ratings["q1"] if r.doc_id == "b"] == [
        ("ann", 0, False),
        ("bob", 3, False),
        ("lead", 2, True),
    ]
    assert rated_book(contents, adjudicated=False).testset.grades["q1"]["b"] == 0


def test_calibration_items_are_no_part_and_known_grades_of_the_pool_are_final():
    contents = book({"q": {"a": {"ann": 0}, "calibration-1": {"ann": 3}}}, gold={"q": {"a": 3, "calibration-1": 1}})
    rated = rated_book(contents)
    assert rated.testset.grades == {"q": {"a": 3}}
    assert rated.left_out == 1


def test_a_book_of_preferences_has_no_grades():
    with pytest.raises(UsageError, match="preferences"):
        rated_book(book(BOOK, settings=BookSettings(mode=Mode.PREFERENCE)))


def test_a_half_graded_book_is_frozen_only_when_that_is_allowed():
    with pytest.raises(UsageError, match="3 of 8 documents need a rater") as caught:
        freeze(book(BOOK), today=TODAY)
    assert "unjudged" in (caught.value.problems[0].hint or "")
    judging = freeze(book(BOOK), today=TODAY, allow_partial=True).testset.meta.judging
    assert dict(judging.coverage) == {
        "pooled": 8,
        "judged": 5,
        "by person": 3,
        "by rule": 1,
        "by carried": 1,
        "unjudged": 3,
        "unjudged: skipped": 1,
        "sources differ": 4,
    }
    assert judging.skipped == {"expert": 1}
    assert [(r.name, r.kind, r.n) for r in judging.raters] == [
        ("ann", "person", 3),
        ("bob", "person", 2),
        ("gpt", "model", 2),
        ("rule", "rule", 3),
        ("carried", "carried", 2),
    ]
    assert (judging.pool.method, judging.pool.depth, judging.pool.runs) == ("depth", 10, {"bm25": "sha256:1"})


def test_a_frozen_version_is_numbered_and_names_the_one_before():
    contents = book(BOOK)
    for version, previous in (("1", ""), ("2", "sha256:1"), ("3", "sha256:2")):
        frozen = tuple(FrozenInfo(number, f"sha256:{number}", {}, 0) for number in range(1, int(version)))
        testset = freeze(replace(contents, frozen=frozen), today=TODAY, allow_partial=True).testset
        assert (testset.version, testset.meta.previous) == (version, previous)


def test_a_book_without_persons_is_frozen_and_compared():
    contents = book({f"q{place}": {"a": {"rule": 1}, "b": {"carried": 0}} for place in range(6)})
    frozen = freeze(contents, today=TODAY).testset
    assert frozen.grades["q0"] == {"a": 1, "b": 0}
    assert frozen.meta.judging.agreement == ()
    runs = ({q: ["b", "a"] for q in frozen.query_ids}, {q: ["a", "b"] for q in frozen.query_ids})
    assert book_sensitivity(contents, runs).line == "Verdict unchanged under 5 of 5 (5 consensus rules)"


def test_nothing_graded_is_no_test_set():
    with pytest.raises(UsageError, match="has no grades"):
        freeze(book({"q": {"a": {}, "b": {"ann": "broken"}}}), today=TODAY, allow_partial=True)


def test_raters_have_pseudonyms_in_ratings_and_manifest():
    testset = freeze(book(BOOK, final={"q1": {"b": 2}}), today=TODAY, allow_partial=True, pseudonyms=True).testset
    names = {rating.rater for given in testset.ratings.values() for rating in given}
    assert names == {"rater 1", "rater 2", "rater 3", "carried", "rule"}
    assert "ann" not in str(testset)
    assert "lead" not in str(testset)


@pytest.mark.parametrize("rule", ["median", "mean", "majority", "searchtweak", "quepid"])
def test_a_frozen_book_is_read_back_and_evaluated_the_same(rule, tmp_path):
    frozen = freeze(book(BOOK, final={"q1": {"b": 2}}), today=TODAY, rule=rule, allow_partial=True).testset
    assert write_testset(frozen, tmp_path / "set.yaml") == ()
    again = load(tmp_path / "set.yaml")
    assert (again.grades, again.meta) == (frozen.grades, frozen.meta)
    assert again.digest == frozen.digest
    run = {"q1": ["a", "d", "b", "z"], "q2": ["a"]}
    assert evaluate(again, run, measures=["nDCG@3"]).mean("nDCG@3") == evaluate(frozen, run, measures=["nDCG@3"]).mean(
        "nDCG@3"
    )


def test_a_majority_on_the_detail_scale_is_read_back(tmp_path):
    contents = book({"q": {"a": {"ann": 1, "bob": 1}, "b": {"ann": 9}}}, settings=BookSettings(scale=SCALES["detail"]))
    frozen = freeze(contents, today=TODAY, rule="majority").testset
    assert frozen.grades == {"q": {"a": 0, "b": 1}}
    write_testset(frozen, tmp_path / "set.yaml")
    assert load(tmp_path / "set.yaml").grades == frozen.grades


POOLS = {
    "depth": "",
    "budget": "chosen by budget: complete to rank 3 of 10; below",
    "stratified": "complete to rank 3; deeper ranks are a sample",
    "holes": "chosen by effect on one comparison: not a sample",
}


@pytest.mark.parametrize("method", POOLS)
def test_what_limits_the_judgments_is_said(tmp_path, method):
    contents = book(
        BOOK,
        source={**SOURCE, "method": method, "complete_to": 3},
        guidelines=("Old.", "New."),
        versions={("q1", "b"): 2},
    )
    write_testset(freeze(contents, today=TODAY, allow_partial=True).testset, tmp_path / "set.yaml")
    notes = [str(note) for note in load(tmp_path / "set.yaml").notes]
    assert any(
        note.startswith("judgments of the book shop, version 1: 5 of 8 pooled documents judged") for note in notes
    )
    of_pool = [note for note in notes if note.startswith("the judged documents are a pool of bm25, ")]
    assert [POOLS[method] in note for note in of_pool] == ([True] if POOLS[method] else [])
    assert "grades not given by a person: 1 by carried and 1 by rule" in notes
    assert any("version 1 (3 grades) and version 2 (2 grades)" in note for note in notes)


def agreeing(n_equal, n):
    """Two raters of one query, equal on the first documents."""
    grades = [(place % 2, place % 2 if place < n_equal else 1 - place % 2) for place in range(n)]
    return {"q": {f"d{place:02}": {"ann": a, "bob": b} for place, (a, b) in enumerate(grades)}}


def test_a_freeze_is_refused_while_kappa_is_not_above_the_limit_and_its_interval_is_shown():
    settings = BookSettings(raters_per_item=2, kappa_limit=0.6)
    with pytest.raises(NoAgreementError, match=r"Cohen's kappa of ann and bob is 0\.6000, 95 % CI .* to .*, n=40"):
        freeze(book(agreeing(32, 40), settings=settings), today=TODAY)  # 32 of 40 agree, by chance 20: kappa 0.6
    found = freeze(book(agreeing(34, 40), settings=settings), today=TODAY)
    assert found.kappa is not None
    assert found.kappa.kappa.value == pytest.approx(0.7)
    with pytest.raises(NoAgreementError, match="two raters graded"):
        freeze(book({"q": {"a": {"ann": 1}}}, settings=settings), today=TODAY)


def test_documents_whose_grade_is_known_do_not_count_in_the_agreement_of_persons():
    known = {f"d{place:02}": 0 for place in range(32, 40)}  # where the two differ
    settings = BookSettings(raters_per_item=2, kappa_limit=0.6)
    kappa = freeze(book(agreeing(32, 40), gold={"q": known}, settings=settings), today=TODAY).kappa.kappa
    assert (kappa.value, kappa.n) == (1.0, 32)


def queries(n, **grades):
    return {f"q{place}": {doc: dict(given) for doc, given in grades.items()} for place in range(n)}


def test_the_verdict_under_each_rule_and_without_each_rater():
    judged = queries(8, good={"ann": 3, "bob": 3, "cas": 2}, bad={"ann": 0, "bob": 0, "cas": 0})
    runs = ({q: ["bad", "good"] for q in judged}, {q: ["good", "bad"] for q in judged})
    found = book_sensitivity(book(judged), runs, primary="nDCG@2")
    assert found.verdict.value == "better"
    assert found.line == "Verdict unchanged under 8 of 8 (5 consensus rules and 3 without one of the raters)"
    assert {row.name for row in found.sensitivity.variations} == {
        "median",
        "majority",
        "mean",
        "searchtweak",
        "quepid",
        "without ann",
        "without bob",
        "without cas",
    }


def test_a_verdict_that_one_rater_makes_is_seen():
    judged = queries(8, good={"ann": 3, "bob": 0}, bad={"ann": 0, "bob": 3})
    runs = ({q: ["bad", "good"] for q in judged}, {q: ["good", "bad"] for q in judged})
    found = book_sensitivity(book(judged), runs, primary="nDCG@2", rule="mean")
    assert found.verdict.value == "not_significant"
    verdicts = {row.name: row.verdict.value for row in found.sensitivity.variations}
    assert (verdicts["without ann"], verdicts["without bob"]) == ("worse", "better")
    means = dict(zip((row.name for row in found.sensitivity.variations), found.means, strict=True))
    assert means["without bob"] == BothMeans(pytest.approx(1 / log2(3)), 1)
    assert means["without ann"] == BothMeans(1, pytest.approx(1 / log2(3)))
    assert any(reason.startswith("consensus rule majority: ") for reason in found.sensitivity.left_out)  # all tied


OLD = TestSet(
    "shop",
    (Query("q1", "text of q1"), Query("q9", "nine")),
    {"q1": {"a": 0.0, "d": 2.0, "z": 1.0}, "q9": {"a": 1.0}},
    version="v3",
    meta=Meta(scale=(0.0, 1.0, 2.0, 3.0), review="reviewed"),
)


def test_a_book_put_onto_a_test_set_is_its_next_version_and_loses_no_judgment():
    frozen = freeze(book(BOOK), today=TODAY, allow_partial=True)
    merged = put_onto(OLD, book(BOOK), frozen, TODAY)
    assert merged.grades == {
        "q1": {"a": 1, "b": 0, "c": -1, "d": 2, "e": 1, "f": 2, "g": -1, "z": 1},  # d: unjudged in the book
        "q9": {"a": 1},
        "q2": {"a": 2},
    }
    assert (merged.version, merged.meta.previous, merged.meta.review) == ("v4", OLD.digest, "reviewed")
    assert merged.meta.judging == frozen.testset.meta.judging
    assert with_consensus(merged).grades == merged.grades


def test_another_consensus_is_refused():
    frozen = freeze(book(BOOK), today=TODAY, allow_partial=True)
    rated = replace(OLD, ratings={"q9": (Rating("a", "ann", 1.0),)}, consensus="mean")
    with pytest.raises(UsageError, match="became grades by mean"):
        put_onto(rated, book(BOOK), frozen, TODAY)


RULED = TestSet(
    "uris",
    (Query("q1"), Query("q2"), Query("q3")),
    targets={
        "q1": (Pattern("^[aef]$", grade=2.0), Pattern("^nobody$")),
        "q2": (Pattern("^a$"),),
        "q3": (Pattern("^x$"),),
    },
    version="1",
)


def test_queries_of_targets_that_persons_judged_are_judged_by_ids_and_others_stay():
    contents = book({"q1": BOOK["q1"], "q2": {"a": {"rule": 1}, "b": {}}})
    merged = put_onto(RULED, contents, freeze(contents, today=TODAY, allow_partial=True), TODAY)
    # a, f: graded by others than the rule; e: by the rule as the book has it; c, d, g: in the pool and unjudged, never 0
    grades = {"a": 1, "b": 0, "c": -1, "d": -1, "e": 1, "f": 2, "g": -1, "^nobody$": 1}
    assert merged.grades == {"q1": grades}
    assert merged.targets == {"q2": RULED.targets["q2"], "q3": RULED.targets["q3"]}
    judging = merged.meta.judging
    assert (judging.by_id, judging.unmatched) == (("q1",), ("^nobody$",))
    assert judging.overruled == (JudgingOverruled("q1", "a", 2, 1),)
    notes = " ".join(map(str, (*merged.notes, *judging_notes(merged))))
    assert "judged by document ids instead of targets: 1 query (q1)" in notes
    assert "still judged by targets, because the book has only grades of the rule: 1 query (q2)" in notes
    assert "because no pooled document matches them: 1 target (^nobody$)" in notes
    assert "1 document (q1 'a' 2, now 1)" in notes
    assert "grade 2, but raters may give up to 3" in notes
    assert "judged by document ids instead of targets: q1" in merged.meta.history[-1]


def test_a_query_where_nothing_should_be_found_stays_so_and_what_was_graded_there_is_listed():
    old = replace(OLD, queries=(*OLD.queries, Query("n", negative=Negative())))
    contents = book({"q1": {"a": {"ann": 1}}, "n": {"k": {"ann": 1}, "l": {"ann": 0}}})
    merged = put_onto(old, contents, freeze(contents, today=TODAY), TODAY)
    assert "n" not in {**merged.grades, **merged.ratings}
    assert any(
        "unchanged: 1 query (n); grades above 0 for these queries, not written: n 'k'" in str(note)
        for note in merged.notes
    )


def test_ids_that_would_be_matched_otherwise_are_refused():
    contents = book({"q1": {"a.py:1-5": {"ann": 1}}})
    items = tuple(replace(item, fields={"span": "1-5"}) for item in contents.items)
    contents = replace(contents, items=items)
    frozen = freeze(contents, today=TODAY)
    assert frozen.testset.matching.places
    old = replace(RULED, grades={"q9": {"manual:7": 1.0}}, queries=(*RULED.queries, Query("q9")))
    with pytest.raises(UsageError, match="q9 end in numbers"):
        put_onto(old, contents, frozen, TODAY)
