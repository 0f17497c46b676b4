"""Two strata against each other, and a warning where one of them cannot show an improvement."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.evaluation.contrast import ContrastSpec, StrataContrast, contrast_gain, contrast_strata
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.numbers import format_level
from cranfield.record import Fields
from cranfield.reporting.document import Block, Bullets, Cell, Column, Paragraph, Section, Table
from cranfield.reporting.sections.subject import Subject

HOW = "The queries of two strata are not paired: Welch's interval, and p of a permutation test over labellings."


def find_contrasts(
    result: Sequence[Evaluation] | Comparison, requested: Sequence[ContrastSpec]
) -> tuple[StrataContrast, ...]:
    """Every requested contrast within each system; of a comparison, of the difference between its sides too."""
    if not isinstance(result, Comparison):
        return tuple(contrast_strata(evaluation, *spec) for spec in requested for evaluation in result)
    found = []
    for spec in requested:
        sides = (result.baseline, result.candidate)
        found += [contrast_strata(side, *spec, result.primary, alpha=result.alpha, seed=result.seed) for side in sides]
        found.append(contrast_gain(result, *spec))
    return tuple(found)


def strata_contrasts(subject: Subject) -> Section | None:
    """A table for each pair of strata; None where no contrast was requested."""
    contrasts = subject.contrasts
    if not contrasts:
        return None
    pairs = dict.fromkeys((contrast.key, contrast.a, contrast.b, contrast.measure) for contrast in contrasts)
    blocks: list[Block] = [Paragraph(HOW)]
    for key, a, b, measure in pairs:
        chosen = [
            contrast
            for contrast in contrasts
            if (contrast.key, contrast.a, contrast.b, contrast.measure) == (key, a, b, measure)
        ]
        blocks.append(_table(chosen))
        notes = [f"{contrast.what}: {contrast.groups.note}." for contrast in chosen if contrast.groups.note]
        notes += [f"{ceiling}." for contrast in chosen for ceiling in contrast.ceilings]
        if notes:
            blocks.append(Bullets(tuple(notes), "warning"))
    return Section("contrasts", "Contrasts of strata", tuple(blocks))


def _table(contrasts: Sequence[StrataContrast]) -> Table:
    first = contrasts[0]
    level = format_level(first.groups.alpha)
    columns = (
        Column("system"),
        Column(first.a, "value"),
        Column("n", "count"),
        Column(first.b, "value"),
        Column("n", "count"),
        Column("difference", "delta"),
        Column(f"{level} CI", "delta interval"),
        Column("p", "p"),
        Column("g", "effect"),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            "B minus A" if contrast.what == "difference" else contrast.what,
            *(contrast.groups.a.mean, contrast.groups.a.n, contrast.groups.b.mean, contrast.groups.b.n),
            contrast.groups.difference,
            (contrast.groups.ci_low, contrast.groups.ci_high),
            contrast.groups.p_permutation,
            contrast.groups.hedges_g,
        )
        for contrast in contrasts
    ]
    return Table(columns, rows, f"{first.measure} by {first.key}: {first.a} minus {first.b}", shown=None)


FIELDS: Fields = {
    StrataContrast: (
        "key a b measure of=what mean_a=groups.a.mean n_a=groups.a.n mean_b=groups.b.mean n_b=groups.b.n "
        "difference=groups.difference ci_low=groups.ci_low ci_high=groups.ci_high p_permutation=groups.p_permutation "
        "p_welch=groups.p_welch hedges_g=groups.hedges_g labellings=groups.labellings note=groups.note ceilings"
    ),
}
"""What is written of each class; see `cranfield.record`."""
