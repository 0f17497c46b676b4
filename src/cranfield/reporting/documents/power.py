"""Sample size and power, as a Document: what `cranfield power` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cranfield.evaluation.evidence.values import Finding, caveat_sentences, void_sentences
from cranfield.evaluation.power import Planned, PowerPlan
from cranfield.numbers import (
    format_count,
    format_delta,
    format_delta_interval,
    format_level,
    format_percent,
    format_value,
)
from cranfield.record import Fields, record_of
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    KeyValues,
    Paragraph,
    Section,
    Table,
    tidy_table,
)
from cranfield.reporting.payload import FIELDS as COMPARED
from cranfield.reporting.sections.labels import testset_label

BEYOND = "more than 10,000,000"
WHAT_IT_IS = (
    "Two-sided paired t test with the standard deviation of these differences. Other pairs of systems have other spreads: "
    "similar systems need fewer queries."
)
NO_RESAMPLED_CHECK = "No resampled check: the difference is outside the range of these differences, or there are too many queries to draw."
OBSERVED_POWER = "Observed power only restates the p-value: a difference that is not significant always has low power."
TIDY = ("measure", "given", "difference", "queries", "power", "alpha", "note")


def power_document(plan: PowerPlan) -> Document:
    """The spread found, the power of n queries, the queries a difference needs, and a resampled check."""
    sections = [Section("pair", "This pair", (KeyValues(_facts(plan)), Paragraph(OBSERVED_POWER, "note")))]
    if found := (*void_sentences(plan.evidence), *caveat_sentences(plan.evidence)):
        sections.append(Section("warnings", "Caveats", (Bullets(found, "warning"),)))
    sections += [
        Section(name, title, (table,))
        for name, title, table in (
            ("both", "Power", _table(plan, "both")),
            ("queries", "Minimum detectable effect", _table(plan, "queries")),
            ("difference", "Queries required", _table(plan, "difference")),
        )
        if table.rows
    ]
    about: list[Block] = [Bullets((WHAT_IT_IS, *_resampled_check(plan)))]
    return Document(
        title="Queries needed",
        subtitle=(f"{plan.names[1]} against {plan.names[0]}, {plan.measure}, test set {testset_label(plan.testset)}",),
        sections=(*sections, Section("about", "Method", tuple(about))),
        tidy=lambda: tidy_table(TIDY, _tidy(plan)),
        payload=lambda: _payload(plan),
    )


def _facts(plan: PowerPlan) -> tuple[tuple[str, str], ...]:
    interval = format_delta_interval((plan.ci_low, plan.ci_high))
    return (
        ("queries on both sides", f"{format_count(plan.n)}, {format_count(plan.n_nonzero)} differ"),
        ("mean difference", f"{format_delta(plan.delta)} ({format_level(plan.alpha)} CI {interval}, t)"),
        ("their standard deviation", format_value(plan.std)),
        ("power for such a difference", format_percent(plan.observed_power)),
    )


def _table(plan: PowerPlan, given: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for row in plan.planned:
        if row.given == given:
            queries, difference = BEYOND if row.n is None else row.n, row.difference
            first: tuple[Cell, Cell] = (difference, queries) if given == "difference" else (queries, difference)
            rows.append((*first, *([row.power] if given == "both" else []), row.note))
    noted = any(row[-1] for row in rows)
    queries_column, difference_column = Column("queries", "count"), Column("true difference", "value")
    columns = [difference_column, queries_column] if given == "difference" else [queries_column, difference_column]
    if given == "both":
        columns.append(Column("power", "percent"))
    if noted:
        columns.append(Column("note"))
    return Table(tuple(columns), [row if noted else row[:-1] for row in rows], _caption(plan, given), shown=None)


def _caption(plan: PowerPlan, given: str) -> str:
    often = "" if given == "both" else f", power {format_percent(plan.power)}"
    return f"True differences of {plan.measure}{often}, alpha {plan.alpha:g}"


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


def _tidy(plan: PowerPlan) -> list[tuple[Cell, ...]]:
    return [
        (str(plan.measure), row.given, row.difference, row.n, row.power, plan.alpha, row.note) for row in plan.planned
    ]


FIELDS: Fields = {
    Planned: "given difference queries=n power",
    PowerPlan: (
        "testset=testset.name baseline=names.0 candidate=names.1 measure n n_nonzero delta ci_low ci_high std alpha power seed observed_power "
        "planned resampled evidence"
    ),
    Finding: COMPARED[Finding],
}
"""What is written of each class; see `cranfield.record`."""


def _payload(plan: PowerPlan) -> dict[str, Any]:
    record = {"schema_version": 1, **record_of(plan, FIELDS)}
    if record["resampled"] is not None:
        record["resampled"]["trials"] = plan.trials
    return record
