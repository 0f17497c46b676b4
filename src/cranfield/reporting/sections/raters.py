"""Sections on single raters: confusion matrices, agreement without each of them, agreement at thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cranfield.numbers import format_delta, format_delta_interval, format_level, format_p, format_plain, format_value
from cranfield.record import Fields, record_of
from cranfield.reporting.document import Block, Cell, Column, Paragraph, Section
from cranfield.reporting.documents.testset import table
from cranfield.stats.agreement import Agreement
from cranfield.stats.coefficients import COEFFICIENTS
from cranfield.stats.confusion import ConfusionMatrix
from cranfield.stats.misfit import Misfit, RaterFit
from cranfield.words import n_of

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
FIELDS: Fields = {
    ConfusionMatrix: "first second n_pairs=n grades",
    Misfit: "alpha_ordinal=alpha_all unit n_units level n_draws seed raters note",
    RaterFit: "rater alpha_without change ci_low ci_high p_value bias n_pairs=n fits",
}
"""What is written of each class; see `cranfield.record`."""


def confusion_section(matrices: tuple[ConfusionMatrix, ...]) -> Section:
    """A matrix for each pair of raters."""
    shown = [matrix for matrix in matrices if len(matrix.grades) <= SHOWN_GRADES][:SHOWN_MATRICES]
    blocks: list[Block] = []
    for matrix in shown:
        columns = (Column(matrix.first), *(Column(format_plain(grade), "count") for grade in matrix.grades))
        rows: list[tuple[Cell, ...]] = [
            (format_plain(grade), *counts) for grade, counts in zip(matrix.grades, matrix.counts.tolist(), strict=True)
        ]
        caption = f"{matrix.first} (rows) and {matrix.second} (columns), {n_of(matrix.n, 'pairs')}"
        blocks.append(table(caption, columns, rows))
    if len(shown) < len(matrices):
        blocks.append(Paragraph(f"{len(matrices) - len(shown)} more in the JSON output."))
    return Section("confusion", "Confusion matrices", tuple(blocks))


def misfit_section(found: Misfit) -> Section:
    """Agreement without each rater, and the one who does not fit."""
    level = format_level(found.level)
    rows: list[tuple[Cell, ...]] = [
        (
            *(rater.rater, rater.alpha_without, rater.change, (rater.ci_low, rater.ci_high), rater.p_value),
            *(rater.bias, rater.n),
        )
        for rater in found.raters
    ]
    columns = (
        *(Column("without"), Column("alpha, ordinal", "value"), Column("change", "delta")),
        *(Column(f"{level} CI", "delta interval"), Column("p", "p")),
        *(Column("grade minus others", "delta"), Column("pairs", "count")),
    )
    about = (
        f"Alpha of all raters: {format_value(found.alpha_all)}. CIs and p-values: {found.n_draws} draws, seed {found.seed}; "
        f"{UNITS[found.unit]} ({found.n_units}). p: probability of a change at least as large, for the rater whose change is "
        f"largest, if the raters were interchangeable; adjusted for {len(found.raters)} raters."
    )
    blocks: tuple[Block, ...] = (Paragraph(misfit_sentence(found)),)
    if found.raters:
        blocks = (*blocks, table("Agreement of the others", columns, rows), Paragraph(about))
    return Section("without-each-rater", "Agreement without each rater", blocks)


def misfit_sentence(found: Misfit) -> str:
    """Who does not fit, and how sure that is."""
    if not found.raters or all(rater.p_value is None for rater in found.raters):
        return f"No rater can be named: {found.note or 'agreement without each rater is not defined'}."
    if found.misfits:
        return " ".join(f"{rater.rater} does not fit: {_change(found, rater)}." for rater in found.misfits)
    known = [rater for rater in found.raters if rater.change is not None]
    largest = max(known, key=lambda rater: rater.change or 0.0)
    if (largest.change or 0.0) <= 0:
        return "Every rater fits: the others agree no better without any of them."
    return f"No rater differs significantly. The largest change: {_change(found, largest)}."


def _change(found: Misfit, rater: RaterFit) -> str:
    interval = None if rater.ci_low is None or rater.ci_high is None else (rater.ci_low, rater.ci_high)
    ci = f", {format_level(found.level)} CI {format_delta_interval(interval)}" if interval else ""
    return (
        f"alpha is {format_value(rater.alpha_without)} without {rater.rater} and {format_value(found.alpha_all)} with all "
        f"raters ({format_delta(rater.change)}{ci}; p {format_p(rater.p_value)})"
    )


def thresholds_section(thresholds: Mapping[float, Agreement], level: float) -> Section:
    """Agreement on relevance, by the grade from which a document counts as relevant."""
    rows: list[tuple[Cell, ...]] = []
    for at, found in thresholds.items():
        for name in AT_THRESHOLDS:
            coefficient = found.coefficients[name]
            if coefficient.value is not None:
                interval = (coefficient.ci_low, coefficient.ci_high)
                rows.append((format_plain(at), COEFFICIENTS[name].title, coefficient.value, interval, coefficient.n))
    columns = (
        *(Column("relevant from"), Column("measure"), Column("value", "value")),
        *(Column(f"{format_level(level)} CI", "interval"), Column("pairs", "count")),
    )
    return Section("thresholds", "Agreement at thresholds", (table("Each rating as relevant or not", columns, rows),))


def confusion_payload(matrix: ConfusionMatrix) -> dict[str, Any]:
    """A matrix in JSON: a list of counts for each grade of the first rater."""
    return record_of(matrix, FIELDS) | {"counts": matrix.counts.tolist()}
