"""`cranfield book text`: the texts of documents as raters and models get them."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

from cranfield.app.command import Report
from cranfield.app.commands.book_options import WorkbenchOption
from cranfield.options.declaration import Argument


def text_command(
    documents: Annotated[list[str], Argument("Ids of documents.", metavar="DOC...")],
    *,
    workbench: WorkbenchOption = None,
) -> Report:
    """Show the texts of documents as raters get them, or why there are none: to try `documents:` of the config or the operator's file."""
    from cranfield.app.loading import project_config
    from cranfield.judging.documents.texts import open_texts
    from cranfield.reporting.documents.texts import texts_document

    with closing(open_texts(workbench, project_config())) as texts:
        found = [texts.get(doc_id) for doc_id in documents]
    return Report(document=texts_document(found))
