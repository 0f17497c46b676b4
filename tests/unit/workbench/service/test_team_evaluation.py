"""A whole evaluation: keywords in, a job, a book, grades, measures, a second run, a frozen version, a comparison."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from tests.unit.workbench.service.shop import Shop, make_shop

from cranfield.app.loading import load
from cranfield.base.errors import UsageError
from cranfield.books.store.schema import Role
from cranfield.books.store.store import Store
from cranfield.measures import parse
from cranfield.workbench.server.evaluations import request_of
from cranfield.workbench.service.hole_grades import (
    compare_again,
    freeze_onto,
    grade_hole,
    hole_book,
    hole_levels,
    new_grades,
)
from cranfield.workbench.service.requests import CompareRequest, EvaluateRequest
from cranfield.workbench.service.systems import chosen_systems
from cranfield.workbench.service.team_evaluation import NEW_BOOK, NO_BOOK, OWN_SCALE, TeamRequest, start_evaluation
from cranfield.workbench.service.uploads import Upload, save_testset


@pytest.fixture
def shop(sqlite_store: Store, tmp_path: Path) -> Shop:
    """A system, and a lead."""
    return make_shop(sqlite_store, tmp_path, sqlite_store.people.add("lead", Role.LEAD).id)


WANTED = TeamRequest(
    name="shoes",
    keywords="red shoes\nboots\nlaces\n",
    systems=["shop"],
    k=4,
    measures="P@4, AP@4 nDCG@4",
    scale="binary",
    raters=2,
    guideline="Be kind.\r\nRead.",
)


def started(shop, **changes):
    (job,) = start_evaluation(shop.service, WANTED.model_copy(update=changes), shop.lead)
    return job


def evaluations(shop):
    return {info.id: info for job in shop.work() for info in shop.service.evaluations.for_job(job.id)}


def live(shop, info):
    return {str(row.measure): row for row in shop.service.evaluations.live(info).rows}


def test_from_keywords_to_measures(shop):
    started(shop)
    (info,) = evaluations(shop).values()
    book = shop.service.store.books.get("shoes")
    assert (info.testset_name, info.system, info.book_id) == ("shoes", "shop", book.id)
    assert {str(measure): each.mean for measure, each in info.scores.measures.items()} == {
        "P@4": None,
        "AP@4": None,
        "nDCG@4": None,
    }
    assert (book.n_queries, book.n_items, book.guideline) == (2, 6, "Be kind.\nRead.")
    assert (book.settings.scale.name, book.settings.raters_per_item, book.settings.consensus) == (
        "binary",
        2,
        "searchtweak",
    )
    shop.grade("shoes", "red shoes", a=(1, 1), b=(1, 0), c=(0, 0))
    found = live(shop, info)
    assert [found[name].mean for name in ("P@4", "MAP@4")] == [1 / 2, 1.0]
    assert (found["P@4"].n_null, found["P@4"].n_ties, found["P@4"].n_judged) == (2, 1, 2)
    again = shop.service.evaluations.rescore(info.id)
    assert again.mean("P@4") == 1 / 2


def test_a_second_run_carries_grades_over(shop):
    started(shop)
    (first,) = evaluations(shop).values()
    shop.grade("shoes", "red shoes", a=(1, 1), b=(0, 0))
    shop.answers(red_shoes="bea", boots="x", soles="z")
    (job,) = start_evaluation(
        shop.service,
        WANTED.model_copy(update={"keywords": "red shoes\nboots\nsoles", "book": "shoes"}),
        shop.lead,
    )
    assert job.request.testset.startswith("shoes@")
    (second,) = evaluations(shop).values()
    assert (second.book_id, second.testset_id == first.testset_id) == (first.book_id, False)
    items = shop.service.store.reading.items(first.book_id)
    assert {item.doc for item in items if not item.ratings} == {"c", "d", "e", "x", "y", "z"}
    # b 0, e open, a 1
    assert live(shop, second)["P@4"].mean == 1 / 2
    assert live(shop, second)["MAP@4"].mean == pytest.approx(1 / 3)
    assert live(shop, first)["MAP@4"].mean == 1.0


@pytest.mark.slow
def test_two_runs_of_a_book_are_compared_by_frozen_grades(shop):
    started(shop)
    (first,) = evaluations(shop).values()
    shop.answers(red_shoes="dcba", boots="yx", laces="")
    started(shop, book="shoes", keywords="red shoes\nboots\nhats")
    (second,) = evaluations(shop).values()
    with pytest.raises(UsageError, match="has no grades"):
        freeze_onto(shop.service, second, {}, shop.lead)
    shop.grade("shoes", "red shoes", a=(1, 1), b=(0, 0), c=(0, 0), d=(0, 0))
    shop.grade("shoes", "boots", x=(1, 1), y=(0, 0))
    shop.grade("shoes", "laces")
    job = compare_again(shop.service, first, second, shop.lead)
    done, compare = shop.work()
    assert (compare.id, compare.request.jobs) == (job.id, (done.id,))
    assert done.request.testset.startswith("shoes (shared queries)@")
    comparison = shop.service.comparisons.for_job(compare.id)
    assert (comparison.baseline.id, comparison.candidate.id) == done.results
    # both have the keywords red shoes and boots: AP 1 and 1, then 1/4 and 1/2. P is equal
    found = shop.service.comparisons.compare(
        CompareRequest(baseline=done.results[0], candidate=done.results[1], measure="AP@4")
    )
    assert (found.baseline.mean("AP@4"), found.candidate.mean("AP@4")) == (1.0, pytest.approx((1 / 4 + 1 / 2) / 2))
    assert (
        comparison.baseline.scores.measures[parse("P@4")].mean
        == comparison.candidate.scores.measures[parse("P@4")].mean
    )
    stored = shop.service.evaluations.get(first.id)
    assert (stored.record, first.state, stored.state) == (first.record, "waiting_for_grades", "graded")


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        ({"keywords": ""}, {"the evaluation has no queries"}),
        ({"testset": "own"}, {"the evaluation has no queries"}),
        ({"name": " "}, {"the keywords have no name"}),
        ({"name": "own"}, {"the config of the server has a test set own"}),
        ({"systems": []}, {"no system is selected"}),
        ({"systems": ["nosuch"]}, {"unknown system nosuch"}),
        ({"measures": "P@9"}, {"P@9 requires 9 results"}),
        ({"scale": "nosuch"}, {"unknown scale nosuch"}),
        ({"measures": "CG(d)@4"}, {"CG(d)@4 uses the scale detail, and binary cannot be mapped to it"}),
        ({"keywords": "a\x00", "systems": []}, {"the keyword contains a control character", "no system is selected"}),
    ],
)
def test_what_cannot_be_evaluated_stores_nothing(shop, changes, messages):
    with pytest.raises(UsageError) as caught:
        started(shop, **changes)
    assert messages <= {problem.message for problem in caught.value.problems}
    assert shop.service.store.books.all() == ()
    assert shop.service.jobs.all() == ()


@pytest.mark.parametrize("scale", ["binary", "graded"])
def test_a_measure_that_the_scale_of_its_book_has_no_map_for_is_refused_before_the_first_grade(shop, scale):
    started(shop, scale=scale)
    request = EvaluateRequest(testset="own", measures=("P@4", "CG(d)@4"), convention="searchtweak", book="shoes")
    with pytest.raises(UsageError) as caught:
        shop.service.jobs.submit(request)
    (problem,) = caught.value.problems
    assert problem.message == f"CG(d)@4 uses the scale detail, and {scale} cannot be mapped to it"
    assert (problem.path, problem.expected, problem.got) == (
        "measures",
        "a book that is judged on the scale detail",
        f"one on the scale {scale}",
    )
    assert problem.hint == "leave the measure out, or judge on its scale"
    shop.service.jobs.submit(request.model_copy(update={"convention": "trec"}))  # on the grades as they are


def test_a_measure_of_the_detail_scale_is_taken_in_a_book_on_that_scale(shop):
    started(shop, scale="detail", measures="CG(d)@4")
    request = EvaluateRequest(testset="own", measures=("P@4", "CG(d)@4"), convention="searchtweak", book="shoes")
    assert shop.service.jobs.submit(request).request == request


def test_a_name_that_a_book_has(shop):
    started(shop)
    with pytest.raises(UsageError, match="book shoes already exists"):
        started(shop, book=NEW_BOOK)
    shop.service.store.books.close(shop.service.store.books.get("shoes").id)
    with pytest.raises(UsageError, match="closed"):
        started(shop, book="shoes")


def test_keywords_of_a_name_once_more_go_into_its_book_on_its_scale(shop):
    started(shop)
    again = started(shop, keywords="hats", scale="")  # the page's default: binary, as the book is
    assert (again.request.book, [book.name for book in shop.service.store.books.all()]) == ("shoes", ["shoes"])
    with pytest.raises(UsageError, match="judged on the scale binary"):
        started(shop, scale="detail")
    assert started(shop, name="new", scale="").request.book == "new"
    assert shop.service.store.books.get("new").settings.scale.name == "graded"


def test_an_upload_has_the_name_that_its_file_declares(shop):
    text = "cranfield_testset: 1\nname: {}\nqueries:\n- {{id: q1, text: red, judgments: {{a: 1}}}}\n"
    for name, declared, kept in (("", "boots", "boots"), ("", "big/boots@2", "big-boots-2"), ("mine", "boots", "mine")):
        sent = Upload(BytesIO(text.format(declared).encode()), "download-7.yaml")
        assert save_testset(shop.service, name, sent, shop.lead).name == kept


def test_components_of_a_system_that_has_none(shop):
    with pytest.raises(UsageError, match="system shop has no components"):
        shop.service.jobs.submit(EvaluateRequest(testset="own", components=("title",)))


def test_a_test_set_alone_needs_no_book(shop):
    shop.answers(red_shoes="ab")
    started(shop, keywords="", testset="own", book=NO_BOOK, measures="P@2", convention="trec", k=2)
    (info,) = evaluations(shop).values()
    assert (info.book_id, info.scores.measures[parse("P@2")].mean) == (None, 1 / 2)


def test_a_hole_is_graded_where_it_is_seen(shop):
    service = shop.service
    shop.answers(red_shoes="abc")
    started(shop, keywords="", testset="own", book=NO_BOOK, measures="P@2 nDCG@2", convention="trec", k=3)
    (first,) = evaluations(shop).values()
    shop.answers(red_shoes="cba")
    started(shop, keywords="", testset="own", book=NO_BOOK, measures="P@2 nDCG@2", convention="trec", k=3)
    (second,) = evaluations(shop).values()
    assert (hole_book(service, second), new_grades(service, second)) == (None, 0)
    assert [level.grade for level in hole_levels(service, second)] == [0, 1]
    book = grade_hole(service, second, "q1", "c", 1, shop.lead, method="key")
    assert (book.name, new_grades(service, second), new_grades(service, first)) == ("own: grades", 1, 1)
    grade_hole(service, first, "q1", "c", 0, shop.lead)
    grade_hole(service, first, "q1", "c", 1, shop.lead)
    assert new_grades(service, second) == 1
    for query, doc in (("q1", "a"), ("q1", "zz"), ("zz", "a")):
        with pytest.raises(UsageError):
            grade_hole(service, second, query, doc, 1, shop.lead)
    with pytest.raises(UsageError, match="not on the scale"):
        grade_hole(service, second, "q1", "b", 7, shop.lead)
    compare_again(service, first, second, shop.lead)
    done, _ = shop.work()
    assert done.request.testset.startswith("own (judged)@")
    after = [service.evaluations.get(number).scores.measures[parse("P@2")].mean for number in done.results]
    # a, b, c with a and c relevant: a b at first, c b then
    assert after == [1 / 2, 1 / 2]
    assert [info.scores.measures[parse("P@2")].mean for info in (first, second)] == [1 / 2, 0.0]
    assert service.evaluations.get(second.id) == second
    assert service.testsets.load("own").grades == {"q1": {"a": 1.0}}
    judged = service.testsets.load(done.request.testset)
    assert {doc: grade for doc, grade in judged.grades["q1"].items() if grade >= 0} == {"a": 1.0, "c": 1.0}


def test_the_rule_of_a_query_keeps_what_it_matched(shop):
    service = shop.service
    path = shop.folder / "rules.yaml"
    rule = "patterns: [{regex: '^a$'}]"
    path.write_text(f"cranfield_testset: 1\nname: rules\nqueries:\n- id: q1\n  text: red shoes\n  {rule}\n")
    service.testsets.keep("rules", load(path))
    shop.answers(red_shoes="abc")
    started(shop, keywords="", testset="rules", book=NO_BOOK, measures="P@3", convention="trec", k=3)
    (info,) = evaluations(shop).values()
    assert info.scores.measures[parse("P@3")].mean == pytest.approx(1 / 3)
    grade_hole(service, info, "q1", "b", 1, shop.lead)
    run = service.runs.load(info.run_id)
    version = freeze_onto(service, info, {info.system: run}, shop.lead)
    service.jobs.submit(EvaluateRequest(testset=version.ref, runs=(info.run_id,), measures=("P@3",)))
    (after,) = evaluations(shop).values()
    assert after.scores.measures[parse("P@3")].mean == pytest.approx(2 / 3)


def test_the_scale_of_the_test_set(shop):
    started(shop, keywords="", testset="own", scale=OWN_SCALE, name="", k=4, book=NEW_BOOK)
    assert shop.service.store.books.get("own").settings.scale.name == "binary"


@pytest.mark.slow
def test_what_is_judged_is_compared_by_frozen_grades_alone(shop):
    started(shop)
    (first,) = evaluations(shop).values()
    started(shop, book="shoes")
    (second,) = evaluations(shop).values()
    with pytest.raises(UsageError, match="is still being judged"):
        shop.service.jobs.submit(CompareRequest(baseline=first.id, candidate=second.id))


def test_answers_that_are_scored_again_stay_those_of_their_variant_config_and_pilot(shop):
    service = shop.service
    service.variants.save("turned", "shop", {"params.boost": 2}, "", shop.lead)
    asked = [
        EvaluateRequest(testset="own", systems=("shop",), variant="turned"),
        EvaluateRequest(testset="own", systems=("shop",), params={"params.boost": 2}, pilot=True),
    ]
    for request in asked:
        service.jobs.submit(request)
        (first,) = evaluations(shop).values()
        service.jobs.submit(EvaluateRequest(testset="own", runs=(first.run_id,)))
        (again,) = evaluations(shop).values()
        assert (again.label, again.config_digest, again.pilot) == (
            first.label,
            first.config_digest,
            first.pilot,
        )
        assert first.config_digest
        assert {info.system for info in (first, again)} == {"shop"}
        wanted = request_of(service, again)
        assert (wanted.systems, wanted.variant, wanted.params, wanted.pilot, wanted.runs) == (
            ("shop",),
            request.variant,
            request.params,
            request.pilot,
            (),
        )


def test_a_variant_with_other_values_is_named_by_both(shop):
    shop.service.variants.save("turned", "shop", {"params.boost": 2}, "", shop.lead)
    request = EvaluateRequest(testset="own", systems=("shop",), variant="turned", params={"params.boost": 1})
    (chosen,) = chosen_systems(shop.service, request)
    assert chosen.label == "shop (turned, tried: boost=1)"


@pytest.mark.slow
def test_a_variant_is_evaluated_like_a_system(shop):
    service = shop.service
    service.variants.save("turned", "shop", {"params.boost": 2}, "", shop.lead)
    jobs = start_evaluation(service, WANTED.model_copy(update={"variants": ["turned"]}), shop.lead)
    assert len(jobs) == 2
    plain, turned = evaluations(shop).values()
    assert [(info.system, info.variant, info.book_id) for info in (plain, turned)] == [
        ("shop", "", plain.book_id),
        ("shop", "turned", plain.book_id),
    ]
    shop.grade("shoes", "red shoes", a=(1, 1), b=(0, 0), c=(0, 0), d=(0, 0))
    assert [live(shop, info)["MAP@4"].mean for info in (plain, turned)] == [1.0, 1 / 4]
