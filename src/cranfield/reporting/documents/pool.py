"""Pools as Documents: the preview of a pool, and the check that leaves one system out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cranfield.evaluation.values import Summary
from cranfield.judging.pools.build import BuiltPool
from cranfield.judging.pools.check import LeftOut, PoolCheck
from cranfield.judging.pools.estimate import PoolEstimate, PrecisionEstimate
from cranfield.judging.pools.pool_file import Pool
from cranfield.judging.pools.summary import Cost, PoolSummary, StratumSummary, SystemShare
from cranfield.model import TestSet
from cranfield.numbers import (
    Interval,
    format_average,
    format_delta,
    format_duration,
    format_interval,
    format_level,
    format_percent,
    format_value,
)
from cranfield.record import Fields, plain, record_of
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    KeyValues,
    Paragraph,
    Section,
    tidy_table,
)
from cranfield.reporting.documents.testset import DIGEST_SHOWN, table, testset_document
from cranfield.words import n_of

METHODS = {
    "depth": "fixed depth",
    "stratified": "stratified sample",
    "budget": "budget",
    "holes": "holes",
}
"""Method of a pool to its name in reports."""
FIELDS: Fields = {
    PoolSummary: (
        "n_candidates n_to_judge n_carried n_prefilled n_left_out per_query.min=per_query.0 per_query.median=per_query.1 "
        "per_query.max=per_query.2 systems shared strata cost notes"
    ),
    SystemShare: "name n_found n_only n_only_open",
    StratumSummary: "ranks n_open n_drawn inclusion.min=least inclusion.max=most",
    Cost: "n_judgments raters seconds_each seconds",
    PoolCheck: "measure depth n_queries mean_change n_moved systems",
    PoolEstimate: "precision n_relevant n_missing n_outside not_pooled",
    PrecisionEstimate: "name k estimate judged_only",
    Summary: "mean ci_low ci_high ci_level n",
    LeftOut: "name n_only n_relevant value without change rank rank_without tau",
}


def pool_document(built: BuiltPool, summary: PoolSummary) -> Document:
    """Size, cost, overlap and unique contribution of a pool, before it is written."""
    pool = built.pool
    sections = [_size(pool, summary)]
    if summary.strata:
        sections.append(_strata(summary))
    sections.append(_systems(pool, summary))
    if len(summary.systems) > 1:
        sections.append(_overlap(pool, summary))
    if summary.notes:
        sections.append(Section("notes", "Notes", (Bullets(summary.notes),)))
    rows = [(item.query, item.doc, item.stratum, item.inclusion, item.judged) for item in pool.items]
    about = pool.model_dump(mode="json", exclude={"queries", "items", "cranfield_pool"})
    return Document(
        title="Pool",
        subtitle=(_headline(pool),),
        sections=tuple(sections),
        tidy=lambda: tidy_table(("query", "document", "ranks", "inclusion", "grade"), rows),
        payload=lambda: {"schema_version": 1, "pool": about, **record_of(summary, FIELDS)},
    )


def _headline(pool: Pool) -> str:
    named = f", for {pool.testset}, {pool.testset_digest[:DIGEST_SHOWN]}" if pool.testset else ""
    return f"{pool.name}: {METHODS[pool.method]}, depth {pool.depth}, {n_of(len(pool.runs), 'runs')}{named}"


def _size(pool: Pool, summary: PoolSummary) -> Section:
    cost, (least, middle, most) = summary.cost, summary.per_query
    each = f"{n_of(cost.raters, 'raters')}, {cost.seconds_each:g} s each"
    facts = [
        ("queries", str(len(pool.queries))),
        ("documents found", str(summary.n_candidates)),
        ("judged, left out", str(summary.n_left_out)),
        *([("judged, in the pool", str(summary.n_carried))] if summary.n_carried else []),
        *([("graded by rule, in the pool", str(summary.n_prefilled))] if summary.n_prefilled else []),
        ("to judge", str(summary.n_to_judge)),
        ("to judge per query", f"{least} to {most}, median {format_average(middle)}"),
        ("judgments", f"{cost.n_judgments} ({each})"),
        ("time", format_duration(cost.seconds)),
        ("method", METHODS[pool.method]),
        ("complete to rank", f"{pool.complete_to} of {pool.depth}"),
        ("seed", str(pool.seed)),
    ]
    return Section("size", "Size", (KeyValues(tuple(facts)),))


def _strata(summary: PoolSummary) -> Section:
    rows: list[tuple[Cell, ...]] = [
        (each.ranks, each.n_open, each.n_drawn, (each.least, each.most)) for each in summary.strata
    ]
    columns = (
        *(Column("ranks"), Column("not judged", "count"), Column("in the pool", "count")),
        Column("inclusion probability", "interval"),
    )
    about = (
        "A document belongs to the smallest rank that any run gives it. The sample is drawn in each query, of one document at "
        "least: its probability is the size of the sample over the number of documents, and differs where that rounds."
    )
    return Section("strata", "Strata", (table("Documents by rank", columns, rows), Paragraph(about)))


def _systems(pool: Pool, summary: PoolSummary) -> Section:
    rows: list[tuple[Cell, ...]] = [
        (each.name, each.n_found, each.n_only, each.n_only / each.n_found if each.n_found else None, each.n_only_open)
        for each in summary.systems
    ]
    columns = (
        *(Column("run"), Column("documents", "count"), Column("unique", "count"), Column("share", "percent")),
        Column("unique, not judged", "count"),
    )
    caption = f"Results down to rank {pool.depth}; unique: returned by no other run"
    return Section("systems", "Contribution of each run", (table(caption, columns, rows),))


def _overlap(pool: Pool, summary: PoolSummary) -> Section:
    names = [each.name for each in summary.systems]
    rows: list[tuple[Cell, ...]] = [(name, *shared) for name, shared in zip(names, summary.shared, strict=True)]
    columns = (Column("run"), *(Column(name, "count") for name in names))
    caption = f"Documents that both runs return down to rank {pool.depth}"
    return Section("overlap", "Overlap", (table(caption, columns, rows),))


def check_document(testset: TestSet, checks: Sequence[PoolCheck]) -> Document:
    """How each system would have scored if it had given nothing to the pool."""
    sections = [_check_section(check) for check in checks]
    rows = [
        (str(check.measure), *(getattr(each, name) for name in LeftOut.__dataclass_fields__))
        for check in checks
        for each in check.systems
    ]
    payload: dict[str, Any] = {"checks": plain(list(checks), FIELDS)}
    tidy = tidy_table(("measure", *LeftOut.__dataclass_fields__), rows)
    return testset_document("Leave one system out", testset, sections, tidy, payload)


def _check_section(check: PoolCheck) -> Section:
    rows: list[tuple[Cell, ...]] = [
        (
            *(each.name, each.n_only, each.n_relevant, each.value, each.without, each.change),
            *(each.rank, each.rank_without, each.tau),
        )
        for each in check.systems
    ]
    columns = (
        *(Column("run"), Column("unique", "count"), Column("relevant", "count"), Column("value", "value")),
        *(Column("left out", "value"), Column("change", "delta"), Column("rank", "count")),
        *(Column("rank left out", "count"), Column("tau", "value")),
    )
    caption = (
        f"{check.measure} with all judgments, and without those of documents that only this run returned down to rank "
        f"{check.depth}"
    )
    blocks: list[Block] = [Paragraph(_sentence(check)), table(caption, columns, rows)]
    return Section(f"check-{check.measure}", str(check.measure), tuple(blocks))


def _sentence(check: PoolCheck) -> str:
    """What a new system has to expect."""
    if not any(each.n_only for each in check.systems):
        return (
            "No run has a judged document of its own down to this depth: the judgments cannot show how a run that is not in "
            "the pool would score."
        )
    worst = check.largest
    share = f" ({format_percent(worst.change / worst.value)})" if worst.value else ""
    moved = f"{check.n_moved} of {n_of(len(check.systems), 'runs')} change rank"
    return (
        f"A run that is not in the pool should expect a change of about {format_value(check.mean_change)} "
        f"(mean absolute change); the largest is {format_delta(worst.change)}{share}, of {worst.name}. {moved}. A run of another "
        "kind than these may find more that is not judged."
    )


def estimate_document(testset: TestSet, pool: Pool, found: PoolEstimate) -> Document:
    """Precision and the number of relevant documents, estimated from a judged sample."""
    level = format_level(1 - found.n_relevant.ci_level)
    rows: list[tuple[Cell, ...]] = [
        (each.name, f"P@{each.k}", *_estimate(each.estimate), each.judged_only) for each in found.precision
    ]
    columns = (
        *(Column("run"), Column("measure"), Column("estimate", "value"), Column(f"{level} CI", "interval")),
        Column("judged only", "value"),
    )
    relevant = found.n_relevant
    facts = (
        ("queries", str(relevant.n)),
        (
            "relevant documents per query",
            f"{format_average(relevant.mean)}, {level} CI {format_interval(_estimate(relevant)[1])}",
        ),
    )
    n_missing, n_outside = (n_of(n, "documents") for n in (found.n_missing, found.n_outside))
    notes = [
        *([f"{n_missing} of the pool without a grade: estimates are too low"] if found.n_missing else []),
        *([f"{n_outside} judged and not drawn: estimates are too high"] if found.n_outside else []),
        *([f"not in the pool: {', '.join(found.not_pooled)}: estimates are too low"] if found.not_pooled else []),
    ]
    caption = (
        "Judged relevant documents weighted by the inverse of their inclusion probability; judged only: without weights"
    )
    blocks: list[Block] = [KeyValues(facts), table(caption, columns, rows)]
    sections = [Section("estimates", "Estimates", (*blocks, *([Bullets(tuple(notes), "warning")] if notes else [])))]
    tidy = tidy_table(
        ("run", "k", "estimate", "ci_low", "ci_high", "judged_only"),
        [
            (each.name, each.k, each.estimate.mean, each.estimate.ci_low, each.estimate.ci_high, each.judged_only)
            for each in found.precision
        ],
    )
    payload = {"pool": {"name": pool.name, "method": pool.method, "depth": pool.depth}, **record_of(found, FIELDS)}
    return testset_document("Estimates from a judged pool", testset, sections, tidy, payload)


def _estimate(summary: Summary) -> tuple[float | None, Interval]:
    return summary.mean, (summary.ci_low, summary.ci_high)
