"""The history of several systems in one picture: places, breaks, names, links, and the picture as it is drawn."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield.evaluation.history import HistoryPoint, HistoryReport, Score, lines
from cranfield.reporting import render
from cranfield.reporting.charts.history import HEIGHT, LABEL_HEIGHT, Dot, SystemLine, systems_over_time
from cranfield.reporting.charts.history import _label_places as label_places
from cranfield.reporting.charts.spec import PAGE, PHONE, SCREENS, Screen
from cranfield.reporting.document import Chart, Link
from cranfield.reporting.documents.history import history_document, label_maker
from cranfield.reporting.renderers.html import draw

START = datetime(2026, 11, 1, 9, tzinfo=UTC)


def point(
    hour: float, system: str, mean: float = 0.5, *, commit: str | None = None, digest: str = "a", **others: object
) -> HistoryPoint:
    made = HistoryPoint(
        START + timedelta(hours=hour),
        "shop",
        "",
        f"sha256:{digest * 64}",
        system,
        "trec",
        {"AP": Score(mean, 50, mean - 0.05, mean + 0.05)},
        commit=commit,
    )
    return replace(made, **others)  # type: ignore[arg-type]


def report_of(points: Sequence[HistoryPoint]) -> HistoryReport:
    return HistoryReport(measure="AP", lines=lines(points, "AP"))


def figures(points: Sequence[HistoryPoint]) -> list[Chart]:
    document = history_document(report_of(points), lambda at: f"kept/{at.time:%d-%H%M}.html")
    return [block for section in document.sections for block in section.blocks if isinstance(block, Chart)]


def only_figure(points: Sequence[HistoryPoint]) -> Chart:
    (figure,) = figures(points)
    return figure


def rows(figure: Chart) -> list[tuple[object, ...]]:
    return [tuple(cell.text if isinstance(cell, Link) else cell for cell in row) for row in figure.table.rows]


def drawn_points(figure: Chart) -> list[dict[str, object]]:
    return [
        value
        for layer in figure.spec["layer"]
        if isinstance(layer["mark"], dict) and layer["mark"].get("type") == "point"
        for value in layer["data"]["values"]
        if "label" in value
    ]


def words_drawn(figure: Chart, screen: int = 0) -> list[str]:
    spec = (figure.spec, figure.narrow_spec)[screen]
    root = ET.fromstring(draw(spec, "x"))
    return ["".join(text.itertext()) for text in root.iter("text")]


TWO = [point(hour, system, 0.4 + hour / 10) for hour in (0, 1, 2) for system in ("old", "new")]


def test_the_systems_of_a_test_set_are_in_one_picture_and_have_a_table_each() -> None:
    figure = only_figure(TWO)
    assert figure.title == "AP of 2 systems over time"
    assert [row[0] for row in rows(figure)] == ["2026-11-01 11:00", "2026-11-01 10:00", "2026-11-01 09:00"]
    assert [row[1:] for row in rows(figure)] == [("0.6000", "0.6000"), ("0.5000", "0.5000"), ("0.4000", "0.4000")]
    assert {"old", "new"} <= set(words_drawn(figure))
    assert {"old", "new"} <= set(words_drawn(figure, 1))
    document = history_document(report_of(TWO))
    assert [section.title for section in document.sections] == ["AP on shop", "old on shop", "new on shop"]


def test_one_system_keeps_its_picture_and_other_test_sets_have_their_own() -> None:
    other = [replace(each, testset="docs") for each in TWO if each.system == "old"]
    titles = [figure.title for figure in figures([*TWO, *other])]
    assert titles == ["AP of 2 systems over time", "AP over time"]


def test_plain_text_has_no_row_twice() -> None:
    text = render(history_document(report_of(TWO)), "text")
    assert text.count("2026-11-01 10:00") == 2  # in the table of each system


def test_a_point_leads_to_its_report_and_says_what_it_is() -> None:
    svg = draw(only_figure(TWO).spec, "AP over time")
    root = ET.fromstring(svg)
    links = list(root.iter("a"))
    assert len(links) == 6
    assert root.get("role") == "group"
    assert [link.get("href") for link in links[:3]] == ["kept/01-0900.html", "kept/01-1000.html", "kept/01-1100.html"]
    assert links[0].get("aria-label") == "old, 2026-11-01 09:00: 0.4000 (0.3500 to 0.4500)"
    assert links[0].findtext(".//title") == links[0].get("aria-label")
    assert {child.tag for link in links for child in link} == {"path"}


def test_without_reports_there_is_no_link() -> None:
    document = history_document(report_of(TWO))
    (figure,) = (block for block in document.sections[0].blocks if isinstance(block, Chart))
    root = ET.fromstring(draw(figure.spec, "x"))
    assert root.get("role") == "img"
    assert list(root.iter("a")) == []
    assert any(element.get("data-tip") for element in root.iter())


@pytest.mark.parametrize(
    ("href", "drawn"),
    [("../a%20b/r.html", "../a%20b/r.html"), ("x\u2063y", "xy"), ('"><script>.html', '"><script>.html')],
)
def test_an_address_cannot_be_markup(href: str, drawn: str) -> None:
    dots = {place: Dot("c", 0.5, 0.4, 0.6, 0, href=href, words='<script>"') for place in range(2)}
    svg = draw(systems_over_time([SystemLine("s", dots)], ["a", "b"], (), "AP", PAGE), "x")
    root = ET.fromstring(svg)
    assert [link.get("href") for link in root.iter("a")] == [drawn] * 2
    assert "<script" not in svg


def test_a_single_line_leads_to_its_reports_too() -> None:
    root = ET.fromstring(draw(only_figure([each for each in TWO if each.system == "old"]).spec, "x"))
    assert [link.get("href") for link in root.iter("a")] == [f"kept/01-{hour}00.html" for hour in ("09", "10", "11")]


def test_runs_are_those_of_one_time_or_of_one_commit_within_minutes() -> None:
    near = 1 / 60
    points = [
        point(0, "old", commit="a" * 40),
        point(near, "new", commit="a" * 40),  # a minute later, of the same commit: one run
        point(1, "old", commit="b" * 40),
        point(1 + near, "new", commit="c" * 40),  # of another commit
        point(2, "old"),
        point(2 + near, "new"),  # without a commit, of another time
        point(3, "old", commit="d" * 40),
        point(4, "new", commit="d" * 40),  # an hour later
        point(5, "old", commit="e" * 40, dirty=True),
        point(5 + near, "new", commit="e" * 40),
    ]
    figure = only_figure(points)
    together = [row for row in rows(figure) if row[2] is not None and row[3] is not None]
    assert [row[1] for row in together] == ["a" * 8]
    assert len(rows(figure)) == 9


def test_no_label_stands_twice_under_neighbours() -> None:
    points = [point(hour, "x", commit=commit) for hour, commit in enumerate(["a" * 40, "b" * 40, "b" * 40, "a" * 40])]
    drawn = words_drawn(only_figure(points))
    assert [words for words in drawn if words in {"a" * 8, "b" * 8}] == ["a" * 8, "b" * 8, "a" * 8]


def test_a_place_has_its_commit_else_its_day_and_the_time_where_a_day_has_several() -> None:
    a, b, c = point(0, "x"), point(24, "x"), point(25, "x", commit="abcdef0123")
    assert label_maker([a, b])(a) == "11-01"
    assert [label_maker([a, b, c])(each) for each in (a, b, c)] == ["11-01 09:00", "11-02 09:00", "abcdef01"]
    of_a_minute = [point(0.001 * second, "x") for second in range(3)]
    assert [label_maker(of_a_minute)(each) for each in of_a_minute] == [
        "11-01 09:00:00",
        "11-01 09:00:03",
        "11-01 09:00:07",
    ]
    of_years = [point(0, "x"), point(24 * 365, "x")]
    assert [label_maker(of_years)(each) for each in of_years] == ["2026-11-01", "2027-11-01"]
    drawn = words_drawn(only_figure([point(0, "old", commit="abcdef0123"), point(1, "old"), point(1, "new")]))
    assert "abcdef01" in drawn
    assert "11-01 10:00" in drawn


def test_a_change_of_the_test_set_breaks_every_line_and_is_named_once() -> None:
    points = [point(h, s, digest="a" if h < 2 else "b") for h in range(4) for s in ("old", "new")]
    figure = only_figure(points)
    assert sum("test set bbbbbb" in words for words in words_drawn(figure)) == 1
    stretches = [
        {value["stretch"] for value in layer["data"]["values"]}
        for layer in figure.spec["layer"]
        if isinstance(layer["mark"], dict) and layer["mark"].get("type") == "line"
    ]
    assert stretches == [{0, 1}, {0, 1}]


def test_a_change_of_one_system_is_named_with_it() -> None:
    configs = {"old": ("1", "1", "1"), "new": ("1", "2", "2")}
    points = [point(h, s, config_digest=configs[s][h]) for h in range(3) for s in configs]
    words = words_drawn(only_figure(points))
    assert "new: config" in words
    assert not any(text.startswith("old") and text != "old" for text in words)


def test_a_line_goes_on_to_runs_with_the_same_answers() -> None:
    points = [point(h, "old", 0.4, run_digest="same") for h in range(3)] + [point(h, "new", h / 10) for h in range(3)]
    figure = only_figure(points)
    assert len([value for value in drawn_points(figure) if str(value["label"]).startswith("old")]) == 1
    ((places, _), *_) = (
        ([value["place"] for value in layer["data"]["values"]], layer)
        for layer in figure.spec["layer"]
        if isinstance(layer["mark"], dict) and layer["mark"].get("type") == "line"
    )
    assert len(places) == 3


@pytest.mark.parametrize("n", [2, 7, 12, 15])
def test_systems_differ_by_colour_and_dash_and_at_most_twelve_are_drawn(n: int) -> None:
    points = [point(h, f"s{number}", 0.1 + number / 30) for h in range(2) for number in range(n)]
    figure = only_figure(points)
    strokes = [
        (layer["mark"]["color"], tuple(layer["mark"].get("strokeDash", ())))
        for layer in figure.spec["layer"]
        if isinstance(layer["mark"], dict) and layer["mark"].get("type") == "line"
    ]
    assert len(set(strokes)) == len(strokes) == min(n, 12)
    document = history_document(report_of(points))
    assert ("of 15" in render(document, "html")) == (n == 15)


@pytest.mark.parametrize("screen", SCREENS)
def test_every_point_and_interval_is_within_the_axis(screen: Screen) -> None:
    figure = only_figure(TWO)
    spec = figure.spec if screen is PAGE else figure.narrow_spec
    scales = [
        layer["encoding"]["y"]["scale"]["domain"]
        for layer in spec["layer"]
        if "scale" in layer["encoding"].get("y", {})
    ]
    assert len({tuple(domain) for domain in scales}) == 1
    low, high = scales[0]
    assert low < 0.35
    assert high > 0.65
    assert spec["width"] + spec["padding"]["left"] + spec["padding"]["right"] == screen.width


def test_on_a_phone_names_are_short() -> None:
    long = [replace(each, system=f"{each.system} with a very long name") for each in TWO]
    figure = only_figure(long)
    assert all(len(text) <= 22 for text in words_drawn(figure))
    assert figure.narrow_spec["width"] > PHONE.width / 3


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(deadline=None)
def test_names_are_beside_their_lines_and_never_on_each_other(means: list[float]) -> None:
    system_lines = [SystemLine(str(n), {0: Dot("a", mean, None, None, 0)}) for n, mean in enumerate(means)]
    low, high = min(means) - 0.05, max(means) + 0.05
    places = label_places(system_lines, low, high, HEIGHT)
    pixels = sorted((place - low) / (high - low) * HEIGHT for place in places)
    assert all(b - a >= LABEL_HEIGHT - 1e-6 for a, b in itertools.pairwise(pixels))
    assert pixels[0] >= -1e-6
    assert pixels[-1] <= HEIGHT + 1e-6
    if len(means) == 1:
        assert places[0] == pytest.approx(means[0])
    by_mean = sorted(range(len(means)), key=lambda n: means[n])
    assert sorted(range(len(means)), key=lambda n: (places[n], by_mean.index(n))) == by_mean
