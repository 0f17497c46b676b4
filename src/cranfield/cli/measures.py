"""`cranfield measures`: the catalogue."""

from __future__ import annotations

from typing import Annotated

import typer

from cranfield.cli import registries
from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import Output, deliver


@option_groups
def measures_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Show these measures in full; default: list all.", autocompletion=registries.measures
        ),
    ] = None,
    *,
    output: Output,
) -> None:
    """List all measures, or show some in full.

    Parameters, aliases, formula and source.
    """
    from cranfield.errors import UsageError
    from cranfield.measures.described import describe_measures
    from cranfield.measures.own import load_plugins
    from cranfield.reporting.documents.catalogue import measures_document

    broken = load_plugins()
    if broken:
        raise UsageError(broken)
    deliver(measures_document(describe_measures(names or ()), in_full=bool(names)), output)
