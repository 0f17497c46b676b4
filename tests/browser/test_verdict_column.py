"""The verdict is in view, on a desk and on a phone, in every report that has a column of verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.browser.test_report_page import made_up, of_every_class
from tests.unit.benefit.test_result import experiment, result

from cranfield.benefit.reports.benefit import benefit_document
from cranfield.benefit.reports.history import benefit_history_document
from cranfield.benefit.result import BenefitResult, StratumKind, StratumVerdict
from cranfield.benefit.use_cases import publish, read_results
from cranfield.reporting import comparison_document, save_report
from cranfield.reporting.document import Document

pytestmark = pytest.mark.browser

WIDTHS = (390, 1280)
PAGES = ("benefit", "history", "comparison", "classes")
EVIL = "<img src=x onerror=\"document.title='taken'\">"
LONG_NAMES = {
    "task_type": "cross-file-refactoring",
    "difficulty": "very-difficult",
    "language": "typescript-react",
    "component": "documentation-site",
    "age_of_code": "over-ten-years",
    "owner": "infrastructure-team",
}
CELLS = """() => [...document.querySelectorAll('table')].filter(each => each.checkVisibility()).flatMap((table, number) => {
  const place = [...table.querySelectorAll('thead th')].findIndex(each => each.textContent.trim().startsWith('verdict'))
  return place < 0 ? [] : [...table.rows].map(row => row.cells[place]).filter(Boolean).map(cell => {
    cell.scrollIntoView({block: 'center', behavior: 'instant'})
    table.closest('.scroll').scrollLeft = 0
    const box = cell.getBoundingClientRect()
    const tops = [box.left + 3, (box.left + box.right) / 2, box.right - 3]
      .map(x => document.elementFromPoint(x, (box.top + box.bottom) / 2))
    return {table: table.closest('figure').querySelector('figcaption').textContent, text: cell.textContent, left: box.left, right: box.right, width: box.width,
            scrolled: window.scrollX, isOnTop: tops.every(top => cell.contains(top))}
  })
})"""


def judged(folder: Path) -> BenefitResult:
    """An experiment whose judge writes markup, with strata of long names and every verdict."""

    found = result(
        experiment(folder, plan={"rule": {"min_tasks": 4}}),
        lambda _: json.dumps({"quote": "do not know", "verdict": "contradicted", "reason": EVIL * 3}),
    )
    (row, *_) = found.first_strata
    rows = [
        row.model_copy(
            update={
                "kind": StratumKind.CELL,
                "stratum": {**LONG_NAMES, "difficulty": f"very-difficult-{n}"},
                "verdict": verdict,
            }
        )
        for n, verdict in enumerate(StratumVerdict)
    ]
    others = [each for each in found.strata if each.kind is not StratumKind.CELL]
    return found.model_copy(update={"strata": (*rows, *others)})


def document(name: str, folder: Path) -> Document:
    match name:
        case "benefit":
            return benefit_document(judged(folder))
        case "history":
            for _ in range(3):
                publish(judged(folder), folder / "results")
            return benefit_history_document(read_results(folder / "results"))
        case "comparison":
            return comparison_document(made_up(24, pilot=True))
    return comparison_document(of_every_class())


@pytest.fixture(scope="module")
def reports(make_once: Callable[[str, Callable[[Path], object]], Path]) -> Mapping[str, Path]:
    class Pages(dict[str, Path]):
        def __missing__(self, name: str) -> Path:
            made = make_once(
                f"verdicts {name}", lambda folder: save_report(document(name, folder), folder / f"{name}.html")
            )
            return made / f"{name}.html"

    return Pages()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_every_verdict_is_in_view_without_scrolling_sideways(loaded: Any, name: str, width: int) -> None:
    page = loaded(name).show(width, all_open=True)
    cells = page.evaluate(CELLS)
    assert cells, "the page has no column of verdicts"
    hidden = [
        each
        for each in cells
        if each["left"] < 0 or each["right"] > width or each["scrolled"] or not each["isOnTop"] or each["width"] < 20
    ]
    assert hidden == [], [
        (each["table"], each["text"], round(each["left"]), round(each["right"]), each["isOnTop"]) for each in hidden
    ]
