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
from cranfield.evaluation.values import MeasureComparison
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
    Column,
    Details,
    Document,
    KeyValues,
    Paragraph,
    Section,
    Table,
    TonedCell,
    VerdictBlock,
    VerdictFact,
    tidy_table,
    without_tones,
)
from cranfield.reporting.document import Section as Part
from cranfield.reporting.sections.measures import CLAIMS, interval_figure, margin_legend
from cranfield.reporting.sections.subject import interval_tone, mean_cells, news_of, tone_of
from cranfield.scale.values import PairSummary, ScaleSummary, StratumMeans, SystemSummary
from cranfield.stats.table import TESTS

MAX_DRAWN = 45
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
    only = next(iter(found)) if len(found) == 1 else None
    sentence = f"Of {len(pairs)} systems against {summary.baseline}, on {summary.primary}: {_listed(found)}."
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


def _listed(found: dict[VerdictCode, list[str]]) -> str:
    return "; ".join(f"{code.text}: {join_first(names)}" for code, names in found.items())


def _facts(summary: ScaleSummary, pair: PairSummary) -> Iterator[VerdictFact]:
    about, alpha = pair.measures[summary.primary], summary.options.alpha
    declared = about.tests[summary.options.test]
    better, same, worse = pair.counts[summary.primary]
    tone = "" if pair.verdict.code is VerdictCode.INVALID else interval_tone(about, summary.primary)
    yield VerdictFact(f"A {summary.baseline}", format_value(about.baseline.mean), f"mean {summary.primary}")
    yield VerdictFact(f"B {pair.name}", format_value(about.candidate.mean), f"mean {summary.primary}")
    yield VerdictFact("Difference", format_delta(about.delta), "B minus A", tone)
    interval = format_delta_interval((about.ci_low, about.ci_high))
    yield VerdictFact(f"{format_level(alpha)} CI", interval, about.interval_method)
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
    level, spec = format_level(summary.options.alpha), TESTS[summary.options.test]
    several = (Column("system"), Column("verdict")) if len(summary.pairs) > 1 else ()
    columns = (
        *several,
        Column("measure"),
        Column("A", "value"),
        Column("B", "value"),
        Column("difference", "delta"),
        Column(f"{level} CI", "delta interval"),
        Column("p", "p"),
        Column("p Holm", "p"),
        Column("better / same / worse", "count"),
        Column("n", "count"),
    )
    rows = [
        _compared(summary, pair, about, with_name=bool(several))
        for pair in summary.pairs
        for about in pair.measures.values()
    ]
    caption = (
        f"Each system (B) minus {summary.baseline} (A). * primary measure, decided by the {summary.options.test} test. CI of the "
        f"{spec.estimates} ({spec.interval})"
    )
    blocks: tuple[Block, ...] = (
        *_figure(summary, level),
        Table(columns, rows, caption, shown=None),
        Details("Tests on the primary measure", (_tests(summary),), in_text=True),
    )
    return Section("comparison", f"Against {summary.baseline}", blocks)


def _compared(
    summary: ScaleSummary, pair: PairSummary, about: MeasureComparison, *, with_name: bool
) -> tuple[Cell, ...]:
    is_primary = about.measure == summary.primary
    declared = about.tests[summary.options.test]
    verdict: Cell = TonedCell(pair.verdict.name, news_of(pair.verdict.code)) if is_primary else ""
    return (
        *((pair.name, verdict) if with_name else ()),
        f"* {about.measure}" if is_primary else str(about.measure),
        about.baseline.mean,
        about.candidate.mean,
        TonedCell(about.delta, interval_tone(about, about.measure)),
        (about.ci_low, about.ci_high),
        declared.p_two_sided,
        declared.p_adjusted,
        " / ".join(map(format_count, pair.counts[about.measure])),
        about.n,
    )


def _figure(summary: ScaleSummary, level: str) -> tuple[Block, ...]:
    found = [
        (str(about.measure) if len(summary.pairs) == 1 else f"{pair.name}, {about.measure}", about)
        for pair in summary.pairs
        for about in pair.measures.values()
        if about.delta is not None and not CATALOGUE[about.measure.name].diagnostic
    ]
    if not 0 < len(found) <= MAX_DRAWN:
        return ()
    marks = [
        Whisker(name, about.delta, about.ci_low, about.ci_high, interval_tone(about, about.measure))
        for name, about in found
    ]
    table = Table(
        (Column("difference of"), Column("difference", "delta"), Column(f"{level} CI", "delta interval")),
        [
            (name, TonedCell(about.delta, interval_tone(about, about.measure)), (about.ci_low, about.ci_high))
            for name, about in found
        ],
        "Differences and their CIs",
    )
    shown = "; ".join(f"{name} {format_delta(about.delta)}" for name, about in found)
    figure = interval_figure(
        "intervals",
        f"{level} CIs of the mean differences",
        marks,
        table,
        alt=f"Differences with CIs: {shown}.",
        axis=f"difference, minus {summary.baseline}",
        legend=(*CLAIMS, ("same", "the CI contains zero"), *margin_legend(summary.options.margin)),
        margin=summary.options.margin,
    )
    return (figure,)


def _tests(summary: ScaleSummary) -> Table:
    several = len(summary.pairs) > 1
    rows: list[tuple[Cell, ...]] = [
        (
            *((pair.name,) if several else ()),
            f"{name} *" if name == summary.options.test else name,
            result.statistic,
            result.p_two_sided,
            result.p_adjusted,
            (result.ci_low, result.ci_high),
            result.note or "",
        )
        for pair in summary.pairs
        for name, result in pair.measures[summary.primary].tests.items()
    ]
    columns = (
        *((Column("system"),) if several else ()),
        Column("test"),
        Column("statistic", "statistic"),
        Column("p", "p"),
        Column("p Holm", "p"),
        Column("interval", "delta interval"),
        Column("note"),
    )
    caption = f"Paired tests on {summary.primary}, {summary.units.text}. * declared test"
    return Table(columns, rows, caption, shown=None, wrap=True)


def means(summary: ScaleSummary) -> Section:
    """Every system: its means with intervals, what it answered, and how much of that is judged."""
    level = format_level(summary.options.alpha)
    systems = summary.systems
    measures = tuple(systems[0].measures)
    weighted = any(each.weighted_mean is not None for system in systems for each in system.measures.values())
    several = (Column("system"),) if len(systems) > 1 else ()
    columns = (
        Column("measure"),
        *several,
        Column("mean", "value"),
        Column(f"{level} CI", "interval"),
        Column("std. dev.", "value"),
        *((Column("weighted mean", "value"),) if weighted else ()),
        Column("n", "count"),
        Column("no value", "count"),
    )
    rows = [row for measure in measures for row in _mean_rows(systems, measure, with_weight=weighted)]
    of = f" of {summary.units.text}" if summary.units.is_clustered else ""
    blocks: list[Block] = [Table(columns, rows, f"Means, {level} t intervals{of}", shown=None), _answers(summary)]
    if measures:
        others = [
            (str(measure), *((system.name,) if several else ()), about.geometric_mean, about.total)
            for measure in measures
            for system, about in ((system, system.measures[measure]) for system in systems)
        ]
        heads = (Column("measure"), *several, Column("geometric mean", "value"), Column("sum", "value"))
        note = "Values below 0.00001 count as 0.00001 in the geometric mean"
        blocks.append(Details("Other means and sums", (Table(heads, others, note, shown=None),)))
    return Section("means", "Means", tuple(blocks))


def _mean_rows(systems: Sequence[SystemSummary], measure: Measure, *, with_weight: bool) -> Iterator[tuple[Cell, ...]]:
    cells = mean_cells([system.measures[measure].mean for system in systems], measure)
    for system, cell in zip(systems, cells, strict=True):
        about = system.measures[measure]
        spelled = str(measure) if about.aggregate == "mean" else f"{measure} ({about.aggregate})"
        yield (
            spelled,
            *((system.name,) if len(systems) > 1 else ()),
            cell,
            (about.ci_low, about.ci_high),
            about.std,
            *((about.weighted_mean,) if with_weight else ()),
            about.n,
            system.n_without_value[measure],
        )


def _answers(summary: ScaleSummary) -> Table:
    judged = summary.about.scoring.judged
    columns = (
        Column("system"),
        Column("queries", "count"),
        Column("missing", "count"),
        Column("rows", "count"),
        Column("results", "count"),
        Column(str(judged), "percent"),
        Column("duplicates", "count"),
    )
    rows: list[tuple[Cell, ...]] = [
        (s.name, s.n_queries, s.n_missing, s.n_rows, s.n_returned, s.judged_share, s.n_duplicates)
        for s in summary.systems
    ]
    caption = f"What each system answered. {judged}: mean share of the first {judged.depth} results that are judged"
    return Table(columns, rows, caption, shown=None)


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
    rows: list[tuple[Cell, ...]] = []
    for stratum in found:
        for place, (system, about) in enumerate(zip(summary.systems, stratum.means, strict=True)):
            delta = stratum.differences[place - 1] if place and stratum.differences else None
            tone = "" if delta is None else interval_tone(delta, measure)
            difference: tuple[Cell, ...] = (
                TonedCell(None if delta is None else delta.delta, tone),
                None if delta is None else (delta.ci_low, delta.ci_high),
            )
            name = (system.name,) if several else ()
            rows.append(
                (
                    stratum.value,
                    *name,
                    about.n,
                    about.mean,
                    (about.ci_low, about.ci_high),
                    *(difference if several else ()),
                )
            )
    columns = (
        Column(key),
        *((Column("system"),) if several else ()),
        Column("n", "count"),
        Column("mean", "value"),
        Column(f"{level} CI", "interval"),
        *((Column("difference", "delta"), Column(f"{level} CI", "delta interval")) if several else ()),
    )
    return Table(columns, rows, f"{measure} by {key}", shown=None)


def _stratified(summary: ScaleSummary, key: str) -> tuple[Block, ...]:
    found = [each for each in summary.stratified if each.key == key]
    if not found:
        return ()
    level = format_level(summary.options.alpha)
    rows: list[tuple[Cell, ...]] = []
    for each in found:
        is_mean = each.of == "mean"
        value: Cell = (
            each.mean if is_mean else TonedCell(each.mean, tone_of(_sure(each.ci_low, each.ci_high), each.measure))
        )
        ends = (each.ci_low, each.ci_high)
        empty: tuple[Cell, Cell] = (None, None)
        rows.append((str(each.measure), each.system, *((value, ends, *empty) if is_mean else (*empty, value, ends))))
    columns = (
        Column("measure"),
        Column("system"),
        Column("mean", "value"),
        Column(f"{level} CI", "interval"),
        Column("difference", "delta"),
        Column(f"{level} CI", "delta interval"),
    )
    shares = f"shares are sums of {summary.weight}" if found[0].is_weighted else "shares are those of the queries"
    caption = f"Stratified by {key}: share times mean, summed over {count_noun(found[0].n_strata, 'strata')}; {shares}"
    return (Details(f"Stratified means by {key}", (Table(columns, rows, caption, shown=None),), in_text=True),)


def _sure(low: float | None, high: float | None) -> float | None:
    """The end of an interval that is next to zero, where it excludes zero."""
    return low if low is not None and low > 0 else high if high is not None and high < 0 else None


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


TIDY = (
    "system", "stratum_key", "stratum", "measure", "n", "mean", "ci_low", "ci_high", "difference",
    "difference_ci_low", "difference_ci_high", "p", "p_adjusted", "verdict",
)  # fmt: skip
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
    return tidy_table(TIDY, [*_tidy_systems(summary), *_tidy_strata(summary)])


def _tidy_systems(summary: ScaleSummary) -> Iterator[tuple[Cell, ...]]:
    pairs = {pair.name: pair for pair in summary.pairs}
    for system in summary.systems:
        pair = pairs.get(system.name)
        for measure, about in system.measures.items():
            row = (system.name, "", "", measure.canonical, about.n, about.mean, about.ci_low, about.ci_high)
            found = pair.measures.get(measure) if pair is not None else None
            if pair is None or found is None:
                yield (*row, *[None] * 6)
                continue
            declared = found.tests[summary.options.test]
            verdict = pair.verdict.code.value if measure == summary.primary else None
            ends = (found.ci_low, found.ci_high, declared.p_two_sided, declared.p_adjusted)
            yield (*row, found.delta, *ends, verdict)


def _tidy_strata(summary: ScaleSummary) -> Iterator[tuple[Cell, ...]]:
    for stratum in summary.strata:
        for place, (system, about) in enumerate(zip(summary.systems, stratum.means, strict=True)):
            delta = stratum.differences[place - 1] if place and stratum.differences else None
            difference = (None,) * 3 if delta is None else (delta.delta, delta.ci_low, delta.ci_high)
            name = (system.name, stratum.key, stratum.value, stratum.measure.canonical)
            yield (*name, about.n, about.mean, about.ci_low, about.ci_high, *difference, None, None, None)
