"""A measure over time as a Vega-Lite specification: a line that breaks wherever its test set or config changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cranfield.numbers import format_interval, format_value
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
    spec_of,
    tip_of,
)
from cranfield.reporting.document import Tone
from cranfield.words import printable, shorten_to

INK = "#222222"
LINE_HEIGHT = 240
LEFT, RIGHT, TOP = 70, 46, 46
"""Margins of the plot: half a label is to the right of the last dot."""
MANY_DOTS = 100
"""More are drawn smaller."""
LABEL_ROWS, LABEL_STEP = 3, 14
"""Words at the marks are in turn in one of three rows: those of neighbours would overlap."""
LABEL_CHARS = 12
"""Words under a point: a short commit, or a day."""


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
            "tip": tip_of(f"{dot.label}: {format_value(dot.mean)} ({format_interval((dot.low, dot.high))})"),
        }
        for place, dot in enumerate(dots)
    ]
    many = len(dots) > MANY_DOTS
    interval: Rule = {
        "transform": [BOUNDED],
        "mark": {"type": "rule", "strokeWidth": 1 if many else 2, "opacity": 0.45},
        "encoding": {
            "x": _across(dots),
            "y": _down(title, screen, "low"),
            "y2": {"field": "high"},
            "color": as_is("colour"),
        },
    }
    line: Rule = {
        "mark": {"type": "line", "color": INK, "strokeWidth": 2},
        "encoding": {
            "x": _across(dots),
            "y": _down(title, screen, "mean"),
            "detail": {"field": "stretch", "type": "nominal"},
        },
    }
    point: Rule = {
        "mark": {"type": "point", "filled": True, "size": 12 if many else 60, "opacity": 1},
        "encoding": {"x": _across(dots), "y": _down(title, screen, "mean"), "color": as_is("colour")},
    }
    frame = frame_of(screen.width, LINE_HEIGHT, LEFT, right=RIGHT, top=TOP)
    return spec_of(values, [*_breaks(dots, screen), interval, line, point, _under(dots, screen)], frame)


def _breaks(dots: Sequence[Dot], screen: Screen) -> list[Rule]:
    """A dashed line before each new stretch, and what is new; words run towards the middle."""
    begins = [place for place, dot in enumerate(dots) if place and dot.stretch != dots[place - 1].stretch]
    values = [
        {
            "at": place - 0.5,
            "row": number % LABEL_ROWS,
            "words": shorten_to(printable(dots[place].stretch_label), screen.label_chars),
        }
        for number, place in enumerate(begins)
    ]
    if not values:
        return []
    x = _across(dots, "at")
    rule: Rule = {
        "data": {"values": values},
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": SAME},
        "encoding": {"x": x},
    }
    middle = (len(dots) - 1) / 2
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


def _under(dots: Sequence[Dot], screen: Screen) -> Rule:
    """Labels under some of the dots, the last among them: as many as fit."""
    room = (screen.width - LEFT - RIGHT) / (LABEL_CHARS * CHARACTER)
    step = max(1, -(-len(dots) // max(1, int(room))))
    chosen = range(len(dots) - 1, -1, -step)
    return {
        "data": {"values": [{"at": place, "words": printable(dots[place].label)} for place in chosen]},
        "mark": {"type": "text", "align": "center", "y": LINE_HEIGHT + AXIS_ROOM / 2},
        "encoding": {"x": _across(dots, "at"), "text": {"field": "words", "type": "nominal"}},
    }


def _across(dots: Sequence[Dot], field: str = "place") -> Rule:
    scale = {"domain": [-0.5, len(dots) - 0.5], "nice": False, "zero": False}
    return {"field": field, "type": "quantitative", "axis": None, "scale": scale}


def _down(title: str, screen: Screen, field: str) -> Rule:
    axis = {"title": title, "tickCount": min(screen.ticks, 5)}
    return {"field": field, "type": "quantitative", "axis": axis, "scale": {"zero": False}}
