"""The summary of a folder of large results as a Document: verdict, comparisons, means, strata and what was read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import MADE_BY, VOID_STAMP, Brief, Cell, Document, Table, tidy_table, without_tones
from cranfield.reporting.document import Section as Part
from cranfield.scale.sections import caveats, comparisons, means, provenance, strata, verdict_block
from cranfield.scale.values import ScaleSummary

TIDY = (
    *("system", "stratum_key", "stratum", "measure", "n", "mean", "ci_low", "ci_high"),
    *("difference", "difference_ci_low", "difference_ci_high", "p", "p_adjusted", "verdict"),
)
BUILDERS = (comparisons, caveats, means, strata, provenance)


def scale_document(summary: ScaleSummary) -> Document:
    """The report of `summarise_results`, verdict first where systems are compared."""
    is_void = bool(summary.pairs) and all(pair.verdict.code is VerdictCode.INVALID for pair in summary.pairs)
    sections = tuple(section for build in BUILDERS if (section := build(summary)) is not None)
    if is_void:
        sections = tuple(Part(each.name, each.title, without_tones(each.blocks)) for each in sections)
    about = summary.about
    return Document(
        title=_title(summary),
        subtitle=(
            *(f"{letter} {name}" for letter, name in _lettered(summary)),
            f"test set {about.testset}, {summary.n_queries:,} queries, convention {about.scoring.convention.name}",
        ),
        sections=sections,
        tidy=lambda: _tidy(summary),
        payload=lambda: to_jsonable(summary),
        verdict=verdict_block(summary),
        stamps=(VOID_STAMP,) if is_void else (),
        made_by=MADE_BY,
        brief=lambda: _brief(summary, sections),
    )


def _brief(summary: ScaleSummary, sections: Sequence[Part]) -> Brief:
    """The first table, and what limits the figures; why they are void first."""
    verdict = verdict_block(summary)
    units = (f"Intervals and tests are of {summary.units.text}",) if summary.units.column else ()
    table = next((block for each in sections for block in each.blocks if isinstance(block, Table)), None)
    if verdict is None:
        return Brief(table, units, tuple(summary.caveats))
    # Of several systems the reasons are those of invalid verdicts.
    doubts = verdict.limits(reasons_first=len(summary.pairs) > 1)
    return Brief(None if verdict.tone == "void" else table, units, doubts)


def _title(summary: ScaleSummary) -> str:
    others = [system.name for system in summary.systems[1:]]
    if not others:
        return summary.baseline
    if len(others) == 1:
        return f"Is {others[0]} better than {summary.baseline}?"
    return f"Which of {len(others)} systems is better than {summary.baseline}?"


def _lettered(summary: ScaleSummary) -> tuple[tuple[str, str], ...]:
    """Both systems of a pair, with their letters and roles; of more the baseline."""
    if len(summary.systems) == 2:
        return ("A", f"{summary.baseline} (baseline)"), ("B", f"{summary.systems[1].name} (candidate)")
    return (("A", f"{summary.baseline} (baseline)"),) if len(summary.systems) > 2 else ()


def _tidy(summary: ScaleSummary) -> Table:
    """A row a system, measure and stratum; the stratum of all queries is empty."""
    return tidy_table(TIDY, [*_tidy_systems(summary), *_tidy_strata(summary)])


def _tidy_systems(summary: ScaleSummary) -> Iterator[tuple[Cell, ...]]:
    pairs = {pair.name: pair for pair in summary.pairs}
    for system in summary.systems:
        pair = pairs.get(system.name)
        for measure, about in system.measures.items():
            row = (system.name, "", "", measure.canonical, about.n, about.mean, about.ci_low, about.ci_high)
            found = pair.measures.get(measure) if pair is not None else None
            if pair is None or found is None:
                yield (*row, *[None] * 6)
                continue
            declared = found.tests[summary.options.test]
            verdict = pair.verdict.code.value if measure == summary.primary else None
            ends = (found.ci_low, found.ci_high, declared.p_two_sided, declared.p_adjusted)
            yield (*row, found.delta, *ends, verdict)


def _tidy_strata(summary: ScaleSummary) -> Iterator[tuple[Cell, ...]]:
    for stratum in summary.strata:
        for place, (system, about) in enumerate(zip(summary.systems, stratum.means, strict=True)):
            delta = stratum.differences[place - 1] if place and stratum.differences else None
            difference = (None,) * 3 if delta is None else (delta.delta, delta.ci_low, delta.ci_high)
            name = (system.name, stratum.key, stratum.value, stratum.measure.canonical)
            yield (*name, about.n, about.mean, about.ci_low, about.ci_high, *difference, None, None, None)
