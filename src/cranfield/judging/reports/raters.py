"""Sections on single raters: confusion matrices, agreement without each of them, agreement at thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

from cranfield.base.numbers import format_level, format_plain, format_value
from cranfield.base.words import n_of
from cranfield.reporting.document import Block, Paragraph, Section, Table
from cranfield.reporting.table_spec import Col, TableSpec
from cranfield.stats.agreement import Agreement
from cranfield.stats.coefficients import COEFFICIENTS
from cranfield.stats.confusion import ConfusionMatrix
from cranfield.stats.misfit import Misfit

SHOWN_MATRICES = 6
"""So many are printed, those of four raters; JSON has them all."""
SHOWN_GRADES = 12
"""Matrices of more grades are in JSON only."""
AT_THRESHOLDS = ("agreement", "cohen", "fleiss", "alpha-nominal")
"""Coefficients of binary ratings."""
UNITS = {
    "query": "queries are resampled, and the raters are permuted within each query",
    "pair": "pairs of query and document are resampled, and the raters are permuted within each pair",
}


def confusion_section(matrices: Sequence[ConfusionMatrix]) -> Section:
    """A matrix for each pair of raters."""
    shown = [matrix for matrix in matrices if len(matrix.grades) <= SHOWN_GRADES][:SHOWN_MATRICES]
    blocks: list[Block] = [_matrix(matrix) for matrix in shown]
    if len(shown) < len(matrices):
        blocks.append(Paragraph(f"{len(matrices) - len(shown)} more in the JSON output."))
    return Section("confusion", "Confusion matrices", tuple(blocks))


def _matrix(matrix: ConfusionMatrix) -> Table:
    rows: list[tuple[str | int, ...]] = [
        (format_plain(grade), *counts) for grade, counts in zip(matrix.grades, matrix.counts, strict=True)
    ]
    titles = map(format_plain, matrix.grades)
    columns: list[Col[tuple[str | int, ...]]] = [Col(matrix.first, itemgetter(0))]
    columns += [Col(title, itemgetter(place), "count") for place, title in enumerate(titles, start=1)]
    caption = f"{matrix.first} (rows) and {matrix.second} (columns), {n_of(matrix.n, 'pairs')}"
    return TableSpec(caption, rows, tuple(columns)).table()


def misfit_section(found: Misfit, sentence: str) -> Section:
    """Agreement without each rater, and the one who does not fit."""
    table = TableSpec(
        "Agreement of the others",
        found.raters,
        (
            Col("without", lambda row: row.rater),
            Col("alpha, ordinal", lambda row: row.alpha_without, "value"),
            Col("change", lambda row: row.change, "delta"),
            Col(f"{format_level(found.level)} CI", lambda row: (row.ci_low, row.ci_high), "delta interval"),
            Col("p", lambda row: row.p_value, "p"),
            Col("grade minus others", lambda row: row.bias, "delta"),
            Col("pairs", lambda row: row.n, "count"),
        ),
    )
    about = (
        f"Alpha of all raters: {format_value(found.alpha_all)}. CIs and p-values: {found.n_draws} draws, seed {found.seed}; "
        f"{UNITS[found.unit]} ({found.n_units}). p: probability of a change at least as large, for the rater whose change is "
        f"largest, if the raters were interchangeable; adjusted for {len(found.raters)} raters."
    )
    blocks: tuple[Block, ...] = (table.table(), Paragraph(about)) if found.raters else ()
    return Section("without-each-rater", "Agreement without each rater", (Paragraph(sentence), *blocks))


def thresholds_section(thresholds: Mapping[float, Agreement], level: float) -> Section:
    """Agreement on relevance, by the grade from which a document counts as relevant."""
    table = TableSpec(
        "Each rating as relevant or not",
        [
            (at, found.coefficients[name])
            for at, found in thresholds.items()
            for name in AT_THRESHOLDS
            if found.coefficients[name].value is not None
        ],
        (
            Col("relevant from", lambda row: format_plain(row[0])),
            Col("measure", lambda row: COEFFICIENTS[row[1].name].title),
            Col("value", lambda row: row[1].value, "value"),
            Col(f"{format_level(level)} CI", lambda row: (row[1].ci_low, row[1].ci_high), "interval"),
            Col("pairs", lambda row: row[1].n, "count"),
        ),
    )
    return Section("thresholds", "Agreement at thresholds", (table.table(),))
