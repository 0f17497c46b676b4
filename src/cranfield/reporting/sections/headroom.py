"""Section on what would help most: how far the order and how far recall keep a system from its best value, and what became of missing documents."""

from __future__ import annotations

from collections.abc import Iterator

from cranfield.base.numbers import format_count, format_value
from cranfield.base.words import count_noun, shorten_to, shown_id
from cranfield.evaluation.headroom import Absent, AbsentDocument, Failure, Headroom, QueryHeadroom
from cranfield.measures.catalogue import sign_of
from cranfield.reporting.document import Block, Bullets, Paragraph, Section
from cranfield.reporting.sections.subject import Subject, query_text
from cranfield.reporting.table_spec import Col, Columns, TableSpec

SHOWN = 5
ID_COLUMNS = 40
READ = (
    "Reordered: the value if all that the lists hold stood in the best order, which a reranker of the same results can reach at most. Ideal: if "
    "all that was expected was found too. A query fails by its order where that makes up half of the way to its ideal value or more, else by "
    "recall."
)


def headroom(subject: Subject) -> Section | None:
    """What would help most; None where no system could be better, or its scores do not count."""
    found = [(label, system.headroom) for label, system in subject.systems if system.headroom is not None]
    if subject.is_void or not any(each.failures.get(kind) for _, each in found for kind in Failure):
        return None
    columns: Columns[tuple[str, Headroom]] = (
        Col("system", lambda row: row[0], when=len(found) > 1),
        Col(str(found[0][1].measure), lambda row: row[1].mean, "value"),
        Col("reordered", lambda row: row[1].reordered, "value"),
        Col("ideal", lambda row: row[1].ideal, "value"),
        Col("n", lambda row: row[1].n, "count"),
        Col("fail by order", lambda row: row[1].failures[Failure.ORDER], "count"),
        Col("fail by recall", lambda row: row[1].failures[Failure.RECALL], "count"),
    )
    label, last = found[-1]
    blocks: list[Block] = [TableSpec("How much better each system could be", found, columns).table()]
    of_queries: Columns[QueryHeadroom] = (
        Col("query", lambda row: row.query, "query id"),
        Col("text", lambda row: shorten_to(query_text(subject.record, row.query), ID_COLUMNS)),
        Col("value", lambda row: row.value, "value"),
        Col("reordered", lambda row: row.reordered, "value"),
        Col("ideal", lambda row: row.ideal, "value"),
        Col("fails by", lambda row: row.failure.value),
    )
    name = f" of {label}" if len(found) > 1 else ""
    blocks.append(TableSpec(f"Queries{name} with most to gain", last.queries, of_queries).table(shown=SHOWN))
    blocks += _absent(last, name)
    blocks.append(Paragraph(READ, "note"))
    gain = abs((last.reordered or 0.0) - (last.mean or 0.0)), abs((last.ideal or 0.0) - (last.reordered or 0.0))
    sign = "+" if sign_of(last.measure) > 0 else "−"
    figure = f"order {sign}{format_value(gain[0])}, recall {sign}{format_value(gain[1])} at most"
    return Section("headroom", "What would help most", tuple(blocks), figure)


def _absent(found: Headroom, name: str) -> Iterator[Block]:
    if not found.absent:
        return
    total = sum(found.absent.values())
    kinds = ", ".join(f"{format_count(n)} {kind.value}" for kind, n in found.absent.items())
    yield Paragraph(
        f"{count_noun(total, 'relevant documents', format_count)}{name} not among the results that count: {kinds}."
    )
    named = [each for each in found.documents if each.kind in {Absent.OTHER_FORM, Absent.NEVER}][:SHOWN]
    if named:
        yield Bullets(tuple(map(_document, named)))


def _document(found: AbsentDocument) -> str:
    doc, query = (shown_id(shorten_to(each, ID_COLUMNS), quoted=False) for each in (found.doc, found.query))
    spelled = f" ({shown_id(shorten_to(found.form, ID_COLUMNS), quoted=False)})" if found.form else ""
    return f"{doc}, grade {found.grade:g} of {query}: {found.kind.value}{spelled}"
