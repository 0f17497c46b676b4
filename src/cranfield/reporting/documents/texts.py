"""Texts of documents, as a Document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cranfield.reporting.document import Cell, Code, Document, KeyValues, Section, tidy_table
from cranfield.words import n_of

if TYPE_CHECKING:
    from cranfield.judging.documents.values import DocumentText

SHOWN_CHARS = 2_000
"""Of one text; JSON and CSV have all of it."""
HEADINGS = ("document", "title", "source", "format", "digest", "url", "image", "problem", "text")


def texts_document(found: Sequence[DocumentText]) -> Document:
    """Each document with its source and text, or its problem."""
    without = sum(document.problem is not None for document in found)
    return Document(
        title="Texts of documents",
        subtitle=(f"{n_of(len(found), 'documents')}, {without} without a text",),
        sections=tuple(_section(number, document) for number, document in enumerate(found, start=1)),
        tidy=lambda: tidy_table(HEADINGS, [_cells(document) for document in found]),
        payload=lambda: {
            "schema_version": 1,
            "documents": [dict(zip(HEADINGS, _cells(document), strict=True)) for document in found],
        },
    )


def _cells(document: DocumentText) -> tuple[Cell, ...]:
    problem = "" if document.problem is None else document.problem.kind.value
    image = document.image if len(document.image) <= SHOWN_CHARS else document.image[:SHOWN_CHARS] + "…"
    about = (document.doc_id, document.title, document.source, document.format, document.digest, document.url, image)
    return (*about, problem, document.text)


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
    text = document.text if len(document.text) <= SHOWN_CHARS else document.text[:SHOWN_CHARS] + "…"
    return Section(f"document-{number}", document.doc_id, (KeyValues(about), Code(text.rstrip("\n"), in_text=True)))
