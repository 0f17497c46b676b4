"""The contribution of each component of a system, as a Document: what `cranfield components` prints."""

from __future__ import annotations

from functools import partial

from cranfield.evaluation.contribution import Contribution, Contributions
from cranfield.evaluation.result import result_of
from cranfield.evaluation.unseen import nearest
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE
from cranfield.numbers import format_delta, format_delta_interval, format_level, format_p, format_value
from cranfield.record import Fields, record_of
from cranfield.reporting.charts.differences import Whisker
from cranfield.reporting.document import (
    MADE_BY,
    PILOT_STAMP,
    Brief,
    Bullets,
    Cell,
    Column,
    Details,
    Document,
    Figure,
    Section,
    Table,
    Tone,
    TonedCell,
    tidy_table,
)
from cranfield.reporting.documents.comparison import sections_of
from cranfield.reporting.sections.collection import collection, warnings
from cranfield.reporting.sections.labels import news_of, testset_label
from cranfield.reporting.sections.latency import latencies
from cranfield.reporting.sections.measures import interval_figure, measures
from cranfield.reporting.sections.provenance import provenance
from cranfield.reporting.sections.subject import Preflight, Subject
from cranfield.results import to_jsonable
from cranfield.stats.table import TESTS

HOW_TO_READ = (
    "Alone: the mean of the system with this component and no other; its interval is under Measures.",
    (
        "Effect: mean of all components minus all but this one, paired by query. A component that others can replace "
        "has little effect, however good it is alone."
    ),
    "p Holm: two-sided, of the declared test, adjusted for the number of components; it decides the verdict.",
    (
        "Gained, lost: queries that are worse, and better, without it. Only: worse without it, and without "
        "no other component."
    ),
)
TIDY = (
    *(
        "component",
        "measure",
        "alone",
        "alone_ci_low",
        "alone_ci_high",
        "without",
        "all",
        "brings",
        "ci_low",
        "ci_high",
    ),
    *("p", "p_holm", "word", "gained", "lost", "gained_only", "n"),
)


def contribution_document(found: Contributions, *, preflight: Preflight = ()) -> Document:
    """The contribution table, its picture, and every variant's measures.

    Args:
        found: a system and its components.
        preflight: (system, check, found) of every check that held before the first query.
    """
    subject = Subject.of(found.variants, preflight=preflight, measure=found.primary)
    sections = sections_of(subject, (warnings, measures, latencies, collection, provenance))
    testset = found.whole.testset
    return Document(
        title=f"What does each component of {found.name} contribute?",
        subtitle=(
            (
                f"{found.primary}, {found.options.test} test, test set {testset_label(testset)}, "
                f"convention {found.whole.ranking.convention.name}"
            ),
        ),
        sections=(_contribution(found), *sections),
        tidy=partial(_tidy, found),
        payload=lambda: to_jsonable(result_of(found.variants)) | record_of(found, FIELDS),
        record=lambda: to_jsonable(result_of(found.variants, with_answers=True)) | record_of(found, FIELDS),
        stamps=(PILOT_STAMP,) if found.pilot else (),
        made_by=MADE_BY,
        brief=lambda: _brief(found, subject),
    )


def _brief(found: Contributions, subject: Subject) -> Brief:
    """The table of the components, and what to doubt."""
    section, unseen = warnings(subject), nearest(row.unseen for row in found.rows)
    blocks = () if section is None else section.blocks
    doubts = [item for block in blocks if isinstance(block, Bullets) for item in block.items]
    invalid = [_sentence(row, found) for row in found.rows if row.verdict is VerdictCode.INVALID]
    return Brief(_table(found), doubts=(*invalid, *doubts, *([unseen.sentence] if unseen is not None else [])))


def _table(found: Contributions) -> Table:
    level = format_level(found.options.alpha)
    columns = (
        Column("component"),
        Column("verdict"),
        Column("effect", "delta"),
        Column(f"{level} CI", "delta interval"),
        Column("p Holm", "p"),
        Column("alone", "value"),
        Column("gained", "count"),
        Column("lost", "count"),
        Column("only", "count"),
    )
    whole = found.whole.summaries[found.primary]
    footer: tuple[Cell, ...] = ("all", "", None, None, None, whole.mean, None, None, None)
    return Table(
        columns,
        [_row(row) for row in found.rows],
        f"{found.primary}: effect of each component added to the others, and its mean alone. All together: "
        f"{format_value(whole.mean)}, n = {whole.n}",
        footer,
        shown=None,
    )


def _contribution(found: Contributions) -> Section:
    level = format_level(found.options.alpha)
    unseen = nearest(row.unseen for row in found.rows)
    rows = tuple(_sentence(row, found) for row in found.rows)
    sentences = Bullets((*rows, *((f"{unseen.sentence}.",) if unseen is not None else ())))
    read = Details("How to read this table", (Bullets(HOW_TO_READ),))
    return Section("components", "Components", (sentences, *_figure(found, level), _table(found), read))


def _row(row: Contribution) -> tuple[Cell, ...]:
    about = row.effect
    alone = row.alone_summary
    tone: Tone = "" if row.verdict is VerdictCode.NOT_SIGNIFICANT else row.verdict.tone
    return (
        row.component,
        TonedCell(row.verdict.text, tone),
        TonedCell(about.shown, news_of(row.verdict)),
        (about.ci_low, about.ci_high),
        row.p_adjusted,
        alone.mean,
        row.n_gained,
        row.n_lost,
        row.n_only,
    )


def _sentence(row: Contribution, found: Contributions) -> str:
    about = row.effect
    if row.verdict is VerdictCode.INVALID:
        return f"{row.component}: no verdict, {'; '.join(row.comparison.verdict.reasons)}."
    words = {
        VerdictCode.HELPS: f"{row.component} helps",
        VerdictCode.HURTS: f"{row.component} hurts",
        VerdictCode.EQUIVALENT: f"removing {row.component} has no effect beyond the margin",
        VerdictCode.NOT_SIGNIFICANT: f"removing {row.component} has no significant effect",
    }
    interval = format_delta_interval((about.ci_low, about.ci_high))
    return (
        f"{words[row.verdict]}: {found.primary} {_effect(row, found)} over all the others "
        f"({format_level(found.options.alpha)} CI {interval}, Holm p {format_p(row.p_adjusted)}, n = {about.n})."
    )


def _effect(row: Contribution, found: Contributions) -> str:
    """`+0.0400`; of another quantity than the mean, `Hodges-Lehmann estimate +0.0400 (mean difference +0.0310)`."""
    about, spec = row.effect, TESTS[found.options.test]
    if spec.is_of_mean:
        return format_delta(about.delta)
    return f"{spec.estimate} {format_delta(about.shown)} (mean difference {format_delta(about.delta)})"


def _figure(found: Contributions, level: str) -> tuple[Figure, ...]:
    rows = [(row, row.effect) for row in found.rows]
    if all(about.delta is None for _, about in rows):
        return ()
    better = CATALOGUE[found.primary.name].higher_is_better
    marks = [
        Whisker(
            row.component,
            about.shown,
            *(about.ci_low, about.ci_high, news_of(row.verdict)),
        )
        for row, about in rows
    ]
    intervals = "; ".join(
        f"{row.component} {format_delta(about.shown)} ({format_delta_interval((about.ci_low, about.ci_high))})"
        for row, about in rows
    )
    table = Table(
        (Column("component"), Column("effect", "delta"), Column(f"{level} CI", "delta interval")),
        [(row.component, about.shown, (about.ci_low, about.ci_high)) for row, about in rows],
        "Effect of each component",
    )
    figure = interval_figure(
        "contributions",
        f"Effect of each component, {level} CIs",
        marks,
        table,
        alt=f"Effect of each component added to all the others: {intervals}.",
        axis=f"{found.primary}, all minus all but it" + ("" if better else " (lower is better)"),
        legend=(("good", "helps"), ("bad", "hurts"), ("same", f"{VerdictCode.NOT_SIGNIFICANT.text}, or equivalent")),
        margin=found.options.margin,
    )
    return (figure,)


def _tidy(found: Contributions) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for row in found.rows:
        about = row.effect
        alone = row.alone_summary
        rows.append(
            (
                *(row.component, str(found.primary), alone.mean, alone.ci_low, alone.ci_high),
                row.without_summary.mean,
                found.whole.summaries[found.primary].mean,
                *(about.delta, about.ci_low, about.ci_high, row.p, row.p_adjusted, row.verdict),
                *(row.n_gained, row.n_lost, row.n_only, about.n),
            )
        )
    return tidy_table(TIDY, rows)


FIELDS: Fields = {
    Contribution: (
        "component alone=alone.name without=without.name alone_mean=alone_summary.mean without_mean=without_summary.mean "
        "brings=effect.delta ci_low=effect.ci_low ci_high=effect.ci_high n=effect.n p p_holm=p_adjusted word=verdict "
        "reasons=comparison.verdict.reasons unseen n_gained n_lost n_gained_only=n_only differences=effect.differences"
    ),
    Contributions: (
        "system=name primary test=options.test alpha=options.alpha margin=options.margin seed=options.seed whole=whole.name "
        "components=rows"
    ),
}
"""What is written of each class; see `cranfield.record`."""
