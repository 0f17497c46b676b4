"""Inspect the systems of a config: probe, list, show, presets.

Send a single query, list systems, show settings and presets.

`cranfield run` queries all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.ending import EXIT_SYSTEM
from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import Output, deliver, show

SUBCOMMANDS = dict.fromkeys(("probe", "list", "show", "presets"), __name__)
ConfigOption = Annotated[
    Path, typer.Option("--config", metavar="FILE", help="Configuration file that defines the system.")
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A system of the configuration.")]
CONFIG = Path("cranfield.yaml")


@option_groups
def probe_command(
    name: NameArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Text of the query; or the id of one of the test set.")],
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
    raw: Annotated[
        bool, typer.Option("--raw", help="Show the raw output even where results were read from it.")
    ] = False,
    output: Output,
) -> None:
    """Send one query to one system: the request as it was sent, and the results.

    A query of the test set has the grades of its results. The raw output is shown where nothing could be read from it.
    Exits with 3 if the call failed, or the answer breaks a rule of the system. Nothing is stored.
    """
    from cranfield.app.probing import probe

    found = probe(config, name, query, k=k, params=params or (), testset=testset, raw=raw)
    deliver(found.document, output)
    raise typer.Exit(EXIT_SYSTEM if found.is_failure else 0)


@option_groups
def list_command(*, config: ConfigOption = CONFIG, output: Output) -> None:
    """List the systems of a config with their kind and settings. No system is started."""
    from cranfield.app.run import systems_document

    deliver(systems_document(config), output)


def show_command(name: NameArgument, *, config: ConfigOption = CONFIG) -> None:
    """Print a system as YAML with its preset expanded. Copy it to adapt a preset. Secrets are not printed."""
    from cranfield.app.run import filled_yaml

    show([filled_yaml(config, name)])


@option_groups
def presets_command(
    name: Annotated[str | None, typer.Argument(metavar="PRESET", help="Show this preset in full.")] = None,
    *,
    output: Output,
) -> None:
    """List the presets; with a name, show its `with` parameters and the resulting settings."""
    from cranfield.app.run import presets_document

    deliver(presets_document(name), output)
