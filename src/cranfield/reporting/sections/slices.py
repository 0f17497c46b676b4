"""Section on which kind of query changed."""

from __future__ import annotations

from cranfield.base.numbers import format_count, format_delta, format_p
from cranfield.base.words import and_list, count_noun, join_first
from cranfield.evaluation.slices import QuerySlice, SliceChange, SliceSearch
from cranfield.reporting.document import Block, Details, Paragraph, Section, Table, TonedCell
from cranfield.reporting.sections.subject import Subject, has_texts, query_text, tone_of
from cranfield.reporting.table_spec import Col, Columns, TableSpec

VERBS = {
    SliceChange.BETTER: "got better",
    SliceChange.WORSE: "got worse",
    SliceChange.BETTER_BY_LESS: "got better by less than the others",
    SliceChange.WORSE_BY_LESS: "got worse by less than the others",
    SliceChange.APART: "did not change as the others did",
}
SHOWN_SLICES = 10
HOW_TO_READ = (
    "Each slice is tested against the other queries (permutation of the whole search); adjusted p: the chance that any slice at all is "
    "shown where no attribute matters. Shrunken: the difference to expect of new queries of this kind, as the largest of many differences "
    "is in part chance. A kind of query that goes with a change need not be its cause."
)


def slices(subject: Subject) -> Section | None:
    """Which kind of query changed differently from the rest; None unless a pair is compared and slices were tried."""
    found = None if subject.pair is None or subject.is_void else subject.pair.slices
    if found is None:
        return None
    if not found.found:
        sentence = f"No kind of query changed differently from the rest, of {_tried(found)}."
        return Section("slices", "Which kind of query", (Paragraph(sentence),), "no kind of query changed differently")
    columns: Columns[QuerySlice] = (
        Col("queries", lambda row: row.text),
        Col("what became of them", lambda row: VERBS[row.change]),
        Col("n", lambda row: row.n, "count"),
        Col("difference", lambda row: TonedCell(row.difference, tone_of(row.difference, found.measure)), "delta"),
        Col("of the others", lambda row: row.rest, "delta"),
        Col("shrunken", lambda row: row.shrunken, "delta"),
        Col("adjusted p", lambda row: row.p_adjusted, "p"),
    )
    rows = found.found
    caption = (
        f"Kinds of query on which {found.measure} changed differently from the rest: {len(rows)} of {_tried(found)}"
    )
    blocks: list[Block] = [TableSpec(caption, rows, columns).table(shown=SHOWN_SLICES, wrap=True)]
    blocks += [Paragraph(each) for row in rows if (each := _notes(row))]
    blocks += [Details(f"Queries {row.text} ({format_count(row.n)})", (_members(subject, row, found),)) for row in rows]
    return Section(
        "slices", "Which kind of query", (*blocks, Paragraph(HOW_TO_READ, "note")), slice_sentence(rows[0], found)
    )


def slice_sentence(row: QuerySlice, found: SliceSearch) -> str:
    """`Queries with a digit got worse (nDCG@10 −0.1200, the others +0.0100, n = 23, adjusted p .0100)`."""
    figures = f"{found.measure} {format_delta(row.difference)}, the others {format_delta(row.rest)}"
    return f"Queries {row.text} {VERBS[row.change]} ({figures}, n = {format_count(row.n)}, adjusted p {format_p(row.p_adjusted)})"


def strongest(subject: Subject) -> tuple[str, ...]:
    """The sentence of the strongest slice; none where none holds."""
    found = None if subject.pair is None else subject.pair.slices
    return (slice_sentence(found.found[0], found),) if found is not None and found.found else ()


def _tried(found: SliceSearch) -> str:
    """`212 slices tried (words, digits and class; 30 of one condition, 182 of two; 12 more of two were too many)`."""
    n_pairs = found.n_tried - found.n_single
    parts = f"{count_noun(found.n_tried, 'slices', format_count)} tried ({and_list(found.attributes)}; "
    parts += f"{format_count(found.n_single)} of one condition, {format_count(n_pairs)} of two"
    if found.n_left_out:
        parts += f", {format_count(found.n_left_out)} smaller ones of two were not tried"
    return f"{parts}; {format_count(found.min_size)} queries or more each)"


def _notes(row: QuerySlice) -> str:
    """Other descriptions of a slice, and what it explains."""
    parts = []
    if row.also:
        parts.append(f"Much the same queries as those {row.text}: {join_first(row.also)}.")
    if row.n_explained:
        n = count_noun(row.n_explained, "further slices", format_count)
        parts.append(f"{n}: different from the rest because of the queries {row.text} alone.")
    return " ".join(parts)


def _members(subject: Subject, row: QuerySlice, found: SliceSearch) -> Table:
    """The queries of a slice, the largest difference first."""
    differences = {} if subject.pair is None else subject.pair.comparisons[found.measure].differences
    columns: Columns[str] = (
        Col("query", lambda query_id: query_id, "query id"),
        Col("text", lambda query_id: query_text(subject.record, query_id), when=has_texts(subject.record)),
        Col(
            "difference",
            lambda query_id: TonedCell(differences.get(query_id), tone_of(differences.get(query_id), found.measure)),
            "delta",
        ),
    )
    return TableSpec(f"Queries {row.text}, the largest difference first", row.queries, columns).table()
