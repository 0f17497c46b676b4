"""Two dots a row, joined by a line: the mean of each setting on the tuning queries and on the held-out ones."""

from __future__ import annotations

from cranfield.reporting.charts.differences import WHISKER_ROW, named_rows
from cranfield.reporting.charts.spec import (
    BAND,
    BETTER,
    SAME,
    Screen,
    Spec,
    as_is,
    frame_of,
    make_labels_unique,
    room_for,
    spec_of,
)


def paired_dots(labels: list[str], values: list[tuple[float | None, float | None]], title: str, screen: Screen) -> Spec:
    """Two dots a row, joined: the mean on the tuning queries and on the held-out ones."""
    unique = make_labels_unique(labels, screen.label_chars)
    rows = [
        {"label": label, "tuning": tuning, "held": held_out, "tuned": BETTER, "kept": BAND}
        for label, (tuning, held_out) in zip(unique, values, strict=True)
    ]
    known = [value for pair in values for value in pair if value is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = (high - low) * 0.05 or 0.01
    axis = {"title": title, "tickCount": screen.ticks, "labelOverlap": True, "format": ".3~f"}
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
