"""A measure over time as a Vega-Lite specification: lines that break wherever their test set or config changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cranfield.base.numbers import format_interval, format_value
from cranfield.base.words import printable, shorten_to
from cranfield.reporting.charts.spec import (
    AXIS_ROOM,
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
