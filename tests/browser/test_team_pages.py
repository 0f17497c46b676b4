"""The pages of a team in Chromium: accounts, dashboard, adjudication, join link; no finding of axe, no message of the console."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest
from playwright.sync_api import Browser, Page, expect

from cranfield.books.pool_file import Pool, PooledItem, PooledQuery
from cranfield.books.settings import SCALES, BookSettings
from cranfield.books.store.schema import Action, ItemState
from cranfield.books.store.store import Store, open_store
from cranfield.books.store.values import CallRow, ItemFilter, SaveRequest

from .served import check_page, new_page, serving, sign_in

pytestmark = [pytest.mark.slow, pytest.mark.browser]
DOT = "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs="


@dataclass
class Served:
    """A server with accounts on a copy of the team's books."""

    address: str
    store: Store
    password: str
    browser: Browser
    messages: list[str] = field(default_factory=list)
    pages: dict[str, Page] = field(default_factory=dict)

    def new(self) -> Page:
        return new_page(self.browser, self.messages)

    def page(self, name: str) -> Page:
        """A browser in which an account has signed in by the form."""
        if name not in self.pages:
            self.pages[name] = sign_in(self.new(), self.address, name, self.password)
        return self.pages[name]

    def waiting(self) -> list[int]:
        book = self.store.books.get("shop").id
        return [item.id for item in self.store.reading.items(book, ItemFilter(state=ItemState.ADJUDICATE))]


@pytest.fixture(scope="module")
def served(
    browser: Browser,
    load_script: Callable[[Path], ModuleType],
    checkout: Path,
    make_once: Callable[[str, Callable[[Path], object]], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Served]:
    books = load_script(checkout / "tests" / "program" / "team_books.py")
    folder = tmp_path_factory.mktemp("served")
    path = folder / "books.db"
    shutil.copy(make_once("team", lambda made: books.fill(made / "books.db")) / "books.db", path)
    store = open_store(path)
    with serving(folder, path) as address:
        yield Served(address, store, books.PASSWORD, browser)
        store.close()


PAGES = {
    "home": ("lee", "/"),
    "account": ("lee", "/account"),
    "people": ("alex", "/people"),
    "dashboard": ("lee", "/books/shop"),
    "empty": ("lee", "/books/other"),
    "items": ("lee", "/books/shop/items?rater=cas"),
    "adjudicate": ("lee", "/books/shop/adjudicate"),
    "settings": ("lee", "/books/shop/settings"),
    "reopen": ("lee", "/books/shop/reopen?rater=cas"),
    "calls": ("lee", "/books/shop/calls"),
    "refused": ("ann", "/books/shop"),
}


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(served: Served, name: str) -> None:
    who, path = PAGES[name]
    page = served.page(who)
    page.goto(served.address + path)
    check_page(page, name)


def test_axe_finds_nothing_before_the_sign_in_and_on_one_item_and_call(served: Served) -> None:
    raw = served.store.people.add_link(served.store.books.get("other").id, 3_600_000)
    book = served.store.books.get("shop").id
    item = served.store.reading.items(book)[5].id
    model = served.store.people.get("gpt-x").id
    request: dict[str, object] = {"system": "Grade.", "messages": [{"role": "user", "text": "</pre><script>"}]}
    call = served.store.calls.add(
        CallRow(book, model, "sha256:1", (item,), request, {"text": "<b>2</b>"}, "ok", "", 9, 9, 0.1, 900)
    )
    page = served.new()
    for name, path in {"sign-in": "/sign-in", "join": f"/join/{raw}"}.items():
        page.goto(served.address + path)
        check_page(page, name)
    page = served.page("lee")
    for name, path in {"item": f"/books/shop/items/{item}", "call": f"/books/shop/calls?call={call}"}.items():
        page.goto(served.address + path)
        check_page(page, name)


def test_a_wrong_password_and_a_page_after_the_sign_in(served: Served) -> None:
    page = served.new()
    page.goto(f"{served.address}/books/shop/items?state=done")
    assert page.url.startswith(f"{served.address}/sign-in")
    page.fill("#name", "lee")
    page.fill("#password", "wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=alert]")
    page.fill("#password", served.password)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{served.address}/books/shop/items?state=done")
    served.messages[:] = [text for text in served.messages if "403" not in text]


def test_a_join_link_from_the_lead_to_the_rater(served: Served) -> None:
    lead = served.page("lee")
    lead.goto(f"{served.address}/books/other/settings")
    lead.click("text=Create a link")
    link = lead.text_content("code.secret")
    rater = served.new()
    rater.goto(link)
    rater.fill("#name", "newcomer")
    rater.fill("#password", "a long sentence")
    rater.keyboard.press("Enter")
    rater.wait_for_url(f"{served.address}/books/other/judge")
    rater.goto(served.address)
    assert rater.locator("tbody tr").count() == 1
    assert rater.goto(f"{served.address}/books/other").status == 403
    assert rater.goto(f"{served.address}/people").status == 403
    served.messages[:] = [text for text in served.messages if "403" not in text]


def test_the_dashboard_is_live_in_two_tabs(served: Served) -> None:
    tabs = [served.page("lee"), served.new()]
    tabs[1].context.add_cookies(served.page("lee").context.cookies())
    for tab in tabs:
        tab.goto(f"{served.address}/books/shop")
        expect(tab.locator("#live-status")).to_have_text("Live.")
    before = tabs[0].inner_text("section[aria-labelledby=queries] tbody")
    ann, book = served.store.people.get("ann"), served.store.books.get("shop")
    item = next(each for each in served.store.reading.items(book.id) if each.query == "q6" and not each.ratings)
    served.store.log.save(SaveRequest(book.id, item.id, ann.id, Action.GRADE, "live", grade=1.0))
    for tab in tabs:
        expect(tab.locator("#live-status")).to_contain_text("Updated", timeout=20_000)
    assert tabs[0].inner_text("section[aria-labelledby=queries] tbody") != before
    assert tabs[0].inner_text("#live") == tabs[1].inner_text("#live")
    tabs[1].close()


def test_adjudication_by_the_keyboard_alone(served: Served) -> None:
    page = served.page("lee")
    n = len(served.waiting())
    page.goto(f"{served.address}/books/shop/adjudicate")
    item = int(re.search(r"/adjudicate/(\d+)", page.get_attribute("#decide", "action"))[1])
    assert not any(name in page.inner_text("main") for name in ("bob", "cas"))
    page.keyboard.press("2")
    page.keyboard.type("It answers 1 part of 2.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=Saved.")
    decided = served.store.reading.item(item)
    assert (decided.final, decided.final_reason, decided.final_by) == (2.0, "It answers 1 part of 2.", "lee")
    assert len(served.waiting()) == n - 1


def test_adjudication_with_two_digits_and_an_image(served: Served) -> None:
    item = PooledItem(query="q", doc="d", fields={"title": "A dot", "image": DOT}, runs={"old": 1})
    query = PooledQuery(id="q", text="dot")
    made = Pool(name="p", method="depth", depth=1, runs=(), queries=(query,), items=(item,))
    served.store.books.create("ten", made, BookSettings(scale=SCALES["detail"]))
    (stored,) = served.store.reading.items(served.store.books.get("ten").id)
    page = served.page("lee")
    page.goto(f"{served.address}/books/ten/adjudicate?item={stored.id}")
    expect(page.get_by_role("img", name="Image of A dot")).to_have_js_property("naturalWidth", 1)
    page.keyboard.press("1")
    expect(page.locator("[name=grade][value='1']")).to_be_focused()  # the first of two digits, or all of it
    page.keyboard.press("0")
    expect(page.locator("#reason")).to_be_focused()
    page.keyboard.type("10 of 10")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=0 items for you to decide")
    decided = served.store.reading.item(stored.id)
    assert (decided.final, decided.final_reason) == (10.0, "10 of 10")


def test_the_console_is_silent(served: Served) -> None:
    page = served.page("lee")
    for path in ("/", "/books/shop", "/books/shop/adjudicate", "/books/shop/settings", "/account"):
        page.goto(served.address + path)
        page.wait_for_load_state("load")
    refused = [text for text in served.messages if "403 (Forbidden)" not in text]
    assert refused == []
