"""The benefit of a tool for an agent, as a Document: a verdict for each stratum, and none over all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from cranfield.base.numbers import (
    UNKNOWN,
    format_change,
    format_count,
    format_level,
    format_p,
    format_percent,
    format_points,
)
from cranfield.base.words import capitalised, count_noun
from cranfield.benefit.plan import ArmRole
from cranfield.benefit.reports.sections import (
    arms_sections,
    delta_text,
    n_text,
    range_text,
    ratio_text,
    stratum_name,
    tokens_text,
)
from cranfield.benefit.result import (
    BenefitResult,
    CostVerdict,
    Estimate,
    Loss,
    StratumKind,
    StratumResult,
    StratumVerdict,
    SuccessVerdict,
)
from cranfield.reporting.charts.differences import Whisker, whiskers
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.document import (
    VOID_STAMP,
    Block,
    Brief,
    Bullets,
    Cell,
    Chart,
    Document,
    KeyValues,
    Link,
    Paragraph,
    Section,
    Table,
    Tone,
    TonedCell,
    VerdictBlock,
    VerdictFact,
    without_tones,
)
from cranfield.reporting.table_spec import Col, Cols, Columns, TableSpec

TONES: dict[StratumVerdict, Tone] = {
    StratumVerdict.PAYS_OFF: "good",
    StratumVerdict.NET_COST: "bad",
    StratumVerdict.NO_DIFFERENCE: "even",
    StratumVerdict.INSUFFICIENT: "open",
    StratumVerdict.VOID: "open",
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
QUANTITIES = (
    "success_lift", "token_ratio", "net_tokens", "net_tokens_weighted", "net_tokens_per_success", "net_tokens_both",
    "tool_calls", "turns", "latency_ratio", "per_protocol_lift",
)  # fmt: skip


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
            f"{result.name}: {version}{count_noun(len(result.tasks), 'tasks', format_count)}, {result.plan_digest[:15]}",
            *([f"commit {result.commit_text}"] if result.commit else []),
        ),
        sections=tuple(sections),
        tidy=_estimates(result).tidy,
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
        sentence = f"No verdict: {void[0]}."
        return VerdictBlock("invalid", sentence, "void", (), tuple(void[1:]), (), caveats)
    sentence = f"Of {count_noun(len(cells), 'strata')}: {_counted(cells)}. Each has a separate verdict; a mean over all strata would hide where the tool helps and where it costs."
    if [row.kind for row in cells] == [StratumKind.ALL]:
        sentence = (
            f"{capitalised(cells[0].verdict.value)} ({cells[0].claims}), over all tasks (no strata). {cells[0].reason}"
        )
    sentence = "".join(f"Caution: {each}. " for each in result.cautions) + sentence
    facts = [
        VerdictFact(
            stratum_name(row), row.verdict.value, f"{capitalised(row.claims)}. {row.reason}", TONES[row.verdict]
        )
        for row in _telling(cells)
    ]
    return VerdictBlock("by stratum", sentence, "", tuple(facts), (), (), caveats)


def _telling(cells: Sequence[StratumResult]) -> list[StratumResult]:
    """Those with a finding, in the order of the result: what pays off and what costs alike."""
    same_and_cheaper = (SuccessVerdict.SAME, CostVerdict.CHEAPER)
    return [
        row
        for row in cells
        if row.verdict in (StratumVerdict.PAYS_OFF, StratumVerdict.NET_COST)
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
    return ", ".join(
        f"{format_count(counted[verdict])} {verdict.value}" for verdict in StratumVerdict if counted[verdict]
    )


def _legend(rows: Sequence[StratumResult]) -> str:
    seeds = count_noun(max(row.n_seeds for row in rows), "seeds")
    return (
        f"n: tasks with a decided success in both arms, {seeds} each. Δ: treatment minus control, means over "
        "tasks; success in percentage points. "
        "Net tokens: saved by the treatment, including all tokens of the tool. "
        "Intervals are per stratum, without correction; verdicts are corrected for the number of strata. "
        "Ties: both arms have the same success in every task; the interval is based on the number of tasks."
    )


def _table(rows: Sequence[StratumResult], result: BenefitResult) -> Table:
    by_name = rows[0].kind is StratumKind.CELL
    level = format_level(float(result.rule["alpha"]))
    columns: Columns[StratumResult] = (
        Cols(
            rows[0].stratum if by_name else (),
            lambda row, name: row.stratum[name],
            title=lambda name: name.replace("_", " "),
        ),
        Col("stratum", stratum_name, when=not by_name),
        Col("verdict", _verdict_cell),
        Col("success, cost", lambda row: row.claims),
        Col("n", n_text, "count"),
        Col("Δ success", lambda row: format_points(row.success_lift.value), "statistic"),
        Col(f"{level} CI", lambda row: _ends(row.success_lift, format_points)),
        Col("net tokens/task", lambda row: format_change(row.net_tokens.value), "statistic"),
        Col(f"{level} CI", lambda row: _ends(row.net_tokens, format_change)),
        Col("Δ tool calls", lambda row: row.tool_calls.value, "effect"),
    )
    return TableSpec(CAPTIONS[rows[0].kind], rows, columns).table(wrap=True)


def _verdict_cell(row: StratumResult) -> TonedCell:
    return TonedCell(row.verdict.value, TONES[row.verdict])


def _brief_table(result: BenefitResult) -> Table:
    """Verdict and success of each stratum, whole in 80 columns: an interval that is cut reads as another one."""

    def success(row: StratumResult) -> str:
        lift, ends = row.success_lift, _ends(row.success_lift, format_points)
        return f"{format_points(lift.value)} ({ends})" if lift.low is not None else format_points(lift.value)

    columns: Columns[StratumResult] = (
        Col("stratum", stratum_name),
        Col("verdict", _verdict_cell),
        Col("n", n_text, "count"),
        Col(f"Δ success ({format_level(float(result.rule['alpha']))} CI)", success),
    )
    return TableSpec("Verdicts", result.first_strata, columns).table(shown=20)


def _reason(row: StratumResult) -> str:
    lift = row.minimal_detectable_lift
    least = "" if lift is None else f" Detectable lift with 80 % power: {_detectable(lift)} or more."
    if lift is not None and lift > 1:
        least = " With so few tasks, no lift is detectable with 80 % power."
    claims = f" ({row.claims})" if row.claims else ""
    return f"{stratum_name(row)}: {row.verdict.value}{claims}. {row.reason}{least}"


def _ends(estimate: Estimate, text: Callable[[float | None], str]) -> str:
    if estimate.low is None:
        return UNKNOWN
    return f"{range_text(estimate, text)}{', ties' if estimate.value == 0 and estimate.note else ''}"


def _detectable(lift: float | None) -> str:
    """A lift of over 1 there cannot be."""
    return UNKNOWN if lift is None else "none" if lift > 1 else delta_text(lift)


def _figures(rows: Sequence[StratumResult], result: BenefitResult) -> list[Chart]:
    level = format_level(float(result.rule["alpha"]))
    lifts, saved = [row.success_lift for row in rows], [row.net_tokens for row in rows]
    return [
        _forest("success-lift", f"Success: treatment minus control, {level} CI", rows, lifts, delta_text),
        _forest("net-tokens", f"Tokens saved per task, {level} CI", rows, saved, format_change),
    ]


def _forest(
    name: str,
    title: str,
    rows: Sequence[StratumResult],
    estimates: Sequence[Estimate],
    text: Callable[[float | None], str],
) -> Chart:
    marks: list[Whisker] = []
    pairs = list(zip(rows, estimates, strict=True))
    for row, each in pairs:
        tone: Tone = "good" if (each.low or 0) > 0 else "bad" if (each.high or 0) < 0 else ""
        marks.append(Whisker(f"{stratum_name(row)} ({format_count(each.n)})", each.value, each.low, each.high, tone))
    axis = title.partition(",")[0]  # of the whole title an axis shows a part
    page, phone = (whiskers(marks, axis, screen) for screen in SCREENS)
    columns: Columns[tuple[StratumResult, Estimate]] = (
        Col("stratum", lambda pair: stratum_name(pair[0])),
        Col("estimate", lambda pair: text(pair[1].value)),
        Col("interval", lambda pair: range_text(pair[1], text)),
        Col("tasks", lambda pair: pair[1].n, "count"),
        Col("note", lambda pair: pair[1].note),
    )
    table = TableSpec(title, pairs, columns).table()
    alt = f"{title}: {'; '.join(f'{row[0]} {row[1]} ({row[2]})' for row in table.rows)}"
    return Chart(name, title, alt, page, phone, table)


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
                    ("by the treatment only", format_count(test.only_treatment)),
                    ("by the control only", format_count(test.only_control)),
                    ("by neither", format_count(test.neither)),
                    ("McNemar's exact test", f"p {format_p(test.p)}, {count_noun(test.n, 'tasks')}"),
                    ("lift", f"{delta_text(row.success_lift.value)} ({range_text(row.success_lift, delta_text)})"),
                    ("smallest detectable lift (80 % power)", _detectable(row.minimal_detectable_lift)),
                    ("token ratio", f"{ratio_text(row.token_ratio.value)} ({range_text(row.token_ratio, ratio_text)})"),
                )
            )
        )
    binary = str(result.rule.get("binary", "majority"))
    success = {"first": "its first seed is", "majority": "most of its seeds are", "all": "all of its seeds are"}.get(
        binary, binary
    )
    blocks.append(
        Paragraph(f"A task counts as solved if {success} a success (set in the plan). This is not the verdict.", "note")
    )
    return Section("all", "All tasks", tuple(blocks))


def _losses(result: BenefitResult, transcripts: str) -> Section:
    title = "Tasks where the treatment was worse"
    if not result.losses:
        return Section("losses", title, (Paragraph("There is none."),))

    columns: Columns[Loss] = (
        Col("task", lambda loss: loss.task_id),
        Col("stratum", lambda loss: ", ".join(loss.stratum.values())),
        Cols(ArmRole, lambda loss, role: format_percent(loss.success.get(role)), title="success, {}".format),
        Cols(ArmRole, lambda loss, role: tokens_text(loss.tokens.get(role)), title="tokens, {}".format),
        Col("transcripts", lambda loss: _transcripts_of(loss, transcripts)),
    )
    return Section("losses", title, (TableSpec("The worst first", result.losses, columns).table(wrap=True),))


def _transcripts_of(loss: Loss, page: str) -> Cell:
    n = sum(map(len, loss.transcripts.values()))
    return Link(f"{n} of both arms", page) if page and n else f"{n} in the folder of the experiment"


def _estimates(result: BenefitResult) -> TableSpec[tuple[StratumResult, str, Estimate]]:
    """Every quantity of every stratum."""
    found = [(row, name, getattr(row, name)) for row in result.strata for name in QUANTITIES]
    return TableSpec(
        "",
        [each for each in found if each[2] is not None],
        (
            Col("kind", lambda each: each[0].kind.value),
            Col("stratum", lambda each: stratum_name(each[0])),
            Col("tasks", lambda each: each[0].n_tasks),
            Col("seeds", lambda each: each[0].n_seeds),
            Col("verdict", lambda each: each[0].verdict.value),
            Col("quantity", lambda each: each[1]),
            Col("value", lambda each: each[2].value),
            Col("low", lambda each: each[2].low),
            Col("high", lambda each: each[2].high),
            Col("p", lambda each: each[2].p),
            Col("p_adjusted", lambda each: each[2].p_adjusted),
            Col("n", lambda each: each[2].n),
            Col("note", lambda each: each[2].note),
        ),
    )
