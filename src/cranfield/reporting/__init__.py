"""The report room: results as a Document, and the Document as text, Markdown, HTML, CSV and JSON."""

from cranfield.reporting.build import comparison_document, evaluation_document
from cranfield.reporting.document import Document
from cranfield.reporting.payload import comparison_payload, evaluation_payload, results_payload, to_json
from cranfield.reporting.render import RENDERERS, render, save_report

__all__ = [
    "RENDERERS",
    "Document",
    "comparison_document",
    "comparison_payload",
    "evaluation_document",
    "evaluation_payload",
    "render",
    "results_payload",
    "save_report",
    "to_json",
]
