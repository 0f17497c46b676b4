"""Layers placed in pixels, so that labels get the room computed for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cranfield.reporting.charts.spec import Rule, as_is


def line_at(x: float, y: float, x2: float | None, y2: float, colour: str, thick: float) -> dict[str, Any]:
    """A line from one point to another; vertical where `x2` is None."""
    return {"x": x, "y": y, "x2": x if x2 is None else x2, "y2": y2, "colour": colour, "thick": thick}


def text_at(x: float, y: float, text: str, align: str, *, bold: bool = False) -> dict[str, Any]:
    """A label at a point."""
    return {"x": x, "y": y, "words": text, "align": align, "bold": bold}


def pixel_axes(x: str, y: str, width: float, height: float) -> Rule:
    """Data that are pixels, from the left and from the top."""
    across = {"domain": [0, width], "nice": False, "zero": False}
    down = {"domain": [0, height], "nice": False, "zero": False, "reverse": True}
    return {
        "x": {"field": x, "type": "quantitative", "axis": None, "scale": across},
        "y": {"field": y, "type": "quantitative", "axis": None, "scale": down},
    }


def lines_layer(lines: Sequence[dict[str, Any]], width: float, height: float) -> Rule:
    """Lines of `line_at` as one layer."""
    return {
        "data": {"values": list(lines)},
        "mark": {"type": "rule", "opacity": 1},
        "encoding": {
            **pixel_axes("x", "y", width, height),
            "x2": {"field": "x2"},
            "y2": {"field": "y2"},
            "color": as_is("colour"),
            "size": as_is("thick"),
        },
    }


def label_layers(texts: Sequence[dict[str, Any]], width: float, height: float) -> list[Rule]:
    """Text labels: a layer for each alignment and weight."""
    styles = dict.fromkeys((text["align"], text["bold"]) for text in texts)
    return [
        {
            "data": {"values": [text for text in texts if (text["align"], text["bold"]) == (align, bold)]},
            "mark": {
                "type": "text",
                "align": align,
                "baseline": "middle",
                "fontWeight": "bold" if bold else "normal",
            },
            "encoding": {**pixel_axes("x", "y", width, height), "text": {"field": "words", "type": "nominal"}},
        }
        for align, bold in styles
    ]
