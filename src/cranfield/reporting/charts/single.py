"""The pictures as Vega-Lite specifications: plain data in, a plain dict out, no renderer and no network in sight.

Colours are Okabe and Ito's, told apart by readers with any colour vision: blue is better, vermilion worse, grey neither.
Every picture is drawn for a page and for a phone, because words that shrink with a picture cannot be read. Room for words
is reckoned here and not measured, so that a picture does not depend on the fonts of the machine that drew it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cranfield.numbers import format_count
from cranfield.words import printable, shorten_to
from cranfield.words import width as width_of

BETTER, WORSE, SAME, BAND = "#0072B2", "#D55E00", "#767676", "#E69F00"

Spec = dict[str, Any]
Rule = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Screen:
    """What a picture is drawn for, in pixels."""

    width: int
    label_chars: int
    """Longer labels are cut."""
    skyline_height: int
    slope_width: int
    ticks: int


PAGE = Screen(width=920, label_chars=44, skyline_height=280, slope_width=920, ticks=8)
PHONE = Screen(width=342, label_chars=16, skyline_height=210, slope_width=342, ticks=3)
SCREENS = (PAGE, PHONE)

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
NAMED_BARS = 40
"""Up to so many queries that differ have a bar with their name; more stand side by side without."""
DRAWN_BARS = 400
"""More queries than this are drawn in groups of neighbours."""
NOTHING_TO_SEE = "\u200b"
"""A character without width; whoever draws takes it out again."""
_COUNTED = re.compile(r" \([\d,]+\)$")
CHARACTER = 7.5
"""Width of a character at 12 pixels in a wide font."""
ROW, WHISKER_ROW, LANE = 18, 26, 30
"""Heights of a named bar, an interval and a lane of ranks."""
BOUNDED = {"filter": "isValid(datum.low) && isValid(datum.high)"}
"""An interval with an end that is not known is not drawn: its table says so."""
AXIS_ROOM = 44
"""Height of an axis with its title."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One query's difference."""

    label: str
    delta: float
    gain: float
    """The difference, with its sign turned where lower values are better."""


@dataclass(frozen=True, slots=True)
class Whisker:
    """One difference with its interval."""

    label: str
    delta: float | None
    """Its dot; None where there is only an interval to show."""
    low: float | None
    high: float | None
    colour: str
    """Better or worse where the interval excludes zero, else neither."""


def difference_bars(bars: Sequence[Bar], title: str, screen: Screen) -> Spec:
    """Differences query by query, sorted: named bars while few differ, a skyline of all when many do."""
    ordered = sorted(bars, key=lambda bar: bar.gain, reverse=True)
    n_different = sum(bar.gain != 0 for bar in bars)
    return _named_bars(ordered, title, screen) if n_different <= NAMED_BARS else _skyline(ordered, title, screen)


def _named_bars(best_first: Sequence[Bar], title: str, screen: Screen) -> Spec:
    """A row for every query that differs; those that do not share one row between the two kinds."""
    better = [bar for bar in best_first if bar.gain > 0]
    worse = [bar for bar in best_first if bar.gain < 0]
    n_equal = len(best_first) - len(better) - len(worse)
    equal = [Bar(f"{format_count(n_equal)} equal", 0.0, 0.0)] if n_equal else []
    rows = [*better, *equal, *worse]
    labels = told_apart([bar.label for bar in rows], screen.label_chars)
    values = [
        {"label": label, "delta": bar.delta, "colour": _colour(bar.gain)}
        for label, bar in zip(labels, rows, strict=True)
    ]
    bar_marks = {
        "mark": {"type": "bar", "height": ROW - 5},
        "encoding": {"x": _differences(title, screen), "y": _named_rows(), "color": as_is("colour")},
    }
    return spec_of(values, [bar_marks, _zero_rule("x")], frame_of(screen.width, ROW * len(rows), room_for(labels)))


def _skyline(best_first: Sequence[Bar], title: str, screen: Screen) -> Spec:
    gains = grouped([bar.gain for bar in best_first], DRAWN_BARS)
    deltas = grouped([bar.delta for bar in best_first], DRAWN_BARS)
    values = [
        {"from": place, "to": place + 1, "delta": delta, "colour": _colour(gain)}
        for place, (gain, delta) in enumerate(zip(gains, deltas, strict=True))
    ]
    frame = frame_of(screen.width, screen.skyline_height, left=62, axis=8)
    # A gap between bars only where they are wide enough to spare one.
    gap = 1 if frame["width"] / len(values) >= 3 else 0
    across = {"axis": None, "scale": {"domain": [0, len(values)], "nice": False}}
    bar_marks = {
        "mark": {"type": "rect", "xOffset": gap / 2, "x2Offset": -gap / 2},
        "encoding": {
            "x": {"field": "from", "type": "quantitative", **across},
            "x2": {"field": "to"},
            "y": _differences(title, screen),
            "y2": {"datum": 0},
            "color": as_is("colour"),
        },
    }
    return spec_of(values, [bar_marks, _zero_rule("y")], frame)


def grouped(values: Sequence[float], most: int) -> list[float]:
    """At most `most` values: as they are, or the means of neighbours in groups of one size (give or take one)."""
    if len(values) <= most:
        return list(values)
    edges = [round(place * len(values) / most) for place in range(most + 1)]
    return [sum(values[start:end]) / (end - start) for start, end in pairwise(edges)]


def whiskers(rows: Sequence[Whisker], title: str, screen: Screen, margin: float | None = None) -> Spec:
    """Differences with their intervals, a row each, around zero; the margin of equivalence as a band behind them."""
    labels = told_apart([row.label for row in rows], screen.label_chars)
    values = [
        {
            "label": label,
            "delta": row.delta,
            "low": row.low,
            "high": row.high,
            "colour": row.colour,
        }
        for label, row in zip(labels, rows, strict=True)
    ]
    line = {
        "transform": [BOUNDED],
        "mark": {"type": "rule", "strokeWidth": 3, "strokeCap": "round"},
        "encoding": {
            "x": _differences(title, screen) | {"field": "low"},
            "x2": {"field": "high"},
            "y": _named_rows(),
            "color": as_is("colour"),
        },
    }
    dot = {
        "transform": [{"filter": "isValid(datum.delta)"}],
        "mark": {"type": "point", "filled": True, "size": 100, "opacity": 1},
        "encoding": {"x": _differences(title, screen), "y": _named_rows(), "color": as_is("colour")},
    }
    layers = [*_margin_band(margin), _zero_rule("x"), line, _cap("low"), _cap("high"), dot]
    return spec_of(values, layers, frame_of(screen.width, WHISKER_ROW * len(rows), room_for(labels)))


def _cap(end: str) -> Rule:
    """The end of an interval, which shows one that is a single point too."""
    return {
        "transform": [BOUNDED],
        "mark": {"type": "tick", "orient": "vertical", "thickness": 2, "size": 11, "opacity": 1},
        "encoding": {
            "x": {"field": end, "type": "quantitative"},
            "y": _named_rows(),
            "color": as_is("colour"),
        },
    }


def _margin_band(margin: float | None) -> list[Rule]:
    if margin is None:
        return []
    return [
        {
            "data": {"values": [{"from": -margin, "to": margin}]},
            "mark": {"type": "rect", "color": BAND, "opacity": 0.2},
            "encoding": {"x": {"field": "from", "type": "quantitative"}, "x2": {"field": "to"}},
        }
    ]


def slopes(pairs: Mapping[tuple[str, str], int], lanes: Sequence[str], screen: Screen) -> Spec:
    """Where the first relevant result was on A and where it is on B; the thicker a line, the more queries.

    Args:
        pairs: (lane on A, lane on B) to how many queries.
        lanes: names from the top.
        screen: what it is drawn for.
    """
    place = {name: position for position, name in enumerate(lanes)}
    most = max(pairs.values(), default=1)
    values = [
        {
            "x": 0,
            "x2": 1,
            "y": place[before],
            "y2": place[after],
            "colour": _colour(place[before] - place[after]),
            "thick": max(1.2, 13 * (count / most) ** 0.5),
        }
        # Thick lines first, so that thin ones lie on top of them.
        for (before, after), count in sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    ]
    across = {"axis": None, "scale": {"domain": [0, 1], "nice": False}}
    down = {"axis": None, "scale": {"domain": [-0.5, len(lanes) - 0.5], "reverse": True, "nice": False, "zero": False}}
    line = {
        "mark": {"type": "rule", "opacity": 0.65, "strokeCap": "round"},
        "encoding": {
            "x": {"field": "x", "type": "quantitative", **across},
            "x2": {"field": "x2"},
            "y": {"field": "y", "type": "quantitative", **down},
            "y2": {"field": "y2"},
            "color": as_is("colour"),
            "size": as_is("thick"),
        },
    }
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for ends, count in pairs.items():
        for side, lane in zip(counts, ends, strict=True):
            side[lane] += count
    numbers = max(len(format_count(count)) for side in counts for count in (0, *side.values()))
    beside = 22 + numbers * CHARACTER
    words = [
        _lane_words(lanes, 0, "right", 12 + beside),
        _lane_words([format_count(counts[0][lane]) for lane in lanes], 0, "right", 12),
        _lane_words([format_count(counts[1][lane]) for lane in lanes], 1, "left", 12),
        _column_head("A", 0),
        _column_head("B", 1),
    ]
    frame = frame_of(screen.slope_width, LANE * len(lanes), room_for(lanes) + beside, right=beside, axis=6, top=26)
    return spec_of(values, [line, *words], frame)


def _lane_words(words: Sequence[str], at: int, align: str, distance: float) -> Rule:
    return {
        "data": {"values": [{"at": at, "row": row, "words": word} for row, word in enumerate(words)]},
        "mark": {"type": "text", "align": align, "dx": -distance if align == "right" else distance},
        "encoding": {
            "x": {"field": "at", "type": "quantitative"},
            "y": {"field": "row", "type": "quantitative"},
            "text": {"field": "words", "type": "nominal"},
        },
    }


def _column_head(name: str, at: int) -> Rule:
    return {
        "data": {"values": [{"at": at, "words": name}]},
        "mark": {"type": "text", "align": "center", "fontWeight": "bold", "fontSize": 13, "y": -14},
        "encoding": {"x": {"field": "at", "type": "quantitative"}, "text": {"field": "words", "type": "nominal"}},
    }


def told_apart(labels: Sequence[str], chars: int) -> list[str]:
    """Labels cut to `chars`; those that are then the same get something nobody sees, so that each keeps its row."""
    seen: Counter[str] = Counter()
    apart = []
    for label in labels:
        short = _shortened(printable(label).replace(NOTHING_TO_SEE, ""), chars)
        apart.append(short + NOTHING_TO_SEE * seen[short])
        seen[short] += 1
    return apart


def _shortened(label: str, chars: int) -> str:
    """Cut to so many characters; how many queries there are, `(14)` at the end, stays."""
    counted = _COUNTED.search(label)
    count = counted.group() if counted else ""
    return shorten_to(label.removesuffix(count), chars - len(count)) + count


def room_for(labels: Sequence[str]) -> float:
    """Pixels that the longest of some words takes beside an axis."""
    longest = max((width_of(label.rstrip(NOTHING_TO_SEE)) for label in labels), default=0)
    return longest * CHARACTER + 18


def frame_of(
    width: float, height: float, left: float, *, right: float = 20, top: float = 6, axis: float = AXIS_ROOM
) -> Spec:
    """A drawing area of exactly this size, whatever the fonts: nothing is fitted by measuring words."""
    return {
        "width": round(width - left - right),
        "height": round(height),
        "padding": {"left": round(left), "right": round(right), "top": round(top), "bottom": round(axis)},
        "autosize": "none",
    }


def spec_of(values: Sequence[Mapping[str, Any]], layers: Sequence[Rule], frame: Spec) -> Spec:
    """The whole specification: data, layers, frame, and what all pictures have in common."""
    axis = {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelLimit": 0,
        "gridColor": "#dddddd",
        "domain": False,
        "ticks": False,
        "labelPadding": 8,
    }
    return {
        "$schema": SCHEMA,
        **frame,
        "background": None,
        "data": {"values": list(values)},
        "layer": list(layers),
        "config": {"view": {"stroke": None}, "axis": axis, "text": {"fontSize": 12}},
    }


def _differences(title: str, screen: Screen) -> Rule:
    axis = {
        "title": title,
        "tickCount": screen.ticks,
        "labelOverlap": True,
        "labelSeparation": 6,
        "labelExpr": "datum.value == 0 ? '0' : format(datum.value, '+.2~f')",
    }
    return {"field": "delta", "type": "quantitative", "axis": axis}


def _named_rows() -> Rule:
    return {"field": "label", "type": "nominal", "sort": None, "axis": {"title": None, "grid": False}}


def as_is(field: str) -> Rule:
    """A channel whose data are what is drawn: a colour, a thickness."""
    return {"field": field, "type": "quantitative" if field == "thick" else "nominal", "scale": None, "legend": None}


def _zero_rule(axis: str) -> Rule:
    return {
        "data": {"values": [{"zero": 0}]},
        "mark": {"type": "rule", "color": "#444444", "strokeWidth": 1},
        "encoding": {axis: {"field": "zero", "type": "quantitative"}},
    }


def _colour(gain: float) -> str:
    return BETTER if gain > 0 else WORSE if gain < 0 else SAME
