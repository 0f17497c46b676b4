"""`cranfield schema`: the JSON Schema of a document, for editors and other tools."""

from __future__ import annotations

from typing import Annotated

from cranfield.app.command import say
from cranfield.options.declaration import Argument


def schema_command(
    name: Annotated[str, Argument("Document: {schemas}.", metavar="[DOCUMENT]")] = "config",
) -> None:
    """Print the JSON Schema of the config, or of another document.

    An editor checks and completes a YAML file whose first line is `# yaml-language-server: $schema=FILE`; `cranfield init`
    writes that line, and the file.
    """
    from cranfield.app.schemas import schema_named

    say(schema_named(name).text, end="")
