"""Single queries: the worst and the best, with the result lists side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cranfield.evaluation.result import ComparisonResult, EvaluationResult, HitRecord, Side
from cranfield.evaluation.verdict import sign_of
from cranfield.measures import CATALOGUE, Measure
from cranfield.model import Absence, Outcome
from cranfield.numbers import format_count, format_delta, format_value
from cranfield.reporting.document import (
    Block,
    Cell,
    Column,
    Details,
    HitLine,
    HitList,
    HitLists,
    Paragraph,
    Section,
    Table,
)
from cranfield.reporting.sections.labels import has_texts, lettered, query_text
from cranfield.reporting.sections.movement import query_table, rank_cells
from cranfield.reporting.sections.subject import Subject
from cranfield.words import first_of, n_of, shorten_to

SHOWN_QUERIES = 5
EXPECTED_ITEMS, MISSED_ITEMS = 6, 3
MISSED = Column("expected and missed", "code")
LABEL = 40
"""Columns of a query in the line of the section while it is closed."""
MATCHED = 72
"""Columns of a pattern or predicate next to a result that it matches; it is in full above the lists."""


def answers(subject: Subject) -> Section | None:
    """Single queries with the result lists: worst and best of a pair, worst of one system; None for several systems."""
    if subject.pair is not None:
        return _worst_and_best(subject.pair)
    return _lowest(subject.record) if len(subject.systems) == 1 else None


def _worst_and_best(comparison: ComparisonResult) -> Section:
    """The queries that lost and gained most on the primary measure."""
    found = comparison.comparisons[comparison.primary].differences
    sign = sign_of(comparison.primary)
    # Sorting is stable: equal differences stay in the order of the test set.
    losers = sorted((q for q, delta in found.items() if sign * delta < 0), key=lambda q: sign * found[q])
    winners = sorted((q for q, delta in found.items() if sign * delta > 0), key=lambda q: -sign * found[q])
    return Section(
        "answers",
        "Worst and best queries",
        (
            *_extremes(comparison, losers[:SHOWN_QUERIES], "Largest losses on B", "No query is worse on B."),
            *_extremes(comparison, winners[:SHOWN_QUERIES], "Largest gains on B", "No query is better on B."),
        ),
        " and ".join(
            f"{format_delta(found[ids[0]])} of {shorten_to(query_label(comparison, ids[0]), LABEL)}"
            for ids in (losers, winners)
            if ids
        )
        or "no query differs",
    )


def _extremes(comparison: ComparisonResult, query_ids: Sequence[str], caption: str, none: str) -> list[Block]:
    if not query_ids:
        return [Paragraph(none)]
    found = comparison.comparisons[comparison.primary].differences
    ranks = [rank_cells(comparison, place) for place in (0, 1)]
    blocks: list[Block] = [query_table(comparison, query_ids, caption)]
    for place, query_id in enumerate(query_ids):
        before, after = (_rank_words(side[query_id]) for side in ranks)
        summary = f"{query_label(comparison, query_id)}: {format_delta(found[query_id])} (A {before}, B {after})"
        blocks.append(
            Details(summary, (side_by_side(comparison, query_id, lettered(comparison.names)),), is_open=place == 0)
        )
    return blocks


def _lowest(record: EvaluationResult) -> Section | None:
    """The queries with the worst values of one system, with its results."""
    (system,) = record.systems
    if not system.measures:
        return None
    measure = next(iter(system.measures))
    values = {q: value for q, of_query in system.queries.items() if (value := of_query[measure]) is not None}
    query_ids = sorted(values, key=lambda q: sign_of(measure) * values[q])[:SHOWN_QUERIES]
    if not query_ids:
        return None
    ranks = rank_cells(record, 0)
    blocks: list[Block] = [_lowest_table(record, measure, query_ids)]
    blocks += [
        Details(
            f"{query_label(record, query_id)}: {measure} {format_value(values[query_id])}, {_rank_words(ranks[query_id])}",
            (side_by_side(record, query_id, record.names),),
            is_open=place == 0,
        )
        for place, query_id in enumerate(query_ids)
    ]
    worst = f"{measure} {format_value(values[query_ids[0]])} of {shorten_to(query_label(record, query_ids[0]), LABEL)}"
    return Section("answers", "Worst queries", tuple(blocks), worst)


def _lowest_table(record: EvaluationResult, measure: Measure, query_ids: Sequence[str]) -> Table:
    texts = (Column("text", "code"),) if has_texts(record) else ()
    ranks, queries, (system,) = rank_cells(record, 0), record.queries or {}, record.systems
    rows: list[tuple[Cell, ...]] = [
        (
            query_id,
            *((query_text(record, query_id),) if texts else ()),
            system.queries[query_id][measure],
            ranks[query_id],
            queries[query_id].sides[0].outcome,
            first_of(queries[query_id].sides[0].missed, MISSED_ITEMS),
        )
        for query_id in query_ids
    ]
    columns = (
        Column("query", "query id"),
        *texts,
        Column(str(measure), "value"),
        Column("rank", "count"),
        Column("outcome"),
        MISSED,
    )
    return _without_empty_missed(
        columns,
        rows,
        f"{'Lowest' if CATALOGUE[measure.name].higher_is_better else 'Highest'} on {measure}, and the rank of the first relevant result",
    )


def by_query(subject: Subject) -> Section | None:
    """A row for every query of every system: outcome and every value; None unless requested."""
    if not subject.by_query:
        return None
    record, measures, queries = subject.record, subject.measures, subject.queries
    several, texts = len(record.systems) > 1, has_texts(record)
    rows: list[tuple[Cell, ...]] = []
    for place, system in enumerate(record.systems):
        for query_id, values in system.queries.items():
            side = queries[query_id].sides[place]
            about = [
                query_id,
                *([system.name] if several else []),
                *([queries[query_id].text] if texts else []),
            ]
            found = [values.get(measure) for measure in measures]
            rows.append((*about, side.outcome, *found, first_of(side.missed, MISSED_ITEMS)))
    columns = [Column("query", "query id")]
    columns += [Column("system")] if several else []
    columns += [Column("text", "code")] if texts else []
    columns += [Column("outcome"), *(Column(str(measure), "value") for measure in measures)]
    table = replace(_without_empty_missed((*columns, MISSED), rows, "Every query"), shown=None)
    return Section("queries", "Per-query results", (table,), n_of(len(rows), "rows", format_count))


def _without_empty_missed(columns: Sequence[Column], rows: Sequence[tuple[Cell, ...]], caption: str) -> Table:
    """The table, without its last column where nothing that is expected was missed."""
    last = None if any(row[-1] for row in rows) else -1
    return Table(tuple(columns[:last]), [row[:last] for row in rows], caption)


def query_label(record: EvaluationResult, query_id: str) -> str:
    """`q17 “json dumps”`, or the id alone."""
    text = query_text(record, query_id)
    return f"{query_id} “{text}”" if text and text != query_id else query_id


def side_by_side(record: EvaluationResult, query_id: str, titles: Sequence[str]) -> HitLists:
    """The expected items of a query, and the results of each system."""
    query = (record.queries or {})[query_id]
    named = first_of((f"{each.item} (grade {each.grade:g})" for each in query.expected), EXPECTED_ITEMS)
    lists = (
        HitList(title, list_note(side), tuple(map(hit_line, side.hits)) if has_list(side) else ())
        for title, side in zip(titles, query.sides, strict=True)
    )
    return HitLists(named or query.nothing_expected, tuple(lists))


def has_list(side: Side) -> bool:
    """Whether a system answered a query with results."""
    outcome = Outcome.MISSING if side.outcome is None else Outcome(side.outcome)
    return side.n_returned > 0 and not outcome.is_failure and outcome is not Outcome.MISSING


def list_note(side: Side) -> str:
    """The outcome of a query in words: `first relevant result at rank 3; 10 returned`, `timeout: no answer in 30 s`."""
    if side.outcome is None:
        return str(Absence.NOT_RETURNED)
    outcome = Outcome(side.outcome)
    if outcome.is_failure or outcome is Outcome.MISSING:
        return f"{outcome.value}: {side.reason}" if side.reason else outcome.value
    if not side.n_returned:
        return "no results returned"
    rank = side.first_relevant_rank
    note = "no relevant result" if rank is None else f"first relevant result at rank {rank}"
    dropped = f", {n_of(side.n_duplicates, 'duplicates')} dropped" if side.n_duplicates else ""
    return f"{note}; {side.n_returned} returned{dropped}"


def hit_line(hit: HitRecord) -> HitLine:
    """One result, with how it was judged in words."""
    # The place, where the id does not contain it.
    title = ", ".join(part for part in (hit.title, hit.span and f"at {hit.span}") if part)
    if hit.item is not None and not hit.credited:
        return HitLine(
            hit.rank, hit.id, title, f"duplicate match of {shorten_to(hit.item, MATCHED)}, credited above", "even"
        )
    if hit.state == "unjudged":
        return HitLine(hit.rank, hit.id, title, "not judged", "open")
    if hit.state == "pooled":
        return HitLine(hit.rank, hit.id, title, "in the pool, not judged", "open")
    level = hit.grade or 0
    if level < 1 and hit.gain > 0:
        return HitLine(hit.rank, hit.id, title, "expected, with a grade below 1", "even")
    if level < 1:
        return HitLine(hit.rank, hit.id, title, "not relevant")
    matched = "expected" if hit.item == hit.id else f"matches {shorten_to(hit.item or '', MATCHED)}"
    return HitLine(hit.rank, hit.id, title, f"{matched}, grade {level}", "good")


def _rank_words(cell: str | int) -> str:
    return f"rank {cell}" if isinstance(cell, int) else cell
