"""The command: one file a noun, features imported inside their command so that `--help` is instant."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import Annotated

import typer

from cranfield import __version__
from cranfield.cli.shared import State, handled

COMMANDS = ("demo", "run", "evaluate", "compare", "explain", "measures", "trec_eval")
"""In the order help lists them; each is `NAME_command` of its own module, with `SETTINGS` where it has any."""


def _print_version(*, value: bool) -> None:
    if value:
        typer.echo(f"cranfield {__version__}")
        raise typer.Exit


def root(
    *,
    version: Annotated[  # noqa: ARG001 - its callback prints and leaves
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Hold the options that belong to no command."""
    State.debug = debug


def command_line(*names: str) -> typer.Typer:
    """The program with all of its commands, or with some: making a command takes as long as reading a small file."""
    app = typer.Typer(
        name="cranfield",
        help="Did your search get better, worse or stay the same? Measures, paired tests and a verdict, with the evidence.",
        epilog=(
            "Exit codes: 0 done; 1 a verdict you asked to fail on; 2 usage or bad input; 3 a system under test failed "
            "beyond the limit set; 4 not distinguished, where you asked for a decision; 130 interrupted."
        ),
        rich_markup_mode=None,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(root)
    for name in names or COMMANDS:
        module = importlib.import_module(f"cranfield.cli.{name}")
        app.command(name, **getattr(module, "SETTINGS", {}))(handled(getattr(module, f"{name}_command")))
    return app


WITHOUT_MATRICES = {"evaluate", "explain", "measures", "trec_eval"}
"""Commands that multiply no matrices: a second thread for that would spin beside numpy's import, and find nothing to do."""
FEW_COLLECTIONS = 100_000
"""Objects made between two looks for garbage: a start makes some hundred thousand, and they stay."""


def main() -> None:
    """Entry point of the console script."""
    gc.set_threshold(FEW_COLLECTIONS)
    asked = sys.argv[1:2]
    if asked and asked[0] in WITHOUT_MATRICES:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    command_line(*(asked if asked and asked[0] in COMMANDS else ()))(prog_name="cranfield")
