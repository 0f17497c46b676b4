"""The calculator of the documentation in a browser: its numbers are those of `cranfield.scale.plan`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from cranfield.scale.plan import Size

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SIZES = (
    {"queries": 100_000, "results": 1000, "systems": 1, "judged": 18.5, "memory": 1, "threads": 2, "cores": 16},
    {"queries": 5_000_000, "results": 200, "systems": 4, "judged": 8, "memory": 4, "threads": 8, "cores": 64},
    {"queries": 2_000_000, "results": 100, "systems": 2, "judged": 5, "memory": 1.5, "threads": 2, "cores": 8},
    {"queries": 30_000_000, "results": 1000, "systems": 1, "judged": 2, "memory": 250, "threads": 2, "cores": 8},
    {"queries": 400_000_000, "results": 2, "systems": 30, "judged": 1, "memory": 9000, "threads": 2, "cores": 8},
    {"queries": 50, "results": 10, "systems": 1, "judged": 3, "memory": 0.5, "threads": 1, "cores": 2},
)


@pytest.fixture(scope="module")
def page(
    browser: Browser, load_script: Any, checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(checkout / "docs"))
        generate: ModuleType = load_script(checkout / "docs" / "generate.py")
    html = re.sub(r"^```.*$", "", generate.calculator_page(), flags=re.MULTILINE)
    path = tmp_path_factory.mktemp("calculator") / "page.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><body>{html}", encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 900})
    messages: list[str] = []
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(path.as_uri())
    yield page
    assert not messages
    page.close()


@pytest.mark.parametrize("given", SIZES, ids=lambda given: f"{given['queries']} queries")
def test_its_numbers_are_those_of_the_plan(page: Page, given: dict[str, float]) -> None:
    rows = int(given["queries"] * given["results"] * given["systems"])
    judgments = int(given["queries"] * given["judged"])
    size = Size(rows, int(given["queries"]), judgments, int(given["systems"]), int(given["threads"]))
    memory = int(given["memory"] * 1e9)
    found = page.evaluate(
        "size => estimate(size, JSON.parse(document.querySelector('form').dataset.constants))",
        given | {"memory": memory},
    )
    parts = size.n_parts(memory)
    assert (found["rows"], found["judgments"], found["parts"]) == (rows, judgments, parts)
    assert found["bytes"] == size.bytes_of(parts)
    assert found["seconds"] == pytest.approx(size.seconds(parts))
    assert found["engineSeconds"] == pytest.approx(size.engine_seconds(int(given["cores"])))


def test_its_first_answer_is_that_of_the_plan(page: Page) -> None:
    """The fields are read as they stand: an output that is called as a field is none."""
    page.reload()
    size = Size(n_rows=100_000_000, n_queries=100_000, n_judgments=2_000_000, n_systems=1, n_threads=2)
    assert page.locator("output[name=local]").inner_text() == f"{math.ceil(size.seconds(1))} s"
    assert page.locator("output[name=memory]").inner_text() == f"{math.ceil(size.bytes_of(1) / 1e6)} MB"
    page.locator("input[name=memory]").fill("0.6")
    assert page.locator("output[name=local]").inner_text().endswith(f" in {size.n_parts(600_000_000)} parts")
    page.locator("input[name=queries]").fill("-5")
    assert page.locator("output[name=rows]").inner_text() == "0"


def test_it_answers_while_it_is_typed_in_and_fits_a_phone(page: Page) -> None:
    field = page.locator("input[name=queries]")
    field.fill("1000000")
    assert page.locator("output[name=rows]").inner_text() == "1,000,000,000"
    page.locator("input[name=memory]").fill("0.2")
    assert "not in this memory" in page.locator("output[name=local]").inner_text()
    assert "at least" in page.locator("output[name=memory]").inner_text()
    field.focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "results"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
