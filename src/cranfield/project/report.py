"""`cranfield.report`: a result as text, or as a file."""

from __future__ import annotations

from pathlib import Path

from cranfield.evaluation.values import Comparison, Evaluation


def report(result: Comparison | Evaluation, path: str | Path | None = None, *, format: str = "text") -> str:  # noqa: A002
    """Render a comparison or an evaluation, and save it where a path is given.

    Args:
        result: what `compare` or `evaluate` returned.
        path: where to write it too, in the form of its suffix: .html, .md, .json, .csv or .txt.
        format: of the text returned: text, markdown, csv, json or html.
    """
    from cranfield.reporting import comparison_document, evaluation_document, render, save_report

    document = (
        comparison_document(result) if isinstance(result, Comparison) else evaluation_document([result], by_query=True)
    )
    if path is not None:
        save_report(document, Path(path))
    return render(document, format)
