"""The pages of test sets, evaluations, comparisons, jobs and settings, on a database with results."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from html import escape

import pytest
from tests.unit.workbench.records import with_scores
from tests.unit.workbench.service.shop import work_here

from cranfield.app.loading import load
from cranfield.base import patterns
from cranfield.base.errors import CranfieldError
from cranfield.evaluation.result import EvaluationResult
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import parse
from cranfield.model.judging import Judging, JudgingGuideline
from cranfield.model.query import Query
from cranfield.model.results import from_jsonable, to_jsonable
from cranfield.model.testset import Meta, TestSet
from cranfield.reporting.query_data import data_json, query_detail, query_index
from cranfield.workbench.config import Workbench
from cranfield.workbench.server.app import LARGEST_BODY
from cranfield.workbench.server.comparisons import flags
from cranfield.workbench.server.evaluations import request_of, verdict_on
from cranfield.workbench.server.home import DAY_MS, VISIT_MS, visits
from cranfield.workbench.server.pages import FOLDER
from cranfield.workbench.server.results import RecentValues
from cranfield.workbench.server.server_settings import as_yaml, size_text, without_secrets
from cranfield.workbench.server.summary import PARTLY, headline
from cranfield.workbench.server.tables import job_subject
from cranfield.workbench.server.v1.files import MAX_UPLOADS
from cranfield.workbench.service.requests import CompareRequest, EvaluateRequest
from cranfield.workbench.service.responses import JobState, Trigger
from cranfield.workbench.service.results import Comparisons
from cranfield.workbench.service.store.schema import StoredEvaluation

STATIC = re.compile(r'(?:href|src|action)="(https?:|//)')


@pytest.fixture(autouse=True)
def _no_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only slow tests draw: a picture takes longer than a page."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr("cranfield.reporting.renderers.html.draw", lambda spec, label: "<svg></svg>")


def test_every_page_is_there(bench, workbench_books) -> None:
    for name, path in workbench_books.PAGES.items():
        page = bench.page(path.format(**bench.ids))
        assert len(re.findall(r"<h1[ >]", page)) == 1, name
        ids = re.findall(r'\bid="([^"]+)"', page)
        assert len(ids) == len(set(ids)), name
        assert " style=" not in page, name
        assert "<script>" not in page, name
        assert not STATIC.search(page), name


@pytest.mark.slow
def test_every_page_is_small_and_every_link_leads_somewhere(bench, workbench_books) -> None:
    """Also the links of tables, which are relative; the pages are those with their pictures."""
    client, seen = bench.team.browser("lee"), set()
    for path in workbench_books.PAGES.values():
        where = client.base_url.join(path.format(**bench.ids))
        page = client.get(where).text
        assert len(page.encode()) < 200_000, path
        for href in re.findall(r'<a [^>]*?href="([^"]+)"', page):
            target = str(where.join(href.replace("&amp;", "&"))).partition("#")[0]
            if target not in seen:
                seen.add(target)
                assert client.get(target).status_code in {200, 303}, (path, href)
    assert len(seen) > 40


@pytest.mark.parametrize(
    "path",
    [
        "/testsets",
        "/evaluations",
        "/evaluations/1",
        "/comparisons",
        "/comparisons/1",
        "/jobs",
        "/jobs/1",
        "/settings",
        "/books",
    ],
)
def test_raters_see_none_of_the_results(bench, path: str) -> None:
    bench.page(path, "ann", 403)


def test_viewers_see_results_and_no_button(bench) -> None:
    for path in ("/evaluations/2", "/jobs/6", "/comparisons?baseline=1&candidate=2", "/testsets", "/testsets/shop"):
        page = bench.page(path, "vic")
        assert re.findall(r'<form method="post" action="([^"]+)"', page) == ["/sign-out"], path
    bench.page("/settings", "vic", 403)


def test_all_states_of_jobs_as_the_form_sends_them(bench) -> None:
    assert "evaluate #7" in bench.page("/jobs?state=")
    assert "evaluate #7" not in bench.page("/jobs?state=failed")


def test_tokens_that_a_role_can_use(bench) -> None:
    offered = {who: re.findall(r'<option value="(\w+)"', bench.page("/account", who)) for who in ("lee", "vic", "ann")}
    assert offered == {"lee": ["read", "judge", "evaluate", "manage"], "vic": ["read"], "ann": ["judge"]}
    assert "Enter the purpose of the token." in bench.team.post("lee", "/account/tokens", label="  ", scope="read").text


def test_a_list_in_pages_says_what_is_sorted(bench) -> None:
    assert "Filter apply to this page" not in bench.page("/evaluations")
    assert "Filter apply to this page" in bench.page("/evaluations?before=4")


def test_what_does_not_count_says_so_first(bench) -> None:
    page = bench.page("/evaluations/{void}".format(**bench.ids))
    assert page.index("are invalid") < page.index("nDCG@10")
    assert "every query returned the same results" in page
    assert '1 new evaluation is invalid: <a href="/evaluations/3">broken #3</a>' in bench.page("/")
    assert re.search(r"broken #3</a></th>\s*<td[^>]*>invalid", bench.page("/evaluations"))


def test_a_regression_is_said_first(bench, workbench_books) -> None:
    """`old` is worse than `new`, which is pinned, and breaks a rule."""
    service, ids = bench.service, bench.ids
    new, old = ids["new"], ids["old"]
    service.jobs.cancel(ids["queued"])
    assert "Got worse" not in bench.page("/")
    service.evaluations.pin(old, pinned=False)
    assert "No evaluation is pinned as the baseline of shop" in bench.page(f"/evaluations/{old}")
    service.evaluations.pin(new)
    means = [service.evaluations.get(number).scores.measures[parse("nDCG@10")].mean for number in (old, new)]
    text = f"nDCG@10: {means[0]:.4f}, baseline: {means[1]:.4f}"
    assert text in bench.page(f"/evaluations/{old}")
    comparison = service.comparisons.get(workbench_books.compare(service, new, old))
    rule = "nDCG@10 is at least 0.99"
    with service.store.database.write() as session:
        row = session.get(StoredEvaluation, old)
        row.facts = {**row.facts, "gate": {rule: False, "Judged@10 is at least 0.1": True}}
    page = bench.page(f"/evaluations/{old}")
    verdict = page.index("Worse, gate failed")
    assert verdict < page.index(escape(comparison.record.verdict_sentence)) < page.index(rule) < page.index("valid")
    assert "This evaluation is the baseline of its test set" in bench.page(f"/evaluations/{new}")
    home = bench.page("/")
    assert (
        home.index("Got worse")
        < home.index(escape(comparison.record.verdict_sentence))
        < home.index("new evaluation is invalid")
    )
    assert f"it breaks 1 rule of the gate: {rule}" in home
    assert "breaks 1 of 2 rules" in bench.page("/evaluations")
    service.evaluations.pin(new, pinned=False)
    assert bench.page(f"/evaluations/{old}").index("Worse, gate failed") < page.index(
        escape(comparison.record.verdict_sentence)
    )
    service.evaluations.pin(old)
    assert "Worse" not in bench.page(f"/evaluations/{old}").split("</h1>")[1].split("</section>")[0]
    lost = bench.page("/").split("Got worse")[1].split("</section>")[0]
    assert (
        escape(comparison.record.verdict_sentence) not in lost
    )  # the baseline did not get worse: the other one is better


def test_evaluations_with_a_measure_of_a_plugin_that_is_gone_are_listed(bench, monkeypatch) -> None:
    number = bench.ids["new"]
    whole = json.loads(json.dumps(bench.service.evaluations.payload(number)).replace("nDCG@10", "Gone@10"))
    monkeypatch.setattr(bench.service.evaluations, "payload", lambda _: whole)
    with bench.service.store.database.write() as session:
        row = session.get(StoredEvaluation, number)
        row.record = json.loads(json.dumps(row.record).replace("nDCG@10", "Gone@10"))
    assert "Gone@10" in bench.page("/evaluations")
    assert "Gone@10" in bench.page(f"/evaluations/{number}")
    with pytest.raises(CranfieldError, match="Gone"):
        from_jsonable(EvaluationResult, to_jsonable(bench.service.evaluations.get(number).record))


def test_a_verdict_is_of_the_same_test_set_and_convention(bench) -> None:
    service, ids = bench.service, bench.ids
    info, baseline = (service.evaluations.get(ids[name]) for name in ("new", "old"))
    found = verdict_on(service, info, baseline)
    assert found is not None
    assert found.id == ids["comparison"]
    for other in (
        replace(info, testset_name="inverse"),
        replace(info, facts=replace(info.facts, k=1)),
        replace(info, record=replace(info.record, convention="quepid")),
        replace(info, record=with_scores(info.record, measures={parse("P@1"): info.summary})),
    ):
        assert verdict_on(service, other, baseline) is None
    assert verdict_on(service, replace(info, testset_name="shop (judged)"), baseline) == found
    part = replace(
        found,
        record=replace(found.record, verdict=VerdictCode.WORSE),
        baseline=replace(found.baseline, components="bm25"),
    )
    block = headline(info, part, baseline)
    assert (block.name, block.tone) == ("not compared", "open")
    assert PARTLY in block.sentence


def test_home_of_a_new_server_says_what_to_do_first(team) -> None:
    from cranfield.workbench.service.service import open_service

    team.app.state.service = open_service(team.store)
    page = team.browser("lee").get("/").text
    assert "Start here" in page
    assert "Upload a test set" in page
    assert '<a href="/evaluations/new">Evaluate</a>' in page
    viewer = team.browser("vic").get("/").text
    assert "No evaluations yet" in viewer
    assert "Upload" not in viewer
    assert "/books/other" in page
    team.app.state.service = None


def test_home_shows_what_changed(bench) -> None:
    page = bench.page("/")
    for words in (
        "<strong>1</strong> better",
        "Overdue refreshes",
        "Failed jobs",
        "the search did not start",
        "Decide in shop",
    ):
        assert words in page, words
    assert "New evaluations, the latest first" in page
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cranfield.workbench.server.home.SHOWN", 2)
        assert "New evaluations, the latest 2 of 4" in bench.page("/")
    bench.team.now[0] += 40 * DAY_MS
    bench.team.forget("lee")  # the session has ended
    assert "Nothing new" not in bench.page("/")  # the refresh is still overdue
    assert "Failed jobs" not in bench.page("/")


NOW = 1_795_435_200_000


@pytest.mark.parametrize(
    ("cookie", "days", "expected"),
    [
        ("", 1, f"0.{NOW // 1000}"),
        # Three days ago: what has changed in these days is new.
        (f"0.{(NOW - 3 * DAY_MS) // 1000}", 3, f"{(NOW - 3 * DAY_MS) // 1000}.{NOW // 1000}"),
        # Ten minutes ago is the same visit: the one before it counts.
        (
            f"{(NOW - 5 * DAY_MS) // 1000}.{(NOW - VISIT_MS // 3) // 1000}",
            5,
            f"{(NOW - 5 * DAY_MS) // 1000}.{NOW // 1000}",
        ),
        # An hour ago: at least a day is shown.
        (f"0.{(NOW - 2 * VISIT_MS) // 1000}", 1, f"{(NOW - 2 * VISIT_MS) // 1000}.{NOW // 1000}"),
        (f"1.{(NOW - 90 * DAY_MS) // 1000}", 30, f"{(NOW - 90 * DAY_MS) // 1000}.{NOW // 1000}"),
        ("x.y", 1, f"0.{NOW // 1000}"),
        ("٣.²", 1, f"0.{NOW // 1000}"),
        ("9" * 400, 1, f"0.{NOW // 1000}"),
    ],
)
def test_the_last_visit(cookie: str, days: int, expected: str) -> None:
    assert visits(cookie, NOW) == (NOW - days * DAY_MS, expected)


def rows_of(bench, path: str) -> list[dict[str, str]]:
    answer = bench.team.browser("lee").get(path)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.text)))


def test_lists_as_csv(bench) -> None:
    assert [row["evaluation"] for row in rows_of(bench, "/evaluations?format=csv")] == [
        "new #4",
        "broken #3",
        "new #2",
        "old #1",
    ]
    assert [row["state"] for row in rows_of(bench, "/evaluations?format=csv&tag=nightly")] == ["valid", "valid"]
    assert [row["verdict"] for row in rows_of(bench, "/comparisons?format=csv")] == ["better"]
    assert [row["state"] for row in rows_of(bench, "/jobs?format=csv&state=failed")] == ["failed"]
    assert [row["queries"] for row in rows_of(bench, "/testsets?format=csv")] == ["32"]
    rows = rows_of(bench, "/testsets/shop?version=1&format=csv")
    assert (len(rows), rows[0]["query"], rows[0]["relevant"], rows[0]["judged"]) == (30, "q0", "4", "5")


@pytest.mark.parametrize(
    ("query", "labels"),
    [
        ("tag=nightly", ["new #2", "old #1"]),
        ("pinned=true", ["old #1"]),
        ("system=broken", ["broken #3"]),
        ("since=2026-11-24", []),
        ("testset=none", []),
        ("before=2", ["old #1"]),
    ],
)
def test_filters_of_evaluations(bench, query: str, labels: list[str]) -> None:
    page = bench.page(f"/evaluations?{query}")
    assert re.findall(r">([a-z]+ #\d)</a></th>", page) == labels


def test_a_wrong_date_is_refused_in_words(bench) -> None:
    assert "is not a date" in bench.page("/evaluations?since=yesterday", status=422)


def test_the_history_leaves_out_what_does_not_count(bench) -> None:
    page = bench.page("/evaluations?testset=shop")
    history = page[page.index('id="over-time"') :]
    assert re.search(r'href="evaluations/2">2026-11-23 12:00</a>', history)
    assert "1 evaluation left out: invalid figures." in history
    assert "new on shop" in history
    assert "broken on shop" not in history
    assert "test set 2" in history  # the line breaks where the version changed


def test_a_pilot_is_no_point_of_the_history_and_does_not_choose_its_measure(bench, workbench_books) -> None:
    run = bench.service.runs.file(bench.service.evaluations.get(2).run_id)
    with run as (_, path):
        workbench_books.evaluate(bench.service, "shop", path, "new", measures=("P@1",), pilot=True)
    page = bench.page("/evaluations?testset=shop")
    history = page[page.index('id="over-time"') :]
    assert "1 pilot left out." in history
    assert "nDCG@10 of new on shop" in history
    assert history.count('href="evaluations/') == 2
    assert "P@1" not in history


def test_jobs_say_what_they_are_about(bench) -> None:
    jobs = bench.service.jobs
    request = EvaluateRequest(testset="shop@1", systems=("a", "b"), variant="v", components=("x", "y"), pilot=True)
    tried = request.model_copy(update={"params": {"params.boost": 2}})
    asked = jobs.get(1).model_copy(update={"request": tried})
    assert job_subject(asked) == "a (v, tried: boost=2) [x,y], b (v, tried: boost=2) [x,y] on shop #1, a pilot"
    page = bench.page("/jobs")
    assert "new #2 against old #1" in page
    assert "run 3 broken on shop" in page
    assert 'href="/evaluations/2">new #2</a> on shop' in bench.page("/jobs/2")
    job = jobs.submit(EvaluateRequest(testset="shop", runs=(1,), pilot=True), trigger=Trigger.PAGE)
    page = bench.page(f"/jobs/{job.id}")
    assert re.search(r'<th scope="row">pilot</th><td class="wordy">yes</td>', page)


def test_downloads_are_named_by_what_they_are(bench) -> None:
    assert 'download="new on shop #2.html"' in bench.page("/evaluations/2")
    assert 'download="new #2 against old #1.csv"' in bench.page("/comparisons/1")


def test_a_measure_without_values_has_no_history_and_the_page_says_so(bench) -> None:
    assert "None of these evaluations has a mean of nothing" in bench.page("/evaluations?testset=shop&measure=nothing")


def test_tags_note_and_baseline(bench) -> None:
    done = bench.team.post("lee", "/evaluations/2/notes", tags=" a , b,,", note="tried\r\nit")
    assert done.headers["location"] == "/evaluations/2?done=saved"
    info = bench.service.evaluations.get(2)
    assert (info.tags, info.note) == (("a", "b"), "tried\nit")
    bench.team.post("lee", "/evaluations/2/pin", pinned="true")
    assert [each.pinned for each in map(bench.service.evaluations.get, (1, 2))] == [False, True]
    bench.team.post("lee", "/evaluations/2/pin", pinned="false")
    assert not bench.service.evaluations.get(2).pinned


def test_the_baseline_is_offered_to_compare_with_on_the_newest_version_where_it_has_other_judgments(bench) -> None:
    pages = {name: bench.page(f"/evaluations/{bench.ids[name]}") for name in ("new", "second")}
    for name, page in pages.items():
        assert f'action="/evaluations/{bench.ids[name]}/compare"' in page
        assert ("on the newest version of the test set</button>" in page) is (name == "second")


def test_run_again_takes_the_latest_test_set_and_the_same_run(bench) -> None:
    again = request_of(bench.service, bench.service.evaluations.get(2))
    assert again == EvaluateRequest(testset="shop", runs=(2,), tags=("nightly",))
    answer = bench.team.post("lee", "/evaluations/2/rerun")
    job = bench.service.jobs.get(int(answer.headers["location"].rpartition("/")[2]))
    assert (job.request, job.account) == (again, "lee")


def test_compare_leads_to_the_job_until_there_is_a_result(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cranfield.workbench.server.evaluations.SHORT_WAIT_S", 0.0)
    answer = bench.team.post("lee", "/evaluations/2/compare", baseline=1)
    number = int(answer.headers["location"].removeprefix("/jobs/"))
    assert bench.service.jobs.get(number).request == CompareRequest(baseline=1, candidate=2)
    answer = bench.team.post("lee", "/comparisons/make", baseline=1, candidate=2, measure=" P@5 ")
    number = int(answer.headers["location"].removeprefix("/jobs/"))
    assert bench.service.jobs.get(number).request == CompareRequest(baseline=1, candidate=2, measure="P@5")


def test_flags_before_a_comparison(bench) -> None:
    page = bench.page("/comparisons?baseline=3&candidate=4")
    for words in (
        "broken #3 are invalid: every query",
        "2 queries in the candidate only (q30, q31)",
        "3 queries with other judgments (q0, q1, q2)",
        "results are judged",
    ):
        assert words in page, words
    assert "both are scored on the newest version of the test set" in page
    assert "<button>Compare on the newest version</button>" in page
    assert 'action="/comparisons/make"' in bench.page("/comparisons?baseline=1&candidate=2")
    assert "Different" not in bench.page("/comparisons?baseline=1&candidate=2")
    same = bench.page("/comparisons?baseline=1&candidate=1")
    assert "Both sides are the same evaluation" in same
    assert 'action="/comparisons/make"' not in same


def test_flags_of_other_texts_and_guidelines(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The versions differ in a text and in the guidelines alone."""
    old, new = (
        TestSet(
            "shop", (Query("a", text),), {"a": {"d": 1.0}}, meta=Meta(judging=Judging("shop", 1, "median", (), (by,)))
        )
        for text, by in (("socks", JudgingGuideline(1, "a" * 64, 3)), ("wool socks", JudgingGuideline(2, "b" * 64, 3)))
    )
    sides = [bench.service.evaluations.get(number) for number in (1, 4)]
    monkeypatch.setattr(bench.service.testsets, "load", lambda ref: old if ref.endswith("@1") else new)
    found = "\n".join(flags(bench.service, *sides))
    assert "1 query with another text (a)" in found
    assert "Judged by different guidelines" in found
    assert "other judgments" not in found


def test_results_side_by_side_without_judgments(bench) -> None:
    page = bench.page("/diff?baseline=1&candidate=2&k=3")
    assert "<h1>new beside old</h1>" in page
    assert "the first result changed in" in page.lower()
    assert "not in the other list" in page
    assert 'href="/v1/diff?baseline=1&amp;candidate=2&amp;of=evaluations"' in page
    assert 'href="/diff?baseline=1&amp;candidate=2"' in bench.page("/comparisons?baseline=1&candidate=2")
    assert 'href="/diff?baseline=1&amp;candidate=2"' in bench.page("/comparisons/1")
    assert "same evaluation" in bench.page("/diff?baseline=1&candidate=1", status=422)
    assert "beside" in bench.page("/diff?baseline=1&candidate=2&of=runs")


def test_the_comparison_comes_in_parts_and_then_whole(bench) -> None:
    first = bench.page("/comparisons/1")
    assert first.index("Better: new #2 against old #1") < first.index('class="waiting"') < first.index('class="report"')
    second = bench.page("/comparisons/1")
    assert 'class="waiting"' not in second
    assert re.sub(r"<p class=\"waiting.*?</p>\n", "", first) == second


def test_a_comparison_is_shown_as_its_job_stored_it_also_after_a_restart(bench, monkeypatch, tmp_path) -> None:
    request = CompareRequest(baseline=bench.ids["old"], candidate=bench.ids["new"])
    done = work_here(bench.service, bench.service.jobs.submit(request, trigger=Trigger.PAGE).id, tmp_path)
    path = f"/comparisons/{done.results[0]}"
    with monkeypatch.context() as patched:
        patched.setattr(Comparisons, "compare", None)
        stored = bench.page(path)
        index = bench.team.browser("lee").get(f"{path}/queries.json").json()
        detail = bench.team.browser("lee").get(f"{path}/query.json?id=q3").json()
        assert "q3-d0" in bench.page(f"{path}/queries/q3")
    assert f'data-index="{path}/queries.json"' in stored
    made = bench.service.comparisons.compare(bench.service.comparisons.get(done.results[0]).request)
    assert index == json.loads(data_json(query_index(made)))
    assert detail == json.loads(data_json(query_detail(made, "q3")))


def test_an_error_in_the_second_part_is_shown_in_its_place(bench, monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    def fail(_: int) -> None:
        message = "secret detail"
        raise RuntimeError(message)

    monkeypatch.setattr(bench.service.comparisons, "payload", fail)
    page = bench.page("/comparisons/1")
    number = re.search(r"Internal server error \(number (\w+)\)", page)
    assert number
    assert number[1] in caplog.text
    assert "secret detail" not in page
    assert page.rstrip().endswith("</html>")


def test_a_result_of_another_version_is_refused_in_words(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = dict(bench.service.comparisons.payload(1))
    del stored["alpha"]
    monkeypatch.setattr(bench.service.comparisons, "payload", lambda _: stored)
    for path, status in (("/comparisons/1/queries/q3", 422), ("/comparisons/1", 200)):
        assert "the stored result 1 is not readable by this version" in bench.page(path, status=status).lower()


def test_late_sections_of_a_comparison_are_folded_and_queries_have_their_pages(bench) -> None:
    page = bench.page("/comparisons/1")
    assert re.findall(r'<summary><h2 id="([a-z-]+)-heading"', page)[-1] == "provenance"
    assert '<summary><h2 id="measures-heading"' not in page
    assert re.search(r'<a href="1/queries/q\d+"><code>q\d+</code></a>', page)
    assert '<ol class="hits"' not in page


def test_a_query_of_either_side_and_none_that_is_not_there(bench) -> None:
    page = bench.page("/comparisons/1/queries/q3")
    assert "q3-d0" in page
    assert "expected, grade 2" in page
    assert bench.service.testsets.load("shop").by_id["q3"].text in page
    assert "Values of this query" in page
    void = bench.page("/evaluations/{void}/queries/q3".format(**bench.ids))
    assert void.index("are invalid") < void.index("q3-d0")
    bench.page("/comparisons/1/queries/nothing", status=404)
    bench.page("/evaluations/2/queries/nothing", status=404)
    bench.page("/testsets/shop/queries/nothing", status=404)
    client = bench.team.browser("lee")
    assert client.get("/evaluations/2/queries.json").json()["ids"][0] == "q0"
    assert client.get("/comparisons/1/query.json?id=q3").json()["id"] == "q3"
    assert client.get("/comparisons/1/query.json?id=nothing").status_code == 404


@pytest.mark.parametrize(
    "path", ["/evaluations/99", "/comparisons/99", "/jobs/99", "/testsets/none", "/testsets/shop?version=99"]
)
def test_what_is_not_there(bench, path: str) -> None:
    bench.page(path, status=404)


def test_cancel_and_retry(bench) -> None:
    queued, failed = bench.ids["queued"], bench.ids["failed"]
    assert f'action="/jobs/{queued}/cancel"' in bench.page(f"/jobs/{queued}")
    bench.team.post("lee", f"/jobs/{queued}/cancel")
    assert bench.service.jobs.get(queued).state is JobState.CANCELLED
    page = bench.page(f"/jobs/{failed}")
    assert "the search did not start: no such file" in page
    assert "heck `command` of the system" in page
    bench.team.post("lee", f"/jobs/{failed}/retry")
    assert bench.service.jobs.get(failed).state is JobState.QUEUED


def test_versions_and_coverage_of_a_test_set(bench) -> None:
    page = bench.page("/testsets/shop")
    assert "overdue by" in page
    assert "/testsets/shop/diff?old=1&amp;new=2" in page
    assert "32 queries, page 1 of 1" in page
    assert "q31" in bench.page("/testsets/shop/diff?old=1&new=2")
    assert "0 queries, page 1 of 1" in bench.page("/testsets/shop?find=nothing")


def test_settings_show_no_secret() -> None:
    shown = without_secrets(
        {
            "url": "https://user:hunter2@search.example.org/?api_key=s3cret&q=1",
            "headers": {"Authorization": "Bearer abc", "X-Api-Key": "{env.KEY}"},
            "list": [{"password": "p"}],
            "k": 10,
        }
    )
    assert shown == {
        "url": "https://***@search.example.org/?api_key=***&q=1",
        "headers": {"Authorization": "***", "X-Api-Key": "{env.KEY}"},
        "list": [{"password": "***"}],
        "k": 10,
    }
    assert as_yaml(Workbench()) == ""
    assert [size_text(n) for n in (12, 1_500, 2_000_000)] == ["12 bytes", "1.5 kB", "2.0 MB"]
    assert size_text(1) == "1 byte"


def test_only_a_few_results_are_kept_and_each_is_made_once() -> None:
    kept, made = RecentValues(2), []
    for key in (1, 2, 1, 3, 1, 2):
        kept.get(key, lambda key=key: made.append(key))
    assert made == [1, 2, 3, 2]
    assert 3 not in kept


@pytest.mark.slow
def test_an_upload_makes_a_version_and_a_wrong_file_is_refused_in_words(bench) -> None:
    client = bench.team.browser("lee")

    def send(text: str):
        fields = {"csrf": bench.team.csrf(client), "name": "tiny", "format": ""}
        return client.post("/testsets/upload", data=fields, files={"file": ("tiny.yaml", text.encode())})

    text = "cranfield_testset: 1\nname: tiny\nqueries:\n  - {id: a, text: first, judgments: {d1: 1}}\n"
    assert send(text).headers["location"] == "/testsets/tiny?done=uploaded"
    assert bench.service.testsets.get("tiny").account == "lee"
    large = text + "".join(f"  - {{id: b{n}, text: {'word ' * 1_000}, judgments: {{d1: 1}}}}\n" for n in range(600))
    assert len(large) > LARGEST_BODY  # of any other form
    assert send(large).headers["location"] == "/testsets/tiny?done=uploaded"
    uploads, lee = bench.team.app.state.uploads, bench.team.store.people.get("lee").id
    uploads[lee] = MAX_UPLOADS
    assert send(text).status_code == 429
    del uploads[lee]
    refused = send("cranfield_testset: 1\nqueries: 3\n")
    assert refused.status_code == 422
    assert "missing key" in refused.text


WITHOUT_TOOLS = {"judge.html": 2, "book.html": 2}
"""Tables that do not sort: of keys, and of a single row."""


def test_every_table_sorts_filters_and_exports() -> None:
    for path in (FOLDER / "templates").glob("*.html"):
        text = path.read_text()
        tables = re.findall(r"<table\b[^>]*>", text)
        assert tables.count("<table data-tools>") == len(tables) - WITHOUT_TOOLS.get(path.name, 0), path.name
        assert "<table data-tools>" not in text or "report_head.html" in text or "{% extends" not in text, path.name


def test_no_page_of_queries_searches_an_expression_of_an_upload(bench, workbench_books, tmp_path, monkeypatch) -> None:
    service = bench.service
    queries = [{"id": "q1", "text": "wool", "patterns": [{"regex": "(a|a)*$x", "credit": "every"}]}]
    (tmp_path / "slow.yaml").write_text(json.dumps({"cranfield_testset": 1, "name": "slow", "queries": queries}))
    (tmp_path / "slow.run").write_text(f"q1 Q0 {'a' * 17} 1 1.0 slow\n")
    service.testsets.keep("slow", load(tmp_path / "slow.yaml"))
    slow = workbench_books.evaluate(service, "slow", tmp_path / "slow.run", "slow", measures=("RR",))
    monkeypatch.setattr(patterns, "SEARCH_S", 0.0)
    assert json.loads(bench.page(f"/evaluations/{slow}/queries.json"))["values"] == [[0.0]]
