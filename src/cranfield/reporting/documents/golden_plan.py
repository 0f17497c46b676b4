"""The plan of a golden set, as a Document: its cells, what it costs, and whether its budget allows that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.reporting.document import Cell, Column, Document, Paragraph, Section, Table, tidy_table
from cranfield.words import and_list, n_of

if TYPE_CHECKING:
    from cranfield.golden.outcomes import ReadSource
    from cranfield.golden.plan import Plan
    from cranfield.golden.plan_cost import Estimate, Interval, OverBudget, RoleEstimate


def plan_document(plan: Plan, estimate: Estimate, source: ReadSource) -> Document:
    """A plan that can be run: its cells, and what it takes."""
    headings = ("task type", "difficulty", "wanted", "written")
    rows: list[tuple[Cell, ...]] = [
        (cell.task_type, cell.difficulty, cell.n, plan.emitted(cell)) for cell in plan.cells
    ]
    cells = Table(
        (Column("task type"), Column("difficulty"), Column("wanted", "count"), Column("written", "count")),
        rows,
        f"Cells; candidates are written with a headroom of {plan.headroom:g}",
        footer=("all", "", plan.total, plan.n_drafts),
        shown=None,
    )
    return Document(
        title=f"Plan {plan.name}",
        subtitle=(
            *filter(None, [source.tree.uncommitted]),
            f"{n_of(plan.total, 'queries')}, at {source.commit[:12] or 'no commit'}",
            cost_verdict(estimate),
            *source.tree.notes,
        ),
        sections=(
            Section("cells", "Cells", (cells,)),
            Section("cost", "Estimated cost", _cost(estimate)),
        ),
        tidy=lambda: tidy_table(headings, rows),
        payload=lambda: {
            "schema_version": 1,
            "uncommitted": source.tree.uncommitted,
            **source.model_dump(mode="json"),
            "plan": plan.name,
            "digest": plan.digest,
            "cells": [dict(zip(headings, row, strict=True)) for row in rows],
            "tokens": estimate.tokens,
            "token_limit": estimate.token_limit,
            "money": estimate.money,
            "money_limit": estimate.money_limit,
            "token_interval": estimate.token_interval,
            "money_interval": estimate.money_interval,
            "budget": {"tokens": estimate.budget_tokens, "money": estimate.budget_money},
            "over_budget": {each.limit: "likely" if each.is_likely else "possible" for each in estimate.over_budget},
            "roles": [_role(each) for each in estimate.roles],
        },
    )


def cost_verdict(estimate: Estimate) -> str:
    """Whether the budget allows what the plan costs, in a sentence or two."""
    over = estimate.over_budget
    if not over:
        return "The plan has no problem."
    kind = "Measured" if estimate.is_measured else "Typical"
    likely = [each for each in over if each.is_likely]
    verdict = f"{kind} cost is over the budget" if likely else f"{kind} cost may exceed the budget"
    costs = and_list([_over(each, estimate.currency) for each in likely or over])
    return f"{verdict}: {costs}. A run stops there, and goes on with a larger budget."


def _over(each: OverBudget, currency: str) -> str:
    unit = "tokens" if each.limit == "tokens" else currency
    text = f"about {_amount(each.cost, each.limit)} of {_amount(each.budget, each.limit)} {unit}"
    return text if each.interval is None else f"{text} (95 % interval {_interval(each.interval, each.limit)})"


def _amount(value: float, limit: str) -> str:
    return f"{value:,.0f}" if limit == "tokens" else f"{value:,.2f}" if value >= 1 else f"{value:.4f}"


def _cost(estimate: Estimate) -> tuple[Table | Paragraph, ...]:
    money, kind = f"money ({estimate.currency})", "measured" if estimate.is_measured else "typical"
    columns = (
        *(Column(title) for title in ("role", "model")),
        *(Column(title, "count") for title in ("records", f"tokens, {kind}", "tokens, at most")),
        *(Column(title, "value") for title in (f"{money}, {kind}", f"{money}, at most")),
    )
    rows: list[tuple[Cell, ...]] = [
        (each.role, each.model, each.records, each.tokens, each.token_limit, each.money, each.money_limit)
        for each in estimate.roles
    ]
    total = ("all", "", None, estimate.tokens, estimate.token_limit, estimate.money, estimate.money_limit)
    text = "At most: by the limits of the roles, and in all also by the budget. Empty: no limit, or no price."
    title = "From the records of a dry run" if estimate.is_measured else "Before anything is asked"
    return (Table(columns, rows, title, footer=total, shown=None), Paragraph(text), *_intervals(estimate))


def _intervals(estimate: Estimate) -> tuple[Table | Paragraph, ...]:
    """What the dry run measured, and how sure that is."""
    if not estimate.is_measured:
        return ()
    columns = (
        *(Column("role"), Column("measured on", "count"), Column("tokens, 95 % interval")),
        Column(f"money ({estimate.currency}), 95 % interval"),
    )
    rows: list[tuple[Cell, ...]] = [
        (each.role, each.measured, _interval(each.token_interval, "tokens"), _interval(each.money_interval, "money"))
        for each in estimate.roles
    ]
    ends = _interval(estimate.token_interval, "tokens"), _interval(estimate.money_interval, "money")
    text = (
        "Prediction of the whole from the measured records (Student's t); of all roles, the sum of theirs. Not known where fewer "
        "than two were measured. Later drafts of a cell are shown the earlier ones, and cost a little more."
    )
    assumed = [each.role for each in estimate.roles if not each.measured]
    if assumed:
        text += f" No record of the dry run reached {and_list(assumed)}: typical cost is assumed there."
    return (Table(columns, rows, "Intervals", footer=("all", None, *ends), shown=None), Paragraph(text))


def _interval(interval: Interval | None, limit: str) -> str:
    return "not known" if interval is None else f"{_amount(interval[0], limit)} to {_amount(interval[1], limit)}"


def _role(each: RoleEstimate) -> dict[str, Any]:
    tokens, money = ("tokens", "token_interval", "token_limit"), ("money", "money_interval", "money_limit")
    names = ("role", "model", "records", "measured", *tokens, *money)
    return {name: getattr(each, name) for name in names}
