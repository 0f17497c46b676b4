"""The summary of a folder of large results as a Document: verdict, comparisons, means, strata and what was read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cranfield.base.numbers import (
    format_count,
    format_delta,
    format_delta_interval,
    format_level,
    format_p,
    format_plain,
    format_value,
)
from cranfield.base.words import count_noun, join_first
from cranfield.evaluation.values import MeasureComparison, StratumComparison, Summary
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE, Measure
from cranfield.model.results import to_jsonable
from cranfield.reporting.charts.differences import Whisker
from cranfield.reporting.document import (
    MADE_BY,
    VOID_STAMP,
    Block,
    Brief,
    Bullets,
    Cell,
    Details,
    Document,
    KeyValues,
    Paragraph,
    Section,
    Table,
    TonedCell,
    VerdictBlock,
    VerdictFact,
    without_tones,
)
from cranfield.reporting.document import Section as Part
from cranfield.reporting.sections.measures import CLAIMS, interval_figure, margin_legend
from cranfield.reporting.sections.subject import interval_tone, mean_cells, news_of, tone_of
from cranfield.reporting.table_spec import Col, Columns, TableSpec, interval
from cranfield.scale.values import PairSummary, ScaleSummary, StratifiedMean, StratumMeans, SystemSummary
from cranfield.stats.result import TestResult
from cranfield.stats.table import TESTS

MAX_DRAWN = 45
Compared = tuple[PairSummary, MeasureComparison]
TidyRow = tuple[str, StratumMeans | None, Measure, Summary, MeasureComparison | StratumComparison | None, str | None]
"""System, stratum (None: all queries), measure, its mean, the difference to the baseline, the verdict."""
STRATA_NOTE = (
    "t intervals, not adjusted for multiple comparisons: exploratory, not part of the verdict. A difference is that of the "
    "system with {baseline}."
)


def verdict_block(summary: ScaleSummary) -> VerdictBlock | None:
    """The verdict on one system, or the number of each verdict; None without a comparison."""
    pairs = summary.pairs
    if not pairs:
        return None
    if len(pairs) == 1:
        verdict = pairs[0].verdict
        facts = tuple(_facts(summary, pairs[0]))
        return VerdictBlock(
            verdict.name,
            verdict.sentence,
            verdict.code.tone,
            facts,
            verdict.reasons,
            verdict.disagreements,
            caveats=summary.caveats,
        )
    names = {code: [p.name for p in pairs if p.verdict.code is code] for code in VerdictCode}
    found = {code: each for code, each in names.items() if each}
    counts = ", ".join(f"{len(each)} {code.text}" for code, each in found.items())
    listed = "; ".join(f"{code.text}: {join_first(each)}" for code, each in found.items())
    only = next(iter(found)) if len(found) == 1 else None
    sentence = f"Of {len(pairs)} systems against {summary.baseline}, on {summary.primary}: {listed}."
    tone = only.tone if only is not None else "open"
    disagreements = tuple(f"{pair.name}: {each}" for pair in pairs for each in pair.verdict.disagreements)
    invalid = [pair for pair in pairs if pair.verdict.code is VerdictCode.INVALID]
    reasons = tuple(f"{pair.name}: {each}" for pair in invalid for each in pair.verdict.reasons)
    return VerdictBlock(
        only.text if only is not None else counts,
        sentence,
        tone,
        (),
        reasons,
        disagreements=disagreements,
        caveats=summary.caveats,
    )


def _facts(summary: ScaleSummary, pair: PairSummary) -> Iterator[VerdictFact]:
    about, alpha = pair.measures[summary.primary], summary.options.alpha
    declared = about.tests[summary.options.test]
    better, same, worse = pair.counts[summary.primary]
    tone = "" if pair.verdict.code is VerdictCode.INVALID else interval_tone(about, summary.primary)
    yield VerdictFact(f"A {summary.baseline}", format_value(about.baseline.mean), f"mean {summary.primary}")
    yield VerdictFact(f"B {pair.name}", format_value(about.candidate.mean), f"mean {summary.primary}")
    yield VerdictFact("Difference", format_delta(about.delta), "B minus A", tone)
    yield VerdictFact(f"{format_level(alpha)} CI", format_delta_interval(interval(about)), about.interval_method)
    yield VerdictFact("p", format_p(declared.p_two_sided), f"{summary.options.test}, two-sided")
    yield VerdictFact(
        "Queries", format_count(about.n), f"{summary.units.text} are the units" if summary.units.n != about.n else ""
    )
    yield VerdictFact("Better / same / worse", " / ".join(map(format_count, (better, same, worse))), "queries")


def caveats(summary: ScaleSummary) -> Section | None:
    """Caveats where no verdict has them; None without any."""
    if summary.pairs or not summary.caveats:
        return None
    return Section("warnings", "Caveats", (Bullets(summary.caveats, "warning"),))


def comparisons(summary: ScaleSummary) -> Section | None:
    """Every measure of every system against the first; None without a comparison."""
    if not summary.pairs:
        return None
    spec = TESTS[summary.options.test]
    caption = (
        f"Each system (B) minus {summary.baseline} (A). * primary measure, decided by the {summary.options.test} test. CI of the "
        f"{spec.estimates} ({spec.interval})"
    )
    rows = [(pair, about) for pair in summary.pairs for about in pair.measures.values()]
    blocks: tuple[Block, ...] = (
        *_figure(summary),
        _differences(summary, rows, caption).table(),
        Details("Tests on the primary measure", (_tests(summary),), in_text=True),
    )
    return Section("comparison", f"Against {summary.baseline}", blocks)


def _differences(summary: ScaleSummary, rows: Sequence[Compared], caption: str) -> TableSpec[Compared]:
    several, declared = len(summary.pairs) > 1, summary.options.test

    def verdict(row: Compared) -> Cell:
        found = row[0].verdict
        return TonedCell(found.name, news_of(found.code)) if row[1].measure == summary.primary else ""

    columns: Columns[Compared] = (
        Col("system", lambda row: row[0].name, when=several),
        Col("verdict", verdict, when=several),
        Col("measure", lambda row: f"* {row[1].measure}" if row[1].measure == summary.primary else str(row[1].measure)),
        Col("A", lambda row: row[1].baseline.mean, "value"),
        Col("B", lambda row: row[1].candidate.mean, "value"),
        Col("difference", lambda row: TonedCell(row[1].delta, interval_tone(row[1], row[1].measure)), "delta"),
        Col(f"{format_level(summary.options.alpha)} CI", lambda row: interval(row[1]), "delta interval"),
        Col("p", lambda row: row[1].tests[declared].p_two_sided, "p"),
        Col("p Holm", lambda row: row[1].tests[declared].p_adjusted, "p"),
        Col("better / same / worse", lambda row: " / ".join(map(format_count, row[0].counts[row[1].measure])), "count"),
        Col("n", lambda row: row[1].n, "count"),
    )
    return TableSpec(caption, rows, columns)


def _figure(summary: ScaleSummary) -> tuple[Block, ...]:
    rows = [
        (pair, about)
        for pair in summary.pairs
        for about in pair.measures.values()
        if about.delta is not None and not CATALOGUE[about.measure.name].diagnostic
    ]
    if not 0 < len(rows) <= MAX_DRAWN:
        return ()
    names = [str(about.measure) if len(summary.pairs) == 1 else f"{pair.name}, {about.measure}" for pair, about in rows]
    marks = [
        Whisker(name, about.delta, about.ci_low, about.ci_high, interval_tone(about, about.measure))
        for name, (_, about) in zip(names, rows, strict=True)
    ]
    table = _differences(summary, rows, "Differences and their CIs")
    shown = "; ".join(f"{name} {format_delta(about.delta)}" for name, (_, about) in zip(names, rows, strict=True))
    figure = interval_figure(
        "intervals",
        f"{format_level(summary.options.alpha)} CIs of the mean differences",
        marks,
        table.without("verdict", "A", "B", "p", "p Holm", "better / same / worse", "n").table(shown=20),
        alt=f"Differences with CIs: {shown}.",
        axis=f"difference, minus {summary.baseline}",
        legend=(*CLAIMS, ("same", "the CI contains zero"), *margin_legend(summary.options.margin)),
        margin=summary.options.margin,
    )
    return (figure,)


def _tests(summary: ScaleSummary) -> Table:
    rows = [
        (pair, name, result) for pair in summary.pairs for name, result in pair.measures[summary.primary].tests.items()
    ]
    columns: Columns[tuple[PairSummary, str, TestResult]] = (
        Col("system", lambda row: row[0].name, when=len(summary.pairs) > 1),
        Col("test", lambda row: f"{row[1]} *" if row[1] == summary.options.test else row[1]),
        Col("statistic", lambda row: row[2].statistic, "statistic"),
        Col("p", lambda row: row[2].p_two_sided, "p"),
        Col("p Holm", lambda row: row[2].p_adjusted, "p"),
        Col("interval", lambda row: interval(row[2]), "delta interval"),
        Col("note", lambda row: row[2].note or ""),
    )
    caption = f"Paired tests on {summary.primary}, {summary.units.text}. * declared test"
    return TableSpec(caption, rows, columns).table(wrap=True)


def means(summary: ScaleSummary) -> Section:
    """Every system: its means with intervals, what it answered, and how much of that is judged."""
    systems, level, several = summary.systems, format_level(summary.options.alpha), len(summary.systems) > 1
    cells = {
        measure: mean_cells([system.measures[measure].mean for system in systems], measure)
        for measure in systems[0].measures
    }
    rows = [
        (measure, place, system, system.measures[measure]) for measure in cells for place, system in enumerate(systems)
    ]
    weighted = any(about.weighted_mean is not None for *_, about in rows)
    columns: Columns[tuple[Measure, int, SystemSummary, Summary]] = (
        Col("measure", lambda row: str(row[0]) if row[3].aggregate == "mean" else f"{row[0]} ({row[3].aggregate})"),
        Col("system", lambda row: row[2].name, when=several),
        Col("mean", lambda row: cells[row[0]][row[1]], "value"),
        Col(f"{level} CI", lambda row: interval(row[3]), "interval"),
        Col("std. dev.", lambda row: row[3].std, "value"),
        Col("weighted mean", lambda row: row[3].weighted_mean, "value", when=weighted),
        Col("n", lambda row: row[3].n, "count"),
        Col("no value", lambda row: row[2].n_without_value[row[0]], "count"),
    )
    others: Columns[tuple[Measure, int, SystemSummary, Summary]] = (
        Col("measure", lambda row: str(row[0])),
        Col("system", lambda row: row[2].name, when=several),
        Col("geometric mean", lambda row: row[3].geometric_mean, "value"),
        Col("sum", lambda row: row[3].total, "value"),
    )
    of = f" of {summary.units.text}" if summary.units.is_clustered else ""
    note = "Values below 0.00001 count as 0.00001 in the geometric mean"
    blocks = (
        TableSpec(f"Means, {level} t intervals{of}", rows, columns).table(),
        _answers(summary),
        *((Details("Other means and sums", (TableSpec(note, rows, others).table(),)),) if rows else ()),
    )
    return Section("means", "Means", blocks)


def _answers(summary: ScaleSummary) -> Table:
    judged = summary.about.scoring.judged
    columns: Columns[SystemSummary] = (
        Col("system", lambda row: row.name),
        Col("queries", lambda row: row.n_queries, "count"),
        Col("missing", lambda row: row.n_missing, "count"),
        Col("rows", lambda row: row.n_rows, "count"),
        Col("results", lambda row: row.n_returned, "count"),
        Col(str(judged), lambda row: row.judged_share, "percent"),
        Col("duplicates", lambda row: row.n_duplicates, "count"),
    )
    caption = f"What each system answered. {judged}: mean share of the first {judged.depth} results that are judged"
    return TableSpec(caption, summary.systems, columns).table()


def strata(summary: ScaleSummary) -> Section | None:
    """The primary measure by stratum, the others folded, and the stratified means; None without strata."""
    if not summary.strata:
        return None
    note = (
        STRATA_NOTE.format(baseline=summary.baseline)
        if len(summary.systems) > 1
        else STRATA_NOTE.split(" A ", maxsplit=1)[0]
    )
    blocks: list[Block] = [Paragraph(note)]
    for key in dict.fromkeys(row.key for row in summary.strata):
        rows = [row for row in summary.strata if row.key == key]
        tables = {
            measure: _stratum_table(summary, key, measure, [row for row in rows if row.measure == measure])
            for measure in dict.fromkeys(row.measure for row in rows)
        }
        first = summary.primary if summary.primary in tables else next(iter(tables))
        blocks += [tables.pop(first), *_stratified(summary, key)]
        if tables:
            blocks.append(Details(f"Other measures by {key}", tuple(tables.values())))
    return Section("strata", "Strata", tuple(blocks))


def _stratum_table(summary: ScaleSummary, key: str, measure: Measure, found: Sequence[StratumMeans]) -> Table:
    level, several = format_level(summary.options.alpha), len(summary.systems) > 1

    def difference(row: TidyRow) -> TonedCell:
        delta = row[4]
        return TonedCell(None, "") if delta is None else TonedCell(delta.delta, interval_tone(delta, measure))

    columns: Columns[TidyRow] = (
        Col(key, lambda row: row[1].value if row[1] else ""),
        Col("system", lambda row: row[0], when=several),
        Col("n", lambda row: row[3].n, "count"),
        Col("mean", lambda row: row[3].mean, "value"),
        Col(f"{level} CI", lambda row: interval(row[3]), "interval"),
        Col("difference", difference, "delta", when=several),
        Col(f"{level} CI", lambda row: None if row[4] is None else interval(row[4]), "delta interval", when=several),
    )
    return TableSpec(f"{measure} by {key}", list(_stratum_rows(summary, found)), columns).table()


def _stratum_rows(summary: ScaleSummary, strata: Sequence[StratumMeans]) -> Iterator[TidyRow]:
    """Every system in each stratum, the baseline first, the others with their difference to it."""
    for stratum in strata:
        differences = (None, *stratum.differences) if stratum.differences else (None,) * len(stratum.means)
        for system, about, difference in zip(summary.systems, stratum.means, differences, strict=True):
            yield system.name, stratum, stratum.measure, about, difference, None


def _stratified(summary: ScaleSummary, key: str) -> tuple[Block, ...]:
    found = [each for each in summary.stratified if each.key == key]
    if not found:
        return ()
    level = f"{format_level(summary.options.alpha)} CI"

    def difference(row: StratifiedMean) -> Cell:
        """Good or bad where the interval excludes zero."""
        end = row.ci_low if (row.ci_low or 0) > 0 else row.ci_high if (row.ci_high or 0) < 0 else None
        return None if row.of == "mean" else TonedCell(row.mean, tone_of(end, row.measure))

    columns: Columns[StratifiedMean] = (
        Col("measure", lambda row: str(row.measure)),
        Col("system", lambda row: row.system),
        Col("mean", lambda row: row.mean if row.of == "mean" else None, "value"),
        Col(level, lambda row: interval(row) if row.of == "mean" else None, "interval"),
        Col("difference", difference, "delta"),
        Col(level, lambda row: None if row.of == "mean" else interval(row), "delta interval"),
    )
    shares = f"shares are sums of {summary.weight}" if found[0].is_weighted else "shares are those of the queries"
    caption = f"Stratified by {key}: share times mean, summed over {count_noun(found[0].n_strata, 'strata')}; {shares}"
    return (Details(f"Stratified means by {key}", (TableSpec(caption, found, columns).table(),), in_text=True),)


def provenance(summary: ScaleSummary) -> Section:
    """What was read, and what was declared."""
    about, options = summary.about, summary.options
    scoring = about.scoring
    read = (
        ("test set", f"{about.testset}, {about.digest}"),
        ("queries, judgments", f"{format_count(about.n_queries)}, {format_count(about.n_judgments)}"),
        *((f"run {name}", digest) for name, digest in about.runs.items()),
        ("rows", format_count(about.n_rows)),
        ("rows without judgments", f"{format_count(about.n_rows_unjudged)} (of queries that are not in the test set)"),
        ("convention", f"{scoring.convention.name}: {scoring.convention.sentence}"),
        ("missing, duplicates, depth", f"{scoring.missing}, {scoring.duplicates}, {scoring.depth or 'all'}"),
        ("engine", f"{about.engine}, Cranfield {summary.scored_by}"),
        *((("table of queries", summary.table),) if summary.table else ()),
        *((("clusters", _clusters(summary)),) if summary.units.is_clustered else ()),
        *((("weights", summary.weight),) if summary.weight else ()),
        ("software", ", ".join(f"{name} {version}" for name, version in summary.versions.items() if name != "scipy")),
    )
    declared = (
        ("primary measure", str(summary.primary)),
        ("test", f"{options.test}, {TESTS[options.test].interval_method}; p adjusted by Holm"),
        ("units", summary.units.text),
        ("alpha", format_plain(options.alpha)),
        ("seed", format_count(options.seed)),
        ("margin", "none" if options.margin is None else f"±{format_plain(options.margin)}"),
        ("random draws", format_count(options.draws)),
    )
    blocks: tuple[Block, ...] = (KeyValues(read, "What was read"),)
    if summary.pairs:
        blocks = (*blocks, KeyValues(declared, "Declared settings"))
    return Section("provenance", "Provenance", blocks)


def _clusters(summary: ScaleSummary) -> str:
    units = summary.units
    text = f"{count_noun(units.n_clusters, 'clusters', format_count)} by {units.column}, the largest of {count_noun(units.largest, 'queries', format_count)}"
    return f"{text}; {count_noun(units.n_without, 'queries', format_count)} without" if units.n_without else text


BUILDERS = (comparisons, caveats, means, strata, provenance)


def scale_document(summary: ScaleSummary) -> Document:
    """The report of `summarise_results`, verdict first where systems are compared."""
    is_void = bool(summary.pairs) and all(pair.verdict.code is VerdictCode.INVALID for pair in summary.pairs)
    sections = tuple(section for build in BUILDERS if (section := build(summary)) is not None)
    if is_void:
        sections = tuple(Part(each.name, each.title, without_tones(each.blocks)) for each in sections)
    about = summary.about
    return Document(
        title=_title(summary),
        subtitle=(
            *(f"{letter} {name}" for letter, name in _lettered(summary)),
            f"test set {about.testset}, {summary.n_queries:,} queries, convention {about.scoring.convention.name}",
        ),
        sections=sections,
        tidy=lambda: _tidy(summary),
        payload=lambda: to_jsonable(summary),
        verdict=verdict_block(summary),
        stamps=(VOID_STAMP,) if is_void else (),
        made_by=MADE_BY,
        brief=lambda: _brief(summary, sections),
    )


def _brief(summary: ScaleSummary, sections: Sequence[Part]) -> Brief:
    """The first table, and what limits the figures; why they are void first."""
    verdict = verdict_block(summary)
    units = (f"Intervals and tests are of {summary.units.text}",) if summary.units.column else ()
    table = next((block for each in sections for block in each.blocks if isinstance(block, Table)), None)
    if verdict is None:
        return Brief(table, units, tuple(summary.caveats))
    # Of several systems the reasons are those of invalid verdicts.
    doubts = verdict.limits(reasons_first=len(summary.pairs) > 1)
    return Brief(None if verdict.tone == "void" else table, units, doubts)


def _title(summary: ScaleSummary) -> str:
    others = [system.name for system in summary.systems[1:]]
    if not others:
        return summary.baseline
    if len(others) == 1:
        return f"Is {others[0]} better than {summary.baseline}?"
    return f"Which of {len(others)} systems is better than {summary.baseline}?"


def _lettered(summary: ScaleSummary) -> tuple[tuple[str, str], ...]:
    """Both systems of a pair, with their letters and roles; of more the baseline."""
    if len(summary.systems) == 2:
        return ("A", f"{summary.baseline} (baseline)"), ("B", f"{summary.systems[1].name} (candidate)")
    return (("A", f"{summary.baseline} (baseline)"),) if len(summary.systems) > 2 else ()


def _tidy(summary: ScaleSummary) -> Table:
    """A row a system, measure and stratum; the stratum of all queries is empty."""
    pairs = {pair.name: pair for pair in summary.pairs}
    rows: list[TidyRow] = []
    for system in summary.systems:
        pair = pairs.get(system.name)
        for measure, about in system.measures.items():
            found = pair.measures.get(measure) if pair is not None else None
            verdict = pair.verdict.code.value if pair is not None and measure == summary.primary else None
            rows.append((system.name, None, measure, about, found, verdict if found is not None else None))
    rows += _stratum_rows(summary, summary.strata)

    def declared(row: TidyRow) -> TestResult | None:
        return row[4].tests[summary.options.test] if isinstance(row[4], MeasureComparison) else None

    columns: Columns[TidyRow] = (
        Col("system", lambda row: row[0]),
        Col("stratum_key", lambda row: row[1].key if row[1] else ""),
        Col("stratum", lambda row: row[1].value if row[1] else ""),
        Col("measure", lambda row: row[2].canonical),
        Col("n", lambda row: row[3].n),
        Col("mean", lambda row: row[3].mean),
        Col("ci_low", lambda row: row[3].ci_low),
        Col("ci_high", lambda row: row[3].ci_high),
        Col("difference", lambda row: row[4].delta if row[4] else None),
        Col("difference_ci_low", lambda row: row[4].ci_low if row[4] else None),
        Col("difference_ci_high", lambda row: row[4].ci_high if row[4] else None),
        Col("p", lambda row: test.p_two_sided if (test := declared(row)) else None),
        Col("p_adjusted", lambda row: test.p_adjusted if (test := declared(row)) else None),
        Col("verdict", lambda row: row[5]),
    )
    return TableSpec("", rows, columns).tidy()
