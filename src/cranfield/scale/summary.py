"""What a folder of results says: means, comparisons with the first system, strata and caveats, in one stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from cranfield.base.errors import UsageError
from cranfield.base.numbers import format_count, format_percent
from cranfield.base.words import count_noun, join_first, shown_id
from cranfield.evaluation.evidence.checks import mostly_unjudged_sentence
from cranfield.evaluation.evidence.inspection import CHECKS, threshold_of
from cranfield.evaluation.options.blocks import CompareOptions, Consequence, Setting
from cranfield.evaluation.result import versions
from cranfield.evaluation.unjudged import MOSTLY_UNJUDGED
from cranfield.evaluation.values import find_measure
from cranfield.measures import CATALOGUE, Measure, parse
from cranfield.ranking.matching.id_forms import query_form
from cranfield.scale.attributes import N_UNITS, AttributeColumns, Attributes, read_attributes
from cranfield.scale.paired import KNOWN_TESTS, compare_systems, stratified_means, stratum_means, system_summaries
from cranfield.scale.results import Results, ResultsInfo
from cranfield.scale.scoring import quality_measures
from cranfield.scale.tally import Progress, Tally, tally_results
from cranfield.scale.values import PairSummary, ScaleSummary, SystemSummary, UnitKind, Units
from cranfield.stats.bootstrap import FEW_CLUSTERS

FEW_UNITS = 2
QUERY_FORM = "query-form"
FEW_ANSWERED = 10
"""Under so many answered queries, none with a judged result may be chance."""


def summarise_results(
    results: Results,
    options: CompareOptions | None = None,
    *,
    table: Path | None = None,
    cluster: str | None = None,
    strata: Sequence[str] = (),
    weight: str | None = None,
    n_units: int = N_UNITS,
    progress: Progress | None = None,
) -> ScaleSummary:
    """Summarise results, and compare every system with the first.

    Args:
        results: a folder of results; see `read_results`.
        options: what was declared of the comparison; the test is `permutation`, `t` or `bootstrap`.
        table: a row a query, Parquet or CSV.
        cluster: its column of users, sessions or other clusters of queries, which are then the units.
        strata: its columns of languages, devices and the like.
        weight: its column of how much each query counts in weighted means, and its stratum in stratified ones.
        n_units: more queries or clusters than this are summed in so many random groups.
        progress: called with the number of queries that are done, and of all.

    Conventions:
        p-values are Holm-adjusted over systems and measures; the declared test on the primary measure over systems alone · a
        query without a cluster is its own; without a stratum it is in `(no value)`; without a weight it has 1 · measures
        that are one number over all queries are not compared · no medians: they would take all values at once.

    Raises:
        InputError: the results or the table cannot be used.
        UsageError: columns without a table, a primary measure that is not there, or a test that needs every query.
    """
    options, columns = options or CompareOptions(), AttributeColumns(cluster, tuple(dict.fromkeys(strata)), weight)
    primary = _check(results.about, options, columns, table, n_units)
    attributes = None if table is None else read_attributes(table, columns, seed=options.seed, n_units=n_units)
    tally = tally_results(results, attributes, n_units=n_units, seed=options.seed, progress=progress)
    names, level = results.about.scoring.systems, 1 - options.alpha
    systems = system_summaries(tally, results.about, level)
    pairs = _pairs(tally, systems, results.about, primary, options)
    summary = ScaleSummary(
        about=results.about,
        scored_by=results.version,
        versions=versions("numpy", "scipy", "pyarrow"),
        n_queries=tally.n,
        options=options,
        primary=primary,
        baseline=systems[0].name,
        units=_units(tally),
        systems=systems,
        pairs=pairs,
        strata=tuple(stratum_means(tally, level)),
        stratified=tuple(stratified_means(tally, names, level)),
        table=table.name if table is not None else "",
        weight=weight or "",
        n_without_row=tally.n_without_row,
        without_row=tuple(tally.without_row),
    )
    return replace(summary, caveats=tuple(_caveats(summary, tally)))


def _pairs(
    tally: Tally, systems: Sequence[SystemSummary], about: ResultsInfo, primary: Measure, options: CompareOptions
) -> tuple[PairSummary, ...]:
    if len(systems) < 2 or primary not in tally.layout.compared:
        return ()
    void = [tuple(_void(tally, (systems[0], each), about, primary, options)) for each in systems[1:]]
    return compare_systems(tally, about.scoring.systems, primary, options, void)


def _check(
    about: ResultsInfo, options: CompareOptions, columns: AttributeColumns, table: Path | None, n_units: int
) -> Measure:
    """The primary measure."""
    if columns.names and table is None:
        raise UsageError(
            f"columns {', '.join(columns.names)} without a table of queries",
            hint="{table} names it",
            parameters=("table",),
        )
    if n_units < FEW_UNITS:
        raise UsageError(f"{n_units} units", expected=f"{FEW_UNITS} or more")
    if options.test not in KNOWN_TESTS:
        expected = f"one of {', '.join(KNOWN_TESTS)}"
        raise UsageError(f"test {options.test} needs the differences of all queries at once", expected=expected)
    measures = about.scoring.measures
    quality = quality_measures(measures)
    if options.primary is None:
        return (quality or list(measures))[0]
    primary = find_measure(parse(options.primary), measures)
    if primary not in measures:
        raise UsageError(f"primary measure {primary} was not evaluated", expected=", ".join(map(str, measures)))
    if primary not in quality:
        what = "a diagnostic measure" if CATALOGUE[primary.name].diagnostic else "one number over all queries"
        raise UsageError(f"{primary} is {what} and cannot decide a verdict", expected=", ".join(map(str, quality)))
    return primary


def _void(
    tally: Tally, sides: Sequence[SystemSummary], about: ResultsInfo, primary: Measure, options: CompareOptions
) -> Iterator[str]:
    """Why the comparison of a system with the first does not count: limits that are broken, and runs that cannot be right."""
    limits, judged = options.limits, about.scoring.judged
    yield from (f"{side.name} answers none of the queries" for side in sides if side.n_missing == tally.n)
    yield from filter(None, map(_nothing_judged, sides))
    if _is_void(QUERY_FORM, options):
        yield from _query_forms(tally, about, [side.name for side in sides], options)
    for side in sides:
        share = side.judged_share
        if limits.min_judged_share is not None and share is not None and round(share, 12) < limits.min_judged_share:
            limit = f"the limit is {format_percent(limits.min_judged_share)} (limits.min_judged_share)"
            yield f"{side.name}: {judged} is {format_percent(share)}; {limit}"
    place = about.scoring.systems.index(sides[1].name)
    paired = int(tally.moments.n[tally.layout.pair(primary, place)[2]])
    lost = sum(side.measures[primary].n - paired for side in sides)
    if limits.max_failed_share is not None and tally.n and lost / tally.n > limits.max_failed_share:
        yield (
            f"{lost} of {tally.n} queries have a value of {primary} on one side only "
            f"({format_percent(lost / tally.n)}); the limit is {format_percent(limits.max_failed_share)} "
            "(limits.max_failed_share)"
        )


def _is_void(check: str, options: CompareOptions) -> bool:
    setting = options.limits.evidence.get(check, Setting())
    return (setting.consequence or CHECKS[check].consequence) is Consequence.VOID


def _query_forms(tally: Tally, about: ResultsInfo, names: Sequence[str], options: CompareOptions) -> Iterator[str]:
    """Caveats on queries without an answer that the runs answer under ids in another form, as far as examples show."""
    limit = threshold_of(QUERY_FORM, options.limits.evidence)
    if limit is None:
        return
    for name in names:
        form = query_form(about.extra_queries, tally.unanswered[about.scoring.systems.index(name)], limit)
        if form is not None:
            in_run, in_set = form.example
            yield (
                f"{name} does not answer queries that the runs would answer if {form.what} (in the runs {in_run}, "
                f"in the test set {in_set})"
            )


def _nothing_judged(system: SystemSummary) -> str:
    """What is wrong where a system returns documents, and none of them is judged."""
    n_answered = system.n_queries - system.n_missing
    if system.n_judged or n_answered < FEW_ANSWERED:
        return ""
    queries = count_noun(n_answered, "queries", format_count)
    return f"{system.name}: no result of {queries} is judged for its query: check the form of the document ids"


def _units(tally: Tally) -> Units:
    attributes: Attributes | None = tally.attributes
    counts = tally.units.counts
    n = int((counts > 0).any(axis=0).sum()) if len(counts) else min(tally.n, tally.n_units)
    if attributes is None or not tally.is_clustered:
        return Units(UnitKind.GROUP if tally.is_grouped else UnitKind.QUERY, n)
    return Units(
        UnitKind.CLUSTER_GROUP if tally.is_grouped else UnitKind.CLUSTER,
        n,
        column=attributes.columns.cluster or "",
        n_clusters=attributes.n_clusters,
        largest=attributes.largest,
        n_without=tally.n_without_cluster,
        without=tuple(tally.without_cluster),
    )


def _caveats(summary: ScaleSummary, tally: Tally) -> Iterator[str]:
    """What limits the use of the numbers, the gravest first."""
    units, about, total = summary.units, summary.about, format_count(summary.n_queries)
    if units.is_clustered and units.n < FEW_CLUSTERS:
        yield (
            f"there are only {count_noun(units.n, 'clusters')}: intervals and p-values of so few are not reliable, however many "
            "queries there are"
        )
    yield from _mostly_unjudged(summary)
    if units.kind in {UnitKind.GROUP, UnitKind.CLUSTER_GROUP} and summary.pairs:
        yield f"sign flips and resamples are of {units.text} (seed {summary.options.seed}), not of single queries"
    if units.n_without:
        named = join_first(units.without) + (" …" if units.n_without > len(units.without) else "")
        yield f"queries without a cluster, each its own: {format_count(units.n_without)} of {total} ({named})"
    if summary.n_without_row and not (units.n_without == summary.n_without_row and not tally.strata):
        named = join_first(summary.without_row) + (" …" if summary.n_without_row > len(summary.without_row) else "")
        yield f"queries that are not in {summary.table}: {format_count(summary.n_without_row)} of {total} ({named})"
    yield from _extra_queries(summary, tally)
    yield from _identical(summary.systems)
    yield from filter(None, map(_nothing_judged, () if summary.pairs else summary.systems))
    for system in summary.systems:
        if system.n_missing:
            count_as = "are scored by the convention's rule" if about.scoring.missing == "zero" else "are left out"
            yield f"{system.name} does not answer {format_count(system.n_missing)} of {total} queries: they {count_as}"
        if system.n_duplicates:
            yield f"{system.name}: {format_count(system.n_duplicates)} duplicate results dropped, the first of each kept"
    yield from _unpaired(summary)
    pooled = [str(m) for m in tally.layout.measures if CATALOGUE[m.name].aggregate != "mean"]
    if pooled and len(summary.systems) > 1:
        yield f"{', '.join(pooled)}: one number over all queries, without a difference per query"


def _extra_queries(summary: ScaleSummary, tally: Tally) -> Iterator[str]:
    """Rows of queries that the test set does not have, and whether these are its own in another form."""
    about = summary.about
    if about.n_rows_unjudged:
        named = (
            f" ({', '.join(shown_id(each, quoted=False) for each in about.extra_queries[:5])} …)"
            if about.extra_queries
            else ""
        )
        yield f"rows of queries that are not in the test set: {format_count(about.n_rows_unjudged)}{named}"
    if not summary.pairs or not _is_void(QUERY_FORM, summary.options):
        yield from _query_forms(tally, about, about.scoring.systems, summary.options)


def _mostly_unjudged(summary: ScaleSummary) -> Iterator[str]:
    limit = threshold_of(MOSTLY_UNJUDGED, summary.options.limits.evidence)
    shares = {system.name: system.judged_share for system in summary.systems}
    if limit is not None and (found := mostly_unjudged_sentence(summary.about.scoring.judged, shares, limit)):
        yield found


def _identical(systems: Sequence[SystemSummary]) -> Iterator[str]:
    """Systems whose files are the same."""
    for place, system in enumerate(systems):
        same = [other.name for other in systems[:place] if system.digest and other.digest == system.digest]
        if same:
            yield f"the runs of {same[0]} and {system.name} are identical: check that they come from different systems"


def _unpaired(summary: ScaleSummary) -> Iterator[str]:
    """Queries with a value on one side only."""
    for pair in summary.pairs:
        n = pair.measures[summary.primary].n
        system = next(each for each in summary.systems if each.name == pair.name)
        counts = [(summary.baseline, summary.systems[0].measures[summary.primary].n - n)]
        counts.append((pair.name, system.measures[summary.primary].n - n))
        shown = ", ".join(f"{format_count(lost)} on {name} only" for name, lost in counts if lost)
        if shown:
            yield f"queries with a value of {summary.primary} on one side cannot be paired: {shown}"
