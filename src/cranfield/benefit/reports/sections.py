"""Sections on the arms of an experiment: what they cost, whether the tool was delivered, what they read, how they failed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import ceil
from typing import Any

from cranfield.base.numbers import (
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
from cranfield.base.words import and_list, count_noun
from cranfield.benefit.plan import ArmRole
from cranfield.benefit.records import Delivery, deciding_facts
from cranfield.benefit.reports.answers import Placed, fact_blocks
from cranfield.benefit.result import (
    ArmMeans,
    BenefitResult,
    DeliveredResults,
    Estimate,
    Reading,
    StratumKind,
    StratumResult,
    VarianceAdvice,
)
from cranfield.reporting.charts.spec import BETTER, SAME, SCREENS, Rule, Screen, Spec, as_is, frame_of, spec_of, tip_of
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Chart,
    KeyValues,
    Paragraph,
    Section,
    Swatch,
    Table,
)
from cranfield.reporting.table_spec import Col, Cols, Columns, TableSpec, by_place

HEIGHT, WIDEST = 260, 620
LEFT, RIGHT, TOP = 60, 24, 12
SWATCHES: tuple[Swatch, ...] = ("good", "same")
COLOURS = (BETTER, SAME)
"""Swatches of the legend, and colours, of the treatment and of the control."""


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
    items = [(name.replace("_", " "), _text(value)) for name, value in result.agent.items()]
    items += [(f"tool {name}", _text(value)) for name, value in result.tools.items()]
    items += [(f"rule: {name.replace('_', ' ')}", _text(value)) for name, value in result.rule.items()]
    items += [("tasks of", result.task_set)] if result.task_set else []
    items += [("plan", result.plan_digest), ("Cranfield", result.cranfield_version), ("run", result.run or UNKNOWN)]
    notes = (
        (
            "The unit is the task: seeds are averaged within a task, and intervals are Student's t intervals of "
            "the task differences."
        ),
        "Verdicts of the strata of one kind are Holm-adjusted together.",
        (
            f"{format_count(len(result.tasks))} tasks were defined in advance: the result applies to similar "
            "tasks on this code."
        ),
    )
    key_figure = f"{count_noun(len(result.tasks), 'tasks', format_count)}, Cranfield {result.cranfield_version}"
    yield Section("setup", "How it was measured", (KeyValues(tuple(items)), Bullets(notes)), key_figure)


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
    rows = list(by_arm.items())

    caption = f"Tokens of the tool are included in the tokens above. {UNKNOWN}: unknown, not 0"
    key_figure = f"{ratio_text(whole.token_ratio.value)} times the tokens of the control"
    columns: Columns[tuple[str, Callable[[ArmMeans], str]]] = (
        Col("mean of a task", lambda row: row[0]),
        Cols(ArmRole, lambda row, role: row[1](whole.arms[role]), title=partial(_arm_title, result)),
    )
    blocks = (TableSpec(caption, rows, columns).table(), _differences(whole))
    return Section("cost", "What the arms cost", blocks, key_figure)


def _arm_title(result: BenefitResult, role: ArmRole) -> str:
    return f"{role.value}: {result.arms[role]}"


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
    columns: Columns[tuple[str, Estimate, Callable[[Number], str]]] = (
        Col("over all tasks", lambda row: row[0]),
        Col("estimate", lambda row: row[2](row[1].value)),
        Col("interval (t)", lambda row: range_text(row[1], row[2])),
        Col("interval (bootstrap of tasks)", lambda row: " to ".join(map(row[2], row[1].bootstrap or ())) or UNKNOWN),
        Col("tasks", lambda row: row[1].n, "count"),
        Col("without a value", lambda row: row[1].n_missing, "count"),
    )
    caption = "Tokens per success, and tokens where both succeed, depend on which tasks an arm solves (a selection). They are not used for a verdict"
    return TableSpec(caption, shown, columns).table()


def _delivery(result: BenefitResult, whole: StratumResult) -> Section:
    def share(role: ArmRole, name: str) -> str:
        arm = whole.arms[role]
        if arm.offered is None:
            return "no tool under test" if name == "offered" else UNKNOWN
        return format_percent(getattr(arm, name))

    columns: Columns[ArmRole] = (
        Col("arm", lambda role: _arm_title(result, role)),
        Col("scored cells", lambda role: _n_scored(whole.arms[role]), "count"),
        Col("tool offered", lambda role: share(role, "offered")),
        Col("called", lambda role: share(role, "called")),
        Col("answered", lambda role: share(role, "answered")),
    )
    caption = "Share of the cells, from the transcripts. Answered: by a result with content"
    blocks: list[Block] = [TableSpec(caption, list(ArmRole), columns).table(), *_contents(result)]
    lift, complied = whole.success_lift, whole.per_protocol_lift
    items = [
        ("lift of offering the tool (intention to treat)", f"{delta_text(lift.value)} ({range_text(lift, delta_text)})")
    ]
    if complied is not None:
        text = f"{delta_text(complied.value)} ({range_text(complied, delta_text)}), {count_noun(complied.n, 'tasks')}"
        items.append(("lift where the tool was called (not randomised)", text))
    key_figure = f"called in {format_percent(whole.arms[ArmRole.TREATMENT].called)} of the cells"
    return Section("delivery", "Whether the tool was delivered", (*blocks, KeyValues(tuple(items))), key_figure)


DELIVERED = {
    "empty": "empty",
    "error": "read as an error",
    "cut": "cut",
    "same": "same for different tasks",
    "other_source": "of another index",
    "with_lines": "with lines of the repository",
    "foreign": "without lines or file names of the repository",
}
"""Counts of results of the tools, and their headings."""


def _contents(result: BenefitResult) -> Iterable[Table]:
    """What the results of the tools hold, by arm; and the cells that called a tool and received nothing."""
    columns: Columns[tuple[ArmRole, DeliveredResults]] = (
        Col("arm", lambda row: _arm_title(result, row[0])),
        Col("results", lambda row: row[1].n, "count"),
        Cols(DELIVERED, lambda row, name: _share_text(getattr(row[1], name), row[1].n), title=DELIVERED.__getitem__),
        Col("cells whose results are not known", lambda row: row[1].cells_unknown, "count"),
    )
    caption = "Content of the tool results that are not errors of its server"
    if result.delivered:
        yield TableSpec(caption, list(result.delivered.items()), columns).table(shown=20, wrap=True)
    silent = [
        (task_id, role, cell.seed, cell.delivery)
        for task_id, role, cell in result.cells
        if cell.delivery is not None and cell.delivery.called and not cell.delivery.answered
    ]
    of_a_cell: Columns[tuple[str, ArmRole, int, Delivery]] = (
        Col("task", lambda row: row[0]),
        Col("arm", lambda row: row[1].value),
        Col("seed", lambda row: row[2], "count"),
        Col("calls", lambda row: row[3].called, "count"),
        Col("results", lambda row: and_list(_flaws(row[3])) or "errors"),
    )
    if silent:
        yield TableSpec("Cells that called the tool and received no content", silent, of_a_cell).table(shown=20)


def _flaws(delivery: Delivery) -> list[str]:
    counts = Counter(flaw for note in delivery.results or () for flaw in note.flaws)
    return [f"{n} {flaw.value}" for flaw, n in counts.items()]


def _share_text(n: int, of: int) -> str:
    return f"{format_count(n)} ({format_percent(n / of)})" if of else UNKNOWN


def _code(result: BenefitResult) -> Iterable[Section]:
    """Section on generated code: how many runs pass each check, and every finding."""
    runs = list(result.cells)
    names = dict.fromkeys(check for _, _, cell in runs for check in cell.checks)
    if not names:
        return

    def passed_text(check: str, role: ArmRole) -> str:
        return _passed_text([cell.checks[check] for _, of, cell in runs if of is role and check in cell.checks])

    of_checks: Columns[str] = (Col("check", str), Cols(ArmRole, passed_text, title=partial(_arm_title, result)))
    passed = TableSpec("Runs whose code passes", list(names), of_checks)
    found = [(task_id, role, cell.seed, row) for task_id, role, cell in runs for row in cell.findings]
    columns: Columns[tuple[str, ArmRole, int, Mapping[str, Any]]] = (
        Col("task", lambda row: row[0]),
        Col("arm", lambda row: row[1].value),
        Col("seed", lambda row: row[2], "count"),
        Col("check", lambda row: row[3].get("check")),
        Col("place", lambda row: _place_text(row[3])),
        Col("symbol", lambda row: row[3].get("symbol")),
        Col("message", lambda row: row[3].get("message")),
        Col("current symbol", lambda row: row[3].get("current")),
    )
    blocks = [passed.table()]
    if found:
        blocks.append(TableSpec("Findings", found, columns).table(shown=20, wrap=True))
    key_figure = count_noun(len(found), "findings", format_count)
    yield Section("code", "Findings of the code checks", tuple(blocks), key_figure)


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
            (Paragraph("Not measurable: no task has gold lines, or no agent reported what it read."),),
            "not measured",
        )
    columns: Columns[tuple[ArmRole, Reading]] = (
        Col("arm", lambda row: _arm_title(result, row[0])),
        Col("tasks with gold lines", lambda row: row[1].n_tasks, "count"),
        Col("gold lines read (explored)", lambda row: format_percent(row[1].gold_recall)),
        Col("gold spans read and named in the answer (used)", lambda row: format_percent(row[1].gold_used)),
        Col("lines read, of any file", lambda row: tokens_text(row[1].lines_read)),
        Col(
            "successes without reading a gold line",
            lambda row: _share_text(row[1].n_unread, row[1].n_successes),
        ),
    )
    blocks: list[Block] = [TableSpec("Means over tasks", list(known.items()), columns).table()]
    if all(each.recall_by_turn for each in known.values()):
        blocks.insert(0, _recall_figure({result.arms[role]: each.recall_by_turn for role, each in known.items()}))
    recalls = (f"{result.arms[role]} {format_percent(each.gold_recall)}" for role, each in known.items())
    return Section("reading", title, tuple(blocks), f"gold lines read: {', '.join(recalls)}")


def _recall_figure(arms: Mapping[str, tuple[float, ...]]) -> Chart:
    columns: Columns[int] = (
        Col("turn", lambda turn: turn + 1, "count"),
        Cols(arms, lambda turn, arm: format_percent(arms[arm][turn]) if turn < len(arms[arm]) else UNKNOWN),
    )
    last = ", ".join(f"{name} {format_percent(recalls[-1])}" for name, recalls in arms.items())
    title = "Gold lines read, by turn"
    page, phone = (recall_by_turn(arms, screen) for screen in SCREENS)
    table = TableSpec(title, range(max(map(len, arms.values()))), columns).table(shown=20)
    legend: tuple[tuple[Swatch, str], ...] = tuple(zip(SWATCHES, arms, strict=False))
    return Chart("recall-by-turn", title, f"{title}; after the last: {last}", page, phone, table, legend)


def _variance_text(variance: float | None) -> str:
    """That of tokens is a large number."""
    return format_statistic(variance) if variance is None or variance < 10_000 else f"{variance:,.0f}"


def _variance(result: BenefitResult) -> Section:
    columns: Columns[VarianceAdvice] = (
        Col("quantity", lambda each: each.quantity),
        Col("between tasks", lambda each: _variance_text(each.between_tasks), "statistic"),
        Col("between seeds of a task", lambda each: _variance_text(each.within_tasks), "statistic"),
        Col("ICC", lambda each: each.icc, "value"),
        Col("advice", lambda each: each.advice),
    )
    caption = "Components of the variance; ICC: share that lies between tasks"
    table = TableSpec(caption, result.variance, columns).table(wrap=True)
    key_figure = ", ".join(f"ICC of {each.quantity} {format_value(each.icc)}" for each in result.variance)
    return Section("variance", "More tasks or more seeds", (table,), key_figure or "unknown")


def _errors(result: BenefitResult, whole: StratumResult | None) -> Section:
    blocks: list[Block] = []
    if whole is not None:
        columns: Columns[tuple[ArmRole, ArmMeans]] = (
            Col("arm", lambda row: _arm_title(result, row[0])),
            Col("planned cells", lambda row: row[1].n_cells, "count"),
            Col("scored", lambda row: _n_scored(row[1]), "count"),
            Col("by a limit or without an answer", lambda row: row[1].n_failed, "count"),
            Col("not decided", lambda row: row[1].n_unscored, "count"),
            Col("not run, or infrastructure failed", lambda row: row[1].n_infrastructure, "count"),
        )
        blocks.append(TableSpec("Cells", list(whole.arms.items()), columns).table())
    named = sorted(result.errors.items(), key=lambda item: -item[1])
    if named:
        of_errors = by_place({"error": "text", "runs of cells": "count"})
        blocks.append(TableSpec("Errors", named, of_errors).table())
    key_figure = count_noun(sum(result.errors.values()), "errors", format_count)
    return Section("errors", "How cells ended", tuple(blocks or (Paragraph("No cell failed."),)), key_figure)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value or UNKNOWN
    return UNKNOWN if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)


def facts_section(result: BenefitResult) -> Iterable[Section]:
    """Section on facts: the statements for which answers are no success, then the others that the judge voted on."""
    deciding: list[Placed] = []
    others: list[Placed] = []
    for task_id, role, cell in result.cells:
        place = f"{task_id}/{role}/{cell.seed}"
        score = "success" if cell.why is None else cell.why.value
        decides = deciding_facts(cell.why, cell.facts)
        deciding += [(place, score, fact) for fact in decides]
        others += [(place, score, fact) for fact in cell.facts if fact.votes and fact not in decides]
    columns: Columns[Placed] = (
        Col("cell", lambda row: row[0], "code"),
        Col("score", lambda row: row[1], "code"),
    )
    captions = {
        "Statements that make an answer fail or stay undecided": deciding,
        "Other statements that the judge voted on": others,
    }
    blocks = [block for caption, rows in captions.items() if rows for block in fact_blocks(columns, rows, caption)]
    if blocks:
        key_figure = f"{count_noun(len(deciding), 'statements', format_count)} missing, wrong or open"
        yield Section("facts", "Which facts decided", tuple(blocks), key_figure)


def recall_by_turn(arms: Mapping[str, Sequence[float]], screen: Screen) -> Spec:
    """Recall of gold lines after each turn, a line an arm to the last turn of both; the first arm is the treatment."""
    most = max(map(len, arms.values()))
    values = [
        {
            "turn": turn,
            "recall": recall,
            "arm": arm,
            "colour": colour,
            "tip": tip_of(f"{arm}, after turn {turn}: {format_percent(recall)}"),
        }
        for (arm, recalls), colour in zip(arms.items(), COLOURS, strict=False)
        for turn, recall in enumerate((*recalls, *[recalls[-1]] * (most - len(recalls))) if recalls else (), start=1)
    ]
    across = {"title": "turn", "values": list(range(1, most + 1, ceil(most / screen.ticks))), "format": "d"}
    x: Rule = {"field": "turn", "type": "quantitative", "axis": across, "scale": {"domain": [1, max(2, most)]}}
    up = {"title": "gold lines read", "tickCount": min(screen.ticks, 5), "format": ".0%"}
    y: Rule = {"field": "recall", "type": "quantitative", "axis": up, "scale": {"domain": [0, 1], "nice": False}}
    by_arm = {"x": x, "y": y, "color": as_is("colour")}
    line: Rule = {"mark": {"type": "line", "strokeWidth": 2}, "encoding": by_arm | {"detail": {"field": "arm"}}}
    dots: Rule = {"mark": {"type": "point", "filled": True, "size": 36, "opacity": 1}, "encoding": by_arm}
    return spec_of(values, [line, dots], frame_of(min(screen.width, WIDEST), HEIGHT, LEFT, right=RIGHT, top=TOP))
