"""The benefit of a tool for an agent, as a Document: a verdict for each stratum, and none over all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from cranfield.benefit.plan import ArmRole
from cranfield.benefit.result import (
    BenefitResult,
    CostVerdict,
    Estimate,
    Loss,
    StratumKind,
    StratumResult,
    SuccessVerdict,
    Verdict,
)
from cranfield.numbers import (
    UNKNOWN,
    format_change,
    format_count,
    format_level,
    format_p,
    format_percent,
    format_points,
)
from cranfield.reporting.charts.differences import Whisker, whiskers
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.document import (
    VOID_STAMP,
    Block,
    Brief,
    Bullets,
    Cell,
    Column,
    Document,
    Fact,
    Figure,
    KeyValues,
    Link,
    Paragraph,
    Section,
    Table,
    Tone,
    TonedCell,
    VerdictBlock,
    tidy_table,
    without_tones,
)
from cranfield.reporting.documents.benefit_sections import (
    arms_sections,
    delta_text,
    n_text,
    range_text,
    ratio_text,
    stratum_name,
    tokens_text,
)
from cranfield.words import capitalised, n_of

TONES: dict[Verdict, Tone] = {
    Verdict.PAYS_OFF: "good",
    Verdict.NET_COST: "bad",
    Verdict.NO_DIFFERENCE: "even",
    Verdict.INSUFFICIENT: "open",
    Verdict.VOID: "open",
}
KIND_TITLES = {
    StratumKind.CELL: "Verdicts",
    StratumKind.MARGIN: "Margins",
    StratumKind.BASELINE: "Answerable without the tool",
}
CAPTIONS = {
    StratumKind.CELL: "Every combination of strata",
    StratumKind.MARGIN: "One stratum at a time",
    StratumKind.BASELINE: "By baseline_answerable",
    StratumKind.ALL: "All tasks, which have no strata",
}
TIDY = (
    *("kind", "stratum", "tasks", "seeds", "verdict", "quantity", "value", "low", "high", "p", "p_adjusted", "n"),
    "note",
)
QUANTITIES = (
    *("success_lift", "token_ratio", "net_tokens", "net_tokens_weighted", "net_tokens_per_success", "net_tokens_both"),
    *("tool_calls", "turns", "latency_ratio", "per_protocol_lift"),
)


def benefit_document(result: BenefitResult, transcripts: str = "") -> Document:
    """The whole report.

    Args:
        result: of an experiment.
        transcripts: page of the transcripts, relative to the report; empty: there is none, and losses link nothing.
    """
    sections = [*_verdict_sections(result), _all_tasks(result), _losses(result, transcripts), *arms_sections(result)]
    if result.is_void:
        sections = [replace(each, blocks=without_tones(each.blocks)) for each in sections]
    treatment, control = (result.arms[role] for role in ArmRole)
    version = f"version {result.version}, " if result.version else ""
    return Document(
        title=f"Benefit: {treatment} against {control}",
        subtitle=(
            f"{result.name}: {version}{n_of(len(result.tasks), 'tasks', format_count)}, {result.plan_digest[:15]}",
            *([f"commit {result.commit_text}"] if result.commit else []),
        ),
        sections=tuple(sections),
        tidy=lambda: tidy_table(TIDY, list(_tidy(result))),
        payload=lambda: result.model_dump(mode="json"),
        verdict=(verdict := _verdict(result)),
        brief=lambda: Brief(_brief_table(result), doubts=verdict.limits()),
        stamps=(VOID_STAMP,) if result.is_void else (),
    )


def _verdict(result: BenefitResult) -> VerdictBlock:
    void = [each.message for each in result.validity if each.is_void]
    caveats = tuple(each.message for each in result.validity if not each.is_void and (void or not each.leads))
    cells = result.first_strata
    if void:
        sentence = f"There is no verdict: {void[0]}."
        return VerdictBlock("invalid", sentence, "void", (), tuple(void[1:]), (), caveats)
    sentence = f"Of {n_of(len(cells), 'strata')}: {_counted(cells)}. Each has a verdict of its own; a mean over all of them would hide where the tool helps and where it costs."
    if [row.kind for row in cells] == [StratumKind.ALL]:
        sentence = f"{capitalised(cells[0].verdict.value)} ({cells[0].claims}), over all tasks: none has a stratum. {cells[0].reason}"
    sentence = "".join(f"Caution: {each}. " for each in result.cautions) + sentence
    facts = [
        Fact(stratum_name(row), row.verdict.value, f"{capitalised(row.claims)}. {row.reason}", TONES[row.verdict])
        for row in _telling(cells)
    ]
    return VerdictBlock("by stratum", sentence, "", tuple(facts), (), (), caveats)


def _telling(cells: Sequence[StratumResult]) -> list[StratumResult]:
    """Those with a finding, in the order of the result: what pays off and what costs alike."""
    same_and_cheaper = (SuccessVerdict.SAME, CostVerdict.CHEAPER)
    return [
        row
        for row in cells
        if row.verdict in (Verdict.PAYS_OFF, Verdict.NET_COST)
        or (row.claims and (row.success, row.cost) == same_and_cheaper)
    ]


def _verdict_sections(result: BenefitResult) -> Iterable[Section]:
    by_kind = {kind: [row for row in result.strata if row.kind is kind] for kind in KIND_TITLES}
    if not any(by_kind.values()):
        by_kind[StratumKind.CELL] = list(result.strata)
    shown = [(kind, rows) for kind, rows in by_kind.items() if rows]
    for kind, rows in shown:
        legend = (Paragraph(_legend(rows), "note"),) if kind is shown[0][0] else ()
        blocks: list[Block] = [_table(rows, result), *legend, Bullets(tuple(_reason(row) for row in rows))]
        if kind is StratumKind.CELL:
            blocks += _figures(rows, result)
        key_figure = "" if legend else _counted(rows)
        yield Section(kind.value, KIND_TITLES[kind], tuple(blocks), key_figure)


def _counted(rows: Sequence[StratumResult]) -> str:
    """How many strata have each verdict: `1 pays off, 2 insufficient data`."""
    counted = Counter(row.verdict for row in rows)
    return ", ".join(f"{format_count(counted[verdict])} {verdict.value}" for verdict in Verdict if counted[verdict])


def _legend(rows: Sequence[StratumResult]) -> str:
    seeds = n_of(max(row.n_seeds for row in rows), "seeds")
    return (
        f"n: tasks whose success is decided in both arms, {seeds} each. Δ: treatment less control, means over tasks; of success in percentage points. "
        "Net tokens: saved by the treatment, all tokens of the tool included. "
        "Intervals are those of each stratum alone; verdicts are adjusted for their number. "
        "Ties: both arms have the same success in every task; the interval is what so few tasks exclude."
    )


def _table(rows: Sequence[StratumResult], result: BenefitResult) -> Table:
    by_name = rows[0].kind is StratumKind.CELL
    names = list(rows[0].stratum) if by_name else ["stratum"]
    level = format_level(float(result.rule["alpha"]))
    columns = (
        *(Column(name.replace("_", " ")) for name in names),
        *(Column("verdict"), Column("success, cost")),
        *(Column("n", "count"), Column("Δ success", "statistic"), Column(f"{level} CI")),
        *(Column("net tokens/task", "statistic"), Column(f"{level} CI"), Column("Δ tool calls", "effect")),
    )
    cells: list[tuple[Cell, ...]] = [
        (
            *(row.stratum.values() if by_name else [stratum_name(row)]),
            *(TonedCell(row.verdict.value, TONES[row.verdict]), row.claims),
            n_text(row),
            format_points(row.success_lift.value),
            _ends(row.success_lift, format_points),
            format_change(row.net_tokens.value),
            _ends(row.net_tokens, format_change),
            row.tool_calls.value,
        )
        for row in rows
    ]
    return Table(columns, cells, CAPTIONS[rows[0].kind], shown=None, wrap=True)


def _brief_table(result: BenefitResult) -> Table:
    """Verdict and success of each stratum, whole in 80 columns: an interval that is cut reads as another one."""
    columns = (
        *(Column("stratum"), Column("verdict"), Column("n", "count")),
        Column(f"Δ success ({format_level(float(result.rule['alpha']))} CI)"),
    )
    rows: list[tuple[Cell, ...]] = []
    for row in result.first_strata:
        lift, ends = row.success_lift, _ends(row.success_lift, format_points)
        success = f"{format_points(lift.value)} ({ends})" if lift.low is not None else format_points(lift.value)
        rows.append((stratum_name(row), TonedCell(row.verdict.value, TONES[row.verdict]), n_text(row), success))
    return Table(columns, rows, "Verdicts")


def _reason(row: StratumResult) -> str:
    lift = row.minimal_detectable_lift
    least = "" if lift is None else f" A true lift is found with a probability of .8 from {_detectable(lift)} on."
    if lift is not None and lift > 1:
        least = " No true lift is found with a probability of .8 by so few tasks."
    claims = f" ({row.claims})" if row.claims else ""
    return f"{stratum_name(row)}: {row.verdict.value}{claims}. {row.reason}{least}"


def _ends(estimate: Estimate, text: Callable[[float | None], str]) -> str:
    if estimate.low is None:
        return UNKNOWN
    return f"{range_text(estimate, text)}{', ties' if estimate.value == 0 and estimate.note else ''}"


def _detectable(lift: float | None) -> str:
    """A lift of over 1 there cannot be."""
    return UNKNOWN if lift is None else "none" if lift > 1 else delta_text(lift)


def _figures(rows: Sequence[StratumResult], result: BenefitResult) -> list[Figure]:
    level = format_level(float(result.rule["alpha"]))
    lifts, saved = [row.success_lift for row in rows], [row.net_tokens for row in rows]
    return [
        _forest("success-lift", f"Success: treatment less control, {level} CI", rows, lifts, delta_text),
        _forest("net-tokens", f"Tokens saved per task, {level} CI", rows, saved, format_change),
    ]


def _forest(
    name: str,
    title: str,
    rows: Sequence[StratumResult],
    estimates: Sequence[Estimate],
    text: Callable[[float | None], str],
) -> Figure:
    marks: list[Whisker] = []
    data: list[tuple[Cell, ...]] = []
    for row, each in zip(rows, estimates, strict=True):
        label = stratum_name(row)
        tone: Tone = "good" if (each.low or 0) > 0 else "bad" if (each.high or 0) < 0 else ""
        marks.append(Whisker(f"{label} ({format_count(each.n)})", each.value, each.low, each.high, tone))
        data.append((label, text(each.value), range_text(each, text), each.n, each.note))
    axis = title.partition(",")[0]  # of the whole title an axis shows a part
    page, phone = (whiskers(marks, axis, screen) for screen in SCREENS)
    columns = (Column("stratum"), Column("estimate"), Column("interval"), Column("tasks", "count"), Column("note"))
    alt = f"{title}: {'; '.join(f'{row[0]} {row[1]} ({row[2]})' for row in data)}"
    return Figure(name, title, alt, page, phone, Table(columns, data, title, shown=None))


def _all_tasks(result: BenefitResult) -> Section:
    blocks: list[Block] = [Paragraph(result.sentence)]
    for row in result.strata:
        if row.kind is not StratumKind.ALL:
            continue
        test = row.mcnemar
        blocks.append(
            KeyValues(
                (
                    ("tasks solved by both arms", format_count(test.both)),
                    ("by the treatment alone", format_count(test.only_treatment)),
                    ("by the control alone", format_count(test.only_control)),
                    ("by neither", format_count(test.neither)),
                    ("McNemar's exact test", f"p {format_p(test.p)}, {n_of(test.n, 'tasks')}"),
                    ("lift", f"{delta_text(row.success_lift.value)} ({range_text(row.success_lift, delta_text)})"),
                    ("smallest lift found with 80 % power", _detectable(row.minimal_detectable_lift)),
                    ("token ratio", f"{ratio_text(row.token_ratio.value)} ({range_text(row.token_ratio, ratio_text)})"),
                )
            )
        )
    binary = str(result.rule.get("binary", "majority"))
    success = {"first": "its first seed is", "majority": "most of its seeds are", "all": "all of its seeds are"}.get(
        binary, binary
    )
    blocks.append(
        Paragraph(
            f"A task counts as solved where {success} a success: fixed in the plan. This is not the verdict.", "note"
        )
    )
    return Section("all", "All tasks", tuple(blocks))


def _losses(result: BenefitResult, transcripts: str) -> Section:
    if not result.losses:
        return Section("losses", "Tasks where the treatment was worse", (Paragraph("There is none."),))
    rows: list[tuple[Cell, ...]] = [
        (
            loss.task_id,
            ", ".join(loss.stratum.values()),
            *(format_percent(loss.success.get(role)) for role in ArmRole),
            *(tokens_text(loss.tokens.get(role)) for role in ArmRole),
            _transcripts_of(loss, transcripts),
        )
        for loss in result.losses
    ]
    columns = (
        *(Column("task"), Column("stratum"), Column("success, treatment"), Column("success, control")),
        *(Column("tokens, treatment"), Column("tokens, control"), Column("transcripts")),
    )
    return Section(
        "losses",
        "Tasks where the treatment was worse",
        (Table(columns, rows, "The worst first", shown=None, wrap=True),),
    )


def _transcripts_of(loss: Loss, page: str) -> Cell:
    n = sum(map(len, loss.transcripts.values()))
    return Link(f"{n} of both arms", page) if page and n else f"{n} in the folder of the experiment"


def _tidy(result: BenefitResult) -> Iterable[tuple[Cell, ...]]:
    for row in result.strata:
        for quantity in QUANTITIES:
            estimate = getattr(row, quantity)
            if estimate is not None:
                yield (
                    *(row.kind.value, stratum_name(row), row.n_tasks, row.n_seeds, row.verdict.value, quantity),
                    *(estimate.value, estimate.low, estimate.high, estimate.p, estimate.p_adjusted, estimate.n),
                    estimate.note,
                )
