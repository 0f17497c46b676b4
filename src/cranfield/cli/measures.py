"""`cranfield measures`: the catalogue."""

from __future__ import annotations

from typing import Annotated

import typer

from cranfield.cli.shared import Format, FormatOption, deliver


def measures_command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Say all there is of these; without, list all.")
    ] = None,
    *,
    output: FormatOption = Format.TEXT,
) -> None:
    """List the measures, or say all there is of some: parameters, other names, formula, source."""
    from cranfield.errors import UsageError
    from cranfield.measures.own import load_plugins
    from cranfield.reporting.documents.catalogue import measures_document

    broken = load_plugins()
    if broken:
        raise UsageError(broken)
    deliver(measures_document(names or ()), output, None)
