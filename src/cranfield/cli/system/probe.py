"""`cranfield system probe`: one query to one system, with all that went to and fro."""

from __future__ import annotations

from typing import Annotated

import typer

from cranfield.cli.shared import EXIT_SYSTEM, Format, FormatOption, deliver
from cranfield.cli.system.common import CONFIG, ConfigOption, NameArgument


def probe_command(
    name: NameArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Text of the query.")],
    *,
    config: ConfigOption = CONFIG,
    k: Annotated[
        int | None,
        typer.Option("-k", metavar="N", min=1, help="Number of results to request; default: that of the config."),
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="NAME=VALUE", help="Parameter sent with the query; repeat for more."),
    ] = None,
    testset: Annotated[
        str | None, typer.Option("--testset", metavar="NAME", help="Use the params of this test set of the config.")
    ] = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Send one query to one system and show the request, the raw answer and the hits parsed from it.

    Exits with 3 if the call failed. Nothing is stored.
    """
    from cranfield.project.probing import probe

    found = probe(config, name, query, k=k, params=params or (), testset=testset)
    deliver(found.document, output, None)
    raise typer.Exit(EXIT_SYSTEM if found.is_failure else 0)
