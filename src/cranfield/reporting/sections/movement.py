"""Where each query went: the buckets of its value, and the rank of its first relevant result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cranfield.evaluation.result import ComparisonResult, EvaluationResult
from cranfield.evaluation.verdict import sign_of
from cranfield.measures import Measure
from cranfield.model import Outcome
from cranfield.numbers import format_count, format_delta
from cranfield.reporting.charts.differences import Bar, difference_bars
from cranfield.reporting.charts.movement import slopes
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.document import (
    Block,
    Cell,
    Column,
    Details,
    Figure,
    KeyValues,
    Paragraph,
    Section,
    Swatch,
    Table,
    Tone,
    TonedCell,
)
from cranfield.reporting.sections.labels import has_texts, query_text, tone_of
from cranfield.reporting.sections.subject import Subject
from cranfield.reporting.sections.verdict import rank_one_count, rank_one_sentence
from cranfield.words import first_of

BUCKET_TONES: Mapping[str, Tone] = {
    "failed in both": "bad",
    "failed in candidate": "bad",
    "lost": "bad",
    "worsened": "bad",
    "newly found": "good",
    "improved": "good",
    "moved to rank 1": "good",
    "newly found below rank 1": "good",
    "rose below rank 1": "good",
    "moved from rank 1": "bad",
    "lost from below rank 1": "bad",
    "fell below rank 1": "bad",
    "failed": "bad",
}
BUCKET_WORDS: Mapping[str, str] = {
    "never found": "not {place} on either",
    "newly found": "newly {place}",
    "lost": "no longer {place}",
}
"""Buckets that are about the cutoff of the primary measure, and not about the whole list."""
NOT_FOUND, FAILED = "not found", "failed"
EN_DASH = "\u2013"
SINGLE_LANES = 5
PASTED_QUERIES = 60
"""Plain text lists all queries up to this number; above it, only the largest losses and gains."""
LAST_RANKS = (10, 20, 50, 100, 1000)


def query_differences(subject: Subject) -> Section | None:
    """Every query's difference on the primary measure, and its bucket; None unless a pair is compared."""
    comparison = subject.pair
    if comparison is None:
        return None
    blocks: list[Block] = []
    if figure := _difference_figure(comparison):
        blocks.append(figure)
    blocks += [
        _partition(comparison.buckets, f"Change of {comparison.primary} per query", "bucket", comparison.primary),
        _names(
            {bucket_words(name, comparison.primary): ids for name, ids in comparison.buckets.items()},
            "Queries of each bucket",
        ),
    ]
    return Section("queries", "Per-query differences", tuple(blocks))


def movement(subject: Subject) -> Section | None:
    """The rank of the first relevant result on both sides, and its movement; None unless a pair is compared."""
    comparison = subject.pair
    if comparison is None:
        return None
    blocks: list[Block] = []
    if figure := _slope_figure(comparison):
        blocks.append(figure)
    blocks += [
        _partition(comparison.moves, "Movement of the first relevant result in the whole lists", "movement"),
        _names(comparison.moves, "Queries of each movement"),
        Paragraph(rank_one_sentence(comparison)),
    ]
    counts = (rank_one_count(comparison.rank_one, side) for side in ("candidate_only", "baseline_only"))
    key_figure = "rank 1 is relevant: {} only on B, {} only on A".format(*counts)
    return Section("movement", "First relevant result", tuple(blocks), key_figure)


def bucket_words(bucket: str, primary: Measure) -> str:
    """A bucket as a report names it: with a cutoff, what is below it was returned, and only not counted.

    Example:
        >>> from cranfield.measures import parse
        >>> [bucket_words("newly found", parse(name)) for name in ("nDCG@10", "P(rel=2)@1", "AP")]
        ['newly in the top 10', 'newly at rank 1 with grade 2 or more', 'newly found']
    """
    words, rel = BUCKET_WORDS.get(bucket), primary.whole("rel", 1)
    if words is None or (primary.depth is None and rel == 1):
        return bucket
    place = "in the list" if primary.depth is None else f"in the top {format_count(primary.depth)}"
    place = "at rank 1" if primary.depth == 1 else place
    return words.format(place=place + (f" with grade {rel} or more" if rel > 1 else ""))


def _partition(parts: Mapping[str, Sequence[str]], caption: str, heading: str, primary: Measure | None = None) -> Table:
    """A row for each part; one of failures only where there are failures."""
    total = sum(len(query_ids) for query_ids in parts.values())
    rows: list[tuple[Cell, ...]] = [
        (
            TonedCell(
                bucket_words(name, primary) if primary else name, BUCKET_TONES.get(name, "") if query_ids else ""
            ),
            len(query_ids),
            len(query_ids) / total if total else None,
            first_of(query_ids),
        )
        for name, query_ids in parts.items()
        if query_ids or not name.startswith(FAILED)
    ]
    return Table(
        (Column(heading), Column("queries", "count"), Column("share", "percent"), Column("which", "code")),
        rows,
        caption,
        footer=("all", total, 1.0 if total else None, ""),
        shown=None,
    )


def _names(parts: Mapping[str, Sequence[str]], summary: str) -> Details:
    items = tuple((f"{name} ({len(ids)})", ", ".join(ids)) for name, ids in parts.items() if ids)
    return Details(summary, (KeyValues(items),))


def bucket_of(comparison: ComparisonResult) -> dict[str, str]:
    """Query id to its bucket."""
    return {query_id: name for name, query_ids in comparison.buckets.items() for query_id in query_ids}


def _difference_figure(comparison: ComparisonResult) -> Figure | None:
    measure = comparison.primary
    found = comparison.comparisons[measure].differences
    if not found:
        return None
    sign = sign_of(measure)
    bars = [
        Bar(query_text(comparison, query_id) or query_id, delta, sign * delta, query_id)
        for query_id, delta in found.items()
    ]
    better, worse = (sum(bar.gain * way > 0 for bar in bars) for way in (1, -1))
    equal = len(bars) - better - worse
    legend: tuple[tuple[Swatch, str], ...] = (
        ("good", f"{format_count(better)} better on B"),
        ("same", f"{format_count(equal)} equal"),
        ("bad", f"{format_count(worse)} worse on B"),
    )
    extremes = f" Between {format_delta(min(found.values()))} and {format_delta(max(found.values()))}."
    spec, narrow = (difference_bars(bars, f"{measure}, B minus A", screen) for screen in SCREENS)
    return Figure(
        "differences",
        f"Difference in {measure} of each query",
        "Sorted bars: " + ", ".join(words for _, words in legend) + "." + extremes,
        spec,
        narrow,
        replace(
            query_table(comparison, sorted(found, key=lambda query_id: -sign * found[query_id])), shown=PASTED_QUERIES
        ),
        legend,
        in_text=len(found) <= PASTED_QUERIES,
    )


def query_table(comparison: ComparisonResult, query_ids: Sequence[str], caption: str = "") -> Table:
    """Both values, the difference, the first relevant ranks and the bucket of each query."""
    measure = comparison.primary
    found = comparison.comparisons[measure].differences
    buckets = bucket_of(comparison)
    ranks = [rank_cells(comparison, place) for place in (0, 1)]
    texts = (Column("text", "code"),) if has_texts(comparison) else ()
    rows: list[tuple[Cell, ...]] = []
    for query_id in query_ids:
        text = (query_text(comparison, query_id),) if texts else ()
        rows.append(
            (
                query_id,
                *text,
                *(system.queries[query_id][measure] for system in comparison.systems),
                TonedCell(found[query_id], tone_of(found[query_id], measure)),
                *(side[query_id] for side in ranks),
                bucket_words(buckets[query_id], measure),
            )
        )
    columns = (
        Column("query", "query id"),
        *texts,
        Column("A", "value"),
        Column("B", "value"),
        Column("difference", "delta"),
        Column("rank A", "count"),
        Column("rank B", "count"),
        Column("bucket"),
    )
    return Table(columns, rows, caption or f"{measure} of every query, and the rank of its first relevant result")


def rank_cells(record: EvaluationResult, place: int) -> dict[str, str | int]:
    """Query to the rank of its first relevant result on a system, or to why there is none."""
    cells: dict[str, str | int] = {}
    for query_id, query in (record.queries or {}).items():
        side = query.sides[place]
        if side.outcome is not None:
            rank = side.first_relevant_rank
            cells[query_id] = FAILED if Outcome(side.outcome).is_failure else NOT_FOUND if rank is None else rank
    return cells


def lanes_to(deepest: int) -> list[tuple[str, int]]:
    """Lanes of ranks down to `deepest`: the first five alone, then 6 to 10, 11 to 20, and so on; name and last rank of each."""
    found = [(f"rank {rank}", rank) for rank in range(1, min(SINGLE_LANES, deepest) + 1)]
    start = SINGLE_LANES + 1
    for last in LAST_RANKS:
        if start > deepest:
            return found
        found.append((f"{start}{EN_DASH}{last}", last))
        start = last + 1
    return [*found, (f"over {LAST_RANKS[-1]}", deepest)] if start <= deepest else found


def _slope_figure(comparison: ComparisonResult) -> Figure | None:
    query_ids = [query_id for part in comparison.moves.values() for query_id in part]
    if not query_ids:
        return None
    left, right = (rank_cells(comparison, place) for place in (0, 1))
    known = [cell for side in (left, right) for query_id in query_ids if isinstance(cell := side[query_id], int)]
    lanes = lanes_to(max(known, default=1))

    def lane(cell: str | int) -> str:
        return cell if isinstance(cell, str) else next(name for name, last in lanes if cell <= last)

    went: dict[tuple[str, str], list[str]] = {}
    for query_id in query_ids:
        went.setdefault((lane(left[query_id]), lane(right[query_id])), []).append(query_id)
    used = {name for pair in went for name in pair}
    names = [*(name for name, _ in lanes), NOT_FOUND, *([FAILED] if FAILED in used else [])]
    pairs = {pair: len(ids) for pair, ids in went.items()}
    first = {pair: ids[0] for pair, ids in went.items()}
    place = {name: position for position, name in enumerate(names)}
    moved = Counter[int]()
    for (before, after), count in pairs.items():
        moved[(place[before] > place[after]) - (place[before] < place[after])] += count
    legend: tuple[tuple[Swatch, str], ...] = (
        ("good", f"{format_count(moved[1])} rose"),
        ("same", f"{format_count(moved[0])} stayed"),
        ("bad", f"{format_count(moved[-1])} fell"),
    )
    spec, narrow = (slopes(pairs, names, screen, first) for screen in SCREENS)
    return Figure(
        "movement",
        "Rank of the first relevant result, A to B",
        "Lines from the rank on A to the rank on B: " + ", ".join(words for _, words in legend) + ".",
        spec,
        narrow,
        _rank_changes(went, place),
        legend,
    )


def _rank_changes(went: Mapping[tuple[str, str], Sequence[str]], place: Mapping[str, int]) -> Table:
    """The queries of each line of the picture."""
    rows: list[tuple[Cell, ...]] = [
        (before, after, len(went[before, after]), first_of(went[before, after]))
        for before, after in sorted(went, key=lambda pair: (place[pair[0]], place[pair[1]]))
    ]
    columns = (Column("on A"), Column("on B"), Column("queries", "count"), Column("which", "code"))
    return Table(columns, rows, "Changes of rank")
