"""Inspect the systems of a config: probe, list, show, presets.

Send a single query, list systems, show settings and presets.

`cranfield run` queries all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from annotated_types import Ge

from cranfield.app.command import Report, Status, say
from cranfield.evaluation.options.declaration import Argument, Option

SUBCOMMANDS = dict.fromkeys(("probe", "list", "show", "presets"), __name__)
ConfigOption = Annotated[Path, Option("Configuration file that defines the system.", flag="--config", metavar="FILE")]
NameArgument = Annotated[str, Argument("A system of the configuration.", metavar="NAME")]
CONFIG = Path("cranfield.yaml")


def probe_command(
    name: NameArgument,
    query: Annotated[str, Argument("Text of the query; or the id of one of the test set.", metavar="QUERY")],
    *,
    config: ConfigOption = CONFIG,
    k: Annotated[
        int | None,
        Option("Number of results to request; default: that of the config.", short="-k", metavar="N"),
        Ge(1),
    ] = None,
    params: Annotated[
        list[str] | None,
        Option("Parameter sent with the query; repeat for more.", flag="--param", metavar="NAME=VALUE"),
    ] = None,
    testset: Annotated[str | None, Option("Use the params of this test set of the config.", metavar="NAME")] = None,
    raw: Annotated[bool, Option("Show the raw output even if results were read from it.")] = False,
) -> Report:
    """Send one query to one system: the request as it was sent, and the results.

    For a query of the test set, the results have their grades. The raw output is shown if no results could be read from it.
    Exits with 3 if the call failed, or the answer breaks a rule of the system. Nothing is stored.
    """
    from cranfield.app.probing import probe

    found = probe(config, name, query, k=k, params=params or (), testset=testset, raw=raw)
    return Report(document=found.document, status=Status.VOID if found.is_failure else 0)


def list_command(*, config: ConfigOption = CONFIG) -> Report:
    """List the systems of a config with their kind and settings. No system is started."""
    from cranfield.app.run import systems_document

    return Report(document=systems_document(config))


def show_command(name: NameArgument, *, config: ConfigOption = CONFIG) -> None:
    """Print a system as YAML with its preset expanded. Copy it to adapt a preset. Secrets are not printed."""
    from cranfield.app.run import filled_yaml

    say(filled_yaml(config, name), end="")


def presets_command(
    name: Annotated[str | None, Argument("Show this preset in full.", metavar="PRESET")] = None,
) -> Report:
    """List the presets; with a name, show its `with` parameters and the resulting settings."""
    from cranfield.app.run import presets_document

    return Report(document=presets_document(name))
