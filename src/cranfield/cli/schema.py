"""`cranfield schema`: the JSON Schema of a document, for editors and other tools."""

from __future__ import annotations

from typing import Annotated

import typer

from cranfield.cli.shared import show


def schema_command(
    name: Annotated[str, typer.Argument(metavar="[DOCUMENT]", help="Document: {schemas}.")] = "config",
) -> None:
    """Print the JSON Schema of the config, or of another document.

    An editor checks and completes a YAML file whose first line is `# yaml-language-server: $schema=FILE`; `cranfield init`
    writes that line, and the file.
    """
    from cranfield.app.schemas import schema_named

    show([schema_named(name).text])
