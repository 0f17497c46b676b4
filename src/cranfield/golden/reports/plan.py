"""The plan of a golden set, as a Document: its cells, what it costs, and whether its budget allows that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.base.words import and_list, count_noun
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Document, Paragraph, Section, Table
from cranfield.reporting.table_spec import Col, Columns, TableSpec

if TYPE_CHECKING:
    from cranfield.golden.plan_cost import CostEstimate, Interval, OverBudget, RoleEstimate


def plan_document(estimate: CostEstimate) -> Document:
    """A plan that can be run: its cells, and what it takes."""
    cells = TableSpec(
        f"Cells; candidates are written with a headroom of {estimate.headroom:g}",
        estimate.cells,
        (
            Col("task type", lambda cell: cell.task_type, key="task_type"),
            Col("difficulty", lambda cell: cell.difficulty),
            Col("wanted", lambda cell: cell.wanted, "count"),
            Col("written", lambda cell: cell.written, "count"),
        ),
    )
    return Document(
        title=f"Plan {estimate.plan}",
        subtitle=(
            *filter(None, [estimate.uncommitted]),
            f"{count_noun(estimate.total, 'queries')}, at {estimate.commit[:12] or 'no commit'}",
            cost_verdict(estimate),
            *estimate.tree.notes,
        ),
        sections=(
            Section("cells", "Cells", (cells.table(footer=("all", "", estimate.total, estimate.n_drafts)),)),
            Section("cost", "Estimated cost", _cost(estimate)),
        ),
        tidy=cells.tidy,
        payload=lambda: to_jsonable(estimate),
    )


def cost_verdict(estimate: CostEstimate) -> str:
    """Whether the budget allows what the plan costs, in a sentence or two."""
    over = estimate.over_budget
    if not over:
        return "The plan has no problems."
    kind = "Measured" if estimate.is_measured else "Typical"
    likely = [each for each in over if each.is_likely]
    verdict = f"{kind} cost is over the budget" if likely else f"{kind} cost may exceed the budget"
    costs = and_list([_over(each, estimate.currency) for each in likely or over])
    return f"{verdict}: {costs}. A run stops at the budget, and can be resumed with a larger one."


def _over(each: OverBudget, currency: str) -> str:
    unit = "tokens" if each.limit == "tokens" else currency
    text = f"about {_amount(each.cost, each.limit)} of {_amount(each.budget, each.limit)} {unit}"
    return text if each.interval is None else f"{text} (95 % interval {_interval(each.interval, each.limit)})"


def _amount(value: float, limit: str) -> str:
    return f"{value:,.0f}" if limit == "tokens" else f"{value:,.2f}" if value >= 1 else f"{value:.4f}"


def _cost(estimate: CostEstimate) -> tuple[Table | Paragraph, ...]:
    money, kind = f"money ({estimate.currency})", "measured" if estimate.is_measured else "typical"
    columns: Columns[RoleEstimate] = (
        Col("role", lambda role: role.role),
        Col("model", lambda role: role.model),
        Col("records", lambda role: role.records, "count"),
        Col(f"tokens, {kind}", lambda role: role.tokens, "count"),
        Col("tokens, at most", lambda role: role.token_limit, "count"),
        Col(f"{money}, {kind}", lambda role: role.money, "value"),
        Col(f"{money}, at most", lambda role: role.money_limit, "value"),
    )
    total = ("all", "", None, estimate.tokens, estimate.token_limit, estimate.money, estimate.money_limit)
    text = "Maximum: from the limits of the roles; for the total, also from the budget. Empty: no limit or no price."
    title = "From the records of a dry run" if estimate.is_measured else "Before any model call"
    return (
        TableSpec(title, estimate.roles, columns).table(footer=total),
        Paragraph(text),
        *_intervals(estimate),
    )


def _intervals(estimate: CostEstimate) -> tuple[Table | Paragraph, ...]:
    """What the dry run measured, and how sure that is."""
    if not estimate.is_measured:
        return ()
    columns: Columns[RoleEstimate] = (
        Col("role", lambda role: role.role),
        Col("measured on", lambda role: role.measured, "count"),
        Col("tokens, 95 % interval", lambda role: _interval(role.token_interval, "tokens")),
        Col(f"money ({estimate.currency}), 95 % interval", lambda role: _interval(role.money_interval, "money")),
    )
    ends = _interval(estimate.token_interval, "tokens"), _interval(estimate.money_interval, "money")
    text = "Prediction of the total from the measured records (Student's t); for all roles, the sum. Unknown if fewer than two were measured. Prompts for later drafts of a cell include the earlier ones, and cost slightly more."
    assumed = [each.role for each in estimate.roles if not each.measured]
    if assumed:
        text += f" No record of the dry run reached {and_list(assumed)}: a typical cost is assumed."
    return (TableSpec("Intervals", estimate.roles, columns).table(footer=("all", None, *ends)), Paragraph(text))


def _interval(interval: Interval | None, limit: str) -> str:
    return "not known" if interval is None else f"{_amount(interval[0], limit)} to {_amount(interval[1], limit)}"
