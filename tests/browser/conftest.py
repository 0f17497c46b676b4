"""One Chromium for the browser tests of a module, and pages that are loaded once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

expect.set_options(timeout=60_000)  # a busy machine takes longer than the five seconds of Playwright

REMEMBER = "document.querySelectorAll('details').forEach(each => each.dataset.open = each.open)"
SET_OPEN = (
    "all => document.querySelectorAll('details').forEach(each => each.open = all || each.dataset.open === 'true')"
)


@dataclass
class LoadedPage:
    """A page in the browser, with what it wrote to its console and what it requested."""

    page: Page
    path: Path
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def load(self) -> LoadedPage:
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(self.path.as_uri())
        self.page.evaluate(REMEMBER)
        return self

    def show(self, width: int, *, all_open: bool = False, scheme: str = "light") -> Page:
        """The page at a width, its details as they were loaded or all open, by day or by night."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme, media="screen")
        self.page.evaluate(SET_OPEN, all_open)
        return self.page


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Chromium for the tests of a module. While Playwright is started, its event loop runs in this thread, and no other can."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield started
        started.close()


@pytest.fixture(scope="module")
def loaded(browser: Browser, reports: dict[str, Path]) -> Iterator[Any]:
    """A function from the name of a report to its page, loaded at its first use in a module."""
    pages: dict[str, LoadedPage] = {}

    def load(name: str) -> LoadedPage:
        if name not in pages:
            pages[name] = LoadedPage(browser.new_page(), reports[name]).load()
        return pages[name]

    yield load
    for opened in pages.values():
        opened.page.close()


@pytest.fixture
def fresh(browser: Browser, reports: dict[str, Path]) -> Iterator[Any]:
    """A function from the name of a report to a page of its own, for tests that change the page."""
    opened: list[Page] = []

    def load(name: str, width: int) -> Page:
        opened.append(browser.new_page())
        return LoadedPage(opened[-1], reports[name]).load().show(width)

    yield load
    for page in opened:
        page.close()
