"""`cranfield.report`: a result as text, or as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cranfield.evaluation.values import Comparison, Evaluation

if TYPE_CHECKING:
    from cranfield.evaluation.many_values import ManyComparison
    from cranfield.reporting import Document


def report(
    result: Comparison | Evaluation | ManyComparison,
    path: str | Path | None = None,
    *,
    format: str = "text",  # noqa: A002
) -> str:
    """Render a comparison, of two or of many, or an evaluation, and save it where a path is given.

    Args:
        result: what `compare`, `compare_many` or `evaluate` returned.
        path: where to write it too, in the form of its suffix: .html, .md, .json, .csv or .txt.
        format: of the text returned: text, markdown, csv, json or html.
    """
    from cranfield.reporting import render, save_report

    document = _document(result)
    if path is not None:
        save_report(document, Path(path))
    return render(document, format)


def _document(result: Comparison | Evaluation | ManyComparison) -> Document:
    from cranfield.reporting import comparison_document, evaluation_document

    if isinstance(result, Evaluation):
        return evaluation_document([result], by_query=True)
    return comparison_document(result)
