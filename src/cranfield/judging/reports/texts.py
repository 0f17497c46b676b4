"""Texts of documents, as a Document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cranfield.base.words import count_noun
from cranfield.reporting.document import Code, Document, KeyValues, Section
from cranfield.reporting.table_spec import Col, TableSpec

if TYPE_CHECKING:
    from cranfield.judging.documents.values import DocumentText

SHOWN_CHARS = 2_000
"""Most characters of one text; JSON and CSV have all of it."""


def texts_document(found: Sequence[DocumentText]) -> Document:
    """Each document with its source and text, or its problem."""
    without = sum(document.problem is not None for document in found)
    facts = _facts(found).tidy()
    return Document(
        title="Texts of documents",
        subtitle=(f"{count_noun(len(found), 'documents')}, {without} without a text",),
        sections=tuple(_section(number, document) for number, document in enumerate(found, start=1)),
        tidy=lambda: facts,
        payload=lambda: {
            "schema_version": 1,
            "documents": [
                {column.title: cell for column, cell in zip(facts.columns, row, strict=True)} for row in facts.rows
            ],
        },
    )


def _facts(found: Sequence[DocumentText]) -> TableSpec[DocumentText]:
    return TableSpec(
        "",
        found,
        (
            Col("document", lambda row: row.doc_id),
            Col("title", lambda row: row.title),
            Col("source", lambda row: row.source),
            Col("format", lambda row: row.format),
            Col("digest", lambda row: row.digest),
            Col("url", lambda row: row.url),
            Col("image", lambda row: _shortened(row.image)),
            Col("problem", lambda row: "" if row.problem is None else row.problem.kind.value),
            Col("text", lambda row: row.text),
        ),
    )


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"


def _section(number: int, document: DocumentText) -> Section:
    if document.problem is not None:
        kind, message = document.problem.kind.value, document.problem.message
        return Section(f"document-{number}", document.doc_id, (KeyValues((("problem", f"{kind}: {message}"),)),))
    about = (
        ("title", document.title),
        ("source", f"{document.source}, {document.format}"),
        ("digest", document.digest),
        *((("url", document.url),) if document.url else ()),
    )
    return Section(
        f"document-{number}",
        document.doc_id,
        (KeyValues(about), Code(_shortened(document.text).rstrip("\n"), in_text=True)),
    )
