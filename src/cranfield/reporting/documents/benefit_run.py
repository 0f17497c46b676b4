"""Plans of experiments, and where an experiment stands, as Documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cranfield.benefit.schedule import order_digest
from cranfield.numbers import UNKNOWN
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
from cranfield.words import n_of

if TYPE_CHECKING:
    from cranfield.benefit.folder import ExperimentManifest
    from cranfield.benefit.plan import BenefitBudget
    from cranfield.benefit.plan_check import CheckedPlan, StratumPower
    from cranfield.benefit.records import PreflightRecord
    from cranfield.benefit.status import ExperimentStatus

CELLS_SHOWN = 20
_OF_A_TOOL = {"arm", "tool", "server", "tools", "found"}


def experiment_plan_document(
    checked: CheckedPlan,
    digest: str,
    powers: Sequence[StratumPower],
    spread: float,
    tools: Sequence[PreflightRecord],
) -> Document:
    """A plan that can be run: its cells, what they can cost, and what its tasks can show.

    Args:
        checked: the plan.
        digest: of the plan, as its results will have it.
        powers: what the tasks of each stratum can show.
        spread: of the differences of tasks that `powers` assume.
        tools: what each tool under test serves.
    """
    plan, cells = checked.plan, checked.cells
    headings = ("stratum", "tasks", "detectable lift")
    rows: list[tuple[Cell, ...]] = [(each.stratum, each.n_tasks, each.detectable) for each in powers]
    text = (
        "Detectable: the lift of success that is found four times of five, if the differences of tasks have a standard "
        f"deviation of {spread:g}; alpha is divided by the number of tests, as in the verdict. Empty: fewer than "
        f"{plan.rule.min_tasks} tasks, or too few for a lift of 1."
    )
    order: list[tuple[Cell, ...]] = [(place, str(key)) for place, key in enumerate(cells)]
    notes: tuple[Block, ...] = (Bullets(checked.notes),) if checked.notes else ()
    columns = (Column("stratum"), Column("tasks", "count"), Column("detectable lift", "value"))
    return Document(
        title=f"Experiment {plan.name}",
        subtitle=(*filter(None, [checked.tree.uncommitted]), "The plan has no problem."),
        sections=(
            Section("plan", "Plan", (_about_plan(checked, digest), *notes)),
            *([_tools(tools)] if tools else []),
            Section("power", "What the tasks can show", (Table(columns, rows, "Strata", shown=None), Paragraph(text))),
            Section(
                "order",
                "Order of the cells",
                (Table((Column("place", "count"), Column("cell", "code")), order, "Cells", shown=CELLS_SHOWN),),
            ),
        ),
        tidy=lambda: tidy_table(headings, rows),
        payload=lambda: _plan_payload(checked, digest, powers, tools),
    )


def _tools(tools: Sequence[PreflightRecord]) -> Section:
    """What each tool says of itself; nothing where its plan asks nothing."""
    rows: list[tuple[Cell, ...]] = [
        (
            *(each.tool, str(each.arm), each.server or UNKNOWN, ", ".join(each.tools)),
            ", ".join(f"{name} {value}" for name, value in each.found.items()) or "not asked: it has no `preflight`",
        )
        for each in tools
    ]
    columns = (Column("tool"), Column("arm"), Column("server"), Column("tools of the server"), Column("serves"))
    return Section("tools", "Tools under test", (Table(columns, rows, "Each was started and asked", wrap=True),))


def _about_plan(checked: CheckedPlan, digest: str) -> KeyValues:
    plan, cells = checked.plan, checked.cells
    tokens, money = checked.most
    about = (
        ("tasks", str(len(checked.tasks.tasks))),
        ("cells", f"{len(cells)}: {len(checked.tasks.tasks)} tasks in 2 arms, {n_of(plan.seeds, 'seeds')} each"),
        *((str(role), arm.name) for role, arm in plan.arms.items()),
        ("commit", checked.commit or "none"),
        ("digest of the plan", digest),
        ("digest of the order", order_digest(cells)),
        ("tokens, by the limits", "no limit" if tokens is None else f"{tokens:,}"),
        (f"money, by the limits ({plan.budget.prices.currency})", "not known" if money is None else f"{money:,.2f}"),
        *([("limit of the judge", _judge_limit(plan.budget))] if plan.judge is not None else []),
    )
    return KeyValues(about)


def _judge_limit(budget: BenefitBudget) -> str:
    limits = [f"{budget.judge_tokens:,} tokens"] if budget.judge_tokens is not None else []
    limits += [f"{budget.judge_money:,.2f} {budget.prices.currency}"] if budget.judge_money is not None else []
    return " and ".join(limits) or "no limit"


def _plan_payload(
    checked: CheckedPlan, digest: str, powers: Sequence[StratumPower], tools: Sequence[PreflightRecord]
) -> dict[str, Any]:
    plan, cells = checked.plan, checked.cells
    tokens, money = checked.most
    return {
        "schema_version": 1,
        "uncommitted": checked.tree.uncommitted,
        "plan": plan.name,
        "digest": digest,
        "order_digest": order_digest(cells),
        "commit": checked.commit,
        "tree": checked.tree.model_dump(mode="json"),
        "labels_digest": checked.tasks.labels_digest,
        "cells": [str(key) for key in cells],
        "tokens_by_limits": tokens,
        "money_by_limits": money,
        "judge_tokens_at_most": plan.budget.judge_tokens,
        "judge_money_at_most": plan.budget.judge_money,
        "strata": [asdict(each) for each in powers],
        "tools": [each.model_dump(mode="json", include=_OF_A_TOOL) for each in tools],
        "left_out": dict(checked.tasks.left_out),
        "notes": list(checked.notes),
    }


def experiment_status_document(manifest: ExperimentManifest, status: ExperimentStatus) -> Document:
    """Where the cells of an experiment stand."""
    headings = ("arm", "name", "cells", "ended", "tokens", "money", "offered", "called", "answered")
    rows: list[tuple[Cell, ...]] = [
        (
            *(arm.role.value, arm.name, arm.n_cells, arm.n_scored, arm.tokens, arm.money),
            *(arm.offered, arm.called, arm.answered),
        )
        for arm in status.arms
    ]
    columns = (
        *(Column(title) for title in headings[:2]),
        *(Column(title, "value" if title == "money" else "count") for title in headings[2:]),
    )
    about = (
        ("pairs", f"{status.n_whole_pairs} of {status.n_pairs} are complete"),
        ("commit", manifest.commit or "none"),
        ("runs that were interrupted", str(status.n_interrupted)),
    )
    waiting: list[tuple[Cell, ...]] = [
        (str(each.key), each.attempt, each.error, each.message) for each in status.waiting
    ]
    kept = (Column("cell", "code"), Column("attempts", "count"), Column("error", "code"), Column("message"))
    blocks: tuple[Block, ...] = (
        _counts("Ends", "end", {arm.role: arm.ends for arm in status.arms}),
        _counts("Errors of all runs", "error", {arm.role: arm.errors for arm in status.arms}),
    )
    return Document(
        title=f"Experiment {manifest.name}",
        subtitle=(*filter(None, [manifest.tree.uncommitted]), f"made at {manifest.created_at}"),
        sections=(
            Section("arms", "Arms", (KeyValues(about), Table(columns, rows, "Arms", shown=None), *blocks)),
            *(
                [Section("waiting", "Cells that failed", (Table(kept, waiting, "Last runs", wrap=True),))]
                if waiting
                else []
            ),
        ),
        tidy=lambda: tidy_table(headings, rows),
        payload=lambda: _status_payload(manifest, status),
    )


def _status_payload(manifest: ExperimentManifest, status: ExperimentStatus) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "uncommitted": manifest.tree.uncommitted,
        "experiment": manifest.model_dump(mode="json"),
        "pairs": status.n_pairs,
        "complete_pairs": status.n_whole_pairs,
        "interrupted": status.n_interrupted,
        "arms": [asdict(arm) | {"ended": arm.n_scored} for arm in status.arms],
        "waiting": [
            {"cell": str(each.key), "attempt": each.attempt, "error": each.error, "message": each.message}
            for each in status.waiting
        ],
    }


def _counts(caption: str, kind: str, by_arm: Mapping[Any, Mapping[Any, int]]) -> Table:
    names = sorted({str(name) for counts in by_arm.values() for name in counts})
    rows: list[tuple[Cell, ...]] = [(name, *(counts.get(name, 0) for counts in by_arm.values())) for name in names]
    columns = (Column(kind, "code"), *(Column(str(role), "count") for role in by_arm))
    return Table(columns, rows, caption, shown=None)
