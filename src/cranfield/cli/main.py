"""The command line: commands are imported when they are called, what they need inside them, so that `--help` is instant."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from cranfield.cli.ending import State, finish_output, handled, keep_interrupts, keep_streams, run_program
from cranfield.cli.shared import with_named_testsets
from cranfield.version import __version__
from cranfield.words import or_list

COMMANDS = (
    "demo",
    "init",
    "run",
    "evaluate",
    "compare",
    "gate",
    "baseline",
    "components",
    "grid",
    "power",
    "calibrate",
    "history",
    "ci",
    "system",
    "testset",
    "pool",
    "holes",
    "book",
    "db",
    "agreement",
    "answers",
    "judge",
    "golden",
    "benefit",
    "explain",
    "convert",
    "measures",
    "schema",
    "serve",
    "watch",
    "mcp",
    "intake",
    "metrics",
    "alerts",
    "dashboard",
    "people",
    "trec_eval",
)
"""In the order help lists them; each is `NAME_command` of its own module, with `SETTINGS` where it has any."""
GROUPS = frozenset(
    {"answers", "baseline", "benefit", "book", "ci", "db", "golden", "intake", "people", "pool", "system", "testset"}
)
"""Those that are groups of commands: `SUBCOMMANDS` of their module names each command with its module."""
WHOLE_SENTENCE = 300
"""Characters of a command's first sentence that help may show; none is as long."""
HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


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


def _conventions() -> str:
    from cranfield.model import CONVENTIONS

    return or_list(list(CONVENTIONS))


def _id_rules() -> str:
    from cranfield.model import ID_RULES

    return or_list([f"{rule} ({what})" for rule, what in ID_RULES.items()])


def _parts() -> str:
    from cranfield.testsets.split import PARTS

    return or_list(PARTS)


def _run_formats() -> str:
    from cranfield.formats.sniff import format_names

    return or_list(format_names("run"))


def _schemas() -> str:
    from cranfield.project.schemas import SCHEMAS

    return or_list([f"{name} ({schema.title})" for name, schema in SCHEMAS.items()])


def _tests() -> str:
    from cranfield.stats.table import TESTS

    return or_list([name for name, spec in TESTS.items() if spec.can_declare])


def _adjustments() -> str:
    from cranfield.stats.table import ADJUSTMENTS

    return or_list(list(ADJUSTMENTS))


LISTS: dict[str, Callable[[], str]] = {
    "{adjustments}": _adjustments,
    "{conventions}": _conventions,
    "{id_rules}": _id_rules,
    "{parts}": _parts,
    "{run_formats}": _run_formats,
    "{schemas}": _schemas,
    "{tests}": _tests,
}
"""Names in braces in the help of options: read from their tables when help is shown, and imported no sooner."""


class Command(TyperCommand):
    """A command whose help has the lists filled in."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, each list read from its table."""
        for parameter in self.params:
            text = getattr(parameter, "help", None) or ""
            for place, listed in LISTS.items():
                if place in text:
                    text = text.replace(place, listed())
                    parameter.help = text  # type: ignore[attr-defined]  # of a parameter of typer
        super().format_options(ctx, formatter)


class Commands(TyperGroup):
    """Lists its commands in their order, groups among them, each with the whole of its first sentence."""

    order: ClassVar[tuple[str, ...]] = COMMANDS
    default: ClassVar[str] = ""
    """The command of arguments that begin with none; empty where one is required."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command before arguments that begin with no command."""
        if self.default and args and args[0] not in {*self.commands, *HELP["help_option_names"]}:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer's signature, of its own copy of click
        """A row a command; a sentence that is too long for it goes on below."""
        names = sorted(self.commands, key=self.order.index)
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.commands[name].get_short_help_str(limit=WHOLE_SENTENCE)) for name in names])


def command_line(*names: str) -> typer.Typer:
    """The program with all of its commands, or with one: making a command takes as long as reading a small file.

    Args:
        names: of one command; or of a group of commands and one of those that it has.
    """
    app = typer.Typer(
        name="cranfield",
        cls=Commands,
        help="Evaluate and compare search systems: measures, paired tests and a verdict with its evidence.",
        epilog=(
            "Exit codes: 0 success; 1 a gate rule failed, or the verdict matches --fail-on; 2 usage error or invalid input; "
            "3 a preflight check failed, or scores do not count: too many failed queries, or void evidence; "
            "4 a gate rule is inconclusive, or --fail-on not-significant applies; 70 internal error; 130 interrupted."
        ),
        rich_markup_mode=None,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings=HELP,
    )
    app.callback()(root)
    first, rest = names[:1], names[1:]
    for name in first or COMMANDS:
        if name in GROUPS:
            module = importlib.import_module(f"cranfield.cli.{name}")
            settings = {"order": tuple(module.SUBCOMMANDS), "default": getattr(module, "DEFAULT", "")}
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
    app.command(name, **settings)(handled(with_named_testsets(command)))


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
