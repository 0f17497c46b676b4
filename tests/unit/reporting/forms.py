"""A report in any form as text: of a workbook the cells, a line for each row."""

from __future__ import annotations

import io

import openpyxl

from cranfield.reporting import RENDERERS, Document, render


def rendered(document: Document, form: str) -> str:
    """The text of a form."""
    if RENDERERS[form].render is not None:
        return render(document, form)
    book = openpyxl.load_workbook(io.BytesIO(RENDERERS[form].content(document)))
    rows = (row for sheet in book for row in sheet.iter_rows(values_only=True))
    return "\n".join("\t".join(str(value) for value in row if value is not None) for row in rows)
