"""Single queries: the worst and the best, with the result lists side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cranfield.evaluation.result import first_ranks, missed_items
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.evaluation.verdict import sign_of
from cranfield.measures import CATALOGUE, Measure
from cranfield.model import Absence, Outcome, TestSet
from cranfield.model.query import NEGATIVE, class_of
from cranfield.numbers import format_count, format_delta, format_value
from cranfield.ranking.value import RankedHit, State
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
from cranfield.reporting.sections.labels import SIDES, has_texts, sides, text_of
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
    return _lowest(subject.evaluations[0]) if len(subject.systems) == 1 else None


def _worst_and_best(comparison: Comparison) -> Section:
    """The queries that lost and gained most on the primary measure."""
    found = comparison.measures[comparison.primary].differences
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
            f"{format_delta(found[ids[0]])} of {shorten_to(query_label(comparison.baseline, ids[0]), LABEL)}"
            for ids in (losers, winners)
            if ids
        )
        or "no query differs",
    )


def _extremes(comparison: Comparison, query_ids: Sequence[str], caption: str, none: str) -> list[Block]:
    if not query_ids:
        return [Paragraph(none)]
    found = comparison.measures[comparison.primary].differences
    ranks = [rank_cells(evaluation) for _, evaluation in sides(comparison)]
    blocks: list[Block] = [query_table(comparison, query_ids, caption)]
    for place, query_id in enumerate(query_ids):
        before, after = (_rank_words(side[query_id]) for side in ranks)
        summary = (
            f"{query_label(comparison.baseline, query_id)}: {format_delta(found[query_id])} (A {before}, B {after})"
        )
        blocks.append(Details(summary, (side_by_side(query_id, sides(comparison)),), is_open=place == 0))
    return blocks


def _lowest(evaluation: Evaluation) -> Section | None:
    """The queries with the worst values of one system, with its results."""
    if not evaluation.measures:
        return None
    measure = evaluation.measures[0]
    values = {q: value for q in evaluation.query_ids if (value := evaluation.value(measure, q)) is not None}
    query_ids = sorted(values, key=lambda q: sign_of(measure) * values[q])[:SHOWN_QUERIES]
    if not query_ids:
        return None
    ranks = rank_cells(evaluation)
    blocks: list[Block] = [_lowest_table(evaluation, measure, query_ids)]
    blocks += [
        Details(
            f"{query_label(evaluation, query_id)}: {measure} {format_value(values[query_id])}, {_rank_words(ranks[query_id])}",
            (side_by_side(query_id, (("", evaluation),)),),
            is_open=place == 0,
        )
        for place, query_id in enumerate(query_ids)
    ]
    worst = (
        f"{measure} {format_value(values[query_ids[0]])} of {shorten_to(query_label(evaluation, query_ids[0]), LABEL)}"
    )
    return Section("answers", "Worst queries", tuple(blocks), worst)


def _lowest_table(evaluation: Evaluation, measure: Measure, query_ids: Sequence[str]) -> Table:
    texts = (Column("text", "code"),) if has_texts(evaluation) else ()
    ranks, missed = rank_cells(evaluation), missed_items(evaluation)
    rows: list[tuple[Cell, ...]] = [
        (
            query_id,
            *((text_of(evaluation, query_id),) if texts else ()),
            evaluation.value(measure, query_id),
            ranks[query_id],
            evaluation.ranking.outcomes[evaluation.index[query_id]].value,
            first_of(missed(query_id), MISSED_ITEMS),
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
    evaluations = subject.evaluations
    measures = subject.measures
    several, texts = len(evaluations) > 1, has_texts(evaluations[0])
    rows: list[tuple[Cell, ...]] = []
    for evaluation in evaluations:
        missed = missed_items(evaluation)
        for query_id, outcome in zip(evaluation.query_ids, evaluation.ranking.outcomes, strict=True):
            about = [
                query_id,
                *([evaluation.name] if several else []),
                *([text_of(evaluation, query_id)] if texts else []),
            ]
            values = [evaluation.value(m, query_id) if m in evaluation.values else None for m in measures]
            rows.append((*about, outcome.value, *values, first_of(missed(query_id), MISSED_ITEMS)))
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


def query_label(evaluation: Evaluation, query_id: str) -> str:
    """`q17 “json dumps”`, or the id alone."""
    text = text_of(evaluation, query_id)
    return f"{query_id} “{text}”" if text and text != query_id else query_id


def side_by_side(query_id: str, systems: Sequence[tuple[str, Evaluation]]) -> HitLists:
    """The expected items of a query, and the results of each system."""
    testset = systems[0][1].testset
    graded = sorted(testset.grades.get(query_id, {}).items(), key=lambda item: -item[1])
    wanted = [(doc_id, grade) for doc_id, grade in graded if grade > 0]
    wanted += [(target.label, target.grade) for target in testset.targets.get(query_id, ())]
    named = first_of((f"{item} (grade {grade:g})" for item, grade in wanted), EXPECTED_ITEMS)
    return HitLists(
        named or nothing_expected(testset, query_id),
        tuple(_hit_list(letter, evaluation, query_id) for letter, evaluation in systems),
    )


def nothing_expected(testset: TestSet, query_id: str) -> str:
    """Why a query has no expected item."""
    query = testset.by_id.get(query_id)
    if query is not None and class_of(query) == NEGATIVE:
        return "nothing"
    return str(Absence.NONE_RELEVANT if testset.is_judged(query_id) else Absence.NEVER_JUDGED)


def _hit_list(letter: str, evaluation: Evaluation, query_id: str) -> HitList:
    title = f"{letter} {evaluation.name}" if letter in SIDES else evaluation.name
    rank = first_ranks(evaluation).get(query_id)
    hits = evaluation.ranking.top.get(query_id, ()) if has_list(evaluation, query_id) else ()
    return HitList(title, list_note(evaluation, query_id, rank), tuple(hit_line(hit) for hit in hits))


def has_list(evaluation: Evaluation, query_id: str) -> bool:
    """Whether a system answered a query with results."""
    index = evaluation.index.get(query_id)
    if index is None:
        return False
    outcome = evaluation.ranking.outcomes[index]
    returned = int(evaluation.ranking.n_returned[index])
    return returned > 0 and not outcome.is_failure and outcome is not Outcome.MISSING


def list_note(evaluation: Evaluation, query_id: str, rank: int | None) -> str:
    """The outcome of a query in words: `first relevant result at rank 3; 10 returned`, `timeout: no answer in 30 s`.

    Args:
        evaluation: of the system.
        query_id: of the query.
        rank: of its first relevant result; None where there is none.
    """
    index = evaluation.index.get(query_id)
    if index is None:
        return str(Absence.NOT_RETURNED)
    ranking = evaluation.ranking
    outcome = ranking.outcomes[index]
    if outcome.is_failure or outcome is Outcome.MISSING:
        reason = ranking.reasons.get(query_id)
        return f"{outcome.value}: {reason}" if reason else outcome.value
    returned, duplicates = int(ranking.n_returned[index]), int(ranking.n_duplicates[index])
    if not returned:
        return "no results returned"
    note = "no relevant result" if rank is None else f"first relevant result at rank {rank}"
    word = "duplicate" if duplicates == 1 else "duplicates"
    return note + f"; {returned} returned" + (f", {duplicates} {word} dropped" if duplicates else "")


def hit_line(hit: RankedHit) -> HitLine:
    """One result, with how it was judged in words."""
    # The place, where the id does not contain it.
    title = ", ".join(part for part in (hit.title, hit.span and f"at {hit.span}") if part)
    if hit.item is not None and not hit.credited:
        return HitLine(
            hit.rank, hit.id, title, f"duplicate match of {shorten_to(hit.item, MATCHED)}, credited above", "even"
        )
    if hit.state is State.UNJUDGED:
        return HitLine(hit.rank, hit.id, title, "not judged", "open")
    if hit.state is State.POOLED:
        return HitLine(hit.rank, hit.id, title, "in the pool, not judged", "open")
    if hit.level < 1 and hit.gain > 0:
        return HitLine(hit.rank, hit.id, title, "expected, with a grade below 1", "even")
    if hit.level < 1:
        return HitLine(hit.rank, hit.id, title, "not relevant")
    matched = "expected" if hit.item == hit.id else f"matches {shorten_to(hit.item or '', MATCHED)}"
    return HitLine(hit.rank, hit.id, title, f"{matched}, grade {hit.level}", "good")


def _rank_words(cell: str | int) -> str:
    return f"rank {cell}" if isinstance(cell, int) else cell
