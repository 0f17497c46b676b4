"""Books as Documents: how the verdict on two runs depends on the consensus rule and on the raters."""

from __future__ import annotations

from cranfield.base.words import count_noun
from cranfield.books.store.values import Coverage
from cranfield.judging.book.grades import BookList, BookProgress, BookSensitivity
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Bullets, Document, KeyValues, Paragraph, Section
from cranfield.reporting.sections.subject import about_testset
from cranfield.reporting.sections.verdict import sensitivity_blocks
from cranfield.reporting.table_spec import Col, TableSpec

SHOWN_DIFFERENCES = 20


def book_sensitivity_document(found: BookSensitivity) -> Document:
    """The declared verdict, the line of how many analyses agree, the table of them, and where the sources differ."""
    names = f"A: {found.baseline}, B: {found.candidate}; {found.measure}; grades by {found.rule}"
    blocks = sensitivity_blocks(found.sensitivity, f"{found.line}.")
    sections = [
        Section("verdict", "Verdict", (Paragraph(found.sentence), Paragraph(f"{names}."))),
        Section("sensitivity", "Sensitivity to rules and raters", tuple(blocks)),
    ]
    variations = TableSpec(
        f"Mean {found.measure}",
        [*zip(found.sensitivity.variations, found.means, strict=True)],
        (
            Col("setting", lambda row: row[0].family),
            Col("value", lambda row: row[0].name),
            Col("A", lambda row: row[1].baseline, "value", only="report"),
            Col("B", lambda row: row[1].candidate, "value", only="report"),
            Col("verdict", lambda row: row[0].verdict.value, only="tidy"),
            Col("delta", lambda row: row[0].delta, only="tidy"),
            Col("ci_low", lambda row: row[0].ci_low, only="tidy"),
            Col("ci_high", lambda row: row[0].ci_high, only="tidy"),
            Col("n", lambda row: row[0].n, "count"),
        ),
    )
    if found.means:
        sections.append(Section("means", "Means", (variations.table(),)))
    if found.differences:
        differences = TableSpec(
            "Priority: persons, then carried judgments, rules and models",
            found.differences,
            (
                Col("query", lambda row: row.query_id, "query id"),
                Col("document", lambda row: row.doc_id, "code"),
                Col("grade", lambda row: row.grade, "value"),
                Col("by", lambda row: row.decided_by),
                Col("other grade", lambda row: row.other, "value"),
                Col("by", lambda row: f"{row.rater} ({row.kind.value})"),
            ),
        )
        sections.append(Section("sources", "Sources that differ", (differences.table(shown=SHOWN_DIFFERENCES),)))
    if notes := tuple(dict.fromkeys(map(str, found.testset.notes))):
        sections.append(Section("notes", "Notes", (Bullets(notes),)))
    return Document(
        title="Sensitivity of a book",
        subtitle=about_testset(found.testset),
        sections=tuple(sections),
        tidy=variations.tidy,
        payload=lambda: to_jsonable(found),
    )


QUERIES_SHOWN = 20


def books_document(found: BookList) -> Document:
    """All books of a database, a row each."""
    spec = TableSpec(
        "All",
        found.books,
        (
            Col("book", lambda row: row.book.name, "code"),
            Col("state", lambda row: row.book.state.value),
            Col("queries", lambda row: row.book.n_queries, "count"),
            Col("documents", lambda row: row.coverage.n_items, "count"),
            Col("judged", lambda row: row.coverage.judged_lowest + row.coverage.judged_higher, "count"),
            Col("unjudged", lambda row: row.coverage.unjudged, "count"),
            Col("to adjudicate", lambda row: sum(query.n_adjudicate for query in row.coverage.queries), "count"),
        ),
    )
    return Document(
        title="Books",
        subtitle=(f"{found.database}: {count_noun(len(found.books), 'books')}",),
        sections=(Section("books", "Books", (spec.table(),)),) if found.books else (),
        tidy=spec.tidy,
        payload=lambda: to_jsonable(found),
    )


def book_document(found: BookProgress) -> Document:
    """How far a book is."""
    book, scale = found.book, found.book.settings.scale
    queries = TableSpec(
        "Documents of each query",
        found.coverage.queries,
        (
            Col("query", lambda row: row.query, "query id"),
            Col("text", lambda row: row.text),
            Col("documents", lambda row: row.n_items, "count"),
            Col("judged", lambda row: row.n_judged, "count"),
            Col("done", lambda row: row.n_done, "count"),
            Col("to adjudicate", lambda row: row.n_adjudicate, "count"),
        ),
    )
    raters = TableSpec(
        "Items of each rater",
        found.raters,
        (
            Col("rater", lambda row: row.name),
            Col("done", lambda row: row.progress.n_done, "count"),
            Col("left", lambda row: row.progress.n_left, "count"),
            Col("skipped", lambda row: row.progress.n_skipped, "count"),
            Col("later", lambda row: row.progress.n_later, "count"),
            Col("median time", lambda row: row.progress.median_ms, "ms"),
        ),
    )
    return Document(
        title=f"Book {book.name}",
        subtitle=(
            (
                f"{book.state.value}, {book.settings.mode.value}, scale {scale.name} ({', '.join(map(str, scale.grades))}), "
                f"guidelines version {book.guideline_version}, made on {book.created_at:%Y-%m-%d}"
            ),
        ),
        sections=(
            Section("coverage", "Coverage", (_coverage(found.coverage),)),
            *([Section("raters", "Raters", (raters.table(),))] if found.raters else []),
            Section("queries", "Queries", (queries.table(shown=QUERIES_SHOWN),)),
        ),
        tidy=queries.tidy,
        payload=lambda: to_jsonable(found),
    )


def _coverage(coverage: Coverage) -> KeyValues:
    states = ", ".join(f"{n} {state.value}" for state, n in coverage.states.items() if n)
    grades = ", ".join(f"{n} by {persons}" for persons, n in coverage.by_persons.items())
    kinds = ", ".join(f"{n} {kind.value}" for kind, n in coverage.by_kind.items() if n)
    counts = {
        "skipped": coverage.n_skipped,
        "flagged items": coverage.n_flagged,
        "stale judgments": coverage.n_stale,
        "judgments without a slot": coverage.n_extra,
        "no rater is left for": coverage.n_needs_rater,
    }
    return KeyValues(
        (
            ("documents", str(coverage.n_items)),
            ("judged higher than lowest", str(coverage.judged_higher)),
            ("judged the lowest grade", str(coverage.judged_lowest)),
            ("unjudged", str(coverage.unjudged)),
            ("states", states or "none"),
            ("by number of persons", grades or "none"),
            ("grades by kind", kinds or "none"),
            ("slots filled", f"{coverage.n_slots_done} of {coverage.n_slots}; {coverage.n_leased} leased"),
            *((name, str(n)) for name, n in counts.items() if n),
        )
    )
