"""Pools as Documents: the preview of a pool, and the check that leaves one system out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cranfield.base.numbers import (
    format_average,
    format_delta,
    format_duration,
    format_interval,
    format_level,
    format_p,
    format_percent,
    format_value,
)
from cranfield.base.words import count_noun
from cranfield.books.pool_file import PooledItem
from cranfield.judging.pools.check import LeftOut, PoolCheck, PoolChecks, PoolEstimate
from cranfield.judging.pools.results import WithAndWithout
from cranfield.judging.pools.summary import PoolSummary
from cranfield.judging.preference import PreferenceResult
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Bullets, Document, KeyValues, Paragraph, Section
from cranfield.reporting.sections.subject import DIGEST_SHOWN, about_testset
from cranfield.reporting.table_spec import Col, Cols, Columns, TableSpec, interval

METHODS = {
    "depth": "fixed depth",
    "stratified": "stratified sample",
    "budget": "budget",
    "holes": "holes",
    "traces": "retrieved in production",
}
"""Method of a pool to its name in reports."""


def pool_document(summary: PoolSummary, items: Sequence[PooledItem]) -> Document:
    """Size, cost, overlap and unique contribution of a pool, before it is written."""
    sections = [_size(summary)]
    if summary.strata:
        sections.append(_strata(summary))
    sections.append(_systems(summary))
    if len(summary.systems) > 1:
        sections.append(_overlap(summary))
    if summary.notes:
        sections.append(Section("notes", "Notes", (Bullets(summary.notes),)))
    rows = TableSpec(
        "",
        items,
        (
            Col("query", lambda row: row.query),
            Col("document", lambda row: row.doc),
            Col("ranks", lambda row: row.stratum),
            Col("inclusion", lambda row: row.inclusion),
            Col("grade", lambda row: row.judged),
        ),
    )
    pool = summary.pool
    named = f", for {pool.testset}, {pool.testset_digest[:DIGEST_SHOWN]}" if pool.testset else ""
    return Document(
        title="Pool",
        subtitle=(
            (f"{pool.name}: {METHODS[pool.method]}, depth {pool.depth}, {count_noun(len(pool.runs), 'runs')}{named}"),
        ),
        sections=tuple(sections),
        tidy=rows.tidy,
        payload=lambda: to_jsonable(summary),
    )


def _size(summary: PoolSummary) -> Section:
    pool, cost, per_query = summary.pool, summary.cost, summary.per_query
    each = f"{count_noun(cost.raters, 'raters')}, {cost.seconds_each:g} s each"
    facts = [
        ("queries", str(summary.n_queries)),
        ("documents found", str(summary.n_candidates)),
        ("judged, left out", str(summary.n_left_out)),
        *([("judged, in the pool", str(summary.n_carried))] if summary.n_carried else []),
        *([("graded by rule, in the pool", str(summary.n_prefilled))] if summary.n_prefilled else []),
        ("to judge", str(summary.n_to_judge)),
        ("to judge per query", f"{per_query.min} to {per_query.max}, median {format_average(per_query.median)}"),
        ("judgments", f"{cost.n_judgments} ({each})"),
        ("time", format_duration(cost.seconds)),
        ("method", METHODS[pool.method]),
        ("complete to rank", f"{pool.complete_to} of {pool.depth}"),
        ("seed", str(pool.seed)),
    ]
    return Section("size", "Size", (KeyValues(tuple(facts)),))


def _strata(summary: PoolSummary) -> Section:
    table = TableSpec(
        "Documents by rank",
        summary.strata,
        (
            Col("ranks", lambda row: row.ranks),
            Col("not judged", lambda row: row.n_open, "count"),
            Col("in the pool", lambda row: row.n_drawn, "count"),
            Col("inclusion probability", lambda row: (row.least, row.most), "interval"),
        ),
    )
    about = "A document belongs to the best rank in any run. The sample is drawn per query, with at least one document; the inclusion probability is the sample size divided by the number of documents, and varies because of rounding."
    return Section("strata", "Strata", (table.table(), Paragraph(about)))


def _systems(summary: PoolSummary) -> Section:
    table = TableSpec(
        f"Results down to rank {summary.pool.depth}; unique: returned by no other run",
        summary.systems,
        (
            Col("run", lambda row: row.name),
            Col("documents", lambda row: row.n_found, "count"),
            Col("unique", lambda row: row.n_only, "count"),
            Col("share", lambda row: row.n_only / row.n_found if row.n_found else None, "percent"),
            Col("unique, not judged", lambda row: row.n_only_open, "count"),
        ),
    )
    return Section("systems", "Contribution of each run", (table.table(),))


def _overlap(summary: PoolSummary) -> Section:
    names = [each.name for each in summary.systems]
    columns: Columns[int] = (
        Col("run", names.__getitem__),
        Cols(range(len(names)), lambda row, column: summary.shared[row][column], "count", names.__getitem__),
    )
    caption = f"Documents that both runs return down to rank {summary.pool.depth}"
    return Section("overlap", "Overlap", (TableSpec(caption, range(len(names)), columns).table(),))


def check_document(found: PoolChecks) -> Document:
    """How each system would have scored if it had given nothing to the pool."""
    return Document(
        title="Leave one system out",
        subtitle=about_testset(found.testset),
        sections=tuple(
            Section(f"check-{check.measure}", str(check.measure), (Paragraph(_sentence(check)), _spec(check).table()))
            for check in found.checks
        ),
        tidy=_spec(*found.checks).tidy,
        payload=lambda: to_jsonable(found),
    )


def _spec(*checks: PoolCheck) -> TableSpec[tuple[PoolCheck, LeftOut]]:
    """One check for a report; all of them for CSV."""
    caption = f"{checks[0].measure} with all judgments, and without judgments of documents that only this run returned down to rank {checks[0].depth}"
    return TableSpec(
        caption,
        [(check, system) for check in checks for system in check.systems],
        (
            Col("measure", lambda row: str(row[0].measure), only="tidy"),
            Col("run", lambda row: row[1].name, key="name"),
            Col("unique", lambda row: row[1].n_only, "count", "n_only"),
            Col("relevant", lambda row: row[1].n_relevant, "count", "n_relevant"),
            Col("value", lambda row: row[1].value, "value"),
            Col("left out", lambda row: row[1].without, "value", "without"),
            Col("change", lambda row: row[1].change, "delta", only="report"),
            Col("rank", lambda row: row[1].rank, "count"),
            Col("rank left out", lambda row: row[1].rank_without, "count", "rank_without"),
            Col("tau", lambda row: row[1].tau, "value"),
        ),
    )


def _sentence(check: PoolCheck) -> str:
    """What a new system has to expect."""
    if not any(each.n_only for each in check.systems):
        return (
            "No run has a judged document that only it returned down to this depth, so the effect on a run "
            "outside the pool cannot be estimated."
        )
    worst = max(check.systems, key=lambda system: abs(system.change))
    share = f" ({format_percent(worst.change / worst.value)})" if worst.value else ""
    moved = f"{check.n_moved} of {count_noun(len(check.systems), 'runs')} change rank"
    return (
        f"A run that is not in the pool should expect a change of about {format_value(check.mean_change)} "
        f"(mean absolute change); the largest is {format_delta(worst.change)}{share}, of {worst.name}. "
        f"{moved}. A run of a different kind may return more unjudged documents."
    )


def estimate_document(found: PoolEstimate) -> Document:
    """Precision and the number of relevant documents, estimated from a judged sample."""
    relevant = found.n_relevant
    level = format_level(1 - relevant.ci_level)
    table = TableSpec(
        "Judged relevant documents weighted by the inverse of their inclusion probability; judged only: without weights",
        found.precision,
        (
            Col("run", lambda row: row.name),
            Col("measure", lambda row: f"P@{row.k}", only="report"),
            Col("k", lambda row: row.k, only="tidy"),
            Col("estimate", lambda row: row.estimate.mean, "value"),
            Col(f"{level} CI", lambda row: interval(row.estimate), "interval", only="report"),
            Col("ci_low", lambda row: row.estimate.ci_low, only="tidy"),
            Col("ci_high", lambda row: row.estimate.ci_high, only="tidy"),
            Col("judged only", lambda row: row.judged_only, "value", "judged_only"),
        ),
    )
    each = f"{format_average(relevant.mean)}, {level} CI {format_interval(interval(relevant))}"
    facts = KeyValues((("queries", str(relevant.n)), ("relevant documents per query", each)))
    n_missing, n_outside = (count_noun(n, "documents") for n in (found.n_missing, found.n_outside))
    notes = (
        *([f"{n_missing} of the pool without a grade: estimates are too low"] if found.n_missing else []),
        *([f"{n_outside} judged but not sampled: estimates are too high"] if found.n_outside else []),
        *([f"not in the pool: {', '.join(found.not_pooled)}: estimates are too low"] if found.not_pooled else []),
    )
    doubts = [Bullets(notes, "warning")] if notes else []
    return Document(
        title="Estimates from a judged pool",
        subtitle=about_testset(found.testset),
        sections=(Section("estimates", "Estimates", (facts, table.table(), *doubts)),),
        tidy=table.tidy,
        payload=lambda: to_jsonable(found),
    )


FAVOURS = (
    "Alternatives are in the test set because a system of the pool found them. Scores with alternatives favour "
    "these systems over systems outside the pool: compare systems by the scores without alternatives."
)


def alternatives_document(found: WithAndWithout) -> Document:
    """Both scores of each run, and which system found how many."""
    scores = TableSpec(
        "Means with the alternatives and without",
        found.scores,
        (
            Col("run", lambda row: row.run),
            Col("measure", lambda row: row.measure),
            Col("without", lambda row: row.without, "value"),
            Col("with", lambda row: row.with_them, "value"),
            Col("change", lambda row: row.change, "delta"),
        ),
    )
    by_system = TableSpec(
        "Systems that found the alternatives",
        sorted(Counter(name for each in found.alternatives for name in each.found_by).items()),
        (Col("system", lambda row: row[0]), Col("alternatives", lambda row: row[1], "count")),
    )
    return Document(
        title="Alternatives",
        subtitle=about_testset(found.testset),
        sections=(
            Section("scores", "Scores", (scores.table(), Paragraph(FAVOURS))),
            Section("found", "Found by", (by_system.table(),)),
        ),
        tidy=scores.tidy,
        payload=lambda: to_jsonable(found),
    )


WHAT_IT_IS = (
    "Each query counts once, for the list that most of its raters prefer, or for the adjudicated list. The sign "
    "test is exact and two-sided, without ties; the interval of the share is a Clopper-Pearson interval."
)


def preference_rows(result: PreferenceResult) -> tuple[tuple[str, str], ...]:
    """Wins, ties, the sign test and the interval, each with its name."""
    rows: list[tuple[str, str]] = [
        ("queries judged", f"{result.n} ({result.n_votes} judgments)"),
        (f"{result.a} better", str(result.wins_a)),
        (f"{result.b} better", str(result.wins_b)),
        ("ties", str(result.ties)),
    ]
    if result.share_b is not None and result.ci_low is not None and result.ci_high is not None:
        share = f"{format_percent(result.share_b)}, 95 % CI {format_percent(result.ci_low)} to {format_percent(result.ci_high)}"
        rows.append((f"{result.b} better, of those without ties", share))
    if result.p_value is not None:
        rows.append(("sign test", f"p {format_p(result.p_value)}"))
    return tuple(rows)


def preference_document(result: PreferenceResult) -> Document:
    """The result of a book of preferences."""
    names = ("a", "b", "n", "wins_a", "wins_b", "ties", "n_votes", "p_value", "share_b", "ci_low", "ci_high")
    return Document(
        title="Preferences",
        subtitle=(f"{result.book}: {result.a} or {result.b}",),
        sections=(Section("result", "Result", (KeyValues(preference_rows(result)), Paragraph(WHAT_IT_IS, "note"))),),
        payload=lambda: to_jsonable(result),
        tidy=TableSpec("", (result,), (Cols(names, getattr),)).tidy,
    )
