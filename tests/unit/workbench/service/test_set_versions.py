"""Versions of a test set that books make: nothing that was judged is lost, each has one number, and two runs of different
versions are compared on the newest."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.unit.workbench.service.shop import Shop, make_shop

from cranfield.base.errors import UsageError
from cranfield.books.store.rows import ChangedMeanwhileError
from cranfield.books.store.schema import Role
from cranfield.books.store.store import Store
from cranfield.measures import parse
from cranfield.model import Query, TestSet
from cranfield.workbench.service.hole_grades import compare_again, compare_on_newest, freeze_onto, grade_hole, hole_book
from cranfield.workbench.service.requests import ComparisonOptions, EvaluateRequest
from cranfield.workbench.service.responses import StoredSource
from cranfield.workbench.service.set_versions import baseline_for, newest
from cranfield.workbench.service.team_evaluation import NEW_BOOK, TeamRequest, start_evaluation
from cranfield.workbench.service.values import EvaluationInfo

OWN = "cranfield_testset: 1\nname: own\nqueries:\n- {{id: q1, text: red shoes, judgments: {{{}}}}}\n"


@pytest.fixture
def shop(sqlite_store: Store, tmp_path: Path) -> Shop:
    """A system that answers `red shoes` with a to d, and a lead."""
    return make_shop(sqlite_store, tmp_path, sqlite_store.people.add("lead", Role.LEAD).id)


def evaluated(shop: Shop, testset: str, k: int = 4) -> EvaluationInfo:
    job = shop.service.jobs.submit(EvaluateRequest(testset=testset, systems=("shop",), k=k, measures=("P@4",)))
    shop.work()
    return shop.service.evaluations.for_job(job.id)[0]


def uploaded(shop: Shop, *, boots: bool = False, **grades: float) -> None:
    queries = (Query("q1", "red shoes"), *([Query("q2", "boots")] if boots else []))
    testset = TestSet("shoes", queries, {"q1": grades, **({"q2": {"x": 1.0}} if boots else {})}, version="1")
    shop.service.testsets.keep("shoes", testset, by=shop.lead)


def frozen(shop: Shop, info: EvaluationInfo) -> dict[str, float]:
    """What the latest version judges after a freeze."""
    version = freeze_onto(shop.service, info, {info.system: shop.service.runs.load(info.run_id)}, shop.lead)
    grades = shop.service.testsets.load(version.name).grades["q1"]
    return {doc: grade for doc, grade in sorted(grades.items()) if grade >= 0}


def test_an_older_evaluation_adds_to_the_latest_version(shop: Shop) -> None:
    uploaded(shop, a=1.0)
    first = evaluated(shop, "shoes")
    uploaded(shop, a=1.0, b=0.0, c=1.0)
    second = evaluated(shop, "shoes")
    grade_hole(shop.service, second, "q1", "d", 1, shop.lead)
    assert frozen(shop, first) == {"a": 1.0, "b": 0.0, "c": 1.0, "d": 1.0}
    grade_hole(shop.service, first, "q1", "d", 0, shop.lead)
    assert frozen(shop, second) == {"a": 1.0, "b": 0.0, "c": 1.0, "d": 0.0}
    assert frozen(shop, first) == {"a": 1.0, "b": 0.0, "c": 1.0, "d": 0.0}
    versions = [info.version for info in shop.service.testsets.versions("shoes")]
    assert versions == ["3", "2", "1", "1"]  # the uploads declare 1; the last freeze had nothing new


def test_what_a_rater_took_back_is_judged_no_more(shop: Shop) -> None:
    uploaded(shop, a=1.0)
    info = evaluated(shop, "shoes")
    grade_hole(shop.service, info, "q1", "b", 1, shop.lead)
    grade_hole(shop.service, info, "q1", "c", 1, shop.lead)
    assert frozen(shop, info) == {"a": 1.0, "b": 1.0, "c": 1.0}
    book = hole_book(shop.service, info)
    assert book is not None
    items = {item.doc: item.id for item in shop.service.store.reading.items(book.id)}
    shop.service.store.books.reopen(book.id, {items["b"]: [shop.lead]}, shop.lead, "by mistake")
    assert frozen(shop, info) == {"a": 1.0, "c": 1.0}


def test_two_books_of_one_test_set_keep_what_the_other_judged(shop: Shop) -> None:
    uploaded(shop, a=1.0)
    info = evaluated(shop, "shoes")
    grade_hole(shop.service, info, "q1", "b", 1, shop.lead)
    assert frozen(shop, info) == {"a": 1.0, "b": 1.0}
    wanted = TeamRequest(
        name="mine", testset="shoes", systems=["shop"], k=4, measures="P@4", scale="binary", book=NEW_BOOK
    )
    (job,) = start_evaluation(shop.service, wanted, shop.lead)
    shop.work()
    (in_book,) = shop.service.evaluations.for_job(job.id)
    shop.grade("mine", "q1", c=(0,), d=(1,))
    assert frozen(shop, in_book) == {"a": 1.0, "b": 1.0, "c": 0.0, "d": 1.0}
    grade_hole(shop.service, info, "q1", "b", 0, shop.lead)
    assert frozen(shop, info) == {"a": 1.0, "b": 0.0, "c": 0.0, "d": 1.0}


def test_files_of_the_config_and_grades_of_books_are_both_in_the_newest_version(shop: Shop) -> None:
    first = evaluated(shop, "own")
    grade_hole(shop.service, first, "q1", "b", 1, shop.lead)
    assert frozen(shop, first) == {"a": 1.0, "b": 1.0}
    (shop.folder / "own.yaml").write_text(
        OWN.format("a: 0, b: 0, c: 1") + "- {id: q2, text: boots, judgments: {x: 1}}\n"
    )
    second = evaluated(shop, "own")
    assert frozen(shop, first) == {"a": 0.0, "b": 1.0, "c": 1.0}  # the author corrected a; of b a rater decides
    grade_hole(shop.service, second, "q1", "d", 0, shop.lead)
    assert frozen(shop, second) == {"a": 0.0, "b": 1.0, "c": 1.0, "d": 0.0}
    (shop.folder / "own.yaml").write_text(OWN.format("a: 0"))
    assert newest(shop.service, "own (judged)").query_ids == ("q1",)
    assert frozen(shop, first) == {"a": 0.0, "b": 1.0, "d": 0.0}  # c was taken out of the file


def test_an_evaluation_of_other_queries_is_scored_on_those_that_it_asked(shop: Shop) -> None:
    uploaded(shop, a=1.0)
    info = evaluated(shop, "shoes")
    uploaded(shop, a=1.0, boots=True)
    grade_hole(shop.service, info, "q1", "b", 1, shop.lead)
    part = freeze_onto(shop.service, info, {}, shop.lead)
    assert part.name == "shoes (shared queries)"
    assert shop.service.testsets.load(part.ref).query_ids == ("q1",)
    assert shop.service.testsets.load("shoes").query_ids == ("q1", "q2")
    shop.service.testsets.keep(
        "shoes", TestSet("shoes", (Query("q1", "blue shoes"),), {"q1": {"a": 1.0}}), by=shop.lead
    )
    with pytest.raises(UsageError, match=f"the newest version, was answered by #{info.id}"):
        freeze_onto(shop.service, info, {}, shop.lead)


def test_versions_that_are_made_at_once_have_a_number_each_and_lose_nothing(shop: Shop) -> None:
    uploaded(shop, a=1.0)
    info = evaluated(shop, "shoes")
    grade_hole(shop.service, info, "q1", "b", 1, shop.lead)

    def grade_and_freeze(doc: str) -> None:
        grade_hole(shop.service, info, "q1", doc, 1, shop.lead)
        freeze_onto(shop.service, info, {}, shop.lead)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(grade_and_freeze, "bcd"))
    assert frozen(shop, info) == {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}
    versions = [each.version for each in shop.service.testsets.versions("shoes")]
    assert len(versions) == len(set(versions))
    with pytest.raises(ChangedMeanwhileError, match="another version of the test set shoes"):
        shop.service.testsets.keep("shoes", TestSet("shoes", (Query("q", "x"),), {}), source=StoredSource.BOOK, after=1)


def test_runs_of_different_versions_are_compared_on_the_newest(shop: Shop) -> None:
    service = shop.service
    first = evaluated(shop, "own")
    service.evaluations.pin(first.id)
    grade_hole(service, first, "q1", "b", 1, shop.lead)
    shop.answers(red_shoes="dcba")
    job = compare_again(service, first, evaluated(shop, "own"), shop.lead)
    shop.work()
    on_judged = service.comparisons.get(service.jobs.get(job.id).results[0]).candidate
    assert (on_judged.testset_name, baseline_for(service, on_judged)) == (
        "own (judged)",
        service.evaluations.get(first.id),
    )
    assert baseline_for(service, service.evaluations.get(first.id)) is None  # not itself
    (shop.folder / "own.yaml").write_text(OWN.format("a: 1, c: 1"))
    third = evaluated(shop, "own", k=2)
    compared = compare_on_newest(service, first, third, shop.lead, ComparisonOptions(measure="P@2"))
    shop.work()
    (number,) = service.jobs.get(compared.id).results
    found = service.comparisons.get(number)
    # a, b and c are relevant: a b at first, d c then
    assert found.baseline.scores.measures[parse("P@4")].mean == 3 / 4
    assert (found.record.primary, found.difference.delta) == (parse("P@2"), -1 / 2)
    assert compare_on_newest(service, first, third, shop.lead, ComparisonOptions(measure="P@2")).id == compared.id
