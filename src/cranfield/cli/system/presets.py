"""`cranfield system presets`: the forms that are filled in for search engines."""

from __future__ import annotations

from typing import Annotated

import typer

from cranfield.cli.shared import Format, FormatOption, deliver


def presets_command(
    name: Annotated[str | None, typer.Argument(metavar="PRESET", help="Show this one in full.")] = None,
    *,
    output: FormatOption = Format.TEXT,
) -> None:
    """List the presets; with a name, what its `with` takes and what it comes to."""
    from cranfield.project.probing import presets_document

    deliver(presets_document(name), output, None)
