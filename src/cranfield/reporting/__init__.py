"""The report room: results as a Document, and the Document as text, Markdown, HTML, CSV and JSON.

What is named here is imported when first used: JSON needs neither pages nor pictures.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cranfield.reporting.document import Document
    from cranfield.reporting.documents.comparison import comparison_document, evaluation_document
    from cranfield.reporting.renderers.data import RENDERERS, render, save_report, save_reports

__all__ = [
    "RENDERERS",
    "Document",
    "comparison_document",
    "evaluation_document",
    "render",
    "save_report",
    "save_reports",
]

_HOMES = {
    "documents.comparison": ("comparison_document", "evaluation_document"),
    "document": ("Document",),
    "renderers.data": ("RENDERERS", "render", "save_report", "save_reports"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        message = f"module 'cranfield.reporting' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(f"cranfield.reporting.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
