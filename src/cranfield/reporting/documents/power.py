"""Sample size and power, as a Document: what `cranfield power` prints."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.base.numbers import (
    format_count,
    format_delta,
    format_delta_interval,
    format_level,
    format_percent,
    format_value,
)
from cranfield.evaluation.evidence.values import caveat_sentences, void_sentences
from cranfield.evaluation.power import Planned, PowerPlan
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Block, Bullets, Document, KeyValues, Paragraph, Section
from cranfield.reporting.sections.subject import testset_label
from cranfield.reporting.table_spec import Col, TableSpec

BEYOND = "more than 10,000,000"
WHAT_IT_IS = (
    "Two-sided paired t test with the standard deviation of these differences. Other pairs of systems have other spreads: "
    "similar systems need fewer queries."
)
NO_RESAMPLED_CHECK = "No resampled check: the difference is outside the range of these differences, or there are too many queries to draw."
OBSERVED_POWER = "Observed power only restates the p-value: a difference that is not significant always has low power."
TITLES = {"both": "Power", "queries": "Minimum detectable effect", "difference": "Queries required"}
"""What is given to the heading of what follows from it."""


def power_document(plan: PowerPlan) -> Document:
    """The spread found, the power of n queries, the queries a difference needs, and a resampled check."""
    interval = format_delta_interval((plan.ci_low, plan.ci_high))
    facts = (
        ("queries on both sides", f"{format_count(plan.n)}, {format_count(plan.n_nonzero)} differ"),
        ("mean difference", f"{format_delta(plan.delta)} ({format_level(plan.alpha)} CI {interval}, t)"),
        ("their standard deviation", format_value(plan.std)),
        ("power for such a difference", format_percent(plan.observed_power)),
    )
    sections = [Section("pair", "This pair", (KeyValues(facts), Paragraph(OBSERVED_POWER, "note")))]
    if found := (*void_sentences(plan.evidence), *caveat_sentences(plan.evidence)):
        sections.append(Section("warnings", "Caveats", (Bullets(found, "warning"),)))
    for name, title in TITLES.items():
        if rows := [row for row in plan.planned if row.given == name]:
            sections.append(Section(name, title, (_spec(plan, rows).table(),)))
    about: list[Block] = [Bullets((WHAT_IT_IS, *_resampled_check(plan)))]
    return Document(
        title="Queries needed",
        subtitle=(f"{plan.candidate} against {plan.baseline}, {plan.measure}, test set {testset_label(plan.testset)}",),
        sections=(*sections, Section("about", "Method", tuple(about))),
        tidy=_spec(plan, plan.planned).tidy,
        payload=lambda: to_jsonable(plan),
    )


def _spec(plan: PowerPlan, rows: Sequence[Planned]) -> TableSpec[Planned]:
    """The plans of one kind for a report; all of them for CSV."""
    given = rows[0].given
    often = "" if given == "both" else f", power {format_percent(plan.power)}"
    difference: Col[Planned] = Col("true difference", lambda row: row.difference, "value", "difference")
    queries: Col[Planned] = Col("queries", lambda row: BEYOND if row.n is None else row.n, "count", only="report")
    columns: list[Col[Planned]] = [
        Col("measure", lambda _: plan.measure.canonical, only="tidy"),
        Col("given", lambda row: row.given, only="tidy"),
        *((difference, queries) if given == "difference" else (queries, difference)),
        Col("n", lambda row: row.n, "count", only="tidy"),
        Col("power", lambda row: row.power, "percent", only="" if given == "both" else "tidy"),
        Col("alpha", lambda _: plan.alpha, "value", only="tidy"),
        Col("note", lambda row: row.note, only="" if any(row.note for row in rows) else "tidy"),
    ]
    return TableSpec(f"True differences of {plan.measure}{often}, alpha {plan.alpha:g}", rows, tuple(columns))


def _resampled_check(plan: PowerPlan) -> Sequence[str]:
    second = plan.resampled
    if second is None or second.n is None:
        return (NO_RESAMPLED_CHECK,)
    t_power = next(
        (row.power for row in plan.planned if (row.n, row.difference) == (second.n, second.difference)), None
    )
    sentence = (
        f"Resampled check, which keeps the skew of these differences: {format_count(second.n)} queries are drawn from them "
        f"{format_count(plan.trials)} times, weighted so that the mean is {format_delta(second.difference)}. Power of the "
        f"permutation test: {format_percent(second.power)}; of the t test: {format_percent(t_power)}."
    )
    return (sentence,)
