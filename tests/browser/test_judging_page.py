"""The judging page in Chromium: by keyboard alone, through failures of server and network, on a phone, in the dark."""

from __future__ import annotations

import base64
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from cranfield.books.pool_file import Pool, PooledItem, PooledQuery, PooledRun
from cranfield.books.settings import SCALES, BookSettings, Mode
from cranfield.books.store.schema import Action, RaterKind, Role
from cranfield.books.store.store import Store, open_store
from cranfield.judging.documents.texts import DocumentTexts, open_texts
from cranfield.workbench.server.app import create_app
from cranfield.workbench.server.options import ServerOptions

pytestmark = pytest.mark.browser
THINGS = ["wool", "socks", "cotton", "shirt", "desk", "lamp", "garden", "chair", "hose", "rake"]
READY = "#judge[data-ready]"


def fill(path: Path, n_queries: int = 10, n_docs: int = 6, **settings: Any) -> None:
    """A book `shop`, and a book `sides` of preferences."""
    queries = tuple(
        PooledQuery(
            id=f"q{n}",
            text=f"{THINGS[n % 10]} for winter",
            need=f"A {THINGS[n % 10]} that can be bought today.",
            notes="Colour does not matter." if n % 3 == 0 else "",
        )
        for n in range(n_queries)
    )
    items = tuple(
        PooledItem(
            query=f"q{n}",
            doc=f"shop/{n}/{d}",
            fields={
                "title": f"{THINGS[n % 10].title()} no. {d}",
                "text": f"This {THINGS[n % 10]} is made for the winter. " * 8,
                "url": f"https://shop.example/{n}/{d}",
            },
            runs={"old": d + 1},
        )
        for n in range(n_queries)
        for d in range(n_docs)
    )
    run = PooledRun(name="old", digest="sha256:0")
    store = open_store(path)
    made = Pool(name="p", method="depth", depth=n_docs, runs=(run,), queries=queries, items=items)
    store.books.create("shop", made, BookSettings(**settings))
    lists = tuple(
        PooledItem(
            query=query.id,
            doc="lists",
            fields={
                name: [
                    {"doc": f"{name}{d}", "title": f"{name}-result {d} of {query.text}", "text": "For the winter"}
                    for d in range(5)
                ]
                for name in "ab"
            },
        )
        for query in queries
    )
    runs = (run, PooledRun(name="new", digest="sha256:1"))
    sides = Pool(name="s", method="depth", depth=5, runs=runs, queries=queries, items=lists)
    store.books.create("sides", sides, BookSettings(mode=Mode.PREFERENCE))
    store.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Served:
    """A server of a database in a thread of this process."""

    def __init__(self, path: Path, texts: DocumentTexts | None = None) -> None:
        self.store: Store = open_store(path)
        self.options = ServerOptions(port=free_port())
        app = create_app(self.store, self.options, texts=texts)
        config = uvicorn.Config(app, port=self.options.port, log_level="error", lifespan="off")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        until = time.monotonic() + 20
        while not self.server.started and time.monotonic() < until:
            time.sleep(0.01)

    def address(self, book: str = "shop") -> str:
        return f"{self.options.public}/start?token={self.options.start_token}&next=/books/{book}/judge"

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(20)
        self.store.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    started: list[Served] = []

    def start(**settings: Any) -> Served:
        path = tmp_path / f"books{len(started)}.db"
        fill(path, **settings)
        started.append(Served(path))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 900})
    yield made
    made.close()


def opened(context: BrowserContext, address: str) -> tuple[Page, list[str]]:
    """The page, ready, and what it writes to its console: errors of the policy too."""
    page = context.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(address)
    page.wait_for_selector(READY)
    return page, messages


def title(page: Page) -> str:
    return page.locator(".card h2").first.inner_text()


def grade(page: Page, key: str) -> None:
    """Press a key, and wait until another document is there, or none is left; a slow server has the page wait."""
    before = page.evaluate("document.querySelector('.card')?.textContent ?? ''")
    page.keyboard.press(key)
    page.wait_for_function(
        """before => document.getElementById('work').hidden
            ? !document.getElementById('finished-text').textContent.startsWith('Loading')
            : document.querySelector('.card').textContent !== before""",
        arg=before,
    )


def grades(store: Store, book: str = "shop") -> list[tuple[str, float | None]]:
    """Document and grade of every event that is a grade, in their order."""
    events = store.log.events(store.books.get(book).id)
    return [(event.doc, event.grade) for event in events if event.action is Action.GRADE]


def all_saved(page: Page) -> None:
    page.wait_for_function("() => !Object.keys(localStorage).some(key => key.includes('.unsaved.'))", timeout=30_000)


def violations(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {[node['html'][:120] for node in each['nodes']]}" for each in found]


def test_a_few_documents_are_graded_by_keys(serve, context):
    served = serve(n_queries=2, n_docs=3)
    page, messages = opened(context, served.address())
    first = title(page)
    for key in "21":
        grade(page, key)
    page.keyboard.press("u")
    grade(page, "3")
    all_saved(page)
    assert [each for _, each in grades(served.store)] == [2, 1, 3]
    assert first in {row.fields["title"] for row in served.store.reading.items(1)}
    assert messages == []


def test_what_another_rater_holds_is_not_done_and_the_page_looks_again(serve, context) -> None:
    served = serve(n_queries=1, n_docs=2)
    book, other = served.store.books.get("shop").id, served.store.people.add("other").id
    served.store.people.join(book, other)
    assert len(served.store.queue.next_items(book, other, 2)) == 2
    page, messages = opened(context, served.address())
    expect(page.locator("#finished-text")).to_contain_text("2 items are reserved by other raters.")
    assert "You have no items left" not in page.locator("#finished-text").inner_text()
    served.store.people.leave(book, other)  # its leases end
    page.get_by_role("button", name="Look again").click()
    expect(page.locator(".card .doc")).to_be_visible()
    expect(page.locator("#look-again")).to_be_hidden()
    assert messages == []


def grade_fifty(serve, context, capsys) -> float:
    """Grade every document of a new book by keys; the 95th percentile of key to painted next item, in ms."""
    served = serve(n_queries=10, n_docs=5)
    page, messages = opened(context, served.address())
    shown = []
    for place in range(50):
        shown.append(page.locator(".card .doc").inner_text())
        grade(page, str(place % 4))
    expect(page.locator("#finished-text")).to_contain_text("You have no items left")
    all_saved(page)
    assert grades(served.store) == [(doc, place % 4) for place, doc in enumerate(shown)]
    assert len(set(shown)) == 50
    queries = [doc.split("/")[1] for doc in shown]
    assert sum(a != b for a, b in pairwise(queries)) == 9, " ".join(shown)  # a query is judged as a whole
    events = served.store.log.events(1)
    assert [event.order_seen for event in events if event.action is Action.GRADE] == list(range(1, 51))
    assert {event.method for event in events} == {"key"}
    durations = sorted(
        page.evaluate("performance.getEntriesByName('cranfield: key to paint').map(each => each.duration)")
    )
    p50, p95 = durations[24], durations[47]
    with capsys.disabled():
        print(f"\nkey to painted next item: median {p50:.0f} ms, p95 {p95:.0f} ms, n {len(durations)}")
    assert messages == []
    page.close()
    return p95


@pytest.mark.slow
def test_fifty_documents_are_graded_with_the_keyboard_alone(serve, context, capsys):
    p95 = grade_fifty(serve, context, capsys)
    for _ in range(2):  # other tests run beside this one, and can only add to the time
        if p95 >= 50:
            p95 = grade_fifty(serve, context, capsys)
    assert p95 < 50


class Program:
    """`cranfield judge` as a process that can be killed, always on the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.start()

    def start(self) -> None:
        words = [
            sys.executable,
            "-m",
            "cranfield",
            "judge",
            "shop",
            "--db",
            "books.db",
            "--no-open",
            "--port",
            str(self.port),
        ]
        environment = {**os.environ, "XDG_DATA_HOME": str(self.folder)}
        with (self.folder / "server.log").open("a") as log:  # a pipe that is not read would stop the server
            self.process = subprocess.Popen(
                words, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split()[-1]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    fill(tmp_path / "books.db")
    started = Program(tmp_path)
    yield started
    started.kill()


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_when_the_server_is_killed_and_the_network_is_cut(program, context, tmp_path):
    page, _ = opened(context, program.address)
    shown = []

    def judge(n: int) -> None:
        for _ in range(n):
            shown.append(page.locator(".card .doc").inner_text())
            grade(page, str(len(shown) % 4))

    judge(3)
    program.kill()
    judge(3)
    expect(page.locator("#unsaved")).to_contain_text("unsaved")
    program.start()
    all_saved(page)
    judge(2)
    page.wait_for_function("() => document.getElementById('judge').dataset.ahead > 5")
    all_saved(page)
    context.set_offline(True)
    judge(3)
    expect(page.locator("#unsaved")).to_contain_text("3 unsaved: the server cannot be reached; kept in this browser")
    context.set_offline(False)
    all_saved(page)
    expect(page.locator("#unsaved")).to_be_empty()
    # The answer of the server is lost, though it has saved: the same keys are sent again.
    lost = []

    def lose(route):
        if len(lost) < 2:
            lost.append(route.fetch().status)
            route.abort()
        else:
            route.continue_()

    page.route("**/judgments", lose)
    judge(2)
    all_saved(page)
    assert lost == [200, 200]
    # Unsaved judgments survive a reload, and a server that was started anew.
    page.unroute("**/judgments")
    page.route("**/judgments", lambda route: route.abort())
    judge(2)
    program.kill()
    program.start()
    page.unroute("**/judgments")
    page.reload()
    page.wait_for_selector(READY)
    all_saved(page)
    judge(1)
    all_saved(page)
    store = open_store(tmp_path / "books.db")
    assert grades(store) == [(doc, (place + 1) % 4) for place, doc in enumerate(shown)]
    assert len(set(shown)) == len(shown) == 16
    store.close()


@pytest.mark.slow
def test_ctrl_c_ends_the_server_within_a_second_and_a_book_that_is_not_there_is_named(program, tmp_path):
    started = time.monotonic()
    program.process.send_signal(signal.SIGINT)
    program.process.communicate(timeout=20)
    assert time.monotonic() - started < 1.5
    log = (program.folder / "server.log").read_text()
    assert program.process.returncode == 0, log
    assert "Traceback" not in log, log
    words = [sys.executable, "-m", "cranfield", "judge", "shap", "--db", "books.db", "--no-open"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert re.search(r"unknown book 'shap'.*shop", done.stderr, re.DOTALL)


@pytest.mark.slow
def test_a_skip_a_flag_a_reason_and_later_are_kept_and_undone(serve, context):
    served = serve(n_queries=3, n_docs=4)
    page, messages = opened(context, served.address())
    first = page.locator(".card .doc").inner_text()
    page.keyboard.press("r")
    page.keyboard.type("12 jokes, undone")  # no key is taken from the field
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    grade(page, "2")
    second = page.locator(".card .doc").inner_text()
    page.keyboard.press("s")
    page.keyboard.press("Escape")
    assert page.locator(".card .doc").inner_text() == second
    page.keyboard.press("s")
    page.keyboard.press("3")
    expect(page.locator(".card .doc")).not_to_have_text(second)
    third = page.locator(".card .doc").inner_text()
    grade(page, "l")
    while page.locator(".card .doc").inner_text() != second:
        page.keyboard.press("k")
    expect(page.locator(".state")).to_contain_text("Skipped: The document is missing or broken")
    page.keyboard.press("u")
    page.keyboard.press("u")
    assert page.locator(".card .doc").inner_text() == second
    all_saved(page)
    page.reload()
    page.wait_for_selector(READY)
    page.keyboard.press("u")  # what was judged before the page was loaded
    expect(page.locator(".card .doc")).to_have_text(first)
    all_saved(page)
    events = [(event.action, event.doc, event.skip_reason, event.reason) for event in served.store.log.events(1)]
    assert events == [
        (Action.FLAG, first, None, ""),
        (Action.GRADE, first, None, "12 jokes, undone"),
        (Action.SKIP, second, "broken", ""),
        (Action.LATER, third, None, ""),
        (Action.UNDO, third, None, ""),
        (Action.UNDO, second, None, ""),
        (Action.UNDO, first, None, ""),
    ]
    for _ in range(12):
        grade(page, "1")
    expect(page.locator("#finished")).to_be_visible()
    all_saved(page)
    assert {row.grade for row in served.store.reading.ratings(1)} == {1}
    assert len(served.store.reading.ratings(1)) == 12
    assert messages == []


@pytest.mark.slow
def test_a_reason_that_is_not_sent_yet_and_a_flag_survive_a_reload(serve, context):
    served = serve(n_queries=1, n_docs=3)
    page, messages = opened(context, served.address())
    first = page.locator(".card .doc").inner_text()
    page.keyboard.press("f")
    page.keyboard.press("r")
    page.keyboard.type("half a sentence")
    all_saved(page)
    reloaded(page)  # the field still has the focus
    expect(page.locator(".card .doc")).to_have_text(first)
    expect(page.locator("#reason")).to_have_value("half a sentence")
    expect(page.locator(".state")).to_have_text("Reason: half a sentence · Flagged")
    expect(page.locator("#flag")).to_have_attribute("aria-pressed", "true")
    grade(page, "2")
    page.keyboard.press("k")
    page.keyboard.press("r")
    page.keyboard.press("Control+a")
    page.keyboard.type("another one")
    reloaded(page)  # of a judged document: it is sent
    all_saved(page)
    assert [(row.grade, row.reason) for row in served.store.reading.ratings(1)] == [(2, "another one")]
    assert page.evaluate("Object.keys(localStorage).filter(key => key.includes('.draft.'))") == []
    assert messages == []


def reloaded(page: Page) -> None:
    page.reload()
    page.wait_for_selector(READY)


def png(width: int, height: int) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + b"\xd0\x40\x20" * width) * height)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.slow
def test_images_are_painted_and_a_document_without_a_text_says_so(context, tmp_path):
    (tmp_path / "red.png").write_bytes(png(60, 40))
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    pictures = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=pictures.serve_forever, daemon=True).start()
    inline = "data:image/png;base64," + base64.b64encode(png(30, 20)).decode()
    (tmp_path / "workbench.yaml").write_text("images: {hosts: [127.0.0.1], allow: [127.0.0.1]}\n")
    web = f"http://127.0.0.1:{pictures.server_port}"
    items = [("on the web", f"{web}/red.png"), ("in the run", inline), ("none", ""), ("late", f"{web}/late.png")]
    store = open_store(tmp_path / "books.db")
    made = Pool(
        name="p",
        method="depth",
        depth=3,
        runs=(PooledRun(name="old", digest="sha256:0"),),
        queries=(PooledQuery(id="q", text="red"),),
        items=tuple(
            PooledItem(query="q", doc=doc, fields={"title": doc, "image": image}, runs={"old": 1})
            for doc, image in items
        ),
    )
    store.books.create("shop", made, BookSettings())
    store.close()
    with closing(open_texts(tmp_path / "workbench.yaml")) as texts:
        served = Served(tmp_path / "books.db", texts)
        page, messages = opened(context, served.address())
        found = {}
        for _ in items:
            page.wait_for_function("() => [...document.images].every(image => image.complete)")
            sizes = page.evaluate("[...document.images].map(each => [each.naturalWidth, each.naturalHeight, each.alt])")
            found[title(page)] = sizes
            assert page.locator("#without-text").is_visible() == (title(page) == "none")
            if title(page) == "late":
                expect(page.locator(".image")).to_have_text("The image could not be loaded. Try again")
                (tmp_path / "late.png").write_bytes(png(60, 40))
                page.click("text=Try again")
                page.wait_for_function("() => document.images[0]?.naturalWidth === 60")
            page.keyboard.press("j")
        served.stop()
    pictures.shutdown()
    pictures.server_close()
    assert found == {
        "on the web": [[60, 40, "Image of on the web"]],
        "in the run": [[30, 20, "Image of in the run"]],
        "none": [],
        "late": [],
    }
    assert [text for text in messages if "404" not in text] == []


@pytest.mark.slow
def test_the_rest_of_a_query_gets_the_lowest_grade_after_a_question_and_is_undone_at_once(serve, context):
    served = serve(n_queries=3, n_docs=14)
    page, _ = opened(context, served.address())
    grade(page, "3")
    page.keyboard.press("a")
    expect(page.locator("#rest-text")).to_contain_text("all 13 documents")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    page.locator("#rest-dialog").wait_for()
    page.keyboard.press("Enter")
    expect(page.locator("#message")).to_contain_text("13 documents graded 0 not relevant")
    expect(page.locator("#progress-text")).to_contain_text("query 2/3 · item 1/14 · 14/42")
    all_saved(page)
    assert len(served.store.reading.ratings(1)) == 14
    page.keyboard.press("u")
    expect(page.locator("#message")).to_contain_text("13 grades withdrawn")
    all_saved(page)
    assert [row.grade for row in served.store.reading.ratings(1)] == [3]


@pytest.mark.slow
def test_two_raters_never_hold_one_document_and_two_tabs_of_a_rater_double_nothing(serve, browser):
    served = serve(n_queries=4, n_docs=6)
    contexts = [browser.new_context() for _ in range(2)]
    pages = [opened(contexts[0], served.address())[0]]
    other = served.store.people.add("ann", Role.RATER, RaterKind.PERSON)
    served.store.people.join(1, other.id)
    session_cookie(served, contexts[1], other.id)
    pages += [opened(contexts[1], f"{served.options.public}/books/shop/judge")[0]]
    pages += [opened(contexts[0], f"{served.options.public}/books/shop/judge")[0]]
    for turn in range(60):
        page = pages[turn % 3]
        if page.locator("#work").is_visible():
            page.bring_to_front()
            grade(page, str(turn % 4))
    for page in pages:
        page.reload()
        page.wait_for_selector(READY)
        while page.locator("#work").is_visible():
            grade(page, "1")
        all_saved(page)
    given = grades(served.store)
    assert len(given) == len({doc for doc, _ in given}) == 24
    assert {row.extra for row in served.store.reading.ratings(1)} == {False}
    for each in contexts:
        each.close()


def session_cookie(served: Served, context: BrowserContext, account_id: int) -> None:
    """Sign an account in without a form: the server has no accounts."""
    from cranfield.workbench.server.signing import _signer

    raw = served.store.people.start_session(account_id, 3_600_000)
    value = _signer(served.options, "session").sign(raw).decode()
    context.add_cookies([{"name": served.options.cookie("session"), "value": value, "url": str(served.options.public)}])


@pytest.mark.slow
def test_keys_are_changed_and_switched_off_and_stay_so(serve, context):
    served = serve(n_queries=2, n_docs=4)
    page, messages = opened(context, served.address())
    page.keyboard.press("?")
    page.fill("#key-undo", "j")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#keys-problem")).to_contain_text("two actions")
    page.fill("#key-undo", "z")
    with page.expect_response("**/api/me/settings") as answer:
        page.get_by_role("button", name="Save").click()
    assert answer.value.status == 200
    grade(page, "2")
    page.keyboard.press("u")
    expect(page.locator("#message")).not_to_contain_text("Undone")
    page.keyboard.press("z")
    expect(page.locator("#message")).to_contain_text("Undone")
    page.reload()
    page.wait_for_selector(READY)
    expect(page.locator("[data-key=undo]")).to_have_text("Z")
    page.keyboard.press("Control+2")
    page.keyboard.press("Alt+2")
    page.keyboard.press("?")
    page.uncheck("#keys-enabled")
    with page.expect_response("**/api/me/settings"):
        page.get_by_role("button", name="Save").click()
    for key in "23zs?":
        page.keyboard.press(key)
    all_saved(page)
    assert len(grades(served.store)) == 1
    page.get_by_role("button", name="3 perfect").click()
    all_saved(page)
    assert grades(served.store)[-1][1] == 3
    assert messages == []


@pytest.mark.slow
def test_ten_is_two_digits_and_one_waits_for_the_second(serve, context):
    served = serve(n_queries=1, n_docs=4, scale=SCALES["detail"])
    page, _ = opened(context, served.address())
    grade(page, "7")
    page.keyboard.press("1")
    expect(page.locator("#typed")).to_have_text("1 …")
    grade(page, "0")
    page.keyboard.press("1")
    grade(page, "Enter")
    grade(page, "1")
    expect(page.locator("#finished")).to_be_visible()
    all_saved(page)
    assert [each for _, each in grades(served.store)] == [7, 10, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["ArrowLeft", "ArrowRight", "ArrowDown"])
def test_lists_are_compared_side_by_side(serve, context, key):
    served = serve(n_queries=4)
    page, messages = opened(context, served.address("sides"))
    lefts = []
    for _ in range(4):
        lefts.append("a-result" in page.locator(".side").first.inner_text())
        grade(page, key)
    all_saved(page)
    expected = [0 if key == "ArrowDown" else 1 if left is (key == "ArrowLeft") else 2 for left in lefts]
    assert [each for _, each in grades(served.store, "sides")] == expected
    assert (messages, violations(page)) == ([], [])


@pytest.mark.slow
def test_a_document_is_added_and_ranks_are_shown_after_the_query(serve, context):
    served = serve(n_queries=2, n_docs=2)
    page, messages = opened(context, served.address())
    page.keyboard.press("d")
    page.get_by_label("Id, as the systems return it").fill("found/elsewhere")
    page.get_by_label("Title").fill("Found elsewhere")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#message")).to_contain_text("Added: Found elsewhere")
    page.keyboard.press("j")
    assert title(page) == "Found elsewhere"
    page.keyboard.press("k")
    for _ in range(3):
        grade(page, "2")
    all_saved(page)
    page.get_by_role("button", name="Ranks of").click()
    table = page.locator("#reveal-body")
    expect(table).to_contain_text("Found elsewhere")
    expect(table).to_contain_text("rank 1")
    assert (messages, violations(page)) == ([], [])


@pytest.mark.slow
@pytest.mark.parametrize("book", ["shop", "sides"])
@pytest.mark.parametrize(
    ("width", "height", "scheme"), [(1280, 900, "light"), (390, 844, "light"), (390, 844, "dark"), (640, 450, "dark")]
)
def test_the_page_is_usable_at_every_size_and_axe_finds_nothing(serve, browser, book, width, height, scheme):
    """640 by 450 is 1280 by 900 at 200 %."""
    served = serve(n_queries=3, n_docs=3)
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page, messages = opened(context, served.address(book))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.locator("[data-choice]").first).to_be_in_viewport(ratio=1)
    assert violations(page) == []
    if book == "shop":
        page.keyboard.press("v")
        page.keyboard.press("g")
        assert violations(page) == []
        page.get_by_role("button", name="2 relevant").click()
    else:
        page.get_by_role("button", name="Left is better").click()
    all_saved(page)
    for key, dialog in {
        "?": "#help-dialog",
        "s": "#skip-dialog",
        **({"d": "#add-dialog"} if book == "shop" else {}),
    }.items():
        page.keyboard.press(key)
        page.locator(dialog).wait_for()
        assert violations(page) == []
        page.keyboard.press("Escape")
    assert messages == []
    context.close()


@pytest.mark.slow
def test_without_scripts_the_page_says_what_is_missing(serve, browser):
    served = serve(n_queries=1, n_docs=1)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(served.address())
    expect(page.get_by_text("Judging requires JavaScript")).to_be_visible()
    context.close()
