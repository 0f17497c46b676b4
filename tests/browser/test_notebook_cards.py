"""Cards of values in notebooks: in a real JupyterLab, trusted and not, light and dark, and under the style sheets of VS Code and Colab."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from playwright.sync_api import Browser, Page
from tests.browser.test_report_page import made_up

from cranfield import compare_many

pytestmark = pytest.mark.browser

CHECKOUT = Path(__file__).parents[2]
LOCK = CHECKOUT / "requirements/jupyterlab.txt"
ENVIRONMENT = CHECKOUT / ".venv/jupyterlab"

# What these set on elements without a class; `.vscode-dark` and `html[theme]` name the theme.
VS_CODE = """<html><style>
body { color: COLOUR; background: PAPER; font-family: sans-serif; font-size: 13px; }
table, thead, tr, th, td, tbody { border: none; border-color: transparent; border-spacing: 0; border-collapse: collapse; }
table, th, tr { vertical-align: middle; text-align: right; }
thead { font-weight: bold; background-color: rgb(130 130 130 / .16); }
th, td { padding: 4px 8px; }
tr:nth-child(even) { background-color: rgb(130 130 130 / .08); }
tbody th { font-weight: normal; }
</style><body class="vscode-THEME"><div class="output_container"><div class="output">CARDS</div></div></body></html>"""
COLAB = """<html theme="THEME"><style>
body { margin: 0; color: COLOUR; background: PAPER; font-family: Roboto, sans-serif; font-size: 14px; line-height: 20px; }
.rendered_html table { margin-left: 0; border: none; border-collapse: collapse; font-size: 12px; table-layout: fixed; }
.rendered_html tr, .rendered_html th, .rendered_html td { padding: .5em; text-align: right; vertical-align: middle; border: none; }
.rendered_html tbody tr:nth-child(odd) { background: rgb(130 130 130 / .1); }
.rendered_html dt { float: left; width: 20%; }
code { padding: 2px 4px; background-color: rgb(130 130 130 / .2); }
</style><body><div class="output_subarea rendered_html">CARDS</div></body></html>"""
PAGES = {"VS Code": VS_CODE, "Colab": COLAB}
COLOURS = {"light": ("#1f1f1f", "#ffffff"), "dark": ("#cccccc", "#1f1f1f")}

FACTS = """cards => cards.flatMap(card => [...card.querySelectorAll("table.facts tr, table.key-values tr")].map(row => {
    const [name, value] = [row.children[0], row.children[1]], range = document.createRange();
    range.selectNodeContents(name);
    const words = name.textContent.split(/\\s+/), text = range.getBoundingClientRect(), at = value.getBoundingClientRect();
    const lines = new Set([...range.getClientRects()].map(each => Math.round(each.top))).size;
    const here = row.getBoundingClientRect();
    return {name: name.textContent, lines, n_words: words.length, float: getComputedStyle(name).float,
        inside: at.top >= here.top - 1 && at.bottom <= here.bottom + 1 && text.bottom <= here.bottom + 1,
        apart: text.right <= at.left + 1 || text.bottom <= at.top + 1};
}))"""
"""Of each label with its figure: where they are on the page."""
ABOVE = "all => all.map(each => each.getBoundingClientRect().top - each.previousElementSibling.getBoundingClientRect().bottom)"
"""Room between figures and the last caveat or bullet, in pixels."""
WIDER = "cards => cards.filter(card => card.scrollWidth > card.clientWidth + 1).length"
CONTRAST = """cards => cards.map(card => {
    const light = colour => {
        const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map(each => each / 255).map(
            each => each <= .04045 ? each / 12.92 : ((each + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b;
    };
    let behind = card;
    while (behind && /, 0\\)$|transparent/.test(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
    const [ink, paper] = [light(getComputedStyle(card).color), light(getComputedStyle(behind || document.body).backgroundColor)];
    return (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05);
})"""


@cache
def cards() -> dict[str, str]:
    """A card of each kind, by the value."""
    comparison = made_up(60)
    third = replace(comparison.baseline, name="third")
    many = compare_many([comparison.baseline, comparison.candidate, third])
    values = (comparison, comparison.candidate, comparison.baseline.testset, comparison.show("q003"), many)
    return {type(value).__name__: value._repr_html_() for value in values}


def assert_readable(page: Page) -> None:
    """Every figure is beside or under its own label, no label is broken inside a word, nothing is wider than its card."""
    shown = page.locator(".report.card, .jp-OutputArea-output.jp-RenderedHTMLCommon")
    facts = shown.evaluate_all(FACTS)
    assert len(facts) > 10
    for fact in facts:
        assert fact["float"] == "none", fact
        assert fact["inside"], fact
        assert fact["apart"], fact
        assert fact["lines"] <= fact["n_words"], fact  # `queri|es` is one word on two lines
    assert page.locator("style + .report.card").evaluate_all(WIDER) == 0  # JupyterLab scrolls others
    assert min(shown.evaluate_all(CONTRAST)) >= 7


@pytest.mark.parametrize("theme", COLOURS)
@pytest.mark.parametrize("name", PAGES)
def test_a_card_is_readable_under_the_style_sheet_of(name: str, theme: str, browser: Browser, tmp_path: Path) -> None:
    ink, paper = COLOURS[theme]
    html = PAGES[name].replace("THEME", theme).replace("COLOUR", ink).replace("PAPER", paper)
    path = tmp_path / "page.html"
    path.write_text(html.replace("CARDS", "".join(cards().values())), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    page.goto(path.as_uri())
    assert_readable(page)
    assert page.locator(".picture svg").first.is_visible()
    assert min(page.locator("table.facts").evaluate_all(ABOVE)) >= 12
    page.close()


@pytest.fixture(scope="module")
def jupyter() -> Path:
    """The programs of JupyterLab, installed once in a checkout; the test is skipped where it cannot be."""
    ENVIRONMENT.mkdir(parents=True, exist_ok=True)
    python, done = ENVIRONMENT / "bin/python", ENVIRONMENT / "installed.txt"
    with (ENVIRONMENT.parent / "jupyterlab.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # tests run in several processes
        if not done.exists() or done.read_bytes() != LOCK.read_bytes():
            uv = Path(sys.executable).with_name("uv")
            subprocess.run(
                [uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, ENVIRONMENT], check=True
            )
            install = [uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", LOCK]
            installed = subprocess.run(install, capture_output=True, text=True, timeout=600)
            if installed.returncode:
                pytest.skip(f"JupyterLab cannot be installed here: {installed.stderr[-200:]}")
            done.write_bytes(LOCK.read_bytes())
    return ENVIRONMENT / "bin"


@pytest.fixture(scope="module")
def notebooks(jupyter: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a JupyterLab on a trusted and an untrusted notebook, and the file of its theme."""
    home = tmp_path_factory.mktemp("jupyterlab")
    folder = home / "notebooks"
    folder.mkdir()
    for name in ("trusted", "untrusted"):  # one source each: trust is by content
        outputs = [
            new_output("execute_result", {"text/html": html, "text/plain": kind}, execution_count=1)
            for kind, html in cards().items()
        ]
        nbformat.write(
            new_notebook(cells=[new_code_cell(name, outputs=[each]) for each in outputs]), folder / f"{name}.ipynb"
        )
    names: dict[str, Any] = {f"JUPYTER_{kind}_DIR": home / kind for kind in ("DATA", "CONFIG", "RUNTIME")}
    names |= {f"JUPYTERLAB_{kind}_DIR": home / kind for kind in ("SETTINGS", "WORKSPACES")} | {"HOME": home}
    env = os.environ | {name: str(path) for name, path in names.items()}
    subprocess.run([jupyter / "jupyter-trust", folder / "trusted.ipynb"], env=env, check=True, capture_output=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = [
        f"--port={port}",
        "--no-browser",
        "--allow-root",
        "--IdentityProvider.token=",
        f"--ServerApp.root_dir={folder}",
    ]
    with (home / "log").open("w") as log:
        server = subprocess.Popen([jupyter / "jupyter-lab", *options], env=env, cwd=home, stdout=log, stderr=log)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_for(address, server, home / "log")
        yield address, home / "SETTINGS/@jupyterlab/apputils-extension/themes.jupyterlab-settings"
    finally:
        server.kill()  # nothing of it is kept, and its kernels take long to end
        server.wait()


def _wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    while server.poll() is None:
        try:
            urlopen(f"{address}/api").close()
        except URLError:
            subprocess.run(["sleep", "0.2"], check=True)
        else:
            return
    pytest.fail(f"JupyterLab ended: {log.read_text()[-2000:]}")


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["Light", "Dark"])
@pytest.mark.parametrize("name", ["trusted", "untrusted"])
def test_a_card_is_readable_in_jupyterlab(name: str, theme: str, browser: Browser, notebooks: tuple[str, Path]) -> None:
    address, setting = notebooks
    setting.parent.mkdir(parents=True, exist_ok=True)
    setting.write_text(json.dumps({"theme": f"JupyterLab {theme}"}))
    page = browser.new_page(viewport={"width": 1280, "height": 4000})
    page.goto(f"{address}/doc/tree/{name}.ipynb?reset")
    page.locator(f'body[data-jp-theme-light="{str(theme == "Light").lower()}"]').wait_for(state="attached")
    page.locator(".jp-OutputArea-output.jp-RenderedHTMLCommon").nth(4).wait_for()
    assert_readable(page)
    text = page.locator(".jp-OutputArea-output.jp-RenderedHTMLCommon").first.inner_text()
    assert "Better" in text
    assert page.locator(".picture svg").count() == (4 if name == "trusted" else 0)  # two of each picture
    if name == "untrusted":  # its picture is removed, and the words in it are hidden
        assert "Success@5" not in text
        assert "the CI contains zero" not in text
    page.close()
