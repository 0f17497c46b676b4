"""The history of several systems in a browser: each point leads to its report, by mouse and by keyboard."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from cranfield.evaluation.history import HistoryPoint, HistoryReport, Score, lines
from cranfield.reporting import save_report
from cranfield.reporting.documents.history import history_document

pytestmark = pytest.mark.browser

START = datetime(2026, 11, 1, 9, tzinfo=UTC)
SYSTEMS = ("bm25", "dense", "a long name of a hybrid system")
REPORT = (
    '<html class="report" lang="en"><title>report {day}</title><link rel="icon" href="data:,"><h1>report {day}</h1>'
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a history of three systems over five days, with a kept report for each day."""
    folder = tmp_path_factory.mktemp("history")
    points = [
        HistoryPoint(
            *(START + timedelta(days=day), "shop", "", f"sha256:{'a' if day < 3 else 'b'}", system, "trec"),
            {"AP": Score(0.4 + day / 30 + n / 10, 50, 0.35 + day / 30 + n / 10, 0.45 + day / 30 + n / 10)},
            commit=f"{day + 10:02}" * 20,
        )
        for day in range(5)
        for n, system in enumerate(SYSTEMS)
    ]
    (folder / ".kept").mkdir()
    for day in range(5):
        (folder / ".kept" / f"{day}.html").write_text(REPORT.format(day=day))
    document = history_document(
        HistoryReport(measure="AP", lines=lines(points, "AP")), lambda point: f".kept/{point.time.day - 1}.html"
    )
    save_report(document, folder / "history.html")
    return (folder / "history.html").as_uri()


MESSAGES: list[str] = []
"""Of the console, of any page."""


def opened(browser: Browser, url: str, width: int = 1280, *, script: bool = True, scheme: str = "light") -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        java_script_enabled=script,
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.on("console", lambda message: MESSAGES.append(message.text))
    page.on("pageerror", lambda error: MESSAGES.append(str(error)))
    page.goto(url)
    return page


@pytest.mark.parametrize("script", [True, False])
def test_a_point_leads_to_its_report_by_mouse_and_keyboard(browser: Browser, address: str, *, script: bool) -> None:
    page = opened(browser, address, script=script)
    points = page.locator(".page-size svg a")
    assert points.count() == 15
    points.nth(2).click()
    page.wait_for_url("**/.kept/2.html")
    assert page.title() == "report 2"
    page.go_back()
    points.first.focus()
    if script:
        page.keyboard.press("ArrowRight")
        assert page.locator(".chart-tip").inner_text() == "bm25, 2026-11-02 09:00, 11111111: 0.4333 (0.3833 to 0.4833)"
    else:
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/.kept/1.html")
    page.context.close()
    assert MESSAGES == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_it_fits_and_axe_finds_nothing(browser: Browser, address: str, width: int, scheme: str) -> None:
    page = opened(browser, address, width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shown = ".page-size" if width > 600 else ".phone-size"
    box = page.locator(f".picture {shown} svg").bounding_box()
    assert box is not None
    assert box["width"] <= width
    texts = page.locator(f".picture {shown} svg text")
    boxes = [found for at in range(texts.count()) if (found := texts.nth(at).bounding_box()) is not None]
    assert all(
        box["x"] - 1 <= found["x"] <= found["x"] + found["width"] <= box["x"] + box["width"] + 1 for found in boxes
    )
    found = Axe().run(page, options={"resultTypes": ["violations"]})
    assert found.violations_count == 0, found.generate_report()
    page.context.close()
    assert MESSAGES == []
