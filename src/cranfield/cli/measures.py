"""`cranfield measures`: the catalogue."""

from __future__ import annotations

from cranfield.cli.shared import Format, FormatOption, deliver


def measures_command(*, output: FormatOption = Format.TEXT) -> None:
    """List the measures: spelling, meaning, parameters, source."""
    from cranfield.errors import UsageError
    from cranfield.measures.own import load_plugins
    from cranfield.reporting.catalogue import measures_document

    broken = load_plugins()
    if broken:
        raise UsageError(broken)
    deliver(measures_document(), output, None)
