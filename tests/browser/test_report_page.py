"""The report as a reader meets it: on a phone, on a desk, by keyboard, in the dark, on paper."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cranfield.app.evaluate import compare, evaluate
from cranfield.evaluation.values import Comparison
from cranfield.judging.raters.raters import rater_report
from cranfield.judging.reports.agreement import agreement_document
from cranfield.model import (
    QUERY_CLASSES,
    Answer,
    CallLog,
    Hit,
    Legacy,
    Meta,
    Negative,
    Outcome,
    Pattern,
    Predicate,
    Query,
    Rating,
    Run,
    Source,
    TestSet,
)
from cranfield.model.note import info
from cranfield.reporting import comparison_document, evaluation_document, save_report
from cranfield.reporting.document import Document

pytestmark = pytest.mark.browser

WIDTHS = (390, 1280)
PAGES = ("comparison", "skyline", "evaluation", "classes", "raters")
SHOWN = tuple(
    pytest.param(name, marks=pytest.mark.slow) if name in {"evaluation", "skyline"} else name for name in PAGES
)
"""The tables of an evaluation are also in a comparison, whose bars are a skyline where queries are many."""
EVIL = "<script>document.title = 'taken'</script>"
LONG = "doc://a/very/long/path/without/any/blank/" + "x" * 120


def made_up(n_queries: int, *, pilot: bool = False) -> Comparison:
    """Two systems that differ on most queries, with every outcome, long ids, markup and strata."""
    draw = random.Random(7)
    words = ["json", "socket", "thread", "path", "datetime", "csv", "regex"]
    queries = tuple(
        Query(f"q{n:03}", " ".join(draw.sample(words, 3)), {"class": draw.choice("ABCD"), "kind of question": EVIL})
        for n in range(n_queries - 1)
    )
    queries = (*queries, Query("last", EVIL * 3 + LONG, {"class": "A", "kind of question": LONG}))
    truth = TestSet("made up", queries, {query.id: {LONG: 2, f"{query.id}-b": 1} for query in queries})

    def run(name: str, skill: float) -> Run:
        answers: dict[str, Answer] = {}
        for query in queries:
            ids = [f"{EVIL} {place}" for place in range(12)]
            for doc_id in (LONG, f"{query.id}-b"):
                if draw.random() < skill:
                    ids.insert(draw.randrange(9), doc_id)
            answers[query.id] = Answer(Outcome.ANSWERED, tuple(Hit(i, title=f"{EVIL} about {i}") for i in ids))
        answers["q001"] = Answer(Outcome.TIMEOUT, reason="no answer in 30 s")
        answers["q002"] = Answer(Outcome.EMPTY)
        logs = {query.id: CallLog(draw.uniform(5, 50), stderr_head=EVIL + LONG) for query in queries}
        return Run(name, answers, depth=10, logs=logs, pilot=pilot, config={"command": [LONG, EVIL]})

    return compare(evaluate(truth, run("plain", 0.4)), evaluate(truth, run(f"weighted {EVIL}", 0.75)), margin=0.02)


def of_every_class() -> Comparison:
    """Two queries of each class, judged by long patterns and SQL with markup in them."""
    queries = tuple(
        Query(
            f"{name}-{n}", f"{EVIL} {n}", {EVIL: LONG}, query_class=name, negative=Negative() if letter == "N" else None
        )
        for name, letter in ((one.name, one.letter) for one in QUERY_CLASSES.values())
        for n in range(2)
    )
    sql = f"SELECT id FROM entity WHERE {' AND '.join([f'note <> {EVIL!r}'] * 20)}"
    patterns = {q.id: (Pattern(f"^(right|{LONG}|{EVIL})$"),) for q in queries if q.query_class == "canonical"}
    predicates = {q.id: (Predicate(sql, ids=("right", EVIL)),) for q in queries if q.query_class == "attribute"}
    grades = {q.id: {"right": 2, EVIL: 1} for q in queries if q.id not in {*patterns, *predicates} and not q.negative}
    truth = TestSet(
        EVIL,
        queries,
        grades,
        targets=patterns | predicates,
        legacy={q.id: Legacy((LONG,)) for q in queries if q.query_class == "deprecation"},
        sources=(Source(EVIL, "^<"), Source(LONG, "^r")),
        meta=Meta(review=f"{EVIL} {LONG}"),
        notes=info(EVIL + LONG),
    )

    def run(name: str, *ids: str) -> Run:
        return Run(name, {q.id: Answer(Outcome.ANSWERED, tuple(map(Hit, ids))) for q in queries})

    return compare(evaluate(truth, run("plain", LONG, EVIL, "right")), evaluate(truth, run(EVIL, "right", LONG)))


def rated() -> TestSet:
    """Three raters with markup in their names."""
    grades = {"ann": 1, EVIL: 0, LONG: 3}
    ratings = {q: tuple(Rating(f"{EVIL}{n}", who, g) for n in range(3) for who, g in grades.items()) for q in "ab"}
    return TestSet(EVIL, tuple(Query(q, EVIL) for q in ratings), ratings=ratings, consensus="median")


@pytest.fixture(scope="module")
def reports(make_once: Callable[[str, Callable[[Path], object]], Path]) -> Mapping[str, Path]:
    """Name to page, which is made when it is asked for."""

    class Pages(dict[str, Path]):
        def __missing__(self, name: str) -> Path:
            folder = make_once(f"page {name}", lambda folder: save_report(document(name), folder / f"{name}.html"))
            return folder / f"{name}.html"

    return Pages()


def document(name: str) -> Document:
    """Few queries with named bars, many with a skyline, two systems without a verdict, classes, raters."""
    match name:
        case "comparison":
            return comparison_document(made_up(24, pilot=True), preflight=[("plain", f"file {LONG}", EVIL)])
        case "skyline":
            return comparison_document(made_up(80))
        case "evaluation":
            few = made_up(24, pilot=True)
            return evaluation_document([few.baseline, few.candidate], by_query=True)
        case "classes":
            return comparison_document(of_every_class())
    return agreement_document(rater_report(rated()))


@pytest.mark.parametrize("name", SHOWN)
def test_a_page_writes_nothing_to_its_console_and_requests_nothing_but_itself(loaded, name: str) -> None:
    found = loaded(name)
    for width in WIDTHS:
        found.show(width, all_open=True)
    assert found.messages == []
    assert [url for url in found.requests if url != "data:,"] == [found.path.as_uri()]
    assert found.page.title() != "taken"


@pytest.mark.parametrize("all_open", [pytest.param(False, marks=pytest.mark.slow), True])  # open, it shows the rest too
@pytest.mark.parametrize("name", SHOWN)
def test_the_page_never_scrolls_sideways(loaded, name: str, *, all_open: bool) -> None:
    for width in (320, *WIDTHS):
        page = loaded(name).show(width, all_open=all_open)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        escaped = page.evaluate(
            """width => [...document.querySelectorAll('body *')]
                .filter(each => !each.closest('.scroll, nav, svg, .skip') && each.getBoundingClientRect().right > width + 1)
                .map(each => each.outerHTML.slice(0, 90))""",
            width,
        )
        assert (width, escaped) == (width, [])


@pytest.mark.parametrize("name", SHOWN)
def test_every_heading_is_visible(loaded, name: str) -> None:
    for width in WIDTHS:
        page = loaded(name).show(width)
        headings = page.evaluate(
            """[...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].filter(each => !each.closest('dialog')).map(
                each => each.checkVisibility({visibilityProperty: true}) && each.getBoundingClientRect().height > 0
                    ? each.innerText.trim() : '')"""
        )
        assert len(headings) > 4
        assert (width, all(headings)) == (width, True)


@pytest.mark.parametrize("width", WIDTHS)
def test_each_class_has_its_table(loaded, width: int) -> None:
    page = loaded("classes").show(width, all_open=True)
    captions = page.locator("#classes figcaption").all_inner_texts()
    assert [caption[0] for caption in captions] == [one.letter for one in QUERY_CLASSES.values()]


@pytest.mark.parametrize("width", [pytest.param(390, marks=pytest.mark.slow), 1280])
def test_the_keyboard_reaches_the_content_the_tables_and_the_details(fresh, width: int) -> None:
    page = fresh("comparison", width)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").is_visible()
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    reached = []
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.tagName + '.' + document.activeElement.className"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert {"SUMMARY.", "DIV.scroll"} <= set(reached)
    summary = page.locator("#measures summary", has_text="Each system separately")
    details = summary.locator("xpath=..")
    assert details.get_attribute("open") is None
    summary.focus()
    page.keyboard.press("Enter")
    assert details.get_attribute("open") is not None
    assert details.locator("table").is_visible()


def test_a_wide_table_scrolls_in_its_own_box_by_keyboard(loaded) -> None:
    page = loaded("comparison").show(390)
    box = page.locator("#measures > .table .scroll").first
    assert box.evaluate("each => each.scrollWidth > each.clientWidth")
    box.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("each => each.scrollLeft > 40", arg=box.element_handle())
    # The name of the row stays in sight.
    assert box.locator("tbody th").first.evaluate(
        "each => each.getBoundingClientRect().left - each.closest('.scroll').getBoundingClientRect().left"
    ) == pytest.approx(0, abs=1)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SHOWN[:2])
def test_the_words_of_a_picture_are_large_enough_and_inside_it(loaded, name: str, width: int) -> None:
    page = loaded(name).show(width, all_open=True)
    seen = page.evaluate(
        """() => [...document.querySelectorAll('figure.picture svg')].filter(svg => svg.checkVisibility()).map(svg => {
            const frame = svg.getBoundingClientRect();
            const words = [...svg.querySelectorAll('text')].filter(each => each.textContent.trim()).map(each => {
                const box = each.getBoundingClientRect();
                return [each.textContent, parseFloat(each.getAttribute('font-size')) * svg.getScreenCTM().a,
                        box.left >= frame.left - 1 && box.right <= frame.right + 1
                        && box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1];
            });
            return [frame.height, words];
        })"""
    )
    assert len(seen) == page.locator("figure.picture").count() >= 4
    for height, words in seen:
        assert words
        assert min(size for _, size, _ in words) >= 11
        assert [text for text, _, inside in words if not inside] == []
        assert height < 900


CONTRAST = """() => {
    const parse = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
        .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = each => {
        for (let at = each; at; at = at.parentElement) {
            const colour = parse(getComputedStyle(at).backgroundColor);
            if (colour.length === 3 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
    };
    const poor = new Map();
    for (const each of document.querySelectorAll('body *')) {
        if (![...each.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
        if (each.closest('.glyph') || !each.checkVisibility()) continue;
        const style = getComputedStyle(each);
        const ink = parse(each.closest('svg') ? style.fill : style.color);
        const [a, b] = [light(ink), light(behind(each))].sort((x, y) => y - x);
        const size = parseFloat(style.fontSize);
        const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < (large ? 3 : 4.5)) poor.set(each.tagName + '.' + each.className, ratio);
    }
    return [...poor];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", SHOWN)
def test_words_stand_out_from_what_is_behind_them(loaded, name: str, scheme: str) -> None:
    page = loaded(name).show(1280, all_open=True, scheme=scheme)
    assert page.evaluate(CONTRAST) == []
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


def test_grey_words_on_grey_would_be_found(loaded) -> None:
    page = loaded("comparison").show(1280)
    page.evaluate("document.querySelector('h1').style.setProperty('color', '#ddd')")
    found = page.evaluate(CONTRAST)
    page.evaluate("document.querySelector('h1').style.removeProperty('color')")
    assert [name for name, _ in found] == ["H1."]


def test_the_policy_stops_a_script_that_got_in(fresh) -> None:
    messages: list[str] = []
    page = fresh("raters", 1280)
    page.on("console", lambda message: messages.append(message.text))
    page.evaluate(
        """() => {
            const script = document.createElement('script');
            script.textContent = "document.title = 'taken'";
            document.body.append(script);
        }"""
    )
    assert page.title() != "taken"
    assert "Content Security Policy" in messages[0]


def test_paper_gets_what_is_folded_away_and_no_navigation(loaded) -> None:
    page = loaded("comparison").show(780)
    folded = page.locator("details:not([open]) table").first
    assert not folded.is_visible()
    page.emulate_media(media="print")
    assert folded.bounding_box()["height"] > 20
    assert not page.locator("nav").is_visible()
    assert page.locator("figure.picture .page-size").first.is_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize(("width", "height", "most"), [(1280, 800, 8), (390, 844, 10)])
@pytest.mark.parametrize("name", ["skyline", "classes"])
def test_a_report_is_under_eight_screens_until_something_is_opened(
    loaded, name: str, width: int, height: int, most: int
) -> None:
    page = loaded(name).show(width)
    page.set_viewport_size({"width": width, "height": height})
    assert page.evaluate("document.documentElement.scrollHeight") < most * height
    order = page.evaluate("[...document.querySelectorAll('main > section')].map(each => each.id || 'closed')")
    assert order[0] == "verdict"
    assert order[order.index("query-view") + 1 :] == ["closed"] * (len(order) - order.index("query-view") - 1)
    assert "closed" not in order[: order.index("query-view")]


@pytest.mark.parametrize("script", [True, False])
def test_a_link_to_a_closed_section_opens_it(browser, reports, *, script: bool) -> None:
    context = browser.new_context(java_script_enabled=script, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(reports["comparison"].as_uri() + "#provenance")
    table = page.locator("#provenance .key-values").first
    table.wait_for(state="visible")
    assert not page.locator("#movement > .table").first.is_visible()
    page.get_by_role("navigation").get_by_role("link", name="First relevant result").click()
    page.locator("#movement > .table").first.wait_for(state="visible")
    heading = page.locator("#movement-heading").bounding_box()
    assert heading is not None
    assert 0 <= heading["y"] < 400  # the heading is in sight, and not only what follows it
    page.locator("summary", has=page.locator("#movement-heading")).click()
    page.locator("#movement > .table").first.wait_for(state="hidden")
    context.close()


def test_the_line_of_a_closed_section_says_its_key_figure(loaded) -> None:
    page = loaded("comparison").show(1280)
    lines = page.locator("details.folded > summary").all_inner_texts()
    assert len(lines) >= 6
    assert all(len([part for part in line.split("\n") if part.strip()]) == 2 for line in lines), lines


def test_paper_gets_every_closed_section(loaded) -> None:
    page = loaded("comparison").show(780)
    page.emulate_media(media="print")
    for name in ("movement", "answers", "tests", "collection", "provenance"):
        assert page.locator(f"#{name}").bounding_box()["height"] > 20
    page.emulate_media(media="screen")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.folded:not([open])").count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details.folded[open]").count() == 0
