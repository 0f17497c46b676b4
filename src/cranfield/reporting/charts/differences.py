"""Charts of differences by query, and of what moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, TypeVar

from cranfield.base.numbers import format_count, format_delta, format_delta_interval, format_interval, format_value
from cranfield.base.words import count_noun
from cranfield.reporting.charts.spec import (
    BAND,
    BETTER,
    BOUNDED,
    CHARACTER,
    SAME,
    WORSE,
    Rule,
    Screen,
    Spec,
    as_is,
    frame_of,
    gain_colour,
    make_labels_unique,
    room_for,
    scale_without_zero,
    spec_of,
    tip_of,
)
from cranfield.reporting.document import Tone

Value = TypeVar("Value")
NAMED_BARS = 40
"""Up to so many queries that differ have a bar with their name; more stand side by side without."""
DRAWN_BARS = 200
"""More queries than this are drawn in groups of neighbours."""
TONE_COLOURS: Mapping[Tone, str] = {"good": BETTER, "bad": WORSE}
ROW, WHISKER_ROW = 18, 26
"""Heights of a named bar and of an interval."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One query's difference."""

    label: str
    delta: float
    gain: float
    """The difference, with its sign turned where lower values are better."""
    query_id: str = ""


@dataclass(frozen=True, slots=True)
class Whisker:
    """One difference with its interval."""

    label: str
    delta: float | None
    """Its dot; None where there is only an interval to show."""
    low: float | None
    high: float | None
    tone: Tone
    """Good or bad where the interval excludes zero, else neither."""
    note: str = ""
    """What stands at the end of the row."""


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
    labels = make_labels_unique([bar.label for bar in rows], screen.label_chars)
    values = [
        {
            "label": label,
            "delta": bar.delta,
            "colour": gain_colour(bar.gain),
            "tip": tip_of(f"{bar.label}: {format_delta(bar.delta)}", bar.query_id),
        }
        for label, bar in zip(labels, rows, strict=True)
    ]
    bar_marks = {
        "mark": {"type": "bar", "height": ROW - 5},
        # Vega stacks bars by their label, and cannot for labels like "constructor", which name a member of every JavaScript object.
        "encoding": {"x": _differences(title, screen) | {"stack": None}, "y": named_rows(), "color": as_is("colour")},
    }
    return spec_of(values, [bar_marks, _zero_rule("x")], frame_of(screen.width, ROW * len(rows), room_for(labels)))


def _skyline(best_first: Sequence[Bar], title: str, screen: Screen) -> Spec:
    gains = grouped([bar.gain for bar in best_first], DRAWN_BARS)
    deltas = grouped([bar.delta for bar in best_first], DRAWN_BARS)
    values = [
        {"from": place, "to": place + 1, "delta": delta, "colour": gain_colour(gain), "tip": _tip_of_bars(members)}
        for place, (gain, delta, members) in enumerate(
            zip(gains, deltas, groups_of(best_first, DRAWN_BARS), strict=True)
        )
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


def groups_of(values: Sequence[Value], most: int) -> list[Sequence[Value]]:
    """At most `most` groups of neighbours, of one size (give or take one)."""
    n = min(most, len(values))
    edges = [round(place * len(values) / n) for place in range(n + 1)] if n else [0]
    return [values[start:end] for start, end in pairwise(edges)]


def grouped(values: Sequence[float], most: int) -> list[float]:
    """At most `most` values: as they are, or the means of groups of neighbours."""
    return [sum(group) / len(group) for group in groups_of(values, most)]


def _tip_of_bars(bars: Sequence[Bar]) -> str:
    """The difference of one query, or the mean of some, of which the first is named."""
    first = bars[0]
    mean = format_delta(sum(bar.delta for bar in bars) / len(bars))
    words = f"{len(bars)} queries, mean {mean}, the first {first.label}" if len(bars) > 1 else f"{first.label}: {mean}"
    return tip_of(words, first.query_id)


def whiskers(
    rows: Sequence[Whisker], title: str, screen: Screen, margin: float | None = None, *, of_means: bool = False
) -> Spec:
    """Differences with their intervals, a row each, around zero; the margin of equivalence as a band behind them.

    Args:
        rows: a dot and an interval each.
        title: of the axis.
        screen: what it is drawn for.
        margin: None draws none.
        of_means: the rows are means, and zero is no place of its own.
    """
    labels = make_labels_unique([row.label for row in rows], screen.label_chars)
    across, number, interval = _differences(title, screen), format_delta, format_delta_interval
    if of_means:
        scale = scale_without_zero(value for row in rows for value in (row.delta, row.low, row.high))
        across |= {"axis": across["axis"] | {"format": "~f", "labelExpr": "datum.label"}, "scale": scale}
        number, interval = format_value, format_interval
    values = [
        {
            "label": label,
            "delta": row.delta,
            "low": row.low,
            "high": row.high,
            "colour": TONE_COLOURS.get(row.tone, SAME),
            "note": row.note,
            "tip": tip_of(f"{row.label}: {number(row.delta)} ({interval((row.low, row.high))}) {row.note}".rstrip()),
        }
        for label, row in zip(labels, rows, strict=True)
    ]
    line = {
        "transform": [BOUNDED],
        "mark": {"type": "rule", "strokeWidth": 3, "strokeCap": "round"},
        "encoding": {
            "x": across | {"field": "low"},
            "x2": {"field": "high"},
            "y": named_rows(),
            "color": as_is("colour"),
        },
    }
    dot = {
        "transform": [{"filter": "isValid(datum.delta)"}],
        "mark": {"type": "point", "filled": True, "size": 100, "opacity": 1},
        "encoding": {"x": across, "y": named_rows(), "color": as_is("colour")},
    }
    notes = [row.note for row in rows]
    room = room_for(notes) if any(notes) else 20
    frame = frame_of(screen.width, WHISKER_ROW * len(rows), room_for(labels), right=room)
    note = {
        "mark": {"type": "text", "align": "left", "baseline": "middle"},
        "encoding": {
            "x": {"value": frame["width"] + 10},
            "y": named_rows(),
            "text": {"field": "note", "type": "nominal"},
        },
    }
    layers = [*_margin_band(margin), *([] if of_means else [_zero_rule("x")]), line, _cap("low"), _cap("high"), dot]
    return spec_of(values, [*layers, *([note] if any(notes) else [])], frame)


def _cap(end: str) -> Rule:
    """The end of an interval, which shows one that is a single point too."""
    return {
        "transform": [BOUNDED],
        "mark": {"type": "tick", "orient": "vertical", "thickness": 2, "size": 11, "opacity": 1},
        "encoding": {
            "x": {"field": end, "type": "quantitative"},
            "y": named_rows(),
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


def _differences(title: str, screen: Screen) -> Rule:
    axis = {
        "title": title,
        "tickCount": screen.ticks,
        "labelOverlap": True,
        "labelSeparation": 6,
        "format": "+~f",  # without a number of decimals: as many as tell the ticks apart
        "labelExpr": "datum.value == 0 ? '0' : datum.label",
    }
    return {"field": "delta", "type": "quantitative", "axis": axis}


def named_rows() -> Rule:
    """The y axis of charts with a label for each row."""
    return {"field": "label", "type": "nominal", "sort": None, "axis": {"title": None, "grid": False}}


def _zero_rule(axis: str) -> Rule:
    return {
        "data": {"values": [{"zero": 0}]},
        "mark": {"type": "rule", "color": "#444444", "strokeWidth": 1},
        "encoding": {axis: {"field": "zero", "type": "quantitative"}},
    }


def paired_dots(labels: list[str], values: list[tuple[float | None, float | None]], title: str, screen: Screen) -> Spec:
    """Two dots a row, joined: the mean on the tuning queries and on the held-out ones."""
    unique = make_labels_unique(labels, screen.label_chars)
    rows = [
        {"label": label, "tuning": tuning, "held": held_out, "tuned": BETTER, "kept": BAND}
        | {"tip": tip_of(f"{label}: {format_value(tuning)} tuning, {format_value(held_out)} held out")}
        for label, (tuning, held_out) in zip(unique, values, strict=True)
    ]
    known = [value for pair in values for value in pair if value is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = (high - low) * 0.05 or 0.01
    axis = {"title": title, "tickCount": screen.ticks, "labelOverlap": True, "format": "~f"}
    across = {
        "type": "quantitative",
        "axis": axis,
        "scale": {"domain": [low - room, high + room], "zero": False, "nice": False},
    }
    both = {"filter": "isValid(datum.tuning) && isValid(datum.held)"}
    line = {
        "transform": [both],
        "mark": {"type": "rule", "color": SAME, "strokeWidth": 1},
        "encoding": {"x": {"field": "tuning", **across}, "x2": {"field": "held"}, "y": named_rows()},
    }
    dots = [
        {
            "transform": [{"filter": f"isValid(datum.{field})"}],
            "mark": {"type": "point", "filled": True, "size": 100, "opacity": 1},
            "encoding": {"x": {"field": field, **across}, "y": named_rows(), "color": as_is(colour)},
        }
        for field, colour in (("held", "kept"), ("tuning", "tuned"))
    ]
    frame = frame_of(screen.width, WHISKER_ROW * len(rows), room_for(unique))
    return spec_of(rows, [line, *dots], frame)


LANE = 30
"""Height of a lane of ranks."""


def slopes(
    pairs: Mapping[tuple[str, str], int],
    lanes: Sequence[str],
    screen: Screen,
    queries: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> Spec:
    """Where the first relevant result was on A and where it is on B; the thicker a line, the more queries.

    Args:
        pairs: (lane on A, lane on B) to how many queries.
        lanes: names from the top.
        screen: what it is drawn for.
        queries: (lane on A, lane on B) to the query that its line leads to.
    """
    values = _lines(pairs, lanes, queries)
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
    margin = 22 + numbers * CHARACTER
    words = [
        _lane_words(lanes, 0, "right", 12 + margin),
        _lane_words([format_count(counts[0][lane]) for lane in lanes], 0, "right", 12),
        _lane_words([format_count(counts[1][lane]) for lane in lanes], 1, "left", 12),
        _column_head("A", 0),
        _column_head("B", 1),
    ]
    frame = frame_of(screen.slope_width, LANE * len(lanes), room_for(lanes) + margin, right=margin, axis=6, top=26)
    return spec_of(values, [line, *words], frame)


def _lines(
    pairs: Mapping[tuple[str, str], int], lanes: Sequence[str], queries: Mapping[tuple[str, str], str]
) -> list[dict[str, Any]]:
    """The data of the lines, thick ones first, so that thin ones lie on top of them."""
    place = {name: position for position, name in enumerate(lanes)}
    most = max(pairs.values(), default=1)
    return [
        {
            "x": 0,
            "x2": 1,
            "y": place[before],
            "y2": place[after],
            "colour": gain_colour(place[before] - place[after]),
            "thick": max(1.2, 13 * (count / most) ** 0.5),
            "tip": tip_of(
                f"{before} on A, {after} on B: {count_noun(count, 'queries', format_count)}",
                queries.get((before, after), ""),
            ),
        }
        for (before, after), count in sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    ]


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
