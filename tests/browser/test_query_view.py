"""The query view in the browser: find, sort, filter, export, open side by side, by mouse and by keyboard, in a file and on a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect

from cranfield import Answer, Hit, Outcome, Query, Run, TestSet, compare, compare_many, evaluate
from cranfield.model import CallLog, Explanation
from cranfield.reporting import comparison_document, evaluation_document, save_report
from cranfield.reporting.query_data import data_json, query_detail, query_index
from cranfield.reporting.renderers.html import MODULES, render_blocks

pytestmark = [pytest.mark.browser, pytest.mark.slow]

EVIL = "<img src=x onerror=\"document.title = 'taken'\">"
PANEL = "#query-panel[open]"


def runs() -> tuple[TestSet, list[Run]]:
    """Sixty queries, three systems: the second finds more, the third the same as the first."""
    queries = tuple(
        Query(
            f"q{n}", f"text {n} {EVIL if n == 57 else 'about ' + 'abc'[n % 3]}", {"class": "easy" if n % 2 else "hard"}
        )
        for n in range(1, 61)
    )
    truth = TestSet("sixty", queries, {query.id: {f"{query.id}-a": 2, f"{query.id}-b": 1} for query in queries})

    def run(name: str, first: int) -> Run:
        answers = {}
        for n, query in enumerate(queries):
            ids = [f"x{place}" for place in range(8)]
            ids.insert((first + n) % 7, f"{query.id}-a")
            answers[query.id] = Answer(Outcome.ANSWERED, tuple(Hit(doc, title=f"{EVIL} {doc}") for doc in ids))
        answers["q4"] = Answer(Outcome.TIMEOUT, reason="no answer in 30 s")
        return Run(name, answers, depth=10, logs={query.id: CallLog(12.5) for query in queries})

    return truth, [run("old", 3), run("new", 0), run("third", 3)]


def with_explanations(run: Run, boost: float) -> Run:
    """The same run, in which each score is that of a title at a boost, and of a body."""

    def explained(hit: Hit) -> Hit:
        title = Explanation(f"title:{EVIL}", boost * 0.5, (Explanation("boost", boost), Explanation("idf", 0.5)))
        return replace(hit, explanation=Explanation("sum", boost * 0.5 + 0.25, (title, Explanation("body:text", 0.25))))

    answers = {
        query_id: replace(answer, hits=tuple(map(explained, answer.hits))) for query_id, answer in run.answers.items()
    }
    return replace(run, answers=answers)


def write_reports(folder: Path) -> None:
    """Two systems, three, and one."""
    truth, all_runs = runs()
    old, new, third = (evaluate(truth, run) for run in all_runs)
    sides = [evaluate(truth, with_explanations(run, boost)) for run, boost in ((all_runs[0], 1.0), (all_runs[1], 5.0))]
    documents = {
        "explained": comparison_document(compare(*sides, test="t")),
        "pair": comparison_document(compare(old, new, test="t")),
        "many": comparison_document(compare_many([old, new, third], test="t")),
        "one": evaluation_document([old]),
    }
    for name, document in documents.items():
        save_report(document, folder / f"{name}.html")


@pytest.fixture(scope="module")
def reports(make_once: Callable[[str, Callable[[Path], object]], Path]) -> dict[str, Path]:
    """Name to page."""
    folder = make_once("pages of the query view", write_reports)
    return {name: folder / f"{name}.html" for name in ("pair", "many", "one", "explained")}


@pytest.fixture
def opened(browser: Browser, reports: dict[str, Path]) -> Iterator[Callable[..., Page]]:
    """A function from the name of a report to a page that is ready; nothing may be written to its console."""
    pages: list[Page] = []
    messages: list[str] = []

    def load(name: str, width: int = 1280, *, hash_: str = "", scheme: str = "light") -> Page:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        pages.append(page)
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.goto(reports[name].as_uri() + hash_)
        page.wait_for_selector("#query-view[data-ready]")
        return page

    yield load
    titles = [page.title() for page in pages]
    for page in pages:
        page.close()
    assert messages == []
    assert "taken" not in titles


def found(page: Page) -> list[str]:
    """Ids of the queries listed."""
    return page.locator("#query-view tbody th").all_inner_texts()


FINDS = {"q57": ["q57"], "text 57": ["q57"], "TIMEOUT": ["q4"], "hard q22": ["q22"], "nothing": []}


def test_a_query_is_found_by_text_id_class_or_outcome(opened) -> None:
    page = opened("pair")
    assert len(found(page)) == 20  # the first of them
    for words, ids in FINDS.items():
        page.get_by_label("Find a query").fill(words)
        assert found(page) == ids
        assert page.locator("[data-part=status]").inner_text() == f"{len(ids)} of 60 queries, values of nDCG@10"


def test_the_terms_of_a_score_are_folded_beside_those_of_the_other_system(opened) -> None:
    page = opened("explained", hash_="#q=q57")
    folded = page.locator(f"{PANEL} .hits").nth(1).locator(".hit", has_text="q57-a").locator("details.terms")
    expect(folded).to_have_count(1)
    assert folded.locator("table").is_hidden()
    folded.locator("summary").click()
    rows = [row.locator("th, td").all_inner_texts() for row in folded.locator("tbody tr").all()]
    assert rows == [
        ["score", "2.75", "0.75", "2"],
        [f"title:{EVIL}", "2.5", "0.5", "2"],
        [f"title:{EVIL} · boost", "5", "1", "4"],
        [f"title:{EVIL} · idf", "0.5", "0.5", "="],
        ["body:text", "0.25", "0.25", "="],
    ]
    assert folded.locator("thead th").all_inner_texts() == ["term", "here", "on A", "difference"]
    assert Axe().run(page, PANEL.removesuffix("[open]")).response["violations"] == []


def test_queries_are_filtered_by_class_and_change_and_sorted(opened) -> None:
    page = opened("pair")
    page.get_by_label("Class or stratum").select_option(label="easy")
    page.get_by_label("Change or outcome").select_option(label="improved")
    ids = found(page)
    assert 0 < len(ids) < 30
    assert all(int(query_id[1:]) % 2 for query_id in ids)
    page.locator("#query-view").get_by_role("button", name="difference").click()
    head = page.locator("#query-view thead th", has_text="difference")
    assert head.get_attribute("aria-sort") == "descending"
    deltas = [float(text) for text in page.locator("#query-view tbody tr td.good").all_inner_texts()]
    assert deltas == sorted(deltas, reverse=True)


def test_the_list_and_a_table_are_saved_as_csv(opened) -> None:
    page = opened("pair")
    page.get_by_label("Find a query").fill("q57")
    with page.expect_download() as saved:
        page.locator("[data-part=csv]").click()
    lines = Path(saved.value.path()).read_text().splitlines()
    assert lines[0] == "query,text,A,B,difference,rank A,rank B,change,outcome"
    assert lines[1].startswith('q57,"text 57 <img src=x onerror=""document.title = \'taken\'"">",0.')
    assert len(lines) == 2
    with page.expect_download() as saved:
        page.locator("#queries > figure.table").first.get_by_role("button", name="CSV").click()
    rows = Path(saved.value.path()).read_text().splitlines()
    assert rows[0] == "bucket,queries,share,which"
    assert len(rows) > 3


def test_every_table_sorts_and_filters(opened) -> None:
    page = opened("pair")
    assert page.evaluate("[...document.querySelectorAll('figure.table table')].every(each => each.dataset.equipped)")
    figure = page.locator("#queries > figure.table").first
    figure.get_by_role("button", name="queries").click()
    numbers = [int(text) for text in figure.locator("tbody td:nth-child(2)").all_inner_texts()]
    assert numbers == sorted(numbers, reverse=True)
    figure.get_by_role("button", name="Filter").click()
    page.keyboard.type("worsened")
    assert figure.locator("tbody tr:visible").count() == 1
    assert "1 of" in figure.get_by_role("status").inner_text()


def test_a_deep_link_opens_a_query_and_closing_removes_it(opened) -> None:
    page = opened("pair", hash_="#q=q57")
    panel = page.locator(PANEL)
    assert panel.locator("h2").inner_text() == f"q57 “text 57 {EVIL}”"
    page.keyboard.press("Escape")
    page.wait_for_function("() => !document.getElementById('query-panel').open")
    assert "#" not in page.url
    page.evaluate("location.hash = '#q=nowhere'")
    page.wait_for_function(
        "() => document.querySelector('[data-part=status]').textContent.includes('no query nowhere')"
    )
    assert page.locator(PANEL).count() == 0


ODD = "a b/ü#1?%41&q=c"
"""An id of which every character means something in an address."""


def test_a_deep_link_finds_an_id_that_needs_encoding(browser: Browser, tmp_path: Path) -> None:
    queries = (Query(ODD, "odd"), Query("a", "plain"))
    truth = TestSet("odd", queries, {query.id: {"d": 1} for query in queries})
    run = Run("one", {query.id: Answer(Outcome.ANSWERED, (Hit("d"),)) for query in queries})
    save_report(evaluation_document([evaluate(truth, run)]), tmp_path / "report.html")
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri() + "#q=" + quote(ODD, safe=""))
    title = page.locator(f"{PANEL} h2")
    assert title.inner_text() == f"{ODD} “odd”"
    page.keyboard.press("j")
    page.wait_for_function("() => document.querySelector('#query-panel h2').textContent.startsWith('a ')")
    page.keyboard.press("k")
    page.wait_for_function("() => document.querySelector('#query-panel h2').textContent.startsWith('a b')")
    assert unquote(page.url.partition("#q=")[2]) == ODD
    page.keyboard.press("Escape")
    page.locator("#query-view tbody a").first.click()
    assert title.inner_text() == f"{ODD} “odd”"
    page.close()


def test_a_query_opens_by_keyboard_and_the_next_ones_too(opened) -> None:
    page = opened("pair")
    page.keyboard.press("/")
    page.keyboard.type("5")
    page.keyboard.press("Enter")
    title = page.locator(f"{PANEL} h2")
    assert title.inner_text().startswith("q5 ")
    page.keyboard.press("j")
    page.wait_for_function("() => location.hash === '#q=q15'")
    page.keyboard.press("k")
    page.wait_for_function("() => document.querySelector('#query-panel h2').textContent.startsWith('q5 ')")
    page.keyboard.press("?")
    assert page.locator("#query-keys[open]").is_visible()
    page.keyboard.press("Escape")
    assert page.locator(PANEL).is_visible()
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.activeElement.textContent === 'q5'")  # once its address is removed
    page.keyboard.press("j")
    page.wait_for_function("() => document.activeElement.textContent === 'q15'")


def test_the_search_key_leaves_an_opened_query_for_the_search(opened) -> None:
    page = opened("pair", hash_="#q=q3")
    page.keyboard.press("/")
    page.wait_for_function("() => !location.hash")  # it is removed when the query is closed
    page.keyboard.type("text 57")
    assert found(page) == ["q57"]
    page.keyboard.press("Enter")
    page.wait_for_selector(PANEL)
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.activeElement.textContent === 'q57'")


@pytest.mark.parametrize(("name", "section"), [("pair", "tests"), ("many", "latency"), ("one", "provenance")])
def test_the_section_of_the_address_stays_in_sight_when_the_list_of_queries_comes(
    opened, name: str, section: str
) -> None:
    page = opened(name, hash_=f"#{section}")
    page.wait_for_timeout(100)
    assert 0 <= page.locator(f"#{section}").bounding_box()["y"] < 900


def test_an_opened_query_shows_lists_movement_expected_items_values_and_latency(opened) -> None:
    page = opened("pair", hash_="#q=q3")
    panel = page.locator(PANEL)
    left, right = panel.locator(".hits").all()
    assert left.locator("li").count() == right.locator("li").count() == 9
    hit = left.locator("li.good")
    assert "expected, grade 2" in hit.inner_text()
    assert "▲ rank 3 on B" in hit.inner_text()
    assert f"{EVIL} q3-a" in hit.inner_text()
    assert "▲ rank 6 on A" in right.locator("li.good").inner_text()
    tops = [each.bounding_box()["y"] for each in (left.locator("li").nth(4), right.locator("li").nth(4))]
    assert tops[0] == pytest.approx(tops[1], abs=1)  # rank 5 beside rank 5
    assert panel.locator("svg.links line.good").count() == 1
    about = panel.locator(".query-about", has_text="nDCG@10").inner_text()
    assert re.search(r"nDCG@10 0\.\d{4} on A, 0\.\d{4} on B, difference \+0\.\d{4}", about)
    assert "12.5 ms" in panel.locator(".answer-note").first.inner_text()
    missed = panel.locator("tr", has_text="q3-b")
    assert missed.locator("td.bad").all_inner_texts() == ["missed", "missed"]
    values = panel.locator("figure.table").last
    assert values.locator("tbody tr").count() >= 5
    assert re.fullmatch(r"nDCG@10\s+0\.\d{4}\s+0\.\d{4}\s+\+0\.\d{4}", values.locator("tbody tr").first.inner_text())


def test_a_failure_is_said_and_not_shown_as_an_empty_list(opened) -> None:
    page = opened("pair", hash_="#q=q4")
    assert "timeout: no answer in 30 s" in page.locator(f"{PANEL} .answer-note").first.inner_text()


def test_of_many_systems_the_list_is_query_by_system_and_two_can_be_chosen(opened) -> None:
    page = opened("many")
    heads = page.locator("#query-view thead th").all_inner_texts()
    assert [head.split()[0] for head in heads] == ["query", "text", "A", "B", "C", "outcome"]
    page.locator("#query-view tbody a").first.click()
    panel = page.locator(PANEL)
    expect(panel.locator(".answer-title")).to_have_text(["A old", "B new"])
    panel.get_by_label("Right").select_option(label="C third")
    expect(panel.locator(".answer-title")).to_have_text(["A old", "C third"])


def test_of_one_system_there_is_one_list(opened) -> None:
    page = opened("one", hash_="#q=q3")
    assert page.locator(f"{PANEL} .hits").count() == 1
    assert page.locator(f"{PANEL} svg").count() == 0


def test_a_chart_tells_its_values_and_leads_to_the_query(opened) -> None:
    page = opened("pair")
    chart = page.locator("#figure-differences .page-size svg")
    mark = chart.locator("[data-tip]").first
    mark.scroll_into_view_if_needed()
    mark.hover()
    assert page.locator(".chart-tip").inner_text() == mark.get_attribute("data-tip")
    chart.locator("[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator(".chart-tip").is_visible()
    query_id = page.evaluate("document.activeElement.dataset.q")
    page.keyboard.press("Enter")
    page.wait_for_selector(PANEL)
    assert page.url.endswith(f"#q={query_id}")


@pytest.mark.parametrize(
    ("name", "width", "scheme", "parts"),
    [
        ("pair", 1280, "light", ("page", "query", "keys")),
        ("pair", 390, "dark", ("query",)),
        ("many", 390, "light", ("query",)),
    ],
)
def test_page_and_opened_query_are_accessible_and_fit(
    opened, name: str, width: int, scheme: str, parts: tuple[str, ...]
) -> None:
    page = opened(name, width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for part in parts:
        if part == "query":
            page.evaluate("location.hash = '#q=q3'")
            page.wait_for_selector(PANEL)
        if part == "keys":
            page.keyboard.press("?")
        context = {"page": None, "query": "#query-panel", "keys": "#query-keys"}[part]
        result = Axe().run(page, context)
        violations = [(each["id"], each["nodes"][0]["html"]) for each in result.response["violations"]]
        assert (part, violations) == (part, [])
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.getElementById('query-panel').scrollWidth") <= width


def test_a_long_query_does_not_cover_its_lists(browser: Browser, tmp_path: Path) -> None:
    truth = TestSet("long", (Query("a", "why does it not " * 200),), {"a": {"d": 1}})
    run = Run("one", {"a": Answer(Outcome.ANSWERED, (Hit("d"),))})
    save_report(evaluation_document([evaluate(truth, run)]), tmp_path / "report.html")
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto((tmp_path / "report.html").as_uri() + "#q=a")
    hit = page.locator(f"{PANEL} .hit").first
    hit.scroll_into_view_if_needed()
    assert hit.evaluate(
        """each => { const box = each.getBoundingClientRect();
            return each.contains(document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2)); }"""
    )
    page.close()


def test_half_of_a_character_in_an_id_does_not_end_the_view(browser: Browser, tmp_path: Path) -> None:
    queries = (Query("\ud800", "half"), Query("b", "whole"))
    truth = TestSet("halves", queries, {query.id: {"d": 1} for query in queries})
    run = Run("one", {query.id: Answer(Outcome.ANSWERED, (Hit("d"),)) for query in queries})
    save_report(evaluation_document([evaluate(truth, run)]), tmp_path / "report.html")
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    page.wait_for_selector("#query-view[data-ready]")
    page.locator("#query-view tbody a").first.click()
    assert page.locator(f"{PANEL} h2").inner_text() == "\\ud800 “half”"
    page.close()


def test_paper_gets_the_opened_query_alone(opened) -> None:
    page = opened("pair", hash_="#q=q3")
    page.emulate_media(media="print")
    assert page.locator(f"{PANEL} .hits").first.is_visible()
    assert not page.locator("#verdict").is_visible()
    assert not page.get_by_role("button", name="Next").is_visible()


def test_without_the_script_the_page_reads_as_it_is(browser: Browser, reports: dict[str, Path]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(reports["pair"].as_uri())
    assert not page.locator("#query-view").is_visible()
    assert not page.locator("nav", has_text="Query by query").get_by_text("Query by query").is_visible()
    page.locator("summary", has=page.locator("#answers-heading")).click()
    assert page.locator("#answers .hits").first.is_visible()
    assert page.locator("button:visible").count() == 0
    context.close()


def test_a_browser_that_cannot_unpack_says_so(browser: Browser, reports: dict[str, Path]) -> None:
    page = browser.new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto(reports["pair"].as_uri())
    assert "cannot unpack the data" in page.locator("[data-part=status]").inner_text()
    assert not page.locator("#query-view table").is_visible()
    assert page.locator("#queries > figure.table .table-tools").first.is_visible()
    page.close()


def test_the_same_view_works_on_the_pages_of_a_server(browser: Browser) -> None:
    truth, (old, new, _) = runs()
    comparison = compare(evaluate(truth, old), evaluate(truth, new), test="t")
    blocks = render_blocks(comparison_document(comparison), queries=("/c/queries", "/c/query"), most_rows=10)
    shell = (
        '<!doctype html><html lang="en"><title>Compare</title><link rel="icon" href="data:,">'
        '<link rel="stylesheet" href="/static/report.css"><main>'
        f'{blocks}</main><script type="module" src="/static/report.js"></script></html>'
    )
    asked: list[str] = []

    def answer(route: Route) -> None:
        path, _, query = route.request.url.removeprefix("http://view.test").partition("?")
        asked.append(path)
        headers = {
            "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'"
        }
        if path.startswith("/static/"):
            body: str | bytes = (files("cranfield.reporting") / path.removeprefix("/")).read_bytes()
            headers["Content-Type"] = "text/css" if path.endswith("css") else "text/javascript"
        elif path == "/c":
            body, headers["Content-Type"] = shell, "text/html"
        else:
            data = (
                query_index(comparison) if path == "/c/queries" else query_detail(comparison, query.removeprefix("id="))
            )
            body, headers["Content-Type"] = data_json(data), "application/json"
        route.fulfill(body=body, headers=headers)

    page = browser.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.route("**/*", answer)
    page.goto("http://view.test/c#q=q57")
    page.wait_for_selector(PANEL)
    assert page.locator(f"{PANEL} .hits").count() == 2
    scripts = {f"/static/{name}.js" for name in MODULES}
    assert asked[:3] == ["/c", "/static/report.css", "/static/report.js"]
    assert set(asked[2:-2]) == scripts
    assert asked[-2:] == ["/c/queries", "/c/query"]
    assert messages == []
    assert page.title() == "Compare"
    page.close()


LONG = "a" + "\u0301" * 100_000
"""A letter with so many accents: laid out whole, it takes a browser minutes."""


def with_long_texts(folder: Path) -> None:
    """Queries with long texts; results of which one has a long id and a long title."""
    queries = tuple(Query(f"q{n}", f"text {n}{LONG if n == 1 else ''}", {"kind": LONG}) for n in range(3))
    truth = TestSet("long", queries, {query.id: {f"{query.id}{LONG}": 1, "other": 1} for query in queries})

    def run(name: str, first: str) -> Run:
        lists = {q: [Hit(f"{q}{name}{LONG}", title=LONG), Hit("other"), Hit(f"{q}{LONG}")] for q in truth.by_id}
        ordered = {q: sorted(hits, key=lambda hit: hit.id != first) for q, hits in lists.items()}
        return Run(name, {q: Answer(Outcome.ANSWERED, tuple(hits)) for q, hits in ordered.items()}, depth=10)

    pair = (evaluate(truth, run(*each)) for each in (("old", ""), ("new", "other")))
    save_report(comparison_document(compare(*pair, test="t")), folder / "long.html")


def test_long_words_are_cut_and_shown_whole_on_demand(browser: Browser, tmp_path: Path) -> None:
    with_long_texts(tmp_path)
    page = browser.new_page()
    page.goto((tmp_path / "long.html").as_uri())
    page.wait_for_selector("#query-view[data-ready]")
    page.evaluate("location.hash = '#q=q1'")
    title = page.locator(f"{PANEL} .hits li").first.locator(".hit-title")
    assert len(title.inner_text()) < 1_100
    title.get_by_role("button", name="All 100,001 characters").click()
    assert title.text_content() == LONG
    with page.expect_download() as saved:
        page.locator(f"{PANEL} figure.table").first.get_by_role("button", name="CSV").click()
    assert f"q1{LONG}" in Path(saved.value.path()).read_text()
    page.locator(f"{PANEL} [data-part=close]").click()
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = !each.matches('.long'); })")
    whole = page.locator("#answers details.long").first
    whole.locator("summary").click()
    assert LONG in whole.locator(".whole").text_content()
    page.close()
