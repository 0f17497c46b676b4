"""Documents of the gate: the verdict, a row for each rule, the changes; and the effect of accepting a baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cranfield.base.numbers import format_count, format_delta, format_level, format_value
from cranfield.base.words import capitalised, count_noun
from cranfield.evaluation.evidence.values import caveat_sentences
from cranfield.evaluation.values import as_printed
from cranfield.gate.result import (
    WORST_FIRST,
    BaselineChange,
    BaselineChanges,
    BaselineFact,
    EarlierSource,
    GateReport,
    GateResult,
    ListedResult,
    MeasureChange,
    QueryChange,
    RuleResult,
    StratumChange,
)
from cranfield.measures import parse
from cranfield.model import CONVENTIONS
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import (
    MADE_BY,
    Block,
    Brief,
    Bullets,
    Details,
    Document,
    KeyValues,
    Paragraph,
    Section,
    Table,
    Tone,
    TonedCell,
    VerdictBlock,
    VerdictFact,
)
from cranfield.reporting.sections.subject import EARLIER, _time_text, testset_label, tone_of
from cranfield.reporting.table_spec import Col, Columns, TableSpec

SHOWN_QUERIES = 10
"""Failing queries, and better ones, whose first results are listed."""
TONES: Mapping[str, Tone] = {"passed": "good", "failed": "bad", "inconclusive": "open", "invalid": "void"}


def result_document(result: GateResult) -> Document:
    """The report of a gate on one test set."""
    return gate_document(GateReport.of([result]))


def gate_document(report: GateReport) -> Document:
    """The report of a gate, over one test set or several."""
    return Document(
        title=f"Gate: {', '.join(dict.fromkeys(result.evaluation.name for result in report.gates))}",
        subtitle=tuple(
            _of(result, f"test set {testset_label(result.testset)}, convention {result.convention}")
            for result in report.gates
        ),
        sections=tuple(section for result in report.gates for section in _sections(result)),
        tidy=_tidy(report).tidy,
        payload=lambda: to_jsonable(report),
        verdict=_verdict(report),
        made_by=MADE_BY,
        brief=lambda: _brief(report),
    )


def _of(result: GateResult, text: str) -> str:
    """The text with the name of the test set where the config has several."""
    return f"{result.name}: {text}" if result.name else text


def _brief(report: GateReport) -> Brief:
    """The rules, those that are broken first; the queries that fail, by their texts; what limits the gate, and its notes."""
    verdict = _verdict(report)
    rules = [
        (result.name, rule)
        for status in WORST_FIRST
        for result in report.gates
        for rule in result.rules
        if rule.status == status
    ]
    failing = [change.label for result in report.gates for change in result.worse]
    named = (
        f"{count_noun(len(failing), 'queries', format_count)} got worse, broke a rule or failed: {'; '.join(failing)}"
    )
    notes = [
        _of(result, note)
        for result in report.gates
        for note in (*result.notes, *_unseen_lines(result))
        if note != result.explanation
    ]
    doubts = dict.fromkeys((*verdict.reasons, *verdict.caveats, *notes))
    return Brief(outcomes_of_rules(rules, "Rules").table(shown=20), (named,) if failing else (), tuple(doubts))


def _verdict(report: GateReport) -> VerdictBlock:
    gates, status = report.gates, report.status
    facts = [VerdictFact(_of(result, result.primary), *_primary(result)) for result in gates]
    reasons = [_of(result, rule.sentence) for result in gates for rule in result.rules if rule.status != "passed"]
    # The settings of a ref are those of all test sets.
    overruled = dict.fromkeys(sentence for result in gates for sentence in result.overruled)
    limits = (_of(result, sentence) for result in gates for sentence in caveat_sentences(result.evidence))
    caveats = (*overruled, *limits)
    sentences = [_of(result, result.sentence) if result.name else _alone(result) for result in gates]
    lines = [*earlier_lines(gates), "; ".join(sentences)]
    sentence = " ".join(f"{line}." for line in (reversed(lines) if is_of_run_files(gates) else lines))
    return VerdictBlock(status, sentence, TONES[status], tuple(facts), tuple(reasons), (), caveats)


def _alone(result: GateResult) -> str:
    """The explanation of the only result; what makes it invalid begins with the name of the system, as that is written."""
    return result.explanation if result.status == "invalid" else capitalised(result.explanation)


def _primary(result: GateResult) -> tuple[str, str]:
    """The primary measure now, and in the baseline."""
    change = next((change for change in result.measures if change.measure == result.primary), None)
    if change is None:
        return "–", ""
    note = "" if change.delta is None else f"{format_delta(change.delta)} against the baseline"
    return format_value(change.current), note


def _with_printed_names(result: GateResult) -> GateResult:
    """The result with the names of measures that its convention prints."""

    def printed(spelling: str) -> str:
        (measure,) = as_printed([parse(spelling)], CONVENTIONS[result.convention])
        return str(measure)

    return replace(
        result,
        primary=printed(result.primary),
        measures=tuple(replace(change, measure=printed(change.measure)) for change in result.measures),
        by_stratum=tuple(replace(change, measure=printed(change.measure)) for change in result.by_stratum),
        worse=tuple(replace(change, measure=printed(change.measure or result.primary)) for change in result.worse),
        better=tuple(replace(change, measure=printed(result.primary)) for change in result.better),
    )


def _sections(result: GateResult) -> Iterator[Section]:
    result, name = _with_printed_names(result), result.name
    link, of = (f"{name}-", f", {name}") if name else ("", "")
    unseen = _unseen_lines(result)
    rules = outcomes_of_rules([("", rule) for rule in result.rules], "Every rule must pass").table(wrap=True)
    yield Section(f"{link}rules", f"Rules{of}", (rules, *((Bullets(unseen),) if unseen else ())))
    has_baseline = result.baseline is not None
    interval = f"{format_level(result.alpha)} CI" if has_baseline else ""
    caption = "Current and baseline values" if has_baseline else "Means; no baseline to compare with"
    blocks: list[Block] = [_measures(result.measures, caption, interval)]
    if result.strata:
        table, has_failed = _strata(result.primary, result.strata), result.status == "failed"
        blocks.append(Details(f"{result.primary} by stratum", (table,), is_open=has_failed, in_text=True))
    others = dict.fromkeys(change.measure for change in result.by_stratum if change.measure != result.primary)
    if others:
        tables = [_strata(name, [change for change in result.by_stratum if change.measure == name]) for name in others]
        blocks.append(Details("Other measures by stratum", tuple(tables)))
    if result.worse:
        title = f"Failing queries: {format_count(len(result.worse))}"
        what = "got worse, broke a rule" if has_baseline else "broke a rule"
        table = _queries(result.worse, result.primary, f"Queries that {what} or failed, the worst first")
        blocks.append(Details(title, (table,), is_open=result.status == "failed", in_text=True))
    if result.better:
        title = f"{count_noun(len(result.better), 'queries', format_count)} better"
        table = _queries(result.better, result.primary, "Queries that got better, the best first")
        blocks.append(Details(title, (table,)))
    listed = [
        (change, hit)
        for changes in (result.worse, result.better)
        for change in changes[:SHOWN_QUERIES]
        for hit in change.results
    ]
    if listed:
        blocks.append(Details("First results of these queries", (_lists(listed),)))
    yield Section(f"{link}changes", f"What changed{of}" if has_baseline else f"Measures{of}", tuple(blocks))
    if result.notes:
        yield Section(f"{link}notes", f"Notes{of}", (Bullets(result.notes),))
    provenance: list[Block] = [Details("Digests and baseline", (_provenance(result),))]
    if result.earlier:
        provenance.insert(0, Details(EARLIER, (earlier_table(result),), in_text=result.n_earlier > 0))
    yield Section(f"{link}provenance", f"Provenance{of}", tuple(provenance))


def _unseen_lines(result: GateResult) -> tuple[str, ...]:
    """What queries that are not in the sample could do to each rule on a difference."""
    nearest = [(rule.rule, rule.nearest_unseen) for rule in result.rules]
    return tuple(f"{rule}: {unseen.sentence}" for rule, unseen in nearest if unseen is not None)


NamedRules = Sequence[tuple[str, RuleResult]]


def outcomes_of_rules(rules: NamedRules, caption: str) -> TableSpec[tuple[str, RuleResult]]:
    """A row a rule, with its system where it has a name."""
    return TableSpec(
        caption,
        rules,
        (
            Col("outcome", lambda row: TonedCell(row[1].status, TONES[row[1].status])),
            Col("rule", lambda row: f"{row[0]}: {row[1].rule}" if row[0] else row[1].rule),
            Col("got", lambda row: row[1].got),
        ),
    )


def _measures(changes: Sequence[MeasureChange], caption: str, interval: str = "") -> Table:
    """A row for each measure; with the interval of the difference where it has a heading."""
    columns: Columns[MeasureChange] = (
        Col("measure", lambda change: change.measure),
        Col("baseline", lambda change: change.baseline, "value"),
        Col("current", lambda change: change.current, "value"),
        Col("difference", lambda change: _toned(change.delta, change.measure), "delta"),
        Col(interval, lambda change: (change.ci_low, change.ci_high), "delta interval", when=interval != ""),
        Col("n", lambda change: change.n, "count"),
    )
    return TableSpec(caption, changes, columns).filled().table()


def _toned(delta: float | None, measure: str) -> TonedCell:
    return TonedCell(delta, tone_of(delta, parse(measure)))


def _strata(measure: str, strata: Sequence[StratumChange]) -> Table:
    columns: Columns[StratumChange] = (
        Col("stratum", lambda stratum: f"{stratum.key}: {stratum.value}"),
        Col("baseline", lambda stratum: stratum.baseline, "value"),
        Col("current", lambda stratum: stratum.current, "value"),
        Col("difference", lambda stratum: _toned(stratum.delta, measure), "delta"),
        Col("n", lambda stratum: stratum.n, "count"),
    )
    return TableSpec(f"{measure} in each stratum", strata, columns).filled().table()


def _queries(changes: Sequence[QueryChange], primary: str, caption: str) -> Table:
    has_baseline = any(change.baseline is not None for change in changes)
    several = {change.measure or primary for change in changes} != {primary}
    lead = "" if several else f"{primary} "
    columns: Columns[QueryChange] = (
        Col("query", lambda change: change.query_id, "query id"),
        Col("text", lambda change: change.label if change.text else ""),
        Col("measure", lambda change: change.measure, when=several),
        Col(f"{lead}baseline", lambda change: change.baseline, "value"),
        Col("current" if has_baseline else f"{lead}current", lambda change: change.current, "value"),
        Col("outcome", lambda change: change.outcome),
        Col("why", lambda change: change.why),
    )
    return TableSpec(caption, changes, columns).filled().table(shown=20, wrap=True)


def _lists(listed: Sequence[tuple[QueryChange, ListedResult]]) -> Table:
    """A row for each result, the query and its text in the first of its rows."""
    columns: Columns[tuple[QueryChange, ListedResult]] = (
        Col("query", lambda row: row[0].query_id if row[1] is row[0].results[0] else "", "query id"),
        Col("text", lambda row: row[0].label if row[0].text and row[1] is row[0].results[0] else ""),
        Col("rank", lambda row: row[1].rank, "count"),
        Col("grade", lambda row: row[1].grade),
        Col("id", lambda row: row[1].id),
        Col("title", lambda row: row[1].title or ""),
    )
    caption = "The results of this run, as they are scored; a baseline keeps values and no lists"
    return TableSpec(caption, listed, columns).filled().table(wrap=True)


def _provenance(result: GateResult) -> KeyValues:
    evaluation, baseline = result.evaluation, result.baseline
    items = [
        ("system", evaluation.name),
        ("run", evaluation.digest),
        ("test set", result.testset.digest),
        ("primary measure", result.primary),
    ]
    if baseline is not None:
        items += [
            ("baseline", f"{baseline.ref}:{baseline.path}" if baseline.ref else baseline.path),
            ("baseline of", f"{baseline.system}, accepted {baseline.accepted}"),
            ("baseline commit", baseline.commit or "unknown"),
        ]
    return KeyValues(tuple(items))


def _tidy(report: GateReport) -> TableSpec[tuple[GateResult, RuleResult]]:
    """A row for each rule."""
    return TableSpec(
        "",
        [(result, rule) for result in report.gates for rule in result.rules],
        (
            Col("testset", lambda row: row[0].name or row[0].testset.name),
            Col("system", lambda row: row[0].evaluation.name),
            Col("kind", lambda row: row[1].kind),
            Col("rule", lambda row: row[1].rule),
            Col("status", lambda row: row[1].status),
            Col("got", lambda row: row[1].got),
            Col("asked", lambda row: row[1].expected),
            Col("queries", lambda row: " ".join(row[1].queries)),
        ),
    )


def baseline_document(changes: BaselineChanges) -> Document:
    """Changes made by accepting a run as the baseline, a section for each test set."""
    tidy: TableSpec[tuple[str, MeasureChange]] = TableSpec(
        "",
        [(change.testset, row) for change in changes.baselines for row in change.measures],
        (
            Col("testset", lambda row: row[0]),
            Col("measure", lambda row: row[1].measure),
            Col("baseline", lambda row: row[1].baseline),
            Col("run", lambda row: row[1].current),
        ),
    )
    return Document(
        # Of the baseline as it is, where nothing is new.
        title="Baseline update" if any(change.is_update for change in changes.baselines) else "Baseline",
        subtitle=tuple(change.path for change in changes.baselines),
        sections=tuple(map(_change, changes.baselines)),
        tidy=tidy.tidy,
        payload=lambda: to_jsonable(changes),
        made_by=MADE_BY,
    )


def _change(change: BaselineChange) -> Section:
    blocks: list[Block] = [Paragraph(note, "note") for note in change.notes]
    if not change.is_update:
        means: TableSpec[MeasureChange] = TableSpec(
            "Means",
            change.measures,
            (
                Col("measure", lambda row: row.measure),
                Col("mean", lambda row: row.baseline, "value"),
                Col("n", lambda row: row.n, "count"),
            ),
        )
        blocks += [KeyValues(tuple((fact.name, fact.before or "–") for fact in change.facts)), means.table()]
    elif any(fact.before for fact in change.facts):
        contents: TableSpec[BaselineFact] = TableSpec(
            "Contents of the baseline file",
            change.facts,
            (
                Col("", lambda fact: fact.name),
                Col("current", lambda fact: fact.before or "–"),
                Col("new", lambda fact: fact.after or "–"),
            ),
        )
        caption = "Means of the current baseline and of the new one"
        blocks += [contents.table(wrap=True), _measures(change.measures, caption)]
    else:
        facts = KeyValues(tuple((fact.name, fact.after or "–") for fact in change.facts))
        blocks += [facts, _measures(change.measures, "Means of the new baseline")]
    for title, queries in (("worse", change.worse), ("better", change.better)):
        if queries:
            table = _queries(queries, change.primary, f"Queries that are {title} on {change.primary}")
            blocks.append(
                Details(f"{count_noun(len(queries), 'queries', format_count)} {title}", (table,), in_text=True)
            )
    return Section(change.testset or "baseline", change.testset or "Baseline", tuple(blocks))


def earlier_lines(results: Sequence[GateResult]) -> Iterator[str]:
    """How many answers were not made in this call, and when."""
    for result in results:
        if not result.n_earlier:
            continue
        lead = f"{result.name}: " if result.name else ""
        total = result.evaluation.n_queries
        times = [source.oldest for source in result.earlier if source.oldest and source.kind != "baseline"]
        when = f"the oldest is from {_time_text(min(times))}" if times else "the time is not known"
        yield (
            f"{lead}{format_count(result.n_earlier)} of {format_count(total)} answers are from an earlier call; {when}"
        )


def is_of_run_files(results: Sequence[GateResult]) -> bool:
    """Whether all that was read beside a baseline are run files that the config or the call names, and no ref protects them."""
    sources = [source for result in results for source in result.earlier if source.kind != "baseline"]
    by_ref = any(result.baseline is not None and result.baseline.ref for result in results)
    return not by_ref and all(source.kind in {"run file", "run file of the config"} for source in sources)


def earlier_table(result: GateResult) -> Table:
    """A row for each thing that was read."""
    columns: Columns[EarlierSource] = (
        Col("path", lambda source: source.path),
        Col("kind", lambda source: source.kind),
        Col("digest", lambda source: source.digest[:19]),
        Col("made", _made),
        Col("answers", lambda source: source.n_answers, "count"),
    )
    return TableSpec(EARLIER, result.earlier, columns).table(wrap=True)


def _made(source: EarlierSource) -> str:
    times = dict.fromkeys(_time_text(time) for time in (source.oldest, source.latest) if time)
    return " to ".join(times) or "unknown"
