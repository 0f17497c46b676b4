"""The contribution of each component of a system, as a Document: what `cranfield components` prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cranfield.base.numbers import format_delta, format_delta_interval, format_level, format_p, format_value
from cranfield.evaluation.contribution import Contribution, Contributions
from cranfield.evaluation.latency import CallsResult
from cranfield.evaluation.unseen import nearest
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE
from cranfield.model.results import to_jsonable
from cranfield.reporting.charts.differences import Whisker
from cranfield.reporting.document import (
    MADE_BY,
    PILOT_STAMP,
    Brief,
    Bullets,
    Chart,
    Details,
    Document,
    Section,
    Table,
    Tone,
    TonedCell,
)
from cranfield.reporting.documents.comparison import sections_of
from cranfield.reporting.sections.collection import collection, latencies, warnings
from cranfield.reporting.sections.measures import interval_figure, measures
from cranfield.reporting.sections.subject import Subject, news_of, provenance, testset_label
from cranfield.reporting.table_spec import Col, TableSpec
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


def contribution_document(found: Contributions, calls: Callable[[], CallsResult]) -> Document:
    """The contribution table, its picture, and every variant's measures.

    Args:
        found: a system and its components.
        calls: gives what is known of the calls of its variants.
    """
    subject = Subject(found, calls, measure=found.primary)
    sections = sections_of(subject, (warnings, measures, latencies, collection, provenance))
    return Document(
        title=f"What does each component of {found.system} contribute?",
        subtitle=(
            (
                f"{found.primary}, {found.test} test, test set {testset_label(found.testset)}, "
                f"convention {found.convention}"
            ),
        ),
        sections=(_contribution(found), *sections),
        tidy=_spec(found).tidy,
        payload=lambda: to_jsonable(replace(found, queries=None)),
        record=lambda: to_jsonable(found),
        stamps=(PILOT_STAMP,) if subject.pilot else (),
        made_by=MADE_BY,
        brief=lambda: _brief(found, subject),
    )


def _brief(found: Contributions, subject: Subject) -> Brief:
    """The table of the components, and what to doubt."""
    section, unseen = warnings(subject), nearest(row.unseen for row in found.components)
    blocks = () if section is None else section.blocks
    doubts = [item for block in blocks if isinstance(block, Bullets) for item in block.items]
    invalid = [_sentence(row, found) for row in found.components if row.verdict is VerdictCode.INVALID]
    return Brief(_table(found), doubts=(*invalid, *doubts, *([unseen.sentence] if unseen is not None else [])))


def _table(found: Contributions) -> Table:
    return _spec(found).table(footer=("all", "", None, None, None, found.whole_summary.mean, None, None, None))


def _spec(found: Contributions) -> TableSpec[Contribution]:
    whole = found.whole_summary
    columns: tuple[Col[Contribution], ...] = (
        Col("component", lambda row: row.component),
        Col("measure", lambda _: str(found.primary), only="tidy"),
        Col("verdict", lambda row: TonedCell(row.verdict.text, _tone(row)), only="report"),
        Col("effect", lambda row: TonedCell(row.effect.shown, news_of(row.verdict)), "delta", only="report"),
        Col(
            f"{format_level(found.alpha)} CI",
            lambda row: (row.effect.ci_low, row.effect.ci_high),
            "delta interval",
            only="report",
        ),
        Col("p Holm", lambda row: row.p_adjusted, "p", only="report"),
        Col("alone", lambda row: row.alone_summary.mean, "value"),
        Col("alone_ci_low", lambda row: row.alone_summary.ci_low, only="tidy"),
        Col("alone_ci_high", lambda row: row.alone_summary.ci_high, only="tidy"),
        Col("without", lambda row: row.without_summary.mean, only="tidy"),
        Col("all", lambda _: whole.mean, only="tidy"),
        Col("brings", lambda row: row.effect.delta, only="tidy"),
        Col("ci_low", lambda row: row.effect.ci_low, only="tidy"),
        Col("ci_high", lambda row: row.effect.ci_high, only="tidy"),
        Col("p", lambda row: row.p, only="tidy"),
        Col("p_holm", lambda row: row.p_adjusted, only="tidy"),
        Col("word", lambda row: row.verdict, only="tidy"),
        Col("gained", lambda row: row.n_gained, "count"),
        Col("lost", lambda row: row.n_lost, "count"),
        Col("only", lambda row: row.n_only, "count", "gained_only"),
        Col("n", lambda row: row.effect.n, only="tidy"),
    )
    caption = (
        f"{found.primary}: effect of each component added to the others, and its mean alone. All together: "
        f"{format_value(whole.mean)}, n = {whole.n}"
    )
    return TableSpec(caption, found.components, columns)


def _tone(row: Contribution) -> Tone:
    return "" if row.verdict is VerdictCode.NOT_SIGNIFICANT else row.verdict.tone


def _contribution(found: Contributions) -> Section:
    level = format_level(found.alpha)
    unseen = nearest(row.unseen for row in found.components)
    rows = tuple(_sentence(row, found) for row in found.components)
    sentences = Bullets((*rows, *((f"{unseen.sentence}.",) if unseen is not None else ())))
    read = Details("How to read this table", (Bullets(HOW_TO_READ),))
    return Section("components", "Components", (sentences, *_figure(found, level), _table(found), read))


def _sentence(row: Contribution, found: Contributions) -> str:
    about = row.effect
    if row.verdict is VerdictCode.INVALID:
        return f"{row.component}: no verdict, {'; '.join(row.reasons)}."
    words = {
        VerdictCode.HELPS: f"{row.component} helps",
        VerdictCode.HURTS: f"{row.component} hurts",
        VerdictCode.EQUIVALENT: f"removing {row.component} has no effect beyond the margin",
        VerdictCode.NOT_SIGNIFICANT: f"removing {row.component} has no significant effect",
    }
    interval = format_delta_interval((about.ci_low, about.ci_high))
    return (
        f"{words[row.verdict]}: {found.primary} {_effect(row, found)} over all the others "
        f"({format_level(found.alpha)} CI {interval}, Holm p {format_p(row.p_adjusted)}, n = {about.n})."
    )


def _effect(row: Contribution, found: Contributions) -> str:
    """`+0.0400`; of another quantity than the mean, `Hodges-Lehmann estimate +0.0400 (mean difference +0.0310)`."""
    about, spec = row.effect, TESTS[found.test]
    if spec.is_of_mean:
        return format_delta(about.delta)
    return f"{spec.estimate} {format_delta(about.shown)} (mean difference {format_delta(about.delta)})"


def _figure(found: Contributions, level: str) -> tuple[Chart, ...]:
    if all(row.effect.delta is None for row in found.components):
        return ()
    better = CATALOGUE[found.primary.name].higher_is_better
    marks = [
        Whisker(row.component, row.effect.shown, row.effect.ci_low, row.effect.ci_high, news_of(row.verdict))
        for row in found.components
    ]
    intervals = "; ".join(
        f"{row.component} {format_delta(row.effect.shown)} "
        f"({format_delta_interval((row.effect.ci_low, row.effect.ci_high))})"
        for row in found.components
    )
    columns: tuple[Col[Contribution], ...] = (
        Col("component", lambda row: row.component),
        Col("effect", lambda row: row.effect.shown, "delta"),
        Col(f"{level} CI", lambda row: (row.effect.ci_low, row.effect.ci_high), "delta interval"),
    )
    table = TableSpec("Effect of each component", found.components, columns).table(shown=20)
    figure = interval_figure(
        "contributions",
        f"Effect of each component, {level} CIs",
        marks,
        table,
        alt=f"Effect of each component added to all the others: {intervals}.",
        axis=f"{found.primary}, all minus all but it" + ("" if better else " (lower is better)"),
        legend=(("good", "helps"), ("bad", "hurts"), ("same", f"{VerdictCode.NOT_SIGNIFICANT.text}, or equivalent")),
        margin=found.margin,
    )
    return (figure,)
