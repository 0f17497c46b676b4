"""`cranfield system presets`: the forms that are filled in for search engines."""

from __future__ import annotations

from typing import Annotated

import typer

from cranfield.cli.shared import Format, FormatOption, deliver


def presets_command(
    name: Annotated[str | None, typer.Argument(metavar="PRESET", help="Show this preset in full.")] = None,
    *,
    output: FormatOption = Format.TEXT,
) -> None:
    """List the presets; with a name, show its `with` parameters and the resulting settings."""
    from cranfield.project.probing import presets_document

    deliver(presets_document(name), output, None)
