"""Sensitivity analysis of a comparison: how many alternative analyses agree; those that disagree come first."""

from __future__ import annotations

from cranfield.evaluation.sensitivity import Sensitivity, Variation
from cranfield.numbers import format_count
from cranfield.record import Fields
from cranfield.reporting.document import Block, Bullets, Cell, Column, Details, Paragraph, Section, Table, TonedCell
from cranfield.reporting.sections.subject import Subject
from cranfield.stats.table import TESTS


def sensitivity_section(subject: Subject) -> Section | None:
    """Summary line, the analyses that disagree, the table of all of them, and those not applicable; None unless requested."""
    result = subject.sensitivity
    if result is None:
        return None
    blocks: list[Block] = [Paragraph(f"{result.line}.")]
    if result.disagreeing:
        blocks.append(Bullets(_disagreeing(result), "warning"))
    if result.variations:
        blocks += [Paragraph(_how(result)), _table(result)]
    if result.left_out:
        blocks.append(Details("Not applicable", (Bullets(result.left_out),), in_text=True))
    return Section("sensitivity", "Sensitivity analysis", tuple(blocks))


SPEAKS_FOR_ITSELF = ("measure", "cutoff", "without a stratum")
"""Families whose variations are clear without the family's name."""


def _disagreeing(result: Sensitivity) -> tuple[str, ...]:
    """Every other verdict, with the variations that reach it."""
    by_verdict: dict[str, list[str]] = {}
    for variation in result.disagreeing:
        name = variation.name if variation.family in SPEAKS_FOR_ITSELF else f"{variation.family}: {variation.name}"
        by_verdict.setdefault(variation.verdict.text, []).append(name)
    return tuple(f"{verdict}: {', '.join(names)}" for verdict, names in by_verdict.items())


def _how(result: Sensitivity) -> str:
    draws = f", with {format_count(result.n_draws)} random draws" if result.test in {"permutation", "bootstrap"} else ""
    return (
        "Each row changes one setting; no multiple-comparison correction. The verdict is that of the declared settings. "
        f"Rows that do not change the test use the {TESTS[result.test].title}{draws}."
    )


def _table(result: Sensitivity) -> Table:
    ordered = sorted(
        result.variations, key=lambda variation: variation.verdict is result.verdict
    )  # stable: families stay together
    columns = (
        Column("setting"),
        Column("value"),
        Column("verdict"),
        Column("difference", "delta"),
        Column("interval", "delta interval"),
        Column("n", "count"),
    )
    return Table(
        columns,
        [_row(variation) for variation in ordered],
        "All alternative analyses, those that disagree first",
        shown=None,
        wrap=True,
    )


def _row(variation: Variation) -> tuple[Cell, ...]:
    verdict: Cell = TonedCell(variation.verdict.text, variation.verdict.tone)
    return (
        variation.family,
        variation.name,
        verdict,
        variation.delta,
        (variation.ci_low, variation.ci_high),
        variation.n,
    )


FIELDS: Fields = {
    Sensitivity: "line n_agree n_variations=variations.__len__ n_draws variations left_out",
    Variation: "varied=family to=name delta ci_low ci_high n verdict",
}
"""What is written of each class; see `cranfield.record`."""
