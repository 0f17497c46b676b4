"""`cranfield measures`: the catalogue."""

from __future__ import annotations

from typing import Annotated

from cranfield.app.command import Report
from cranfield.evaluation.options.declaration import Argument


def measures_command(
    names: Annotated[
        list[str] | None,
        Argument("Show these measures in full; default: list all.", metavar="NAME", choices="measures"),
    ] = None,
) -> Report:
    """List all measures, or show some in full.

    Parameters, aliases, formula and source.
    """
    from cranfield.base.errors import UsageError
    from cranfield.measures.described import describe_measures
    from cranfield.measures.own import load_plugins
    from cranfield.reporting.documents.catalogue import measures_document

    broken = load_plugins()
    if broken:
        raise UsageError(broken)
    return Report(document=measures_document(describe_measures(names or ()), in_full=bool(names)))
