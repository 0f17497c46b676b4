"""Means by stratum and system as a heat map. Every cell holds its number too."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cranfield.reporting.charts.pixels import label_layers, pixel_axes, text_at
from cranfield.reporting.charts.spec import (
    BETTER,
    CHARACTER,
    Screen,
    Spec,
    frame_of,
    make_labels_unique,
    room_for,
    spec_of,
)

CELL, CELL_HEIGHT = 39, 30
"""Smallest width of a cell that its number fits in, and its height."""
FAINTEST, STRONGEST = 0.04, 0.45
"""How strong the colour of a cell is. At the strongest, words on it can still be read, by day and by night."""
HEADING = 26
"""Height of the names over the columns."""
NAMED, WIDEST = 60, 150
"""Width of a column from which on it has a name over it, and the greatest."""
GAP = 6


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One stratum: a value for each system; None where there is none."""

    label: str
    values: tuple[float | None, ...]
    best: frozenset[int]
    """Places of the best values, which are printed bold."""


def heat_map(rows: Sequence[HeatRow], systems: Sequence[str], short: Sequence[str], screen: Screen) -> Spec:
    """Means by stratum (rows) and system (columns). Columns that do not fit are placed below.

    Args:
        rows: strata.
        systems: names over the columns.
        short: what stands there where columns are narrow.
        screen: what it is drawn for.
    """
    labels = make_labels_unique([row.label for row in rows], screen.label_chars)
    left = room_for(labels)
    room = screen.width - left - 8
    n_bands = math.ceil(len(systems) / max(1, int(room // CELL)))
    a_band = math.ceil(len(systems) / n_bands)
    cell = min(room / a_band, WIDEST)
    heads = short if cell < NAMED else make_labels_unique(systems, int((cell - GAP) // CHARACTER))
    band_height = HEADING + CELL_HEIGHT * len(rows) + GAP
    strength = _strengths(rows)
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
                cells.append(ends | {"opacity": strength(value)})
            text = "\u2013" if value is None else f"{value:.3f}".replace("-", "\u2212")
            texts.append(text_at(x + cell / 2 - 1, y + CELL_HEIGHT / 2 - 1, text, "center", bold=place in row.best))
            if not column:
                texts.append(text_at(left - 10, y + CELL_HEIGHT / 2 - 1, labels[line], "right"))
    width, height = screen.width, band_height * n_bands
    rect = {
        "data": {"values": cells},
        "mark": {"type": "rect", "color": BETTER},
        "encoding": {
            **pixel_axes("x", "y", width, height),
            "x2": {"field": "x2"},
            "y2": {"field": "y2"},
            "fillOpacity": {"field": "opacity", "type": "quantitative", "scale": None, "legend": None},
        },
    }
    layers = [rect, *label_layers(texts, width, height)]
    return spec_of([], layers, frame_of(width, height, 0, right=0, top=0, axis=0))


def _strengths(rows: Sequence[HeatRow]) -> Callable[[float], float]:
    """How strong the colour of a value is: the faintest for the lowest of the picture, the strongest for the highest."""
    known = [value for row in rows for value in row.values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)

    def strength(value: float) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(FAINTEST + (STRONGEST - FAINTEST) * share, 3)

    return strength
