"""What `cranfield.base.display` loads: cards, frames, and queries side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from cranfield.base.display import Library, QueryDisplay
from cranfield.evaluation.result import evaluations_of
from cranfield.reporting.document import Chart, Details, Document, with_fewer_rows
from cranfield.reporting.documents.query import find_query, query_document
from cranfield.reporting.notebook.frames import frame_of
from cranfield.reporting.notebook.shapes import shape_of
from cranfield.reporting.query_data import QueryData, Result
from cranfield.reporting.renderers.html import render_card
from cranfield.reporting.renderers.text import render_text
from cranfield.reporting.sections.subject import Subject

MAX_BYTES = 100_000
"""Most bytes of a card: it is stored in the file of the notebook."""
CARD_ROWS, QUERY_ROWS = 12, 60
"""Rows of a table in a card."""


def card(value: object) -> str:
    """A value as HTML for a notebook."""
    return _card(shape_of(value).card(value), CARD_ROWS)


def frame(value: object, library: Library) -> Any:
    """The tidy rows of a value as a frame of a library.

    Raises:
        MissingExtraError: the library is not installed.
    """
    return frame_of(library, lambda: shape_of(value).rows(value))


def query(value: object, query: str) -> QueryDisplay:
    """A query of a result.

    Raises:
        UnknownNameError: there is no such query, or several have this text.
    """
    result = cast("Result", value)
    data = QueryData(Subject.of(result))
    query_id = find_query(evaluations_of(result)[0].testset, query)
    detail, is_void = data.detail(query_id), data.is_void
    return QueryDisplay(
        query_id,
        detail,
        render_text(query_document(detail, "one table", is_void=is_void)).rstrip("\n"),
        lambda: _card(query_document(detail, "side by side", is_void=is_void), QUERY_ROWS),
    )


def _card(document: Document, most_rows: int) -> str:
    """The card; one that is too large has no picture, and then fewer rows."""
    for rows in (most_rows, most_rows // 2, 2):
        # Every table with few rows; details, which are for reports, are left out.
        with_pictures = rows == most_rows
        sections = []
        for section in document.sections:
            kept = [each for each in section.blocks if not isinstance(each, Details)]
            kept = [each for each in kept if with_pictures or not isinstance(each, Chart)]
            if kept:
                sections.append(replace(section, blocks=with_fewer_rows(kept, rows)))
        shown = replace(document, sections=tuple(sections))
        html = render_card(shown)
        if len(html.encode("utf-8", "replace")) <= MAX_BYTES:
            return html
    return render_card(replace(document, sections=()))
