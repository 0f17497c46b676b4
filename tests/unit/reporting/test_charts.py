from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.reporting.charts import spec
from cranfield.reporting.charts.differences import (
    Bar,
    Whisker,
    difference_bars,
    grouped,
    paired_dots,
    slopes,
    whiskers,
)
from cranfield.reporting.charts.history import Dot, SystemLine, over_time, systems_over_time
from cranfield.reporting.charts.spec import (
    BAND,
    BETTER,
    CHARACTER,
    PAGE,
    PHONE,
    SAME,
    SCREENS,
    WORSE,
    ZERO_WIDTH,
    Screen,
    make_labels_unique,
)
from cranfield.reporting.renderers.html import ATTRIBUTES, ELEMENTS, draw
from cranfield.reporting.sections.verdict import lanes_to

EVIL = "</text><script>alert(1)</script>"


def bars(n: int, *, n_equal: int = 0) -> list[Bar]:
    """Half better, half worse, by different amounts."""
    deltas = [(place + 1) / n * (1 if place % 2 else -1) for place in range(n)] + [0.0] * n_equal
    return [Bar(f"query {place}", delta, delta) for place, delta in enumerate(deltas)]


def painted(svg: str, colour: str) -> int:
    """Marks of a colour in a picture."""
    return sum(colour in (element.get("fill"), element.get("stroke")) for element in ET.fromstring(svg).iter())


def words(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter("text")]


def test_a_query_may_be_called_like_a_member_of_a_javascript_object() -> None:
    members = ["constructor", "toString", "__proto__", "hasOwnProperty"]
    svg = draw(difference_bars([Bar(name, 0.5, 0.5) for name in members], "nDCG@10, B minus A", PAGE), "members")
    assert painted(svg, BETTER) == 4
    assert set(members) <= set(words(svg))


@pytest.mark.parametrize("screen", SCREENS)
def test_few_differences_are_bars_with_names(screen: Screen) -> None:
    svg = draw(difference_bars(bars(10, n_equal=100), "nDCG@10, B minus A", screen), "ten")
    assert painted(svg, BETTER) == 5
    assert painted(svg, WORSE) == 5
    assert {"query 0", "query 9", "100 equal", "nDCG@10, B minus A"} <= set(words(svg))


@pytest.mark.parametrize("screen", SCREENS)
def test_many_differences_stand_side_by_side_in_a_picture_of_fixed_height(screen: Screen) -> None:
    spec = difference_bars(bars(200), "nDCG@10, B minus A", screen)
    svg = draw(spec, "two hundred")
    assert painted(svg, BETTER) == painted(svg, WORSE) == 100
    assert not [word for word in words(svg) if word.startswith("query ")]
    assert spec["height"] == screen.skyline_height


def test_the_best_query_stands_first_whichever_way_is_up() -> None:
    lower_is_better = [Bar("down", -0.5, 0.5), Bar("up", 0.25, -0.25)]
    values = difference_bars(lower_is_better, "cost", PAGE)["data"]["values"]
    assert [(value["label"], value["delta"], value["colour"]) for value in values] == [
        ("down", -0.5, BETTER),
        ("up", 0.25, WORSE),
    ]


@given(st.lists(st.floats(-1, 1), max_size=60), st.integers(1, 20))
def test_groups_keep_order_and_number(values: list[float], most: int) -> None:
    ordered = sorted(values)
    found = grouped(ordered, most)
    assert len(found) == min(most, len(values))
    assert all(after >= before - 1e-12 for before, after in pairwise(found))


def test_neighbours_are_averaged_when_there_are_too_many() -> None:
    assert grouped([1.0, 2.0, 3.0, 4.0, 5.0], 2) == [1.5, 4.0]  # 5 * 1/2 rounds to 2: (1, 2) and (3, 4, 5)


def test_labels_that_are_cut_to_the_same_text_keep_their_rows() -> None:
    labels = make_labels_unique(["a long label one", "a long label two", "a long label one"], 8)
    assert len(set(labels)) == 3
    assert {label.rstrip(ZERO_WIDTH) for label in labels} == {"a long…"}
    same = [Bar("same text", 0.5, 0.5), Bar("same text", -0.5, -0.5)]
    svg = draw(difference_bars(same, "x", PAGE), "twins")
    assert words(svg).count("same text") == 2
    assert painted(svg, BETTER) == painted(svg, WORSE) == 1


def test_how_many_queries_a_group_has_is_not_cut_off() -> None:
    assert make_labels_unique(["a very long name of a group (1,234)"], 16) == ["a very… (1,234)"]


def test_an_interval_without_its_mean_has_no_dot() -> None:
    def dots(whisker: Whisker) -> int:
        svg = draw(whiskers([whisker], "difference", PAGE, 0.01), "one")
        return sum("A" in element.get("d", "") for element in ET.fromstring(svg).iter("path"))  # an arc: a circle

    assert dots(Whisker("AP", 0.02, 0.01, 0.03, "good")) == 1
    assert dots(Whisker("AP", None, 0.01, 0.03, "good")) == 0


def test_an_interval_without_bounds_is_its_dot() -> None:
    bounded, unbounded = (
        draw(whiskers([Whisker("AP", 0.02, low, 0.05, "")], "difference", PHONE), "one") for low in (0.01, None)
    )
    assert painted(bounded, SAME) == 4  # a line, its two ends and the dot
    assert painted(unbounded, SAME) == 1


def test_slopes_count_the_queries_of_every_lane() -> None:
    pairs = {("rank 1", "rank 1"): 30, ("not found", "rank 1"): 4, ("rank 1", "not found"): 2}
    svg = draw(slopes(pairs, ["rank 1", "rank 2", "not found"], PAGE), "slopes")
    assert Counter(words(svg)) == Counter(
        {"rank 1": 1, "rank 2": 1, "not found": 1, "A": 1, "B": 1, "32": 1, "4": 1, "34": 1, "2": 1, "0": 2}
    )
    assert (painted(svg, BETTER), painted(svg, WORSE), painted(svg, SAME)) == (1, 1, 1)


@pytest.mark.parametrize(
    ("deepest", "names"),
    [
        (1, ["rank 1"]),
        (3, ["rank 1", "rank 2", "rank 3"]),
        (6, [*(f"rank {n}" for n in range(1, 6)), "6\u201310"]),
        (30, [*(f"rank {n}" for n in range(1, 6)), "6\u201310", "11\u201320", "21\u201350"]),
        (5000, [*(f"rank {n}" for n in range(1, 6)), *(f"{a}\u2013{b}" for a, b in ((6, 10), (11, 20), (21, 50), (51, 100), (101, 1000))), "over 1000"]),
    ],
)  # fmt: skip
def test_lanes_reach_as_deep_as_the_ranks(deepest: int, names: list[str]) -> None:
    assert [name for name, _ in lanes_to(deepest)] == names
    assert lanes_to(deepest)[-1][1] >= deepest


def pictures() -> list[tuple[str, dict[str, object]]]:
    wild = [Bar(EVIL, 0.5, 0.5), Bar("\x1b[31m\udc80", -0.5, -0.5), Bar("datum.x + {{1}}", 0.1, 0.1)]
    return [
        (f"{name} {screen.width}", spec)
        for screen in SCREENS
        for name, spec in (
            ("bars", difference_bars(wild, EVIL, screen)),
            ("skyline", difference_bars(bars(90), EVIL, screen)),
            ("whiskers", whiskers([Whisker(EVIL, 0.1, 0.05, 0.2, "good")], EVIL, screen, 0.02)),
            ("slopes", slopes({("rank 1", EVIL): 2}, ["rank 1", EVIL], screen)),
        )
    ]


@pytest.mark.parametrize(("name", "spec"), pictures())
def test_a_picture_holds_nothing_but_shapes_and_words(name: str, spec: dict[str, object]) -> None:
    svg = draw(spec, f"{name} {EVIL}")
    root = ET.fromstring(svg)
    assert {element.tag for element in root.iter()} <= ELEMENTS
    assert {key for element in root.iter() for key in element.attrib} - ATTRIBUTES <= {
        "role",
        "aria-label",
        "data-tip",
        "data-q",
    }
    assert "<script" not in svg
    assert root.get("role") == "img"
    assert root.get("aria-label") == f"{name} {EVIL}"
    assert root.get("viewBox", "").split()[2] == root.get("width")
    assert draw(spec, f"{name} {EVIL}") == svg


@pytest.mark.parametrize("screen", SCREENS)
def test_no_word_leaves_its_picture(screen: Screen) -> None:
    """Room is reckoned, not measured: even in a font of 7.5 pixels a character every label stays inside."""
    long = [Bar("W" * 80, 0.5, 0.5), Bar("x", -0.25, -0.25)]
    spec = difference_bars(long, "x", screen)
    label = spec["data"]["values"][0]["label"]
    assert len(label) == screen.label_chars
    assert spec["padding"]["left"] >= len(label) * CHARACTER + 8  # the axis keeps labels 8 pixels off
    assert spec["width"] + spec["padding"]["left"] + spec["padding"]["right"] == screen.width
    assert spec["width"] >= 150


def test_colours_are_told_apart_without_colour_vision() -> None:
    """Okabe and Ito's blue and vermilion, and a grey; each at 3:1 or more on white."""

    def luminance(colour: str) -> float:
        channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    assert (BETTER, WORSE) == ("#0072B2", "#D55E00")
    assert all(1.05 / (luminance(colour) + 0.05) >= 3 for colour in (BETTER, WORSE, SAME))


@pytest.mark.parametrize("span", [0.0, 1e-5, 0.0003, 0.02, 0.1])
@pytest.mark.parametrize("screen", SCREENS)
def test_no_two_ticks_of_an_axis_have_one_label(span: float, screen: Screen) -> None:
    """With two decimals for all, an axis of small differences read 0.5 0.5 0.5."""
    means = [0.5 + span * place / 3 for place in range(4)]
    dots = [Dot("", mean, None, None, 0) for mean in means]
    pairs = [(mean, 0.5) for mean in means]
    lines = [SystemLine(name, dict(enumerate(dots))) for name in "ab"]
    for drawn in (
        whiskers([Whisker("a", mean, mean, mean, "") for mean in means], "x", screen, of_means=True),
        whiskers([Whisker("a", mean - 0.5, -span, mean - 0.5, "") for mean in means], "x", screen),
        paired_dots(list("abcd"), pairs, "x", screen),
        over_time(dots, "x", screen),
        systems_over_time(lines, [""] * 4, [], "x", screen),
    ):
        texts = words(draw(drawn, "x"))
        ticks = [float(text.replace("−", "-")) for text in texts if re.fullmatch(r"[+−]?[\d.]+", text)]
        assert len(ticks) == len(set(ticks)) > 0
        assert max(map(abs, ticks)) < 0.7  # an axis of one value had the tick 1


def test_numbers_of_a_picture_are_short() -> None:
    svg = draw(difference_bars(bars(97), "x", PAGE), "many")
    assert not re.search(r"\d\.\d{3,}", re.sub(r'data-tip="[^"]*"', "", svg))


def test_every_dark_colour_of_a_chart_has_a_rule_for_a_dark_page():
    folder = Path(spec.__file__).parents[1]
    rules = (folder / "static" / "report.css").read_text(encoding="utf-8")
    drawn = {
        colour for path in folder.glob("charts/*.py") for colour in re.findall(r'"(#\w{6})"', path.read_text("utf-8"))
    }
    assert "#222222" in drawn
    assert {colour for colour in drawn if f'"{colour}"]' not in rules} == {BAND, "#CC79A7"}, "these are light enough"
