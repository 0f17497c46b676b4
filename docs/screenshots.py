"""Take every picture of `docs/images` anew, of the real product in Chromium: `screenshots.py [NAME ...]`, or `make screenshots`.

Reports are those of `cranfield demo`; pages of the server are of the databases that the tests fill. Times and latencies of a page are of
the day that it was made, all else is the same each time. Needs Chromium on the PATH.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType

from playwright.sync_api import Browser, Page, sync_playwright

from cranfield.books.pool_file import Pool, PooledItem, PooledQuery, PooledRun
from cranfield.books.settings import BookSettings
from cranfield.books.store.store import open_store
from cranfield.workbench.service.service import open_service

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
CRANFIELD = (sys.executable, "-m", "cranfield")
SOCKS = {
    "socks-1": ("Socks of merino wool, grey", "Warm socks of merino wool for winter, in sizes 36 to 47. Three pairs."),
    "socks-2": ("Hiking socks", "Padded socks of wool and nylon, for boots. Sizes 39 to 46."),
    "care-1": ("How to wash wool", "Wash wool by hand or at 30 degrees, without a softener. Dry socks lying flat."),
    "socks-3": ("Cotton socks, five pairs", "Light socks for the summer, of combed cotton."),
    "knitting-3": (
        "Knitting pattern: winter socks",
        "Two sizes of a simple pattern for sock wool of 4 ply, with a heel that is turned.",
    ),
}
KNITTING = "Knitting pattern"


def program(name: str) -> ModuleType:
    """A program of the tests that fills a database."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / "program" / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[str]:
    """Run a command that serves pages, and give the address that it prints."""
    environment = {**os.environ, "XDG_DATA_HOME": str(folder)}
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [*CRANFIELD, *arguments], stdout=subprocess.PIPE, stderr=log, text=True, env=environment
        )
    try:
        for line in server.stdout or ():
            if found := re.search(r"http://\S+", line):
                yield found.group().rstrip("/")
                return
        sys.exit(f"{' '.join(arguments)} printed no address: {(folder / 'server.log').read_text()}")
    finally:
        server.terminate()
        server.communicate(timeout=30)


def take(page: Page, name: str, *, full_page: bool = False) -> None:
    """Write one picture."""
    page.wait_for_load_state("networkidle")
    page.evaluate("document.fonts.ready")
    page.screenshot(path=IMAGES / f"{name}.png", full_page=full_page, animations="disabled", caret="hide")
    print(f"docs/images/{name}.png")


def report(browser: Browser, folder: Path) -> None:
    """The first screen of the demo's report, and one of its queries."""
    quiet = subprocess.DEVNULL
    subprocess.run([*CRANFIELD, "demo", "--out", str(folder / "demo")], check=True, stdout=quiet, stderr=quiet)
    page = browser.new_page(viewport={"width": 1280, "height": 960})
    page.goto((folder / "demo" / "report.html").as_uri())
    page.wait_for_selector("#query-view[data-ready]")
    take(page, "report")
    page.evaluate("location.hash = '#q=A01'")
    page.wait_for_selector("#query-panel[open]")
    take(page, "report-query")
    page.close()


def judge(browser: Browser, folder: Path) -> None:
    """The last document of a query on the judging page, at a desk and on a phone."""
    need = "Socks of wool that can be bought, in any size. Care instructions are related, but do not answer it."
    query = PooledQuery(id="q1", text="wool socks", need=need, notes="From the log of December.")
    items = tuple(
        PooledItem(query="q1", doc=f"shop/{doc}", fields={"title": title, "text": text}, runs={"old": place})
        for place, (doc, (title, text)) in enumerate(SOCKS.items(), 1)
    )
    runs = (PooledRun(name="old", digest="sha256:0"),)
    pool = Pool(name="shop", method="depth", depth=5, runs=runs, queries=(query,), items=items)
    database = folder / "shop.db"
    store = open_store(database)
    store.books.create("shop", pool, BookSettings())
    store.close()
    with serving(folder, "judge", "shop", "--db", str(database), "--no-open", "--port", "0") as address:
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.goto(address)
        page.wait_for_selector("#judge[data-ready]")
        while KNITTING not in (title := page.locator(".card h2").first.inner_text()):
            page.keyboard.press("2")
            page.wait_for_function("title => document.querySelector('.card h2').textContent !== title", arg=title)
        page.fill("#reason", "Only the pattern, no socks")
        page.evaluate("document.activeElement.blur()")
        take(page, "judge")
        page.set_viewport_size({"width": 390, "height": 760})
        page.emulate_media(color_scheme="dark")
        take(page, "judge-phone")
        page.close()


def sign_in(browser: Browser, address: str, password: str, width: int) -> Page:
    """A page of the lead of a team."""
    page = browser.new_context(viewport={"width": width, "height": 844 if width < 600 else 900}).new_page()
    page.goto(f"{address}/sign-in?next=/")
    page.fill("#name", "lee")
    page.fill("#password", password)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{address}/")
    return page


def team(browser: Browser, folder: Path) -> None:
    """The first page of the server, the dashboard of a book, and adjudication on a phone."""
    books, workbench = program("team_books"), program("workbench")
    database = folder / "team.db"
    books.fill(database)
    store = open_store(database)
    service = open_service(store)
    service.jobs.cancel(workbench.fill(service, folder)["queued"])  # the server would work on it
    store.close()
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with serving(folder, "serve", "--accounts", "--port", str(port), "--db", str(database)) as address:
        page = sign_in(browser, address, books.PASSWORD, 1280)
        take(page, "workbench-home", full_page=True)
        page.goto(f"{address}/books/shop")
        page.locator("summary", has_text="By day and rater").click()
        take(page, "team-dashboard", full_page=True)
        page.context.close()
        page = sign_in(browser, address, books.PASSWORD, 390)
        page.goto(f"{address}/books/shop/adjudicate")
        take(page, "team-adjudicate-phone", full_page=True)
        page.context.close()


PICTURES = {"report": report, "judge": judge, "team": team}


def main() -> int:
    names = sys.argv[1:] or list(PICTURES)
    if unknown := set(names) - set(PICTURES):
        sys.exit(f"no such pictures: {', '.join(sorted(unknown))}; there are {', '.join(PICTURES)}")
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--font-render-hinting=none"],
        )
        for name in names:
            PICTURES[name](browser, Path(made))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
