"""Pages of an evaluation by a team: the form, measures that move, grades of holes, systems and their open parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from html import unescape

import pytest
from sqlalchemy import insert
from tests.unit.workbench.server.conftest import Team
from tests.unit.workbench.service.shop import SEARCH, Shop, make_shop

from cranfield.measures import parse
from cranfield.workbench.config import Workbench
from cranfield.workbench.server.access import declared_access
from cranfield.workbench.server.results import MAX_RESULTS, RecentValues
from cranfield.workbench.service.requests import EvaluateRequest
from cranfield.workbench.service.service import open_service
from cranfield.workbench.service.store.schema import StoredEvaluation
from cranfield.workbench.service.team_evaluation import TeamRequest, keyword_testset, usual_k
from cranfield.workbench.service.webhooks import messages

FORM = {
    "name": "shoes",
    "keywords": "red shoes\nboots\nlaces",
    "systems": "shop",
    "k": "4",
    "measures": "P@4, AP@4, RR@4, nDCG@4",
    "convention": "searchtweak",
    "scale": "binary",
    "raters": "3",
}


@dataclass
class Pages:
    """The pages of a server with a system, and its lead."""

    team: Team
    shop: Shop

    def get(self, path: str, who: str = "lee", status: int = 200) -> str:
        answer = self.team.browser(who).get(path)
        assert answer.status_code == status, answer.text[-2_000:]
        return unescape(answer.text)

    def post(self, path: str, who: str = "lee", **fields: object):
        client = self.team.browser(who)
        return client.post(path, data={"csrf": self.team.csrf(client), **fields})

    def evaluated(self, **changes: object) -> int:
        """Start an evaluation by the form, and do its work; its id."""
        answer = self.post("/evaluations/new", **{**FORM, **changes})
        assert answer.status_code == 303, unescape(answer.text)
        (job,) = self.shop.work()
        return job.results[0]

    def work_at_once(self) -> None:
        """Do the jobs when a page waits for one."""
        jobs = self.shop.service.jobs
        jobs.wait = lambda job_id, _: (self.shop.work(), jobs.get(job_id))[1]

    def row(self, evaluation: int, measure: str) -> list[str]:
        """The cells of a measure on the page of an evaluation: mean, with a value, null, coverage, tied, scale."""
        page = self.get(f"/evaluations/{evaluation}")
        cells = re.search(rf'<tr><th scope="row">{re.escape(measure)}</th>(.*?)</tr>', page)
        assert cells, page
        return [" ".join(re.sub("<[^>]+>", " ", cell).split()) for cell in re.findall("<td[^>]*>(.*?)</td>", cells[1])]


@pytest.fixture
def pages(team: Team, tmp_path):
    shop = make_shop(team.store, tmp_path, team.store.people.get("lee").id)
    team.app.state.service = shop.service
    team.app.state.results = RecentValues(MAX_RESULTS)
    yield Pages(team, shop)
    team.app.state.service = None


def test_keywords_with_blank_and_doubled_lines_start_at_once_and_the_note_names_them(pages):
    number = pages.evaluated(keywords="red shoes\n\nboots\nred shoes")
    note = pages.shop.service.evaluations.get(number).note
    assert note == "left out of the keywords: line 2 is blank, line 4 repeats line 1: 'red shoes'"
    assert note in pages.get(f"/evaluations/{number}")


def sent(pages, **form: object) -> EvaluateRequest:
    """What the form submits, filled in as the browser does it: empty where nobody wrote."""
    empty = {"name": "", "keywords": "", "testset": "", "k": "", "measures": "", "convention": "", "book": "//"}
    answer = pages.post("/evaluations/new", **{**empty, "systems": "shop", "scale": "graded", "raters": "1", **form})
    assert answer.status_code == 303, unescape(answer.text)
    (job,) = pages.shop.service.jobs.all(limit=1)
    return job.request


def test_a_test_set_of_the_config_is_scored_as_the_command_scores_it(pages):
    request = sent(pages, testset="own")
    # Nothing is named, so the config has it all; no book, since `own` is judged.
    assert (request.k, request.measures, request.primary, request.convention, request.book) == (None,) * 4 + ("",)
    form = pages.get("/evaluations/new?testset=own")
    assert '<option value="//" selected>default: no book' in form
    assert '<option value="">default: trec' in form
    assert "MAP@10" not in form


def test_pasted_keywords_are_scored_as_searchtweak_does_and_judged_in_a_new_book(pages):
    request = sent(pages, keywords="boots", name="few")
    assert (request.k, request.measures) == (10, ("MAP@10", "MRR@10", "nDCG@10"))
    assert (request.convention, request.book) == ("searchtweak", "few")


def test_a_test_set_without_judgments_gets_a_book_and_the_convention_of_the_config(pages):
    pages.shop.service.testsets.keep("bare", keyword_testset("bare", ("boots",)))
    request = sent(pages, testset="bare")
    # The config names neither a depth nor measures with a deeper cutoff: 10 results.
    assert (request.k, request.convention, request.book) == (10, "trec", "bare")
    assert 'max="10000" value="" placeholder="10"' in pages.get("/evaluations/new?testset=bare")


@pytest.mark.parametrize(("testset", "book"), [("own", "//"), ("own", "/new")])
def test_where_no_depth_is_named_a_measure_gets_the_results_that_it_looks_at(pages, testset, book):
    request = sent(pages, testset=testset, measures="R@20", book=book, name="deep")
    assert request.k == (None if book == "//" else 20)  # None: the job takes the depth of the measures
    assert request.measures == ("R@20",)


def test_pasted_keywords_get_as_many_results_as_their_measures_look_at(pages):
    assert sent(pages, keywords="boots", name="few", measures="R@20").k == 20
    assert sent(pages, keywords="boots", name="some", measures="R@5 AP").k == 10
    assert sent(pages, keywords="boots", name="many", measures="R@20", k=30).k == 30
    answer = pages.post("/evaluations/new", **{**FORM, "k": "", "measures": "R@20", "name": ""})
    assert 'max="10000" value="" placeholder="20"' in answer.text  # no name: the form once more


def test_a_server_without_a_config_gets_as_many_results_as_the_measures_look_at(pages):
    service = open_service(pages.team.store)
    assert usual_k(service, TeamRequest(testset="own", measures="R@20")) == 20
    assert usual_k(service, TeamRequest(keywords="boots", measures="R@20, P@5")) == 20
    assert usual_k(service, TeamRequest(testset="own", measures="R@20 nosuch")) == 10


def test_the_form_keeps_what_was_written(pages):
    answer = pages.post("/evaluations/new", **{**FORM, "measures": "P@9", "scale": "detail", "name": ""})
    page = unescape(answer.text)
    assert answer.status_code == 422
    assert "P@9 requires 9 results" in page
    assert "The keywords have no name" in page or "the keywords have no name" in page
    assert 'value="P@9"' in page
    assert '<option value="detail" selected>' in page


def test_viewers_are_not_chosen_to_judge(pages):
    ids = {name: pages.team.store.people.get(name).id for name in ("lee", "vic")}
    form = pages.get("/evaluations/new")
    assert [f'name="members" value="{ids[name]}"' in form for name in ids] == [True, False]
    answer = pages.post("/evaluations/new", **{**FORM, "members": str(ids["vic"])})
    assert answer.status_code == 422
    assert "some of the selected accounts cannot judge" in unescape(answer.text).lower()
    assert "shoes" not in {book.name for book in pages.team.store.books.all()}


def test_measures_of_the_page_follow_the_grades(pages):
    number = pages.evaluated()
    assert pages.row(number, "P@4") == ["null", "0", "3", "0 % 0 of 6", "– 0 of 0", "binary"]
    pages.shop.grade("shoes", "red shoes", a=(1, 1, 0), b=(1, 0), d=(0, None, None))
    # a 1, b a tie, c not graded, d 0: P 1/2, AP 1/1, RR 1. nDCG: gains 2, 1.5, 0, 0 are in the best order
    assert pages.row(number, "P@4") == ["0.5000", "1", "2", "33 % 2 of 6", "33 % 1 of 3", "binary"]
    assert [pages.row(number, name)[0] for name in ("MAP@4", "MRR@4", "nDCG@4")] == ["1.0000", "1.0000", "1.0000"]
    pages.shop.grade("shoes", "boots", x=(0, 0, 0), y=(0, 0, 0))
    # boots is 0 and counts; laces has no result and is null
    assert [pages.row(number, name)[:3] for name in ("P@4", "MAP@4", "nDCG@4")] == [
        ["0.2500", "2", "1"],
        ["0.5000", "2", "1"],
        ["0.5000", "2", "1"],
    ]
    page = pages.get(f"/evaluations/{number}")
    assert 'data-stream="/books/shoes/live"' in page
    assert pages.get(f"/evaluations/{number}", who="vic")


def test_before_the_first_grade_there_is_no_value_and_the_words_are_those_of_the_convention(pages):
    number = pages.evaluated()
    page = pages.get(f"/evaluations/{number}")
    assert "No query had a value of P@4 when the results were collected." in page
    assert "Nothing graded yet." in page
    assert "No check found a reason" not in page
    assert [pages.row(number, name)[-1] for name in ("P@4", "nDCG@4")] == ["binary", "graded"]
    assert "a result without a grade is not counted" in page
    assert "cannot reach 1" not in page


@pytest.mark.slow
def test_an_ungraded_result_is_0_for_average_precision_and_not_for_precision(pages):
    number = pages.evaluated(raters="1")
    pages.shop.grade("shoes", "red shoes", b=(1,), d=(1,))
    # AP (1/2 + 2/4) / 2; P 2/2
    assert [pages.row(number, name)[0] for name in ("MAP@4", "P@4", "MRR@4")] == ["0.5000", "1.0000", "0.5000"]


@pytest.mark.slow
def test_run_again_fills_the_form_in_and_keeps_the_grades(pages):
    number = pages.evaluated(raters="1")
    pages.shop.grade("shoes", "red shoes", a=(1,))
    form = pages.get(f"/evaluations/new?like={number}")
    assert "<option selected>shoes</option>" in form
    assert '<option value="shoes" selected>' in form
    assert 'value="shop" checked' in form
    again = pages.evaluated(keywords="", name="", testset="shoes", book="shoes")
    assert pages.row(again, "P@4")[0] == "1.0000"


@pytest.mark.slow
def test_freeze_makes_a_version_and_an_evaluation_that_stays(pages):
    number = pages.evaluated(raters="1")
    answer = pages.post(f"/evaluations/{number}/freeze")
    assert answer.status_code == 422
    assert "include partly graded and undecided items" in unescape(answer.text) or "has no grades" in unescape(
        answer.text
    )
    pages.shop.grade("shoes", "red shoes", a=(1,), b=(0,))
    pages.team.app.state.service.jobs.wait = lambda job_id, _: pages.shop.service.jobs.get(job_id)
    assert "include partly graded and undecided items" in unescape(pages.post(f"/evaluations/{number}/freeze").text)
    assert pages.post(f"/evaluations/{number}/freeze", partial="true").status_code == 303
    (job,) = pages.shop.work()
    info = pages.shop.service.evaluations.get(job.results[0])
    assert (info.book_id, info.scores.measures[parse("P@4")].mean) == (None, 1 / 2)
    again = pages.post(f"/evaluations/{number}/freeze", partial="true")
    assert again.headers["location"].startswith(f"/evaluations/{info.id}?")  # no grade changed
    stored = pages.shop.service.testsets
    same = stored.keep("shoes", replace(stored.load("shoes"), version="again"))
    assert (same.id == info.testset_id, same.digest) == (False, info.testset_digest)
    pages.shop.service.jobs.submit(EvaluateRequest(testset=same.ref, runs=(info.run_id,)))
    (job,) = pages.shop.work()
    page = pages.get(f"/comparisons?baseline={info.id}&candidate={job.results[0]}")
    assert "A verdict requires the same queries" not in page  # another version, with the same judgments
    page = pages.get(f"/comparisons?baseline={number}&candidate={info.id}")
    assert "is still being judged, so its figures change" in page
    assert "Run again, on the latest version" not in page
    # What the book holds without a grade is in the version, and is not judged.
    assert pages.shop.service.testsets.get("shoes").n_judgments == 2
    assert "2 of 3 queries without any judgment" in pages.get("/testsets/shoes")
    pages.shop.grade("shoes", "red shoes", c=(0,))
    assert pages.shop.service.evaluations.get(info.id).scores.measures[parse("P@4")].mean == 1 / 2


@pytest.mark.slow
def test_a_comparison_by_grades_asks_for_half_graded_as_freezing_does_and_is_made_once(pages):
    first, second = (pages.evaluated(raters="1", book=book) for book in ("", "shoes"))
    pages.work_at_once()
    pages.shop.grade("shoes", "red shoes", a=(1,), b=(0,))
    refused = pages.post(f"/evaluations/{second}/compare-graded", baseline=first)
    assert (refused.status_code, "The box “include partly graded and undecided items”" in unescape(refused.text)) == (
        422,
        True,
    )
    assert pages.get(f"/evaluations/{second}").count("include partly graded and undecided items") == 1

    def compared() -> tuple[str, int, int]:
        answer = pages.post(f"/evaluations/{second}/compare-graded", baseline=first, partial="true")
        service = pages.shop.service
        return answer.headers["location"], len(service.evaluations.all()), len(service.testsets.versions("shoes"))

    made = compared()
    assert made[0].startswith("/comparisons/")
    assert compared() == made
    pages.shop.grade("shoes", "red shoes", c=(1,))
    assert compared()[1:] == (made[1] + 2, made[2] + 1)


def test_the_plan_of_a_book_says_what_it_asks(pages):
    ann = pages.team.store.people.get("ann").id
    pages.evaluated(members=str(ann))
    page = pages.get("/books/shoes/settings")
    assert "The plan requires 3 raters per item, but only 1 can judge" in page
    assert "further rater" not in page
    assert "adjudication from" not in page


def test_a_form_of_a_system_that_lacks_something_is_shown_once_more(pages):
    for path, fields, problem in (
        ("try", {}, "No parameter differs from the config"),
        ("variants", {"variant": "turned"}, "No parameter differs from the config"),
        ("variants", {"set:params.boost": "2"}, "name"),
    ):
        answer = pages.post(f"/systems/shop/{path}", testset="own", **fields)
        assert (answer.status_code, problem in answer.text) == (422, True)
        assert '<button class="quiet" formaction="/systems/shop/try" formnovalidate>' in answer.text
        assert ("<option selected>2</option>" in answer.text) == ("set:params.boost" in fields)


def test_the_box_for_half_graded_is_required_where_freezing_needs_it(pages):
    number = pages.evaluated(raters="1", keywords="boots")
    box = '<input type="checkbox" name="partial" value="true"{}> include partly graded and undecided items'
    pages.shop.grade("shoes", "boots", x=(1,))
    for path in (f"/evaluations/{number}", "/books/shoes"):
        assert box.format(" required") in pages.get(path)
    pages.shop.grade("shoes", "boots", y=(0,))
    for path in (f"/evaluations/{number}", "/books/shoes"):
        assert box.format("") in pages.get(path)


@pytest.mark.slow
def test_a_hole_is_graded_from_a_query_and_recomputed(pages):
    pages.shop.answers(red_shoes="abc")
    plain = {**FORM, "name": "", "keywords": "", "testset": "own", "book": "/", "measures": "P@2", "convention": "trec"}
    first = pages.evaluated(**plain)
    pages.shop.answers(red_shoes="cba")
    second = pages.evaluated(**plain)
    pages.post(f"/evaluations/{second}/compare", baseline=first)
    pages.shop.work()
    (comparison,) = pages.shop.service.comparisons.all()
    base = f"/comparisons/{comparison.id}"
    holes = pages.get(f"{base}/queries/q1")
    path = re.search(rf'href="({base}/grade[^"]+doc=c[^"]*)"', holes)
    assert path
    page = pages.get(path[1])
    assert "Title c" in page
    assert 'name="grade" value="1"' in page
    form = {"query": "q1", "doc": "c", "grade": "1", "side": "candidate", "back": f"{base}/queries/q1"}
    answer = pages.post(f"{base}/grade", **form)
    assert answer.headers["location"] == f"{base}/queries/q1?done=graded"
    assert pages.post(f"{base}/grade", **{**form, "back": "https://example.org"}).headers["location"] == "/?done=graded"
    assert re.search(r'n-new-grades">1</strong> new grade\b', pages.get(base))
    assert pages.post(f"{base}/grade", **{**form, "grade": "9"}).status_code == 422
    assert pages.post(f"{base}/grade", **{**form, "doc": "a"}).status_code == 422
    assert pages.post(f"{base}/grade", who="vic", **form).status_code == 403
    evaluation = pages.get(f"/evaluations/{second}")
    assert re.search(rf'action="/evaluations/{second}/freeze".*n-new-grades">1</strong> new grade ', evaluation)
    pages.work_at_once()
    answer = pages.post(f"{base}/recompute")
    assert answer.headers["location"].startswith("/comparisons/")
    after = pages.shop.service.comparisons.get(int(re.search(r"\d+", answer.headers["location"])[0]))
    assert [side.scores.measures[parse("P@2")].mean for side in (after.baseline, after.candidate)] == [1 / 2, 1 / 2]
    assert pages.shop.service.comparisons.get(comparison.id) == comparison


def test_the_evaluation_of_a_book_is_found_behind_many_later_ones(pages):
    first, second = (pages.evaluated(**more) for more in ({}, {"book": "shoes"}))
    with pages.shop.service.store.database.write() as session:
        row = session.get_one(StoredEvaluation, second)
        values = {each.key: getattr(row, each.key) for each in row.__table__.columns if each.key != "id"}
        session.execute(insert(StoredEvaluation), [values | {"book_id": None, "job_id": None}] * 501)
    found = pages.team.browser("lee").get("/v1/books/shoes/measures")
    assert (found.status_code, found.json()["evaluation"]) == (200, second)
    assert "Compare with these grades" not in pages.get(
        f"/evaluations/{second}"
    )  # there are none yet: it would be refused
    pages.shop.grade("shoes", "red shoes", a=(1, 1, 0))
    assert f'<option value="{first}">' in pages.get(f"/evaluations/{second}")


def test_failures_are_named_before_the_measures(pages):
    pages.shop.answers(red_shoes="ab", boots="x", laces="y")
    (pages.shop.folder / "answers" / "boots").unlink()
    (pages.shop.folder / "answers" / "boots").mkdir()  # cat fails on it
    number = pages.evaluated(keywords="red shoes\nboots", measures="P@2")
    pages.shop.grade("shoes", "red shoes", a=(1,), b=(0,))
    page = pages.get(f"/evaluations/{number}").partition("Figures with the grades at the time")[0]
    assert page.index("1 of 2 queries failed or have no answer") < page.index("<caption>Measures")
    assert "the system failed on it" in page
    (job,) = pages.shop.service.jobs.all()
    page = pages.get(f"/jobs/{job.id}")
    assert "<strong>invalid</strong>, invalid figures" in page
    assert "scoring" not in page  # a job that is done does nothing more
    assert pages.row(number, "P@2")[:3] == ["0.5000", "1", "1"]
    found = pages.team.browser("lee").get(f"/v1/books/shoes/measures?evaluation={number}").json()
    assert found["failures"] == {"nonzero exit": 1}
    assert found["void"][0].startswith("shop: 1 of 2 queries failed")


def test_the_measures_of_a_book_are_of_no_evaluation_that_another_book_judges(pages):
    shoes, boots = pages.evaluated(), pages.evaluated(name="boots")
    of_shoes = pages.team.browser("lee").get
    assert of_shoes(f"/v1/books/shoes/measures?evaluation={shoes}").json()["evaluation"] == shoes
    assert of_shoes(f"/v1/books/shoes/measures?evaluation={boots}").status_code == 404


@pytest.mark.slow
def test_a_rerun_is_on_the_scale_of_its_book(pages):
    number = pages.evaluated()
    assert "waiting for grades" in pages.get("/evaluations")
    form = pages.get(f"/evaluations/new?like={number}")
    assert '<option value="binary" selected>' in form
    answer = pages.post("/evaluations/new", **{**FORM, "book": "shoes", "scale": "detail"})
    assert (answer.status_code, "judged on the scale binary" in answer.text) == (422, True)
    pages.shop.service.store.books.close(pages.shop.service.store.books.get("shoes").id)
    assert "scale binary, closed</option>" in pages.get(f"/evaluations/new?like={number}")
    assert "The book is closed" in pages.get(f"/evaluations/{number}")
    assert pages.post("/evaluations/new", **{**FORM, "book": "shoes"}).status_code == 422


def test_systems_and_their_open_parameters(pages):
    page = pages.get("/systems")
    assert "not evaluated yet" in page
    number = pages.evaluated()
    assert f'href="/evaluations/{number}">answered 3 queries' in pages.get("/systems", who="vic")
    page = pages.get("/systems/shop")
    assert "params.boost" in page
    assert "in the config: 1" in page
    pages.get("/systems/nosuch", status=404)
    assert "Probe" not in pages.get("/systems/shop", who="vic")
    bad = pages.post("/systems/shop/probe", query="red shoes", k=3, **{"set:params.boost": "9"})
    assert (bad.status_code, "this value is not allowed" in bad.text.lower()) == (422, True)
    assert pages.post("/systems/shop/variants", variant="turned", **{"set:env.KEY": "x"}).status_code == 422
    assert pages.post("/systems/shop/variants", variant="turned").status_code == 422
    assert pages.post("/systems/shop/variants", variant="turned", **{"set:params.boost": "2"}).status_code == 303
    assert "params.boost = 2" in pages.get("/systems/shop?variant=turned")
    assert ["/evaluations/new" in pages.get("/systems/shop", who=who) for who in ("lee", "vic")] == [True, False]
    assert 'name="variants" value="turned"' in pages.get("/evaluations/new")
    assert pages.post("/systems/shop/variants/delete", variant="turned").status_code == 303
    assert pages.shop.service.variants.all() == ()
    pages.shop.service.workbench = Workbench.model_validate(
        {"tunable": {"shop": {"params.boost": [1, 2], "extract.0": {"min": 1, "max": 2}}, "nosuch": {"params.k": [1]}}}
    )
    page = pages.get("/systems")
    assert "opens extract.0 of shop, where the value 1 is invalid: " in page
    assert "opens parameters of nosuch, which is not a system of the config" in page
    assert "params.boost of shop, where" not in page


@pytest.mark.slow
def test_another_value_is_compared_with_the_config(pages):
    pages.work_at_once()
    tried = pages.post("/systems/shop/try", testset="own", **{"set:params.boost": "2"})
    (comparison,) = pages.shop.service.comparisons.all()
    assert tried.headers["location"] == f"/comparisons/{comparison.id}"
    sides = [(side.variant, side.pilot) for side in (comparison.baseline, comparison.candidate)]
    assert sides == [("", True), ("tried: boost=2", True)]
    assert "tried: boost=2" in pages.get(tried.headers["location"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ('{"id": "a"}\n{"id": "b", "title": "Boots"}', ["<code>a</code>", "<code>b</code>"]),
        ('{"id": "a", "title": "Boots"}', ["Boots"]),
        ("", ['<dd class="figure">empty</dd>']),
        ("no JSON", ['<dd class="figure">']),
    ],
)
@pytest.mark.parametrize("changed", [{}, {"set:params.boost": "2"}], ids=["as-in-the-config", "changed"])
def test_a_probe_shows_whatever_a_system_gives(pages, answer, shown, changed):
    (pages.shop.folder / "answers" / "red shoes").write_text(answer)
    found = pages.post("/systems/shop/probe", query="red shoes", k=3, **changed)
    assert found.status_code == 200
    for text in shown:
        assert text in found.text


@pytest.mark.slow
def test_a_probe_shows_request_and_answer_side_by_side(pages):
    page = unescape(pages.post("/systems/shop/probe", query="red shoes", k=3, **{"set:params.boost": "2"}).text)
    assert "search.sh" in page
    rows = re.findall(r'<tr><th scope="row" class="n">\d</th>(.*?)</tr>', page)
    assert [re.findall(r"<code>(.)</code>", row) for row in rows] == [["a", "d"], ["b", "c"], ["c", "b"]]
    assert "down" in rows[2]


@pytest.mark.parametrize(
    "path", ["/evaluations/new", "/systems/shop/probe", "/systems/shop/try", "/systems/shop/variants"]
)
def test_viewers_and_raters_start_nothing(pages, path):
    for who in ("vic", "ann"):
        assert pages.post(path, who=who, **FORM).status_code == 403


def test_before_the_first_grade_a_page_says_nothing_graded_yet_and_not_invalid(pages):
    pages.shop.answers(red_shoes="ab", boots="c", laces="d")
    number = pages.evaluated()
    page = pages.get(f"/evaluations/{number}")
    assert "<strong>Nothing graded yet.</strong>" in page
    assert "nvalid" not in page
    (job,) = pages.shop.service.jobs.all(limit=1)
    assert "invalid" not in pages.get(f"/jobs/{job.id}")
    pages.shop.grade("shoes", "red shoes", a=(1, 1, 1))
    assert (
        "Nothing graded yet." not in pages.get(f"/evaluations/{number}").split("Figures with the grades at the time")[0]
    )


def test_compare_is_offered_where_it_is_accepted_and_nowhere_else(pages, monkeypatch):
    """Every pair of three evaluations: two by the judgments of `own`, one in a book, and each with itself."""
    monkeypatch.setattr("cranfield.workbench.server.evaluations.SHORT_WAIT_S", 0.0)  # no server works here
    pages.shop.answers(red_shoes="ab")
    plain = {"keywords": "", "testset": "own", "name": "", "measures": "P@4", "convention": ""}
    numbers = [pages.evaluated(**plain, book="/") for _ in range(2)] + [pages.evaluated(**plain, book="/new")]
    offered = {}
    for a in numbers:
        for b in numbers:
            page = pages.get(f"/comparisons?baseline={a}&candidate={b}")
            answer = pages.post("/comparisons/make", baseline=a, candidate=b)
            offered[a, b] = ('action="/comparisons/make"' in page, answer.status_code != 422)
    assert all(shown == accepted for shown, accepted in offered.values()), offered
    assert sum(shown for shown, _ in offered.values()) == 2  # the first two, both ways round


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_book_without_documents_says_so_and_offers_running_again(pages, is_broken):
    pages.shop.answers(red_shoes="", boots="", laces="")
    if is_broken:
        (pages.shop.folder / "search.sh").write_text("exit 3\n")
    number = pages.evaluated()
    page = pages.get("/books/shoes")
    assert "The book has no documents: the system returned nothing, or every query failed." in page
    assert f'href="/evaluations/{number}#change">shop on shoes, #{number}</a>' in page
    assert ("3 of 3 queries failed" in page) is is_broken
    for method, path in declared_access(pages.team.app.routes):
        if method == "GET" and "{book" in path and not path.endswith(("/live", "/stream")):
            place = re.sub(r"\{book[^}]*\}", "shoes", path)
            answer = pages.team.browser("lee").get(re.sub(r"\{[^}]*\}", "1", place))
            assert answer.status_code in {200, 303, 404, 409, 422}, (path, answer.text)
    pages.shop.answers(red_shoes="ab")
    (pages.shop.folder / "search.sh").write_text(SEARCH)
    answer = pages.post(f"/evaluations/{number}/rerun")
    assert answer.status_code == 303
    pages.shop.work()
    assert "The book has no documents" not in pages.get("/books/shoes")


def test_an_error_keeps_the_navigation_of_who_is_signed_in(pages):
    for path, status in (("/nowhere", 404), ("/evaluations/99", 404), ("/comparisons?before=x", 422)):
        page = pages.get(path, status=status)
        assert 'aria-label="Main"' in page
        assert 'href="/evaluations"' in page
    assert 'aria-label="Main"' in pages.post("/evaluations/99/compare", baseline=1).text
    rater = pages.get("/evaluations", who="ann", status=403)
    assert 'aria-label="Main"' in rater
    assert 'href="/evaluations"' not in rater
    assert 'aria-label="Main"' not in pages.team.new().get("/nowhere").text


def test_a_baseline_of_another_version_is_compared_on_the_newest_with_one_button(pages):
    service = pages.shop.service
    pages.work_at_once()
    numbers = []
    for text in ("a: 1", "a: 1, b: 1"):
        (pages.shop.folder / "own.yaml").write_text(
            f"cranfield_testset: 1\nname: own\nqueries:\n- {{id: q1, text: red shoes, judgments: {{{text}}}}}\n"
        )
        numbers.append(pages.evaluated(keywords="", testset="own", book="/", measures="P@4", convention="trec"))
    baseline, candidate = numbers
    service.evaluations.pin(baseline)
    button = f"Compare with the baseline, shop #{baseline}, on the newest version of the test set"
    assert button in pages.get(f"/evaluations/{candidate}")
    chosen = pages.get(f"/comparisons?baseline={baseline}&candidate={candidate}")
    assert "Different test set: 1 query with other judgments (q1)." in chosen
    assert "Compare on the newest version" in chosen
    answer = pages.post(f"/evaluations/{candidate}/compare", baseline=baseline)
    assert re.fullmatch(r"/comparisons/\d+\?done=on-newest", answer.headers["location"])
    page = pages.get(answer.headers["location"])
    assert "Both runs are scored on the newest version of the test set" in page
    (made,) = service.comparisons.all()
    # a and b of a b c d are relevant now, in both
    assert [side.scores.measures[parse("P@4")].mean for side in (made.baseline, made.candidate)] == [1 / 2, 1 / 2]
    again = pages.post("/comparisons/make", baseline=baseline, candidate=candidate)
    assert again.headers["location"] == answer.headers["location"]


def test_waiting_for_grades_is_a_state_of_its_own_that_ends_when_they_are_there(pages):
    pages.shop.answers(red_shoes="ab")
    number = pages.evaluated(keywords="red shoes", measures="P@2", raters="1")
    service, lee = pages.shop.service, pages.team.browser("lee")
    (job,) = service.jobs.all()

    def states() -> tuple[str, ...]:
        found = lee.get(f"/v1/evaluations/{number}").json()
        (row,) = lee.get("/evaluations?format=csv").text.splitlines()[1:]
        sent = [(message.event, message.text) for message in messages(service, job)]
        return found["state"], found["n_waiting"], row.split(",")[1], "done, waiting" in pages.get("/jobs"), sent

    text = "shop on shoes waits for grades of 2 results in its book"
    assert states() == ("waiting_for_grades", 2, "waiting for grades", True, [("waiting-for-grades", text)])
    assert "1 new evaluation waits for grades" in pages.get("/")
    assert "not count" not in pages.get("/")
    assert "<strong>Waiting for grades</strong>: 2 results have no grade yet." in pages.get(f"/evaluations/{number}")
    pages.shop.grade("shoes", "red shoes", a=(1,))
    assert states()[:3] == ("waiting_for_grades", 1, "waiting for grades")
    pages.shop.grade("shoes", "red shoes", b=(0,))
    assert states() == ("graded", 0, "graded in its book", False, [])
    assert "for grades" not in pages.get("/")
    pages.shop.answers(red_shoes="acdefghij")  # one of nine is graded: it waits, and the one before has what it needs
    later = service.jobs.submit(job.request.model_copy(update={"k": 9, "measures": ("P@9",)}), trigger=job.trigger)
    pages.shop.work()
    (result,) = service.jobs.get(later.id).results
    new, old = service.evaluations.get(result), service.evaluations.get(number)
    assert (new.state, new.n_waiting, old.state) == ("waiting_for_grades", 8, "graded")
    assert "Invalid." not in pages.get(f"/evaluations/{result}")
    service.store.books.close(new.book_id)  # nobody can grade any more
    assert service.evaluations.get(result).state == "graded"
