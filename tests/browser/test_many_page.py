"""The report of many systems on a phone and on a desk: nothing runs over an edge."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from cranfield import Answer, Hit, Outcome, Query, Run, TestSet, compare, compare_many, evaluate
from cranfield.evaluation.sensitivity import sensitivity
from cranfield.model import CallLog
from cranfield.reporting import comparison_document, save_report

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDTHS = (390, 1280)
LONG = "a-system-with-a-name-that-is-longer-than-any-column-of-any-table-could-be"


PAGES = ("five", "fourteen", "varied")


@pytest.fixture(scope="module")
def reports(make_once: Callable[[str, Callable[[Path], object]], Path]) -> dict[str, Path]:
    """Name to page."""
    folder = make_once("pages of many", write_reports)
    return {name: folder / f"{name}.html" for name in PAGES}


def write_reports(folder: Path) -> None:
    """Reports of five systems and of fourteen, and of two with a sensitivity analysis."""
    draw = random.Random(3)
    queries = tuple(
        Query(f"q{n}", "text", {"a kind of query": f"kind {n % 5} {'x' * (n % 5) * 12}"}) for n in range(40)
    )
    truth = TestSet("made up", queries, {query.id: {f"{query.id}-a": 1} for query in queries})
    evaluations = []
    for place in range(14):
        answers = {}
        for query in queries:
            ids = [f"x{n}" for n in range(10)]
            ids.insert(draw.randrange(1 + 9 * (14 - place) // 14), f"{query.id}-a")
            answers[query.id] = Answer(Outcome.ANSWERED, tuple(Hit(doc) for doc in ids))
        logs = {
            query.id: CallLog(draw.uniform(1, 90), attempts=2, unstable=("rank 1: a, then b",)) for query in queries
        }
        name = LONG if place == 2 else f"system {place}"
        evaluations.append(evaluate(truth, Run(name, answers, depth=10, logs=logs, config={"concurrency": 2})))
    comparison = compare(evaluations[2], evaluations[3], margin=0.05, test="t")
    documents = {
        "five": comparison_document(compare_many(evaluations[:5], baseline=LONG, margin=0.05, test="t")),
        "fourteen": comparison_document(compare_many(evaluations, test="t")),
        "varied": comparison_document(comparison, sensitivity=sensitivity(comparison)),
    }
    for name, document in documents.items():
        save_report(document, folder / f"{name}.html")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_nothing_runs_over_an_edge(loaded, name: str, width: int) -> None:
    page = loaded(name).show(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = page.evaluate(
        """() => [...document.querySelectorAll('.picture svg')]
            .filter(svg => svg.getBoundingClientRect().width > 0)
            .flatMap(svg => { const frame = svg.getBoundingClientRect();
                return [...svg.querySelectorAll('text')].filter(text => { const box = text.getBoundingClientRect();
                    return box.left < frame.left - 1 || box.right > frame.right + 1
                        || box.top < frame.top - 1 || box.bottom > frame.bottom + 1; })
                .map(text => text.textContent); })"""
    )
    assert cut == []


@pytest.mark.parametrize("name", PAGES)
def test_no_table_is_clipped_on_a_desk(loaded, name: str) -> None:
    page = loaded(name).show(1280, all_open=True)
    clipped = page.evaluate(
        """() => [...document.querySelectorAll('.scroll')].filter(each => each.scrollWidth > each.clientWidth)
            .map(each => each.getAttribute('aria-label'))"""
    )
    assert clipped == []


@pytest.mark.parametrize("name", PAGES)
def test_the_first_picture_is_on_the_first_screen(loaded, name: str) -> None:
    page = loaded(name).show(1280)
    page.set_viewport_size({"width": 1280, "height": 800})
    box = page.locator(".picture svg:visible").first.bounding_box()
    assert box is not None
    assert 0 <= box["y"] < box["y"] + box["height"] <= 800


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_the_tiles_fill_their_rows(loaded, name: str, width: int) -> None:
    page = loaded(name).show(width)
    panel, tiles = page.evaluate(
        """() => { const panel = document.querySelector('.facts').getBoundingClientRect();
            return [panel.right, [...document.querySelectorAll('.facts > div')].map(each => {
                const box = each.getBoundingClientRect(); return [box.top, box.right]; })]; }"""
    )
    ends = {round(top): right for top, right in tiles}  # of each row the last tile
    assert len(tiles) >= 5
    assert width == 390 or 1 not in Counter(round(top) for top, _ in tiles).values()
    assert list(ends.values()) == pytest.approx([panel] * len(ends), abs=1)


@pytest.mark.parametrize("name", ["five", "fourteen"])
def test_on_a_phone_the_letters_are_seen_without_scrolling(loaded, name: str) -> None:
    page = loaded(name).show(390)
    heading = page.locator("#systems th", has_text="group").first.bounding_box()
    assert heading is not None
    assert heading["x"] + heading["width"] <= 390
    words = page.locator("#figure-means svg:visible text").all_text_contents()
    assert "a" in words


def test_a_mean_is_coloured_by_its_distance_from_the_mean_of_its_row(loaded) -> None:
    page = loaded("five").show(1280)
    row = page.locator("#systems tr", has=page.get_by_text("* nDCG@10", exact=True))
    shades = [each.get_attribute("class").split()[-1] for each in row.locator("td").all()[:5]]
    assert shades[0].startswith("below-")
    assert shades[4].startswith("above-")
    colours = row.locator("td").evaluate_all("all => all.map(each => getComputedStyle(each).backgroundColor)")
    assert colours[0] != colours[4] != colours[5]
