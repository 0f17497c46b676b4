"""Mean ranks with their critical difference. A bar joins systems that do not differ significantly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cranfield.reporting.charts.pixels import label_layers, line_at, lines_layer, pixel_axes, text_at
from cranfield.reporting.charts.spec import (
    BETTER,
    CHARACTER,
    SAME,
    Screen,
    Spec,
    as_is,
    frame_of,
    make_labels_unique,
    room_for,
    spec_of,
)

LINE, GRID = "#444444", "#dddddd"
ROW = 30
HEAD = 40
"""Room over the rows of mean ranks, for the critical difference."""
LANE = 16
"""Between two bars that join systems."""


@dataclass(frozen=True, slots=True)
class RankedSystem:
    """One system and its mean rank."""

    label: str
    rank: float
    is_best: bool


def mean_ranks(
    systems: Sequence[RankedSystem], groups: Sequence[tuple[int, int]], difference: float, screen: Screen
) -> Spec:
    """Mean ranks, a row for each system, the best on top; bars join systems that are not further apart than the difference.

    Args:
        systems: the best first.
        groups: first and last place of each group that is not significantly different.
        difference: the critical one, in ranks.
        screen: what it is drawn for.
    """
    labels = make_labels_unique([system.label for system in systems], screen.label_chars)
    left, right = room_for(labels), 44 + LANE * len(groups)
    span = screen.width - left - right
    k = len(systems)
    height = HEAD + ROW * k + 22

    first = math.floor(min(system.rank for system in systems))
    last = max(math.ceil(max(system.rank for system in systems)), math.ceil(first + difference), first + 1)

    def x(rank: float) -> float:
        return left + (rank - first) / (last - first) * span

    rows = [HEAD + ROW * (place + 0.5) for place in range(k)]
    ticks = range(first, last + 1, max(1, math.ceil((last - first) / max(2, int(span // 30)))))
    end = x(first + difference)
    words_at = min(x(first), screen.width - 8 - CHARACTER * 26)
    lines = [
        *(line_at(x(tick), HEAD - 6, x(tick), HEAD + ROW * k, GRID, 1) for tick in ticks),
        *(line_at(left, row, x(system.rank), row, GRID, 1) for row, system in zip(rows, systems, strict=True)),
        line_at(left, HEAD - 14, end, HEAD - 14, LINE, 3),
        line_at(left, HEAD - 19, left, HEAD - 9, LINE, 2),
        line_at(end, HEAD - 19, end, HEAD - 9, LINE, 2),
        *(
            line_at(screen.width - right + 48 + LANE * lane, rows[top] - 9, None, rows[bottom] + 9, LINE, 5)
            for lane, (top, bottom) in enumerate(groups)
        ),
    ]
    dots = [
        {"x": x(system.rank), "y": row, "colour": BETTER if system.is_best else SAME}
        for row, system in zip(rows, systems, strict=True)
    ]
    texts = [
        *(text_at(left - 10, row, label, "right") for row, label in zip(rows, labels, strict=True)),
        *(
            text_at(x(system.rank) + 10, row, f"{system.rank:.2f}", "left")
            for row, system in zip(rows, systems, strict=True)
        ),
        *(text_at(x(tick), height - 8, str(tick), "center") for tick in ticks),
        text_at(words_at, HEAD - 28, f"critical difference {difference:.2f}", "left"),
    ]
    frame = frame_of(screen.width, height, 0, right=0, top=0, axis=0)
    point = {
        "data": {"values": dots},
        "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
        "encoding": {**pixel_axes("x", "y", screen.width, height), "color": as_is("colour")},
    }
    layers = [lines_layer(lines, screen.width, height), point, *label_layers(texts, screen.width, height)]
    return spec_of([], layers, frame)
