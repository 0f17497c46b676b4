"""The `grid:` block of cranfield.yaml as a pydantic model: a system, its varied settings, and the held-out queries."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from cranfield.config.strict import Strict
from cranfield.formats.io.located import Text

MOST_POINTS = 500
"""Largest number of points of a grid; each is a system that answers every query."""
HELD_OUT = 0.3
"""Default share of the queries held out, unless the test set has a split."""


class GridConfig(Strict):
    """Settings of a system to combine, and the held-out queries on which the best combination is evaluated."""

    system: Text
    """Name of the system that is varied."""
    over: Annotated[dict[str, Annotated[list[Any], Field(min_length=1)]], Field(min_length=1)]
    """Place in the system, with dots, to the values it takes: `fusion.rrf_k: [10, 60]`, `params.boost: [1, 5]`. Every
    combination is a point, 500 of them at most."""
    held_out: Annotated[float, Field(gt=0, lt=1)] | str | None = None
    """Share of the queries on which the winner is judged, drawn within the strata; or `KEY=VALUE`, the stratum whose
    queries are held out. A split that the test set has stored goes before a share. Without it, that split, or 0.3."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of the draw of the held-out queries."""
