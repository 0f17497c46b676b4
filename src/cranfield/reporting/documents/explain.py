"""Why one run scores differently under two conventions, as a Document: choices, means, causes, and queries one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cranfield.base.numbers import format_delta
from cranfield.evaluation.explain import Choice, Effect, ExplanationResult, MeanBounds, MeasureEffect, QueryEffect
from cranfield.measures import Measure
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import MADE_BY, Block, Bullets, Document, Paragraph, Section
from cranfield.reporting.sections.subject import testset_label
from cranfield.reporting.table_spec import Col, Cols, Columns, TableSpec

NEW = "a value"
GONE = "no value"
READ_EFFECTS = (
    "alone: only this choice is switched.",
    "in order: switched after the choices above it; these effects add up to the difference.",
)


def explanation_document(found: ExplanationResult, *, top: int = 10) -> Document:
    """The report of an explanation, with so many queries of each measure."""
    bounds = tuple(_bounds(found))
    sections = [
        Section("choices", "Differences", tuple(_choices(found))),
        Section("measures", "Effect on the means", tuple(_measures(found))),
        *([Section("margins", "Bounds", bounds)] if bounds else []),
        Section("queries", "Per-query differences", tuple(_queries(found, top))),
    ]
    return Document(
        title=f"Why {found.run} scores differently under {found.a.name} and {found.b.name}",
        subtitle=(
            f"test set {testset_label(found.testset)}",
            f"{found.a.name}: {found.a.sentence}",
            f"{found.b.name}: {found.b.sentence}",
        ),
        sections=tuple(sections),
        tidy=_tidy(found).tidy,
        payload=lambda: to_jsonable(found),
        made_by=MADE_BY,
    )


def _choices(found: ExplanationResult) -> Iterator[Block]:
    if not found.choices:
        yield Paragraph(f"{found.a.name} and {found.b.name} make the same choices.")
        return
    columns: Columns[Choice] = (
        Col("choice", lambda choice: choice.name, "code"),
        Col(found.a.name, lambda choice: _choice_text(choice.a), "code"),
        Col(found.b.name, lambda choice: _choice_text(choice.b), "code"),
        Col("changes", lambda choice: _moved_by(found, choice) or "nothing here"),
    )
    yield TableSpec("Choices on which the two differ, in the order they are switched", found.choices, columns).table()
    if found.unused:
        yield Paragraph(f"No effect here: {', '.join(found.unused)}.")


def _moved_by(found: ExplanationResult, choice: Choice) -> str:
    return ", ".join(
        str(measure)
        for measure, about in found.measures.items()
        for part in about.parts
        if part.choice == choice.name and part.is_any
    )


def _measures(found: ExplanationResult) -> Iterator[Block]:
    a, b = found.a.name, found.b.name
    columns: Columns[tuple[Measure, MeasureEffect]] = (
        Col("measure", lambda row: str(row[0])),
        Col(a, lambda row: row[1].a, "value"),
        Col("n", lambda row: row[1].n_a, "count"),
        Col(b, lambda row: row[1].b, "value"),
        Col("n", lambda row: row[1].n_b, "count"),
        Col("difference", lambda row: row[1].difference, "delta"),
        Col("queries", lambda row: len(row[1].changed), "count"),
    )
    yield TableSpec("Means, and the queries whose value differs", [*found.measures.items()], columns).table()
    effects = [(measure, part) for measure, about in found.measures.items() for part in about.parts if part.is_any]
    if not effects:
        yield Paragraph("No value differs.")
        return
    of_effects: Columns[tuple[Measure, Effect]] = (
        Col("measure", lambda row: str(row[0])),
        Col("choice", lambda row: row[1].choice, "code"),
        Col("alone", lambda row: row[1].alone, "delta"),
        Col("queries", lambda row: row[1].n_alone, "count"),
        Col("in order", lambda row: row[1].in_order, "delta"),
        Col("queries", lambda row: row[1].n_in_order, "count"),
    )
    yield TableSpec(f"Effect of each choice of {b} on the mean of {a}", effects, of_effects).table()
    yield Bullets(READ_EFFECTS)


def _queries(found: ExplanationResult, top: int) -> Iterator[Block]:
    columns: Columns[tuple[str, QueryEffect]] = (
        Col("query", lambda row: row[0], "query id"),
        Col(found.a.name, lambda row: row[1].a, "value"),
        Col(found.b.name, lambda row: row[1].b, "value"),
        Col("difference", lambda row: row[1].difference, "delta"),
        Col("cause", lambda row: _causes(row[1])),
    )
    for measure, about in found.measures.items():
        n = len(about.changed)
        if not n:
            yield Paragraph(f"{measure}: no query differs.")
            continue
        shown = [(query_id, about.queries[query_id]) for query_id in about.changed[:top]]
        which = f"the {len(shown)} that changed most of {n}" if len(shown) < n else "all that changed"
        yield TableSpec(f"{measure}: {which}", shown, columns).table()
        if reasons := (*_reasons(found, shown), *_narrow_ties(shown)):
            yield Bullets(reasons)


def _causes(query: QueryEffect) -> str:
    """`ideal +0.2000, rr_depth −0.1000`."""
    words, has_value = [], query.a is not None
    for choice in query.causes:
        step = query.steps[choice]
        if step is None:  # a value appears or disappears
            words.append(f"{choice} ({GONE if has_value else NEW})")
            has_value = not has_value
        else:
            words.append(f"{choice} {format_delta(step)}")
    return ", ".join(words)


def _reasons(found: ExplanationResult, shown: Sequence[tuple[str, QueryEffect]]) -> tuple[str, ...]:
    """Why queries shown have no value on one side, a line a reason."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for query_id, query in shown:
        for side, why in ((found.a, query.why_not_a), (found.b, query.why_not_b)):
            if why is not None:
                by_reason.setdefault((side.name, why), []).append(query_id)
    return tuple(f"no value under {side}: {why}: {', '.join(queries)}" for (side, why), queries in by_reason.items())


def _narrow_ties(shown: Sequence[tuple[str, QueryEffect]]) -> Iterator[str]:
    """The results that tie at 32 bits alone, of queries shown that change by it."""
    for query_id, query in shown:
        if (tie := query.narrow_tie) is not None:
            yield (
                f"{query_id}: the scores of {tie.above} ({tie.above_score!r}) and {tie.below} ({tie.below_score!r}) "
                f"are equal as 32-bit floats; {tie.below} is ranked first"
            )


def _bounds(found: ExplanationResult) -> Iterator[Block]:
    captions = (
        (
            found.ties,
            "Worst and best case over the orders of equal scores: means, tied judged results, and queries with such results",
        ),
        (
            found.unjudged,
            "Lowest and highest means over all grades of the unjudged results within the cutoff, and the number of these results",
        ),
    )
    columns: Columns[MeanBounds] = (
        Col("measure", lambda bounds: str(bounds.measure)),
        Col("convention", lambda bounds: bounds.convention),
        Col("lowest", lambda bounds: bounds.low, "value"),
        Col("highest", lambda bounds: bounds.high, "value"),
        Col("results", lambda bounds: bounds.n_results, "count"),
        Col("queries", lambda bounds: bounds.n_queries, "count"),
    )
    for rows, caption in captions:
        if rows:
            yield TableSpec(caption, rows, columns).table()
        if silent := {f"{each.measure} under {each.convention}: {each.why}" for each in rows if each.why}:
            yield Bullets(tuple(sorted(silent)))


def _tidy(found: ExplanationResult) -> TableSpec[tuple[Measure, str, QueryEffect]]:
    rows = [
        (measure, query_id, query)
        for measure, about in found.measures.items()
        for query_id, query in about.queries.items()
    ]
    columns: Columns[tuple[Measure, str, QueryEffect]] = (
        Col("query", lambda row: row[1]),
        Col("measure", lambda row: str(row[0])),
        Col(found.a.name, lambda row: row[2].a),
        Col(found.b.name, lambda row: row[2].b),
        Col("difference", lambda row: row[2].difference),
        Cols([choice.name for choice in found.choices], lambda row, choice: row[2].steps[choice]),
    )
    return TableSpec("", rows, columns)


def _choice_text(choice: str | int | None) -> str:
    return "none" if choice is None else str(choice)
