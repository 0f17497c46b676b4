"""Two runs without judgments as a Document: what `cranfield diff` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cranfield.base.numbers import format_count, format_interval, format_percent, format_value
from cranfield.base.words import count_noun, join_first, shorten_to
from cranfield.evaluation.difference import (
    BoundKind,
    BoundOutcome,
    DifferenceVerdict,
    NotCompared,
    PlacedResult,
    QueryDifference,
    RunDifference,
)
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import (
    Block,
    Brief,
    Bullets,
    Cell,
    Details,
    Document,
    HitLine,
    HitList,
    HitLists,
    Paragraph,
    Section,
    Tone,
    TonedCell,
    VerdictBlock,
)
from cranfield.reporting.table_spec import Col, TableSpec, by_place

NO_JUDGMENTS = "There are no judgments in this: it says how much changed, and not whether it is better."
MAX_NAMED = 3
"""Results of a cell that are named."""
SHOWN = 10
"""Queries whose lists stand side by side."""
MAX_TO_JUDGE = 20
TEXT_CHARS = 60
TONES: dict[DifferenceVerdict, Tone] = {
    DifferenceVerdict.IDENTICAL: "even",
    DifferenceVerdict.DIFFERENT: "open",
    DifferenceVerdict.INVALID: "void",
}
BOUNDS = {
    BoundKind.FIRST_CHANGED: ("queries with another first result", "at most"),
    BoundKind.OVERLAP: ("mean overlap", "at least"),
    BoundKind.RBO: ("mean rank-biased overlap", "at least"),
}


def difference_document(found: RunDifference, *, shown: int = SHOWN) -> Document:
    """How much changed, the bounds, the queries by change with their lists side by side, and what to judge first.

    Args:
        found: the result.
        shown: queries whose lists stand side by side, the most changed first.
    """
    figures = _figures(found)
    sections = [Section("figures", "How alike the results are", (figures.table(), Paragraph(NO_JUDGMENTS, "note")))]
    if found.bounds:
        sections.append(Section("bounds", "Bounds", (_bounds(found).table(),)))
    if found.not_compared:
        sections.append(Section("left-out", "Queries that are not compared", (_left_out(found).table(shown=20),)))
    moved = [each for each in found.queries if each.first_difference is not None]
    if moved:
        lists = tuple(_lists(found, each) for each in moved[:shown])
        sections.append(Section("queries", "The most changed queries", (_queries(moved).table(shown=20), *lists)))
    if found.to_judge:
        sections.append(Section("judge", "What to judge first", tuple(_judge(found))))
    return Document(
        title=f"{found.candidate} beside {found.baseline}",
        subtitle=(
            f"{count_noun(found.n_compared, 'queries')}, the first {found.k} results of each, without judgments",
        ),
        sections=tuple(sections),
        tidy=_queries(found.queries).tidy,
        payload=lambda: to_jsonable(found),
        verdict=VerdictBlock(
            found.verdict.value,
            sentence_of(found),
            TONES[found.verdict],
            reasons=tuple(_reasons(found)),
        ),
        brief=lambda: Brief(
            figures.table(),
            changes=tuple(_line(each) for each in moved[:SHOWN]),
            doubts=tuple(_reasons(found)),
            rules=_bounds(found).table() if found.bounds else None,
        ),
    )


def sentence_of(found: RunDifference) -> str:
    """The result in one sentence."""
    if not found.changed.count:
        queries = count_noun(found.n_compared, "queries", format_count)
        return f"{found.candidate} and {found.baseline} give the same first {found.k} results in the same order for all {queries}."
    first, changed = found.first_changed, found.changed
    return (
        f"The first result changed in {first.count} of {count_noun(first.n, 'queries', format_count)} "
        f"({format_percent(first.share)}, 95 % CI {format_percent(first.ci_low)} to {format_percent(first.ci_high)}), "
        f"any of the first {found.k} in {changed.count}; mean overlap@{found.k} {format_value(found.overlap.mean)}, "
        f"rank-biased overlap {format_value(found.rbo.mean)}."
    )


def _reasons(found: RunDifference) -> Iterator[str]:
    if found.not_compared:
        queries = list(dict.fromkeys(each.query for each in found.not_compared))
        yield (
            f"{len(queries)} of {count_noun(found.n_queries, 'queries')} have no answer on one side and are not compared: "
            f"{join_first(queries)}"
        )
    for bound in found.bounds:
        if not bound.holds:
            yield f"broken: {_words(bound)}"


def _words(bound: BoundOutcome) -> str:
    """`queries with another first result 66.7 %, at most 10.0 %`."""
    what, how = BOUNDS[bound.kind]
    shape = format_percent if bound.kind is BoundKind.FIRST_CHANGED else format_value
    return f"{what} {shape(bound.observed)}, {how} {shape(bound.bound)}"


def _figures(found: RunDifference) -> TableSpec[Sequence[Cell]]:
    k = found.k
    rows = [
        (name, format_value(each.mean), format_interval((each.ci_low, each.ci_high)), each.n)
        for name, each in (
            (f"overlap@{k}", found.overlap),
            (f"Jaccard@{k}", found.jaccard),
            (f"rank-biased overlap@{k}, p = {found.p:g}", found.rbo),
        )
    ]
    rows += [
        (name, format_percent(each.share), f"{format_percent(each.ci_low)} to {format_percent(each.ci_high)}", each.n)
        for name, each in (
            ("queries with another first result", found.first_changed),
            (f"queries with any change in the first {k}", found.changed),
        )
    ]
    return TableSpec(
        f"{found.candidate} beside {found.baseline}: mean over queries, 95 % CI",
        rows,
        by_place({"figure": "text", "mean or share": "text", "95 % CI": "text", "queries": "count"}),
    )


def _bounds(found: RunDifference) -> TableSpec[BoundOutcome]:
    return TableSpec(
        "Bounds on the difference",
        found.bounds,
        (
            Col("bound", lambda row: f"--{row.kind}", "code"),
            Col("outcome", lambda row: TonedCell("holds", "good") if row.holds else TonedCell("broken", "bad")),
            Col("observed and bound", _words),
        ),
    )


def _left_out(found: RunDifference) -> TableSpec[NotCompared]:
    return TableSpec(
        "Queries without an answer on a side",
        found.not_compared,
        (
            Col("query", lambda row: row.query, "query id"),
            Col("system", lambda row: row.system),
            Col("outcome", lambda row: row.outcome.value),
            Col("reason", lambda row: row.reason),
        ),
    )


def _queries(rows: tuple[QueryDifference, ...] | list[QueryDifference]) -> TableSpec[QueryDifference]:
    has_texts = any(each.text != each.query for each in rows)
    return TableSpec(
        "Queries by rank-biased overlap, the most changed first",
        rows,
        (
            Col("query", lambda row: row.query, "query id"),
            Col("text", lambda row: shorten_to(row.text, TEXT_CHARS), only="report", when=has_texts),
            Col("text", lambda row: row.text, only="tidy"),
            Col("overlap", lambda row: row.overlap, "value"),
            Col("Jaccard", lambda row: row.jaccard, "value", "jaccard", only="tidy"),
            Col("RBO", lambda row: row.rbo, "value", "rbo"),
            Col("first change at rank", lambda row: row.first_difference, "count", "first_difference"),
            Col("new", lambda row: _named(row.new), "code", only="report"),
            Col("lost", lambda row: _named(row.lost), "code", only="report"),
            Col("new", lambda row: len(row.new), "count", "n_new", only="tidy"),
            Col("lost", lambda row: len(row.lost), "count", "n_lost", only="tidy"),
        ),
    )


def _named(results: tuple[PlacedResult, ...]) -> str:
    """`x (rank 1), y (rank 2) and 3 more`."""
    return join_first([f"{each.doc} ({each.rank})" for each in results], MAX_NAMED)


def _line(each: QueryDifference) -> str:
    parts = [f"rank-biased overlap {format_value(each.rbo)}", f"first change at rank {each.first_difference}"]
    parts += [f"new: {_named(each.new)}"] if each.new else []
    parts += [f"lost: {_named(each.lost)}"] if each.lost else []
    return f"{shorten_to(each.text, TEXT_CHARS)}: {', '.join(parts)}"


def _lists(found: RunDifference, each: QueryDifference) -> Details:
    """The lists of both runs side by side; a result says where the other run has it."""
    sides = []
    for name, own, other in (
        (found.baseline, each.baseline, each.candidate),
        (found.candidate, each.candidate, each.baseline),
    ):
        places = {doc: rank for rank, doc in enumerate(other, start=1)}
        lines = tuple(
            HitLine(rank, doc, "", _other_place(rank, places.get(doc)), "" if places.get(doc) == rank else "open")
            for rank, doc in enumerate(own, start=1)
        )
        sides.append(HitList(name, count_noun(len(own), "results"), lines))
    return Details(f"{each.text}: overlap {format_value(each.overlap)}", (HitLists("", tuple(sides)),))


def _other_place(rank: int, other: int | None) -> str:
    if other is None:
        return "not in the other list"
    return "same rank" if other == rank else f"rank {other} in the other list"


def _judge(found: RunDifference) -> Iterator[Block]:
    rows = found.to_judge[:MAX_TO_JUDGE]
    yield TableSpec(
        "Results whose relevance would change the difference most",
        rows,
        (
            Col("query", lambda row: row.query, "query id"),
            Col("result", lambda row: row.doc, "code"),
            Col(f"rank in {found.baseline}", lambda row: row.baseline_rank, "count"),
            Col(f"rank in {found.candidate}", lambda row: row.candidate_rank, "count"),
            Col("weight", lambda row: row.weight, "value"),
        ),
    ).table(shown=10)
    yield Bullets(
        (
            f"Weight: what the relevance of the result would change in the rank-biased precision of its query (p = {found.p:g}).",
            "With judgments, a comparison says which of the two is better, with a test.",
        )
    )
