"""The real server for browser tests, an account that has signed in, and what every page must keep."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

SCREENSHOTS = os.environ.get("CRANFIELD_SCREENSHOTS")
"""Folder for pictures of every page, to be looked at."""


@contextmanager
def serving(folder: Path, database: str | Path, files: Sequence[str] = ()) -> Iterator[str]:
    """Serve a database with accounts, and give the address; at the end the log has no error.

    Args:
        folder: of the log, and of all that the server stores besides.
        database: its file, or its URL.
        files: arguments: a config, `--workbench` and its file.
    """
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    command = [sys.executable, "-m", "cranfield", "serve", *files, "--accounts", "--port", str(port)]
    log = folder / "server.log"  # a pipe that is not read would stop the server
    with log.open("w") as lines:
        server = subprocess.Popen(
            [*command, "--db", str(database)],
            stdout=subprocess.PIPE,
            stderr=lines,
            text=True,
            env={**os.environ, "XDG_DATA_HOME": str(folder)},
        )
    try:
        line = server.stdout.readline() if server.stdout else ""
        assert line == f"Serving at http://127.0.0.1:{port}/\n", log.read_text(encoding="utf-8")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.communicate(timeout=30)
    assert not re.search(r'"level": "error"|Traceback', log.read_text(encoding="utf-8"))


def new_page(browser: Browser, messages: list[str]) -> Page:
    """A page of a context of its own; messages of its console are added to a list."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.on("console", lambda message: messages.append(f"{page.url} {message.text}"))
    page.on("pageerror", lambda error: messages.append(f"{page.url} {error}"))
    return page


def sign_in(page: Page, address: str, name: str, password: str, path: str = "/") -> Page:
    """Sign in by the form, which leads on to a page."""
    page.goto(f"{address}/sign-in?next={path}")
    page.fill("#name", name)
    page.fill("#password", password)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{address}{path}")
    return page


def check_page(page: Page, name: str) -> None:
    """Axe finds nothing at desk and phone width, by day and by night, and the page does not scroll sideways."""
    page.wait_for_load_state("load")  # after a click the text is there before its stylesheets are
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
        found = Axe().run(page, options={"resultTypes": ["violations"]})
        assert found.violations_count == 0, found.generate_report()
        if SCREENSHOTS:
            page.screenshot(path=Path(SCREENSHOTS) / f"{name}-{width}.png", full_page=True)
    page.emulate_media(color_scheme="dark")
    assert Axe().run(page, options={"runOnly": ["color-contrast"]}).violations_count == 0
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})
