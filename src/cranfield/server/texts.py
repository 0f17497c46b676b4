"""The texts of documents for a server: from the operator's file, or the fields of the runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cranfield.server.documents import DocumentPages


@contextmanager
def open_texts(path: Path | None) -> Iterator[DocumentPages]:
    """Open what shows documents, and close its caches and databases at the end."""
    from cranfield.config.documents import load_workbench
    from cranfield.judging.documents.texts import DocumentTexts

    texts = DocumentTexts(load_workbench(path) if path else None)
    try:
        yield DocumentPages(texts)
    finally:
        texts.close()
