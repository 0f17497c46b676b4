"""`cranfield book text`: the texts of documents as raters and models get them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import Output, deliver


@option_groups
def text_command(
    documents: Annotated[list[str], typer.Argument(metavar="DOC...", help="Ids of documents.")],
    *,
    workbench: Annotated[
        Path,
        typer.Option(
            "--workbench",
            metavar="FILE",
            envvar="CRANFIELD_WORKBENCH",
            help="Operator's file: says where the texts of documents are.",
        ),
    ],
    output: Output,
) -> None:
    """Show the texts of documents as raters get them, or why there are none: to try the operator's file."""
    from cranfield.judging.documents.texts import open_texts
    from cranfield.reporting.documents.texts import texts_document

    with closing(open_texts(workbench)) as texts:
        found = [texts.get(doc_id) for doc_id in documents]
    deliver(texts_document(found), output)
