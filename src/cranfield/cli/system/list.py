"""`cranfield system list`: the systems of a config."""

from __future__ import annotations

from cranfield.cli.shared import Format, FormatOption, deliver
from cranfield.cli.system.common import CONFIG, ConfigOption


def list_command(*, config: ConfigOption = CONFIG, output: FormatOption = Format.TEXT) -> None:
    """List the systems of a config with their kind and settings. No system is started."""
    from cranfield.project.probing import systems_document

    deliver(systems_document(config), output, None)
