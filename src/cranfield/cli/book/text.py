"""`cranfield book text`: the texts of documents as raters and models get them."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from cranfield.cli.book_options import WorkbenchOption
from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import Output, deliver


@option_groups
def text_command(
    documents: Annotated[list[str], typer.Argument(metavar="DOC...", help="Ids of documents.")],
    *,
    workbench: WorkbenchOption = None,
    output: Output,
) -> None:
    """Show the texts of documents as raters get them, or why there are none: to try `documents:` of the config or the operator's file."""
    from cranfield.app.loading import project_config
    from cranfield.judging.documents.texts import open_texts
    from cranfield.reporting.documents.texts import texts_document

    with closing(open_texts(workbench, project_config())) as texts:
        found = [texts.get(doc_id) for doc_id in documents]
    deliver(texts_document(found), output)
