"""Many systems: mean ranks with their critical difference, and means by stratum as a heat map.

Both are placed in pixels, so that labels get the room computed for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from cranfield.base.numbers import format_value
from cranfield.reporting.charts.spec import (
    BETTER,
    CHARACTER,
    SAME,
    WORSE,
    Rule,
    Screen,
    Spec,
    as_is,
    frame_of,
    make_labels_unique,
    room_for,
    spec_of,
    tip_of,
)

LINE, GRID = "#444444", "#dddddd"
ROW = 30
HEAD = 40
"""Room over the rows of mean ranks, for the critical difference."""
LANE = 16
"""Between two bars that join systems."""
CELL, CELL_HEIGHT = 39, 30
"""Smallest width of a cell that its number fits in, and its height."""
FAINTEST, STRONGEST = 0.04, 0.45
"""How strong the colour of a cell is. At the strongest, words on it can still be read, by day and by night."""
HEADING = 26
"""Height of the names over the columns."""
NAMED, WIDEST = 60, 150
"""Width of a column from which on it has a name over it, and the greatest."""
GAP = 6


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
        | {"tip": tip_of(f"{system.label}: mean rank {system.rank:.2f}")}
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


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One stratum: a value for each system; None where there is none."""

    label: str
    values: tuple[float | None, ...]
    best: frozenset[int]
    """Places of the best values, which are printed bold."""


def heat_map(
    rows: Sequence[HeatRow], systems: Sequence[str], short: Sequence[str], screen: Screen, sign: int | None = None
) -> Spec:
    """Means by stratum (rows) and system (columns). Columns that do not fit are placed below.

    Args:
        rows: strata.
        systems: names over the columns.
        short: what stands there where columns are narrow.
        screen: what it is drawn for.
        sign: 1 where more is better, -1 where less is: a cell is coloured by its distance from the mean of its row. None: by its
            value.
    """
    labels = make_labels_unique([row.label for row in rows], screen.label_chars)
    left = room_for(labels)
    room = screen.width - left - 8
    n_bands = math.ceil(len(systems) / max(1, int(room // CELL)))
    a_band = math.ceil(len(systems) / n_bands)
    cell = min(room / a_band, WIDEST)
    heads = short if cell < NAMED else make_labels_unique(systems, int((cell - GAP) // CHARACTER))
    band_height = HEADING + CELL_HEIGHT * len(rows) + GAP
    paint = _strengths(rows) if sign is None else _distances(rows, sign)
    cells: list[dict[str, Any]] = []
    texts: list[dict[str, Any]] = []
    for place, head in enumerate(heads):
        band, column = divmod(place, a_band)
        x, top = left + cell * column, band * band_height + HEADING
        texts.append(text_at(x + cell / 2 - 1, top - HEADING / 2, head, "center"))
        for line, row in enumerate(rows):
            value, y = row.values[place], top + CELL_HEIGHT * line
            ends = {"x": x, "x2": x + cell - 2, "y": y, "y2": y + CELL_HEIGHT - 2}
            if value is not None:
                tip = tip_of(f"{row.label}, {systems[place]}: {format_value(value)}")
                colour, opacity = paint(row, value)
                cells.append(ends | {"colour": colour, "opacity": opacity, "tip": tip})
            text = "\u2013" if value is None else f"{value:.3f}".replace("-", "\u2212")
            texts.append(text_at(x + cell / 2 - 1, y + CELL_HEIGHT / 2 - 1, text, "center", bold=place in row.best))
            if not column:
                texts.append(text_at(left - 10, y + CELL_HEIGHT / 2 - 1, labels[line], "right"))
    width, height = screen.width, band_height * n_bands
    rect = {
        "data": {"values": cells},
        "mark": {"type": "rect"},
        "encoding": {
            **pixel_axes("x", "y", width, height),
            "x2": {"field": "x2"},
            "y2": {"field": "y2"},
            "color": as_is("colour"),
            "fillOpacity": {"field": "opacity", "type": "quantitative", "scale": None, "legend": None},
        },
    }
    layers = [rect, *label_layers(texts, width, height)]
    return spec_of([], layers, frame_of(width, height, 0, right=0, top=0, axis=0))


def _strengths(rows: Sequence[HeatRow]) -> Callable[[HeatRow, float], tuple[str, float]]:
    """How strong the colour of a value is: the faintest for the lowest of the picture, the strongest for the highest."""
    known = [value for row in rows for value in row.values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    return lambda _, value: (BETTER, _opacity((value - low) / (high - low) if high > low else 0.5))


def _distances(rows: Sequence[HeatRow], sign: int) -> Callable[[HeatRow, float], tuple[str, float]]:
    """The colour of better or worse than the mean of the row, the strongest for what is farthest from it in the picture."""
    means = {id(row): fmean(known) for row in rows if (known := [each for each in row.values if each is not None])}
    farthest = max((abs(v - means[id(row)]) for row in rows for v in row.values if v is not None), default=0.0)

    def paint(row: HeatRow, value: float) -> tuple[str, float]:
        gain = sign * (value - means[id(row)])
        return BETTER if gain >= 0 else WORSE, _opacity(abs(gain) / farthest if farthest else 0.0)

    return paint


def _opacity(share: float) -> float:
    return round(FAINTEST + (STRONGEST - FAINTEST) * share, 3)
