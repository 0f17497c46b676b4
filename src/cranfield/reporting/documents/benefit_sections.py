"""Sections on the arms of an experiment: what they cost, whether the tool was delivered, what they read, how they failed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cranfield.benefit.plan import ArmRole
from cranfield.benefit.records import Delivery
from cranfield.benefit.result import ArmMeans, BenefitResult, Estimate, StratumKind, StratumResult
from cranfield.numbers import (
    UNKNOWN,
    Number,
    format_average,
    format_change,
    format_count,
    format_effect,
    format_percent,
    format_points,
    format_statistic,
    format_value,
)
from cranfield.reporting.charts.benefit import recall_by_turn
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Column,
    Figure,
    KeyValues,
    Paragraph,
    Section,
    Swatch,
    Table,
)
from cranfield.reporting.documents.facts import facts_section
from cranfield.words import and_list, n_of

COLOURS: tuple[Swatch, ...] = ("good", "same")
"""Of the treatment and of the control."""


def stratum_name(row: StratumResult) -> str:
    """`explain, hard`; `all tasks`."""
    if row.kind is StratumKind.BASELINE:
        return f"answerable: {', '.join(row.stratum.values())}"
    return ", ".join(row.stratum.values()) or "all tasks"


def n_text(row: StratumResult) -> Cell:
    """`12`; `11 of 12`: of one task the success is not known in both arms."""
    n = row.success_lift.n
    return n if n == row.n_tasks else f"{format_count(n)} of {format_count(row.n_tasks)}"


def _n_scored(arm: ArmMeans) -> int:
    return arm.n_cells - arm.n_infrastructure


def tokens_text(value: Number) -> str:
    """`1,204`: whole tokens."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def delta_text(value: Number) -> str:
    """`+12.3 pp`."""
    return UNKNOWN if value is None else f"{format_points(value)} pp"


def ratio_text(value: Number) -> str:
    """`0.83`."""
    return UNKNOWN if value is None else f"{value:.2f}"


def range_text(estimate: Estimate, text: Callable[[Number], str]) -> str:
    """Both ends of an interval, or why there is none."""
    if estimate.low is None and estimate.high is None:
        return estimate.note or UNKNOWN
    return f"{text(estimate.low)} to {text(estimate.high)}"


def arms_sections(result: BenefitResult) -> Iterable[Section]:
    """What stands behind the verdicts."""
    whole = next((row for row in result.strata if row.kind is StratumKind.ALL), None)
    if whole is not None:
        yield _cost(result, whole)
        yield _delivery(result, whole)
    yield from _code(result)
    yield from facts_section(result)
    yield _reading(result)
    yield _variance(result)
    yield _errors(result, whole)
    yield _setup(result)


def _cost(result: BenefitResult, whole: StratumResult) -> Section:
    by_arm: Mapping[str, Callable[[ArmMeans], str]] = {
        "success": lambda arm: format_percent(arm.success),
        "tokens": lambda arm: tokens_text(arm.tokens),
        "price-weighted tokens": lambda arm: tokens_text(arm.weighted_tokens),
        "schema of the tool, each request": _schema_text,
        "instructions for the tool, estimated": lambda arm: tokens_text(arm.instructions_tokens),
        "results of the tool, estimated": lambda arm: tokens_text(arm.payload_tokens),
        "tokens per success": lambda arm: tokens_text(arm.tokens_per_success),
        "tool calls": lambda arm: format_average(arm.tool_calls),
        "turns": lambda arm: format_average(arm.turns),
        "seconds": lambda arm: format_average(arm.wall_s),
        "money": lambda arm: UNKNOWN if arm.money is None else f"{arm.money:.4f}",
    }
    rows: list[tuple[Cell, ...]] = [
        (name, *(text(whole.arms[role]) for role in ArmRole)) for name, text in by_arm.items()
    ]
    columns = (Column("mean of a task"), *(Column(f"{role.value}: {result.arms[role]}") for role in ArmRole))
    caption = f"Every token of the tool is part of the tokens above it. {UNKNOWN} is unknown, not 0"
    key_figure = f"{ratio_text(whole.token_ratio.value)} times the tokens of the control"
    blocks = (Table(columns, rows, caption, shown=None), _differences(whole))
    return Section("cost", "What the arms cost", blocks, key_figure)


def _schema_text(arm: ArmMeans) -> str:
    """Measured, or else estimated."""
    if arm.schema_tokens is not None or arm.schema_tokens_estimated is None:
        return tokens_text(arm.schema_tokens)
    return f"{tokens_text(arm.schema_tokens_estimated)} (estimated)"


def _differences(whole: StratumResult) -> Table:
    """Differences over all tasks: material, no verdict."""
    shown: tuple[tuple[str, Estimate, Callable[[Number], str]], ...] = (
        ("token ratio, treatment over control", whole.token_ratio, ratio_text),
        ("tokens saved per task", whole.net_tokens, format_change),
        ("price-weighted tokens saved per task", whole.net_tokens_weighted, format_change),
        ("tokens saved per success", whole.net_tokens_per_success, format_change),
        ("tokens saved where both arms succeed", whole.net_tokens_both, format_change),
        ("more tool calls", whole.tool_calls, format_effect),
        ("more turns", whole.turns, format_effect),
        ("latency ratio, treatment over control", whole.latency_ratio, ratio_text),
    )
    rows: list[tuple[Cell, ...]] = [
        (name, text(each.value), range_text(each, text), _bootstrap(each, text), each.n, each.n_missing)
        for name, each, text in shown
    ]
    columns = (
        *(
            Column("over all tasks"),
            Column("estimate"),
            Column("interval (t)"),
            Column("interval (bootstrap of tasks)"),
        ),
        *(Column("tasks", "count"), Column("without a value", "count")),
    )
    caption = "Tokens per success and where both succeed depend on which tasks an arm solves: a selection. Neither decides a verdict"
    return Table(columns, rows, caption, shown=None)


def _bootstrap(estimate: Estimate, text: Callable[[Number], str]) -> str:
    return UNKNOWN if estimate.bootstrap is None else " to ".join(map(text, estimate.bootstrap))


def _delivery(result: BenefitResult, whole: StratumResult) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for role in ArmRole:
        arm = whole.arms[role]
        shares = [format_percent(share) for share in (arm.offered, arm.called, arm.answered)]
        name = f"{role.value}: {result.arms[role]}"
        rows.append(
            (name, _n_scored(arm), *(shares if arm.offered is not None else ("no tool under test", UNKNOWN, UNKNOWN)))
        )
    columns = (
        *(Column("arm"), Column("scored cells", "count"), Column("tool offered"), Column("called"), Column("answered")),
    )
    caption = "Share of the cells, from the transcripts. Answered: by a result that has content"
    blocks: list[Block] = [Table(columns, rows, caption, shown=None), *_contents(result)]
    lift, complied = whole.success_lift, whole.per_protocol_lift
    items = [
        ("lift of offering the tool (intention to treat)", f"{delta_text(lift.value)} ({range_text(lift, delta_text)})")
    ]
    if complied is not None:
        text = f"{delta_text(complied.value)} ({range_text(complied, delta_text)}), {n_of(complied.n, 'tasks')}"
        items.append(("lift where the tool was called (not randomised)", text))
    key_figure = f"called in {format_percent(whole.arms[ArmRole.TREATMENT].called)} of the cells"
    return Section("delivery", "Whether the tool was delivered", (*blocks, KeyValues(tuple(items))), key_figure)


def _contents(result: BenefitResult) -> Iterable[Table]:
    """What the results of the tools hold, by arm; and the cells that called a tool and received nothing."""
    names = ("empty", "error", "cut", "same", "other_source", "with_lines", "foreign")
    rows: list[tuple[Cell, ...]] = [
        (
            f"{role.value}: {result.arms[role]}",
            found.n,
            *(_share_text(getattr(found, name), found.n) for name in names),
            found.cells_unknown,
        )
        for role, found in result.delivered.items()
    ]
    columns = (
        *(Column("arm"), Column("results", "count"), Column("empty"), Column("read as an error"), Column("cut")),
        *(Column("same for different tasks"), Column("of another index"), Column("with lines of the repository")),
        Column("with none, and no name of a file of it"),
        Column("cells whose results are not known", "count"),
    )
    if rows:
        yield Table(
            columns, rows, "What the results of the tool hold: those that are no error by its server", wrap=True
        )
    silent: list[tuple[Cell, ...]] = [
        (task_id, role.value, cell.seed, cell.delivery.called, and_list(_flaws(cell.delivery)) or "errors")
        for task_id, role, cell in result.cells
        if cell.delivery is not None and cell.delivery.called and not cell.delivery.answered
    ]
    if silent:
        of_a_cell = (
            Column("task"),
            Column("arm"),
            Column("seed", "count"),
            Column("calls", "count"),
            Column("results"),
        )
        yield Table(of_a_cell, silent, "Cells that called the tool and received no content")


def _flaws(delivery: Delivery) -> list[str]:
    counts = Counter(flaw for note in delivery.results or () for flaw in note.flaws)
    return [f"{n} {flaw.value}" for flaw, n in counts.items()]


def _share_text(n: int, of: int) -> str:
    return f"{format_count(n)} ({format_percent(n / of)})" if of else UNKNOWN


def _code(result: BenefitResult) -> Iterable[Section]:
    """Of generated code: how many runs pass each check, and every finding."""
    runs = list(result.cells)
    names = dict.fromkeys(check for _, _, cell in runs for check in cell.checks)
    if not names:
        return
    passed: list[tuple[Cell, ...]] = []
    for name in names:
        states = {
            role: [cell.checks[name] for _, of, cell in runs if of is role and name in cell.checks] for role in ArmRole
        }
        passed.append((name, *(_passed_text(states[role]) for role in ArmRole)))
    columns = (Column("check"), *(Column(f"{role.value}: {result.arms[role]}") for role in ArmRole))
    blocks: list[Block] = [Table(columns, passed, "Runs whose code passes", shown=None)]
    found: list[tuple[Cell, ...]] = [
        (
            *(task_id, role.value, cell.seed, row.get("check"), _place_text(row)),
            *(row.get("symbol"), row.get("message"), row.get("current")),
        )
        for task_id, role, cell in runs
        for row in cell.findings
    ]
    if found:
        titles = ("check", "place", "symbol", "message", "current symbol")
        columns = (Column("task"), Column("arm"), Column("seed", "count"), *(Column(title) for title in titles))
        blocks.append(Table(columns, found, "Findings", wrap=True))
    key_figure = n_of(len(found), "findings", format_count)
    yield Section("code", "What the checks of code found", tuple(blocks), key_figure)


def _place_text(finding: Mapping[str, Any]) -> str:
    """`main.py:3`; a line 0 stands for the whole file, and a failed test is in none."""
    file, line = finding.get("file") or "", finding.get("line")
    return f"{file}:{line}" if file and line else file


def _passed_text(states: Sequence[str]) -> str:
    """`22 of 30, 1 with unknown symbols, 1 not decided`."""
    parts = [f"{format_count(states.count('passed'))} of {format_count(len(states))}"]
    for state, name in (("unknown", "with unknown symbols"), ("missing", "not decided")):
        if n := states.count(state):
            parts.append(f"{format_count(n)} {name}")
    return ", ".join(parts)


def _reading(result: BenefitResult) -> Section:
    title = "What the agents read"
    known = {role: result.reading[role] for role in ArmRole if role in result.reading}
    if not any(each.n_tasks for each in known.values()):
        return Section(
            "reading",
            title,
            (Paragraph("No task has gold lines, or no agent reported what it read: this cannot be measured."),),
            "not measured",
        )
    rows: list[tuple[Cell, ...]] = [
        (
            f"{role.value}: {result.arms[role]}",
            *(each.n_tasks, format_percent(each.gold_recall), format_percent(each.gold_used)),
            tokens_text(each.lines_read),
            _share_text(each.n_unread, each.n_successes),
        )
        for role, each in known.items()
    ]
    columns = (
        *(Column("arm"), Column("tasks with gold lines", "count"), Column("gold lines read (explored)")),
        *(Column("gold spans read and named in the answer (used)"), Column("lines read, of any file")),
        Column("successes without a gold line that was read"),
    )
    blocks: list[Block] = [Table(columns, rows, "Means over tasks", shown=None)]
    if all(each.recall_by_turn for each in known.values()):
        blocks.insert(0, _recall_figure({result.arms[role]: each.recall_by_turn for role, each in known.items()}))
    recalls = (f"{result.arms[role]} {format_percent(each.gold_recall)}" for role, each in known.items())
    return Section("reading", title, tuple(blocks), f"gold lines read: {', '.join(recalls)}")


def _recall_figure(arms: Mapping[str, tuple[float, ...]]) -> Figure:
    most = max(map(len, arms.values()))
    rows: list[tuple[Cell, ...]] = [
        (turn + 1, *(format_percent(recalls[turn]) if turn < len(recalls) else UNKNOWN for recalls in arms.values()))
        for turn in range(most)
    ]
    columns = (Column("turn", "count"), *(Column(name) for name in arms))
    last = ", ".join(f"{name} {format_percent(recalls[-1])}" for name, recalls in arms.items())
    title = "Gold lines read, by turn"
    page, phone = (recall_by_turn(arms, screen) for screen in SCREENS)
    table = Table(columns, rows, title)
    legend: tuple[tuple[Swatch, str], ...] = tuple(zip(COLOURS, arms, strict=False))
    return Figure("recall-by-turn", title, f"{title}; after the last: {last}", page, phone, table, legend)


def _variance_text(variance: float | None) -> str:
    """That of tokens is a large number."""
    return format_statistic(variance) if variance is None or variance < 10_000 else f"{variance:,.0f}"


def _variance(result: BenefitResult) -> Section:
    rows: list[tuple[Cell, ...]] = [
        (each.quantity, *map(_variance_text, (each.between_tasks, each.within_tasks)), each.icc, each.advice)
        for each in result.variance
    ]
    columns = (
        *(Column("quantity"), Column("between tasks", "statistic"), Column("between seeds of a task", "statistic")),
        *(Column("ICC", "value"), Column("advice")),
    )
    caption = "Components of the variance; ICC: share that lies between tasks"
    table = Table(columns, rows, caption, shown=None, wrap=True)
    key_figure = ", ".join(f"ICC of {each.quantity} {format_value(each.icc)}" for each in result.variance)
    return Section("variance", "More tasks or more seeds", (table,), key_figure or "unknown")


def _errors(result: BenefitResult, whole: StratumResult | None) -> Section:
    blocks: list[Block] = []
    if whole is not None:
        rows: list[tuple[Cell, ...]] = [
            (
                f"{role.value}: {result.arms[role]}",
                *(arm.n_cells, _n_scored(arm), arm.n_failed, arm.n_unscored, arm.n_infrastructure),
            )
            for role, arm in whole.arms.items()
        ]
        columns = (
            *(Column("arm"), Column("planned cells", "count"), Column("scored", "count")),
            *(Column("by a limit or without an answer", "count"), Column("not decided", "count")),
            Column("not run, or infrastructure failed", "count"),
        )
        blocks.append(Table(columns, rows, "Cells", shown=None))
    named: list[tuple[Cell, ...]] = [(name, n) for name, n in sorted(result.errors.items(), key=lambda item: -item[1])]
    if named:
        blocks.append(Table((Column("error"), Column("runs of cells", "count")), named, "Errors", shown=None))
    key_figure = n_of(sum(result.errors.values()), "errors", format_count)
    return Section("errors", "How cells ended", tuple(blocks or (Paragraph("No cell failed."),)), key_figure)


def _setup(result: BenefitResult) -> Section:
    items = [(name.replace("_", " "), _text(value)) for name, value in result.agent.items()]
    items += [(f"tool {name}", _text(value)) for name, value in result.tools.items()]
    items += [(f"rule: {name.replace('_', ' ')}", _text(value)) for name, value in result.rule.items()]
    items += [("tasks of", result.task_set)] if result.task_set else []
    items += [("plan", result.plan_digest), ("Cranfield", result.cranfield_version), ("run", result.run or UNKNOWN)]
    notes = (
        "The task is the unit: seeds are averaged in a task, and intervals are Student's t on the differences of tasks.",
        "Verdicts of the strata of one kind are adjusted together by Holm.",
        f"{format_count(len(result.tasks))} tasks were drawn up beforehand: the result holds for tasks like these, on this code.",
    )
    key_figure = f"{n_of(len(result.tasks), 'tasks', format_count)}, Cranfield {result.cranfield_version}"
    return Section("setup", "How it was measured", (KeyValues(tuple(items)), Bullets(notes)), key_figure)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value or UNKNOWN
    return UNKNOWN if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)
