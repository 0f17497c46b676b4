"""Plans of experiments, and where an experiment stands, as Documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cranfield.base.numbers import UNKNOWN
from cranfield.base.words import count_noun
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Bullets, Document, KeyValues, Paragraph, Section, Table
from cranfield.reporting.table_spec import Col, Cols, Columns, TableSpec

if TYPE_CHECKING:
    from cranfield.benefit.plan_check import PlanResult, StratumPower
    from cranfield.benefit.records import CellRecord, PreflightRecord
    from cranfield.benefit.status import ArmStatus, ExperimentStatus

CELLS_SHOWN = 20


def experiment_plan_document(plan: PlanResult) -> Document:
    """A plan that can be run: its cells, what they can cost, and what its tasks can show."""
    strata: TableSpec[StratumPower] = TableSpec(
        "Strata",
        plan.strata,
        (
            Col("stratum", lambda row: row.stratum),
            Col("tasks", lambda row: row.n_tasks, "count", key="n_tasks"),
            Col("detectable lift", lambda row: row.detectable, "value", key="detectable"),
        ),
    )
    text = f"Detectable: lift of success with 80 % power, assuming a standard deviation of {plan.spread:g} of the task differences; alpha is divided by the number of tests, as in the verdict. Empty: fewer than {plan.min_tasks} tasks, or too few even for a lift of 1."
    order: TableSpec[tuple[int, str]] = TableSpec(
        "Cells",
        list(enumerate(plan.cells)),
        (Col("place", lambda row: row[0], "count"), Col("cell", lambda row: row[1], "code")),
    )
    notes = [Bullets(plan.notes)] if plan.notes else []
    return Document(
        title=f"Experiment {plan.plan}",
        subtitle=(*filter(None, [plan.uncommitted]), "The plan has no problems."),
        sections=(
            Section("plan", "Plan", (_about_plan(plan), *notes)),
            *([Section("tools", "Tools under test", (_tools(plan),))] if plan.tools else []),
            Section("power", "Detectable effects", (strata.table(), Paragraph(text))),
            Section("order", "Order of the cells", (order.table(shown=CELLS_SHOWN),)),
        ),
        tidy=strata.tidy,
        payload=lambda: to_jsonable(plan),
    )


def _tools(plan: PlanResult) -> Table:
    """What each tool says of itself; nothing where its plan asks nothing."""

    def served(each: PreflightRecord) -> str:
        return ", ".join(f"{name} {value}" for name, value in each.found.items())

    columns: Columns[PreflightRecord] = (
        Col("tool", lambda each: each.tool),
        Col("arm", lambda each: each.arm.value),
        Col("server", lambda each: each.server or UNKNOWN),
        Col("tools of the server", lambda each: ", ".join(each.tools)),
        Col("serves", lambda each: served(each) or "not checked: no `preflight`"),
    )
    return TableSpec("Each tool was started and checked", plan.tools, columns).table(shown=20, wrap=True)


def _about_plan(plan: PlanResult) -> KeyValues:
    tokens, money = plan.tokens_by_limits, plan.money_by_limits
    about = (
        ("tasks", str(plan.n_tasks)),
        ("cells", f"{len(plan.cells)}: {plan.n_tasks} tasks in 2 arms, {count_noun(plan.seeds, 'seeds')} each"),
        *((str(role), name) for role, name in plan.arms.items()),
        ("commit", plan.commit or "none"),
        ("digest of the plan", plan.digest),
        ("digest of the order", plan.order_digest),
        ("tokens, by the limits", "no limit" if tokens is None else f"{tokens:,}"),
        (f"money, by the limits ({plan.currency})", "not known" if money is None else f"{money:,.2f}"),
        *([("limit of the judge", _judge_limit(plan))] if plan.has_judge else []),
    )
    return KeyValues(about)


def _judge_limit(plan: PlanResult) -> str:
    limits = [f"{plan.judge_tokens_at_most:,} tokens"] if plan.judge_tokens_at_most is not None else []
    limits += [f"{plan.judge_money_at_most:,.2f} {plan.currency}"] if plan.judge_money_at_most is not None else []
    return " and ".join(limits) or "no limit"


def experiment_status_document(status: ExperimentStatus) -> Document:
    """Where the cells of an experiment stand."""
    manifest = status.experiment
    arms: TableSpec[ArmStatus] = TableSpec(
        "Arms",
        status.arms,
        (
            Col("arm", lambda arm: arm.role.value),
            Col("name", lambda arm: arm.name),
            Col("cells", lambda arm: arm.n_cells, "count"),
            Col("ended", lambda arm: arm.n_scored, "count"),
            Col("tokens", lambda arm: arm.tokens, "count"),
            Col("money", lambda arm: arm.money, "value"),
            Col("offered", lambda arm: arm.offered, "count"),
            Col("called", lambda arm: arm.called, "count"),
            Col("answered", lambda arm: arm.answered, "count"),
        ),
    )
    about = (
        ("pairs", f"{status.n_whole_pairs} of {status.n_pairs} are complete"),
        ("commit", manifest.commit or "none"),
        ("runs that were interrupted", str(status.n_interrupted)),
    )
    waiting: TableSpec[CellRecord] = TableSpec(
        "Last runs",
        status.waiting,
        (
            Col("cell", lambda each: str(each.key), "code"),
            Col("attempts", lambda each: each.attempt, "count"),
            Col("error", lambda each: each.error, "code"),
            Col("message", lambda each: each.message),
        ),
    )
    counts = (
        _counts("Ends", "end", {arm.role: arm.ends for arm in status.arms}),
        _counts("Errors of all runs", "error", {arm.role: arm.errors for arm in status.arms}),
    )
    sections = [Section("arms", "Arms", (KeyValues(about), arms.table(), *counts))]
    if waiting.rows:
        sections.append(Section("waiting", "Cells that failed", (waiting.table(shown=20, wrap=True),)))
    return Document(
        title=f"Experiment {manifest.name}",
        subtitle=(*filter(None, [status.uncommitted]), f"made at {manifest.created_at}"),
        sections=tuple(sections),
        tidy=arms.tidy,
        payload=lambda: to_jsonable(status),
    )


def _counts(caption: str, kind: str, by_arm: Mapping[Any, Mapping[Any, int]]) -> Table:
    names = sorted({str(name) for counts in by_arm.values() for name in counts})
    return TableSpec(
        caption, names, (Col(kind, str, "code"), Cols(by_arm, lambda name, role: by_arm[role].get(name, 0), "count"))
    ).table()
