"""The command line: commands are imported when they are called, what they need inside them, so that `--help` is instant."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated

import typer

from cranfield.cli.ending import State, finish_output, handled, keep_interrupts, keep_streams, run_program
from cranfield.cli.help import HELP, Command, Commands
from cranfield.cli.named import with_config_option, with_named_testsets
from cranfield.version import __version__

HEADINGS: Mapping[str, tuple[str, ...]] = {
    "Start": ("demo", "init", "run", "report", "view", "schema"),
    "Evaluate": ("evaluate", "explain", "calibrate", "answers", "measures", "convert", "trec_eval"),
    "Compare": ("compare", "power", "history"),
    "Gate": ("gate", "baseline", "ci"),
    "Test sets": ("testset", "pool", "holes"),
    "Judge": ("judge", "book", "agreement", "db"),
    "Systems": ("system", "components", "grid"),
    "Golden sets and benefit": ("golden", "benefit"),
    "Serve": ("serve", "watch", "mcp", "intake", "metrics", "alerts", "dashboard", "people"),
}
"""Heading of help to the commands below it; each is `NAME_command` of its own module, with `SETTINGS` where it has any."""
COMMANDS = tuple(name for names in HEADINGS.values() for name in names)
"""In the order in which help lists them."""
GROUPS = frozenset(
    {"answers", "baseline", "benefit", "book", "ci", "db", "golden", "intake", "people", "pool", "system", "testset"}
)
"""Those that are groups of commands: `SUBCOMMANDS` of their module names each command with its module."""


def _print_version(*, value: bool) -> None:
    if value:
        typer.echo(f"cranfield {__version__}")
        raise typer.Exit


def root(
    *,
    version: Annotated[  # noqa: ARG001 - its callback prints and leaves
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Hold the options that belong to no command."""
    State.debug = debug


@cache
def command_line(*names: str) -> typer.Typer:
    """The program with all of its commands, or with one: making a command takes as long as reading a small file.

    Args:
        names: of one command; or of a group of commands and one of those that it has.
    """
    app = typer.Typer(
        name="cranfield",
        cls=type("Commands", (Commands,), {"headings": HEADINGS}),
        help="Evaluate and compare search systems: measures, paired tests and a verdict with its evidence.",
        epilog=(
            "Exit codes: 0 success; 1 a gate rule failed, or a verdict of --fail-on; 2 usage error or invalid input; "
            "3 a check failed, or scores do not count; 4 a gate rule is inconclusive, or --fail-on not-significant; "
            "70 internal error; 130 interrupted."
        ),
        rich_markup_mode=None,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings=HELP,
    )
    app.callback()(root)
    first, rest = names[:1], names[1:]
    for name in first or COMMANDS:
        if name in GROUPS:
            module = importlib.import_module(f"cranfield.cli.{name}")
            settings = {"headings": {"Commands": tuple(module.SUBCOMMANDS)}, "default": getattr(module, "DEFAULT", "")}
            group = typer.Typer(
                cls=type("Commands", (Commands,), settings),
                no_args_is_help=True,
                rich_markup_mode=None,
                context_settings=HELP,
            )
            for subname in rest or module.SUBCOMMANDS:
                add_command(group, module.SUBCOMMANDS[subname], subname)
            app.add_typer(group, name=name, help=(module.__doc__ or "").partition("\n")[0])
        else:
            add_command(app, f"cranfield.cli.{name}", name)
    return app


def add_command(app: typer.Typer, path: str, name: str) -> None:
    """Import the module of a command and add `NAME_command` of it."""
    module = importlib.import_module(path)
    command = getattr(module, f"{name.replace('-', '_')}_command")
    settings = {"cls": Command, **getattr(module, "SETTINGS", {})}
    app.command(name, **settings)(handled(with_named_testsets(with_config_option(command))))


def requested_command(arguments: Sequence[str]) -> tuple[str, ...]:
    """The command, or the group and its command, that the arguments begin with; nothing where they name none."""
    if not arguments or arguments[0] not in COMMANDS:
        return ()
    if arguments[0] not in GROUPS:
        return (arguments[0],)
    known = importlib.import_module(f"cranfield.cli.{arguments[0]}").SUBCOMMANDS
    return tuple(arguments[:2]) if arguments[1:2] and arguments[1] in known else (arguments[0],)


WITHOUT_MATRICES = {"evaluate", "explain", "measures", "trec_eval"}
"""Commands that multiply no matrices: a second thread for that would spin beside numpy's import, and find nothing to do."""
FEW_COLLECTIONS = 300_000
"""Objects made between two looks for garbage: a start makes some hundred thousand, and they stay."""


def run_command_line(arguments: list[str]) -> int:
    """Run a command with its arguments; its exit code."""
    return run_program(lambda: command_line(*requested_command(arguments)), arguments)


def main() -> None:
    """Entry point of the console script."""
    gc.set_threshold(FEW_COLLECTIONS)
    if "_CRANFIELD_COMPLETE" in os.environ or sys.argv[1:2] in (["--install-completion"], ["--show-completion"]):
        command_line()(prog_name="cranfield")  # typer ends the process
    command = sys.argv[1:2]
    if command and command[0] in WITHOUT_MATRICES:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    out = keep_streams()
    keep_interrupts()
    try:
        status, lost = run_command_line(sys.argv[1:]), finish_output(out)
    finally:
        gc.freeze()  # the end of the process looks for no garbage among the objects that end with it
    sys.exit(status or lost)
