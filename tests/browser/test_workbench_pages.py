"""Every page of the workbench in Chromium, at desk and phone width, by the keyboard alone, with no request that leaves the machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect

from cranfield.books.store.store import open_store
from cranfield.workbench.service.service import Service, open_service

from .served import SCREENSHOTS, new_page, serving, sign_in

pytestmark = [pytest.mark.slow, pytest.mark.browser]
FIRST_PAINT = "(performance.getEntriesByName('first-contentful-paint')[0] || {startTime: 0}).startTime"


@dataclass
class Workbench:
    """A server on a database with results, and a browser in which the lead has signed in."""

    address: str
    service: Service
    ids: dict[str, int]
    page: Page
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, path: str, width: int = 1280) -> Page:
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.goto(self.address + path.format(**self.ids))
        return self.page


@pytest.fixture(scope="module")
def books(load_script: Callable[[Path], ModuleType], checkout: Path) -> ModuleType:
    return load_script(checkout / "tests" / "program" / "workbench.py")


@pytest.fixture(scope="module")
def workbench(
    browser: Browser,
    books: ModuleType,
    load_script: Callable[[Path], ModuleType],
    checkout: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Workbench]:
    team = load_script(checkout / "tests" / "program" / "team_books.py")
    folder = tmp_path_factory.mktemp("workbench")
    team.fill(folder / "books.db")
    store = open_store(folder / "books.db")
    service = open_service(store)
    ids = books.fill(service, folder)
    service.jobs.cancel(ids["queued"])  # the server would work on it
    messages: list[str] = []
    with serving(folder, store.database.where) as address:
        page = new_page(browser, messages)
        made = Workbench(address, service, ids, page, messages)
        page.on("request", lambda request: made.requests.append(request.url))
        sign_in(page, address, "lee", team.PASSWORD)
        yield made
        page.context.close()
        store.close()


def test_every_page_at_two_widths(workbench: Workbench, books: ModuleType) -> None:
    """Axe finds nothing by day and by night, nothing scrolls sideways, pages are painted within a second, all is silent."""
    found: dict[str, object] = {}
    for name, path in books.PAGES.items():
        page = workbench.open(path)
        if page.evaluate(FIRST_PAINT) > 1_000:  # a cold page waits for the machine
            painted = workbench.open(path).evaluate(FIRST_PAINT)
            assert painted <= 1_000, (name, painted)
        if page.locator("[data-index]").count():  # the values of the queries come later
            page.wait_for_load_state("networkidle")
        for width, scheme in ((1280, "light"), (390, "dark")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            axe = Axe().run(page, options={"resultTypes": ["violations"]})
            if axe.violations_count:
                found[f"{name} {width} {scheme}"] = axe.generate_report()
            if SCREENSHOTS:
                page.screenshot(path=Path(SCREENSHOTS) / f"{name.replace(' ', '-')}-{width}.png", full_page=True)
    page.emulate_media(color_scheme="light")
    assert found == {}
    assert workbench.messages == []
    assert {url for url in workbench.requests if not url.startswith((workbench.address, "data:", "blob:"))} == set()


def test_the_menu_by_the_keyboard(workbench: Workbench) -> None:
    page = workbench.open("/")
    for expected in (
        "Skip to content",
        "Cranfield",
        "Home",
        *(["New evaluation"] if page.get_by_role("link", name="New evaluation").count() else []),
    ):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent.trim()") == expected
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("Enter")
    page.wait_for_url(f"{workbench.address}/testsets")
    expect(page.locator("nav.menu [aria-current=page]")).to_have_text("Test sets")


def test_two_evaluations_are_compared_by_the_keyboard(workbench: Workbench) -> None:
    page = workbench.open("/comparisons?baseline={old}&candidate={new}")
    expect(page.get_by_role("heading", name="Before you compare")).to_be_visible()
    page.get_by_role("button", name="Compare").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/(comparisons|jobs)/\d+"))
    if "/jobs/" in page.url:  # the machine is slow: the page follows the job
        page.get_by_role("link", name=re.compile("Comparison")).click(timeout=60_000)
    expect(page.locator("h1")).to_contain_text("Better: new #2 against old #1")
    expect(page.get_by_role("heading", name="Query by query")).to_be_visible()


def test_a_job_is_followed_until_it_has_ended(workbench: Workbench) -> None:
    """A run is scored again; its page shows the result without being loaded again."""
    page = workbench.open("/evaluations/{new}")
    page.get_by_role("button", name="Run it again").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/jobs/\d+"))
    page.get_by_role("link", name=re.compile(r"new #\d+")).click(timeout=60_000)
    expect(page.locator("h1")).to_contain_text("new on shop")
    expect(page.locator("#verdict")).to_contain_text("Better")


def test_a_job_that_ends_before_the_page_listens_is_shown(workbench: Workbench) -> None:
    """The stream is held back until the job has ended: its first message is the last change there is."""

    def until_ended(route: Route) -> None:
        job_id = int(route.request.url.split("/")[-2])
        workbench.service.jobs.wait(job_id, 60)
        route.continue_()

    page = workbench.open("/evaluations/{new}")
    page.route("**/jobs/*/live", until_ended)
    page.get_by_role("button", name="Run it again").click()
    page.wait_for_url(re.compile(r"/jobs/\d+"))
    expect(page.get_by_role("link", name=re.compile(r"new #\d+"))).to_be_visible()
    page.unroute("**/jobs/*/live")


def test_a_table_is_sorted_by_the_keyboard(workbench: Workbench) -> None:
    page = workbench.open("/evaluations?tag=nightly")
    rows = page.locator("#evaluations tbody th")
    assert rows.all_inner_texts()[-1] == "old #1"
    page.locator("#evaluations thead button").nth(5).focus()
    for first in ("new #2", "old #1"):  # the highest mean first, then the lowest
        page.keyboard.press("Enter")
        assert rows.all_inner_texts()[0] == first


def test_an_uploaded_test_set(workbench: Workbench, tmp_path: Path) -> None:
    path = tmp_path / "tiny.yaml"
    path.write_text(
        "cranfield_testset: 1\nname: tiny\nqueries:\n  - {id: a, text: first, judgments: {d1: 1}}\n", encoding="utf-8"
    )
    page = workbench.open("/testsets")
    page.set_input_files("#file", path)
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url(re.compile("/testsets/tiny"))
    expect(page.get_by_role("status").first).to_have_text("The test set is stored.")
    expect(page.get_by_role("link", name="a", exact=True)).to_be_visible()
