"""Measures over time as Vega-Lite specifications: one line, and several systems in one picture, each with its name at the end.

Lines break wherever their test set or config changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cranfield.base.numbers import format_interval, format_value
from cranfield.base.words import printable, shorten_to
from cranfield.reporting.charts.spec import (
    AXIS_ROOM,
    BETTER,
    BOUNDED,
    CHARACTER,
    PAGE,
    SAME,
    WORSE,
    Rule,
    Screen,
    Spec,
    as_is,
    bounds,
    frame_of,
    room_for,
    scale_without_zero,
    spec_of,
    tip_of,
)
from cranfield.reporting.document import Tone

INK = "#222222"
LINE_HEIGHT = 240
LEFT, RIGHT, TOP = 70, 46, 46
"""Margins of the plot: half a label is to the right of the last dot."""
MANY_DOTS = 100
"""More are drawn smaller."""
LABEL_ROWS, LABEL_STEP = 3, 14
"""Words at the marks are in turn in one of three rows: those of neighbours would overlap."""
LABEL_CHARS = 21
"""Words under a point, with room beside them: a short commit, a day, or a day with its time."""
Begin = tuple[int, str]
"""A place at which something changed, and what."""


@dataclass(frozen=True, slots=True)
class Dot:
    """One point of the line."""

    label: str
    mean: float
    low: float | None
    high: float | None
    stretch: int
    """Dots of one number are joined."""
    tone: Tone = ""
    """`bad` or `good` where the change to the dot before it is significant."""
    stretch_label: str = ""
    """At the first dot of a stretch: what changed."""
    words: str = ""
    """What it is, when it is pointed at; empty: the label."""
    href: str = ""
    """Relative address of its report."""

    @property
    def description(self) -> str:
        """What is shown when it is pointed at."""
        return f"{self.words or self.label}: {format_value(self.mean)} ({format_interval((self.low, self.high))})"


def over_time(dots: Sequence[Dot], title: str, screen: Screen) -> Spec:
    """Means in order of time, with their intervals; a dashed mark wherever a new stretch begins."""
    values = [
        {
            "place": place,
            "mean": dot.mean,
            "low": dot.low,
            "high": dot.high,
            "stretch": dot.stretch,
            "colour": {"bad": WORSE, "good": BETTER}.get(dot.tone, INK),
            "tip": tip_of(dot.description),
        }
        for place, dot in enumerate(dots)
    ]
    leading = [value | {"tip": tip_of(dot.description, href=dot.href)} for value, dot in zip(values, dots, strict=True)]
    many, x = len(dots) > MANY_DOTS, across(len(dots))
    scale = scale_without_zero(value for dot in dots for value in (dot.mean, dot.low, dot.high))
    y = _down(title, screen, "mean", scale)
    interval: Rule = {
        "transform": [BOUNDED],
        "mark": {"type": "rule", "strokeWidth": 1 if many else 2, "opacity": 0.45},
        "encoding": {
            "x": x,
            "y": _down(title, screen, "low", scale),
            "y2": {"field": "high"},
            "color": as_is("colour"),
        },
    }
    line: Rule = {
        "data": {"values": [{key: value[key] for key in ("place", "mean", "stretch")} for value in values]},
        "mark": {"type": "line", "color": INK, "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "detail": {"field": "stretch", "type": "nominal"}},
    }
    point: Rule = {
        "data": {"values": leading},
        "mark": {"type": "point", "filled": True, "size": 12 if many else 60, "opacity": 1},
        "encoding": {"x": x, "y": y, "color": as_is("colour")},
    }
    begins = [
        (place, dot.stretch_label) for place, dot in enumerate(dots) if place and dot.stretch != dots[place - 1].stretch
    ]
    frame = frame_of(screen.width, LINE_HEIGHT, LEFT, right=RIGHT, top=TOP)
    room = screen.width - LEFT - RIGHT
    layers = [*breaks(begins, len(dots), screen), interval, line, point, under([dot.label for dot in dots], room)]
    return spec_of(values, layers, frame)


def breaks(begins: Sequence[Begin], n: int, screen: Screen) -> list[Rule]:
    """A dashed line before each of these places of `n`, and what is new; words run towards the middle."""
    values = [
        {
            "at": place - 0.5,
            "row": number % LABEL_ROWS,
            "words": shorten_to(printable(words), screen.label_chars),
        }
        for number, (place, words) in enumerate(begins)
    ]
    if not values:
        return []
    x = across(n, "at")
    rule: Rule = {
        "data": {"values": values},
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": SAME},
        "encoding": {"x": x},
    }
    middle = (n - 1) / 2
    sides = (("left", 4, f"datum.at < {middle}"), ("right", -4, f"datum.at >= {middle}"))
    texts = [
        (align, dx, f"{where} && datum.row == {row}", row) for align, dx, where in sides for row in range(LABEL_ROWS)
    ]
    return [
        rule,
        *(
            {
                "data": {"values": values},
                "transform": [{"filter": where}],
                "mark": {"type": "text", "align": align, "dx": dx, "y": -10 - row * LABEL_STEP, "color": SAME},
                "encoding": {"x": x, "text": {"field": "words", "type": "nominal"}},
            }
            for align, dx, where, row in texts
        ),
    ]


def under(labels: Sequence[str], room: float, height: float = LINE_HEIGHT) -> Rule:
    """Labels under some of the places, the last among them, as many as fit into so many pixels; of equal neighbours the last."""
    longest = max(min(LABEL_CHARS, max(map(len, labels), default=1) + 2), 1)
    step = max(1, -(-len(labels) // max(1, int(room / (longest * CHARACTER)))))
    chosen: list[int] = []
    for place in range(len(labels) - 1, -1, -step):
        if not chosen or labels[place] != labels[chosen[-1]]:
            chosen.append(place)
    return {
        "data": {"values": [{"at": place, "words": printable(labels[place])} for place in chosen]},
        "mark": {"type": "text", "align": "center", "y": height + AXIS_ROOM / 2},
        "encoding": {"x": across(len(labels), "at"), "text": {"field": "words", "type": "nominal"}},
    }


def across(n: int, field: str = "place") -> Rule:
    """The horizontal channel of `n` places."""
    scale = {"domain": [-0.5, n - 0.5], "nice": False, "zero": False}
    return {"field": field, "type": "quantitative", "axis": None, "scale": scale}


def _down(title: str, screen: Screen, field: str, scale: Rule) -> Rule:
    axis = {"title": title, "tickCount": min(screen.ticks, 5)}
    return {"field": field, "type": "quantitative", "axis": axis, "scale": scale}


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8a7400", INK)
"""In the order of the systems: those of Okabe and Ito that have a contrast of 3 to white, and an olive."""
DASHES: tuple[Rule, ...] = ({}, {"strokeDash": [7, 3]}, {"strokeDash": [2, 2]}, {"strokeDash": [9, 3, 2, 3]})
"""Lines differ without their colours too; the first is solid."""
HEIGHT, LABEL_HEIGHT = 260, 15
SPREAD, STEP = 0.4, 0.1
"""Systems of one run stand side by side within this part of their place, at most so far apart."""
NAME_CHARS = {True: 22, False: 10}
"""Characters of a name at the end of its line: on a page, on a phone."""
SHAPES: Mapping[str, tuple[str, int]] = {
    "good": ("triangle-up", 110),
    "bad": ("triangle-down", 110),
    "": ("circle", 64),
}
"""Tone of a change to shape and size of its point: colours are the systems'."""
KEY_ROOM = 20
"""Pixels of the mark of a system beside its name."""


@dataclass(frozen=True, slots=True)
class SystemLine:
    """The line of one system."""

    name: str
    dots: Mapping[int, Dot]
    """Place to point."""
    kept: Mapping[int, int] = field(default_factory=dict)
    """Place of a later run with the same answers to the place of their point: the line goes on there, without a point."""


def systems_over_time(
    lines: Sequence[SystemLine], labels: Sequence[str], begins: Sequence[Begin], title: str, screen: Screen
) -> Spec:
    """Means of systems in order of time, with their intervals.

    Args:
        lines: of the systems.
        labels: of the places, in order of time.
        begins: places before which a dashed line says what changed.
        title: of the axis.
        screen: that it is drawn for.
    """
    dots = [dot for line in lines for dot in line.dots.values()]
    low, high = bounds(value for dot in dots for value in (dot.mean, dot.low, dot.high))
    height = max(HEIGHT, len(lines) * LABEL_HEIGHT)
    names = [shorten_to(printable(line.name), NAME_CHARS[screen is PAGE]) for line in lines]
    right = room_for(names) + KEY_ROOM
    points = list(_points(lines))
    axis = {"title": title, "tickCount": min(screen.ticks, 5)}
    scale = {"domain": [low, high], "nice": False, "zero": False}
    y: Rule = {"field": "mean", "type": "quantitative", "axis": axis, "scale": scale}
    x = across(len(labels))
    interval: Rule = {
        "data": {"values": [value | {"tip": value["label"]} for value in points]},
        "transform": [BOUNDED],
        "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.45},
        "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}, "color": as_is("colour")},
    }
    layers = [
        *breaks(begins, len(labels), screen),
        interval,
        *_strokes(lines, x, y),
        *_marks(points, x, y),
        *_ends(names, _label_places(lines, low, high, height), y, len(labels)),
        under(labels, screen.width - LEFT - right, height),
    ]
    return spec_of([], layers, frame_of(screen.width, height, LEFT, right=right, top=TOP))


def _shift(place: float, number: int, n: int) -> float:
    """The place of a system among those of one run."""
    return place + (number - (n - 1) / 2) * min(STEP, SPREAD / n)


def _points(lines: Sequence[SystemLine]) -> Iterator[Rule]:
    for number, line in enumerate(lines):
        for place, dot in line.dots.items():
            shape, size = SHAPES.get(dot.tone, SHAPES[""])
            yield {
                "place": _shift(place, number, len(lines)),
                "mean": dot.mean,
                "low": dot.low,
                "high": dot.high,
                "colour": COLOURS[number % len(COLOURS)],
                "shape": shape,
                "size": size,
                "label": tip_of(dot.description),
                "tip": tip_of(dot.description, href=dot.href),
            }


def _strokes(lines: Sequence[SystemLine], x: Rule, y: Rule) -> Iterator[Rule]:
    """A line for each system, broken where its stretches end."""
    for number, line in enumerate(lines):
        at = {**{place: place for place in line.dots}, **line.kept}
        values = [
            {
                "place": _shift(place, number, len(lines)),
                "mean": line.dots[at[place]].mean,
                "stretch": line.dots[at[place]].stretch,
            }
            for place in sorted(at)
        ]
        yield {
            "data": {"values": values},
            "mark": {
                "type": "line",
                "strokeWidth": 2,
                "color": COLOURS[number % len(COLOURS)],
                **DASHES[number % len(DASHES)],
            },
            "encoding": {"x": x, "y": y, "detail": {"field": "stretch", "type": "nominal"}},
        }


def _marks(points: Sequence[Rule], x: Rule, y: Rule) -> Iterator[Rule]:
    """The points, by shape."""
    for shape, size in dict.fromkeys(SHAPES.values()):
        values = [value for value in points if value["shape"] == shape]
        if values:
            yield {
                "data": {"values": values},
                "mark": {"type": "point", "filled": True, "shape": shape, "size": size, "opacity": 1},
                "encoding": {"x": x, "y": y, "color": as_is("colour")},
            }


def _label_places(lines: Sequence[SystemLine], low: float, high: float, height: float) -> list[float]:
    """Height of each name, as a value of the axis: that of its last point, and no two names on each other."""
    per_pixel = (high - low) / height
    last = [line.dots[max(line.dots)].mean for line in lines]
    order = sorted(range(len(lines)), key=lambda number: last[number])
    step, places = LABEL_HEIGHT * per_pixel, dict.fromkeys(order, 0.0)
    floor = low
    for number in order:
        places[number] = max(last[number], floor)
        floor = places[number] + step
    ceiling = high
    for number in reversed(order):
        places[number] = min(places[number], ceiling)
        ceiling = places[number] - step
    return [places[number] for number in range(len(lines))]


def _ends(names: Sequence[str], heights: Sequence[float], y: Rule, n: int) -> Iterator[Rule]:
    """The names of the systems to the right of their lines, each beside a mark in its colour."""
    values = [
        {"place": n - 0.5, "mean": mean, "words": name, "colour": COLOURS[number % len(COLOURS)]}
        for number, (name, mean) in enumerate(zip(names, heights, strict=True))
    ]
    at = {"x": across(n), "y": y}
    yield {
        "data": {"values": values},
        "mark": {"type": "point", "filled": True, "shape": "square", "size": 80, "opacity": 1, "xOffset": 8},
        "encoding": {**at, "color": as_is("colour")},
    }
    yield {
        "data": {"values": values},
        "mark": {"type": "text", "align": "left", "baseline": "middle", "dx": KEY_ROOM, "color": INK},
        "encoding": {**at, "text": {"field": "words", "type": "nominal"}},
    }
