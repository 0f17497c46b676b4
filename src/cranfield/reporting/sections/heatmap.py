"""The primary measure by stratum and system: a map of heat for each key, with its table."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.evaluation.many_values import ManyComparison, StratumRow
from cranfield.evaluation.verdict import sign_of
from cranfield.numbers import format_value
from cranfield.reporting.charts import many as charts_many
from cranfield.reporting.charts.single import SCREENS
from cranfield.reporting.document import Block, Cell, Column, Figure, Paragraph, Section, Table, Toned
from cranfield.reporting.sections.naming import letters
from cranfield.reporting.sections.strata import MOST_ROWS_DRAWN


def heat_maps(many: ManyComparison, labels: Sequence[str]) -> Section | None:
    """A picture and a table for each key of the strata; None where the test set knows none.

    Args:
        many: the comparison.
        labels: what the systems are called here, in their order.
    """
    keys = dict.fromkeys(row.key for row in many.strata)
    if not keys:
        return None
    blocks: list[Block] = [
        Paragraph(
            f"{many.primary} of every system within each group of queries. Nothing is tested here: it says where to look "
            "next, and decides nothing.",
        )
    ]
    for place, key in enumerate(keys, start=1):
        rows = [row for row in many.strata if row.key == key]
        figure = _figure(place, key, rows, many, labels)
        table = _table(key, rows, many, labels)
        blocks += [figure, table] if figure is not None else [table]
    return Section("breakdown", "Breakdown", tuple(blocks))


def _best(row: StratumRow, many: ManyComparison) -> frozenset[int]:
    """Places of the best means; none where all are equal."""
    sign = sign_of(many.primary)
    means = [None if about.mean is None else about.mean * sign for about in row.summaries]
    known = [mean for mean in means if mean is not None]
    if len(set(known)) < 2:
        return frozenset()
    return frozenset(place for place, mean in enumerate(means) if mean == max(known))


def _table(key: str, rows: Sequence[StratumRow], many: ManyComparison, labels: Sequence[str]) -> Table:
    columns = (Column(key), Column("n", "count"), *(Column(label, "value") for label in labels))
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        best = _best(row, many)
        means: list[Cell] = [
            Toned(about.mean, "good") if place in best else about.mean for place, about in enumerate(row.summaries)
        ]
        cells.append((row.value, row.n, *means))
    return Table(columns, cells, f"Mean {many.primary} by {key}")


def _figure(
    place: int, key: str, rows: Sequence[StratumRow], many: ManyComparison, labels: Sequence[str]
) -> Figure | None:
    if not 2 <= len(rows) <= MOST_ROWS_DRAWN:
        return None
    drawn = [
        charts_many.HeatRow(f"{row.value} ({row.n})", tuple(about.mean for about in row.summaries), _best(row, many))
        for row in rows
    ]
    spec, narrow = (charts_many.heat_map(drawn, labels, letters(len(labels)), screen) for screen in SCREENS)
    said = "; ".join(
        f"{row.value}: "
        + ", ".join(f"{label} {format_value(about.mean)}" for label, about in zip(labels, row.summaries, strict=True))
        for row in rows
    )
    return Figure(
        f"heat-{place}",
        f"Mean {many.primary} by {key}",
        f"Means by group and system: {said}.",
        spec,
        narrow,
        _table(key, rows, many, labels),
        (("good", "the stronger the colour, the higher the mean; the best of a row is bold"),),
        told_beside=True,
    )
