"""Measures of a book that is being judged, by the rules of SearchTweak and by hand arithmetic: null apart from 0."""

from __future__ import annotations

from math import log2

import pytest
from tests.unit.workbench.service.shop import grade

from cranfield.books.settings import SCALES, BookSettings
from cranfield.books.store.schema import Action
from cranfield.books.store.values import SaveRequest
from cranfield.judging.book.grades import contents_of
from cranfield.model import Answer, Hit, Outcome, Query, Run, TestSet
from cranfield.workbench.service.live_measures import evaluate_in_book, judged_so_far, live_measures
from cranfield.workbench.service.snapshot import empty_pool, take_snapshot
from cranfield.workbench.service.team_evaluation import keyword_testset

N = None


@pytest.fixture
def store(sqlite_store):
    return sqlite_store


def run_of(**answers) -> Run:
    records = {
        query.replace("_", " "): Answer(
            Outcome.ANSWERED if docs else Outcome.EMPTY, tuple(Hit(doc, title=f"Title {doc}") for doc in docs)
        )
        for query, docs in answers.items()
    }
    return Run("shop", records, order="given")


def book_of(store, testset, scale="binary", raters=3, consensus="searchtweak", depth=4):
    settings = BookSettings(
        scale=SCALES[scale], raters_per_item=raters, most_raters=raters, escalate_from=50, consensus=consensus
    )
    return store.books.create("shoes", empty_pool(testset, depth, "shoes"), settings)


def rows(store, book, testset, run, measures, convention="searchtweak"):
    evaluation = evaluate_in_book(store, book.id, testset, run, measures, convention)
    return {str(row.measure): row for row in live_measures(evaluation, run, None).rows}


RED = keyword_testset("shoes", ["red shoes", "boots", "laces"])
RUN = run_of(red_shoes="abcd", boots="xy", laces="")
MEASURES = ["P@4", "AP@4", "RR@4", "nDCG@4", "DCG@2"]


def test_nothing_graded_is_null_and_not_0(store):
    book = book_of(store, RED)
    take_snapshot(store, book.id, RED, {"shop": RUN}, 4)
    found = rows(store, book, RED, RUN, MEASURES)
    assert [row.mean for row in found.values()] == [N] * 5
    assert {(row.n, row.n_null) for row in found.values()} == {(0, 3)}
    assert (found["P@4"].n_shown, found["P@4"].n_judged) == (6, 0)


@pytest.mark.parametrize("scale", ["binary", "graded", "detail"])
def test_the_first_grade_changes_the_scale_of_no_measure(store, scale):
    book = book_of(store, RED, scale=scale, raters=1)
    take_snapshot(store, book.id, RED, {"shop": RUN}, 4)
    measures = ["P@4", "AP@4", "nDCG@4", "CG@4", "Judged@4"]
    before = rows(store, book, RED, RUN, measures)
    assert (before["P@4"].scale, before["nDCG@4"].scale, before["CG@4"].scale) == ("binary", "graded", "graded")
    grade(store, book, "red shoes", a=(1,))
    after = rows(store, book, RED, RUN, measures)
    assert {name: row.scale for name, row in before.items()} == {name: row.scale for name, row in after.items()}


@pytest.mark.parametrize("measures", [["CG(d)@4"], ["CG(d)@4", "CG@4"], ["P@4", "DCG(d)@2", "CG@4", "CG(d)@4"]])
def test_the_first_grade_changes_no_row_of_the_detail_scale(store, measures):
    book = book_of(store, RED, scale="detail", raters=1)
    take_snapshot(store, book.id, RED, {"shop": RUN}, 4)
    before = rows(store, book, RED, RUN, measures)
    assert list(before) == measures
    assert {row.scale for name, row in before.items() if "(d)" in name} == {"detail"}
    assert {row.mean for row in before.values()} == {N}
    grade(store, book, "red shoes", a=(1,))
    after = rows(store, book, RED, RUN, measures)
    assert [(name, row.scale) for name, row in before.items()] == [(name, row.scale) for name, row in after.items()]


def test_before_the_first_grade_no_warning_says_that_measures_are_not_on_the_detail_scale(store):
    book = book_of(store, RED, scale="detail", raters=1)
    take_snapshot(store, book.id, RED, {"shop": RUN}, 4)
    evaluation = evaluate_in_book(store, book.id, RED, RUN, ["CG(d)@4"], "searchtweak")
    assert not [line for line in evaluation.warnings if "detail scale" in line]


def test_other_conventions_compute_on_the_scale_of_the_grades(store):
    book = book_of(store, RED, raters=1)
    take_snapshot(store, book.id, RED, {"shop": RUN}, 4)
    assert {row.scale for row in rows(store, book, RED, RUN, ["P@4", "nDCG@4"], "trec").values()} == {""}


def test_grades_arrive_one_by_one(store):
    book = book_of(store, RED)
    take_snapshot(store, book.id, RED, {"shop": RUN}, 4)
    grade(store, book, "red shoes", a=(1, 1, 0), b=(1, 0), d=(0, N, N))
    found = rows(store, book, RED, RUN, MEASURES)
    # a: majority 1; b: a tie, null; c: ungraded; d: 0. P over the two graded positions, AP with strict ranks over the one found
    assert (found["P@4"].mean, found["MAP@4"].mean, found["MRR@4"].mean) == (1 / 2, 1.0, 1.0)
    row = found["P@4"]
    assert (row.scale, row.n, row.n_null, row.n_shown, row.n_judged, row.n_rated, row.n_ties) == (
        "binary",
        1,
        2,
        6,
        2,
        3,
        1,
    )
    # on the graded scale a vote is 3 or 0: a 2, b 1.5 (no tie of a mean), c adds 0, d 0
    assert found["DCG@2"].mean == pytest.approx(2 + 1.5 / log2(3))
    assert found["nDCG@4"].mean == pytest.approx((2 + 1.5 / log2(3)) / (2 + 1.5 / log2(3)))
    assert found["nDCG@4"].n_ties == 0
    grade(store, book, "boots", x=(0, 0, 0), y=(N, N, N))
    found = rows(store, book, RED, RUN, MEASURES)
    # boots is graded and nothing is relevant: 0, which counts; laces has no result: null
    assert (found["P@4"].mean, found["MAP@4"].mean, found["P@4"].n, found["P@4"].n_null) == (1 / 4, 1 / 2, 2, 1)


def test_average_precision_takes_what_is_ungraded_as_0(store):
    book = book_of(store, RED, raters=1)
    take_snapshot(store, book.id, RED, {"shop": RUN}, 4)
    grade(store, book, "red shoes", b=(1,), d=(1,))
    found = rows(store, book, RED, RUN, ["AP@4", "P@4", "RR@4"])
    assert found["MAP@4"].mean == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert (found["P@4"].mean, found["MRR@4"].mean) == (1.0, 1 / 2)


def test_a_detail_scale_is_mapped_for_each_measure(store):
    book = book_of(store, RED, scale="detail", raters=2)
    take_snapshot(store, book.id, RED, {"shop": RUN}, 4)
    grade(store, book, "red shoes", a=(1, 8), b=(10, 5), c=(1, 1))
    found = rows(store, book, RED, RUN, ["P@4", "CG@4", "CG(d)@4"])
    # binary: a 0 and 1, a tie; b 1; c 0. graded: a 0 and 3, b 3 and 2, c 0. detail: 4.5, 7.5, 1
    assert [found[name].mean for name in ("P@4", "CG@4", "CG(d)@4")] == [1 / 2, 1.5 + 2.5, 4.5 + 7.5 + 1]
    assert [found[name].scale for name in ("P@4", "CG@4", "CG(d)@4")] == ["binary", "graded", "detail"]


def test_a_rerun_opens_only_what_is_new(store):
    book = book_of(store, RED, raters=1)
    take_snapshot(store, book.id, RED, {"shop": RUN}, 4)
    take_snapshot(store, book.id, RED, {"shop": RUN}, 4)
    assert store.books.get(book.id).n_items == 6
    grade(store, book, "red shoes", a=(1,), b=(0,))
    later = run_of(red_shoes="bea", boots="x", laces="z")
    wider = keyword_testset("shoes", ["red shoes", "boots", "laces", "soles"])
    info = take_snapshot(store, book.id, wider, {"later": later}, 4)
    assert info.n_items == 8
    assert [run["name"] for run in info.source["runs"]] == ["shop", "later"]
    open_now = {item.doc for item in store.reading.items(book.id) if not item.ratings}
    assert open_now == {"c", "d", "e", "x", "y", "z"}
    assert rows(store, book, wider, later, ["P@3"])["P@3"].mean == 1 / 2
    assert rows(store, book, RED, RUN, ["P@3"])["P@3"].mean == 1 / 2


def test_a_document_that_has_changed_is_stale(store):
    book = book_of(store, RED, raters=1)
    take_snapshot(store, book.id, RED, {"shop": RUN}, 4)
    (item,) = [item for item in store.reading.items(book.id) if item.doc == "a"]
    from cranfield.judging.documents.texts import DocumentTexts

    rater = store.people.add("ann")
    shown = DocumentTexts().get("a", item.fields).digest
    store.log.save(SaveRequest(book.id, item.id, rater.id, Action.GRADE, "k", 1, doc_digest=shown))
    changed = run_of(red_shoes="a")
    changed = Run("shop", {"red shoes": Answer(Outcome.ANSWERED, (Hit("a", title="Another title"),))}, order="given")
    take_snapshot(store, book.id, RED, {"shop": changed}, 4)
    found = store.reading.item(item.id)
    assert (found.fields["title"], [row.stale for row in found.ratings]) == ("Another title", [True])


def test_judgments_of_the_test_set_are_carried_over(store):
    judged = TestSet("shoes", (Query("q", "red shoes"),), {"q": {"a": 2.0, "far": 3.0}})
    book = book_of(store, judged, scale="graded", raters=1, consensus="median")
    run = run_of(q="ab")
    take_snapshot(store, book.id, judged, {"shop": run}, 2)
    assert {item.doc: [row.kind.value for row in item.ratings] for item in store.reading.items(book.id)} == {
        "a": ["carried"],
        "b": [],
    }
    # far is known of the test set alone, and counts in the ideal
    found = rows(store, book, judged, run, ["nDCG@2", "R@2"], "trec")
    assert found["nDCG@2"].mean == pytest.approx(2 / (3 + 2 / log2(3)))
    assert found["R@2"].mean == 1 / 2
    grade(store, book, "q", b=(3,))
    assert judged_so_far(judged, contents_of(store, book.id)).grades == {"q": {"a": 2.0, "far": 3.0, "b": 3.0}}
    evaluation = evaluate_in_book(store, book.id, judged, run, ["R@2"], "trec", depth=2)
    assert evaluation.mean("R@2") == pytest.approx(2 / 3)


def test_no_result_at_all(store):
    book = book_of(store, RED)
    nothing = run_of(red_shoes="", boots="", laces="")
    take_snapshot(store, book.id, RED, {"shop": nothing}, 4)
    assert {(row.mean, row.n_null, row.n_shown) for row in rows(store, book, RED, nothing, MEASURES).values()} == {
        (None, 3, 0)
    }
    assert store.books.get(book.id).n_items == 0


def test_progress_of_each_query(store):
    book = book_of(store, RED, raters=1)
    take_snapshot(store, book.id, RED, {"shop": RUN}, 4)
    grade(store, book, "red shoes", a=(1,), b=(0,))
    evaluation = evaluate_in_book(store, book.id, RED, RUN, ["P@4"], "searchtweak", depth=4)
    found = live_measures(evaluation, RUN, 4)
    assert found.progress == {"red shoes": (2, 4), "boots": (0, 2), "laces": (0, 0)}
    measure = found.evaluation.measures[0]
    assert [found.value(measure, query) for query in found.texts] == [1 / 2, None, None]
