"""Differences and their intervals as one figure: of measures, strata, pairs of systems or components."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.reporting.charts.differences import Whisker, whiskers
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.document import Figure, Swatch, Table

CLAIMS: tuple[tuple[Swatch, str], ...] = (("good", "better"), ("bad", "worse"))


def interval_figure(
    name: str,
    title: str,
    marks: Sequence[Whisker],
    table: Table,
    *,
    alt: str,
    axis: str,
    legend: Sequence[tuple[Swatch, str]],
    margin: float | None = None,
) -> Figure:
    """A row for each difference.

    Args:
        name: of the figure.
        title: over it.
        marks: a dot and an interval each.
        table: the same numbers.
        alt: what the figure says, for readers who cannot see it.
        axis: what is subtracted from what.
        legend: what the colours mean.
        margin: of equivalence, drawn as a band; None draws none.
    """
    spec, narrow = (whiskers(marks, axis, screen, margin) for screen in SCREENS)
    return Figure(name, title, alt, spec, narrow, table, tuple(legend), table_follows=True)


def margin_legend(margin: float | None) -> tuple[tuple[Swatch, str], ...]:
    """The band of a margin of equivalence; nothing without a margin."""
    return () if margin is None else (("band", f"margin of ±{margin:g}"),)
