"""Movement of the first relevant result between two systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cranfield.numbers import format_count
from cranfield.reporting.charts.spec import (
    CHARACTER,
    Rule,
    Screen,
    Spec,
    as_is,
    frame_of,
    gain_colour,
    room_for,
    spec_of,
    tip_of,
)
from cranfield.words import n_of

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
                f"{before} on A, {after} on B: {n_of(count, 'queries', format_count)}", queries.get((before, after), "")
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
