"""The command line: commands are imported when they are called, what they need inside them, so that `--help` is instant."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from cranfield.app.command import note
from cranfield.base.errors import UsageError
from cranfield.base.version import __version__
from cranfield.base.words import or_list
from cranfield.cli import registries
from cranfield.cli.build import command_of, with_config_testset
from cranfield.cli.ending import CommandState, finish_output, keep_interrupts, keep_streams, run_program
from cranfield.evaluation.options import declaration as option_names
from cranfield.plugins import Product, built_in_products, installed_products, part, products

WHOLE_SENTENCE = 300
"""Characters of a command's first sentence that help may show; none is as long."""
HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
LONG = 14
"""Options from which on they are listed under headings."""
OPTION_HEADINGS: Mapping[str, tuple[str, ...]] = {
    "Statistics": (
        "seed",
        "alpha",
        "sensitivity",
        "baseline_less",
        "difference",
        "n_queries",
        "power",
        "contrast",
        "fail_on",
    ),
    "Output": (
        "out",
        "output",
        "html",
        "means",
        "sort",
        "pairs",
        "by_query",
        "history",
        "markdown",
        "junit",
        "step_summary",
        "top",
        "force",
    ),
}
"""Heading to the parameters below it; those of an option group have the heading of their group."""
ORDER = ("Options", "Statistics", "Scoring", "Test set", "Run files of any size", "Output")
"""The headings, in the order of help."""


def _conventions() -> str:
    from cranfield.model import CONVENTIONS

    return or_list([f"{name} ({convention.phrase})" for name, convention in CONVENTIONS.items()])


def _parts() -> str:
    from cranfield.evaluation.testset.split import PARTS

    return or_list(PARTS)


def _schemas() -> str:
    from cranfield.app.schemas import SCHEMAS

    return or_list([f"{name} ({schema.title})" for name, schema in SCHEMAS.items()])


LISTS: dict[str, Callable[[], str]] = {
    "{adjustments}": lambda: or_list(option_names.adjustments()),
    "{conventions}": _conventions,
    "{parts}": _parts,
    "{run_formats}": lambda: or_list(registries.run_formats()),
    "{schemas}": _schemas,
    "{tests}": lambda: or_list(option_names.tests()),
}
"""Names in braces in the help of options: read from their tables when help is shown, and imported no sooner."""


class Command(TyperCommand):
    """A command whose help has examples and headings, and whose runs may be the names of systems."""

    instead: ClassVar[Mapping[str, str]] = {}
    """Option that other tools have to what is done here in its place."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the test set of the config before runs that are names.

        Raises:
            UsageError: an option of another tool.
        """
        for word in args[: args.index("--")] if "--" in args else args:
            if (name := word.partition("=")[0]) in self.instead:
                raise UsageError(f"no option {name}", hint=self.instead[name])
        return super().parse_args(ctx, with_config_testset(self, ctx, args))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, each list read from its table; many options under headings."""
        for parameter in self.params:
            text = getattr(parameter, "help", None) or ""
            for place, listed in LISTS.items():
                if place in text:
                    text = text.replace(place, listed())
                    parameter.help = text  # type: ignore[attr-defined]  # of a parameter of typer
        parameters = self.get_params(ctx)
        options = [
            each for each in parameters if each.param_type_name == "option" and not getattr(each, "hidden", False)
        ]
        sections = {"Arguments": [each for each in parameters if each.param_type_name == "argument"]}
        sections |= dict(self._under_headings(options)) if len(options) >= LONG else {"Options": options}
        for heading, members in sections.items():
            records = [record for each in members if (record := each.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def _under_headings(self, options: list[Any]) -> Iterator[tuple[str, list[Any]]]:
        """The options of each heading; `--help` is the last of the first."""
        of_groups = getattr(self.callback, "headings", {})
        headings = {**{name: heading for heading, names in OPTION_HEADINGS.items() for name in names}, **of_groups}
        for heading in dict.fromkeys((*ORDER, *headings.values())):
            yield heading, [each for each in options if headings.get(each.name, ORDER[0]) == heading]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, and what else stands at the end."""
        write_examples(ctx, formatter)
        super().format_epilog(ctx, formatter)


class Commands(TyperGroup):
    """Lists its commands in their order, groups among them, each with its first sentence; under headings where it has any."""

    headings: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Heading to the commands below it, in their order."""
    default: ClassVar[str] = ""
    """The command of arguments that begin with none; empty where one is required."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command before arguments that begin with no command."""
        if self.default and args and args[0] not in {*self.commands, *HELP["help_option_names"]}:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer's signature, of its own copy of click
        """A row a command; a sentence that is too long for it goes on below."""
        width = max(map(len, self.commands))
        formatter.write_paragraph()
        for heading, names in self.headings.items():
            shown = [name for name in names if name in self.commands]
            if shown:
                formatter.write_heading(heading)
                with formatter.indentation():
                    sentences = [self.commands[name].get_short_help_str(limit=WHOLE_SENTENCE) for name in shown]
                    formatter.write_dl(list(zip((name.ljust(width) for name in shown), sentences, strict=True)))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, and what else stands at the end."""
        write_examples(ctx, formatter)
        super().format_epilog(ctx, formatter)


def write_examples(ctx: Any, formatter: Any) -> None:
    """Write the examples of a command, as they are typed; none where it has none."""
    from cranfield.cli.examples import examples_of

    program, *path = ctx.command_path.split()
    lines = examples_of(tuple(path))
    if lines:
        with formatter.section("Examples"):
            for line in lines:
                formatter.write(f"  {program} {line}\n")


HEADINGS = (
    "Start", "Evaluate", "Compare", "Gate", "Test sets", "Judge", "Systems", "Golden sets and benefit", "Serve",
)  # fmt: skip
"""The headings of commands, in the order of help; those of other packages come after them."""
MODULES: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "demo": "cranfield.app.commands.run",
        "init": "cranfield.cli.init",
        "run": "cranfield.app.commands.run",
        "report": "cranfield.app.commands.run",
        "view": "cranfield.cli.view",
        "schema": "cranfield.app.commands.run",
    },
    "Evaluate": {
        "evaluate": "cranfield.app.commands.evaluate",
        "explain": "cranfield.app.commands.explain",
        "measures": "cranfield.app.commands.measures",
        "convert": "cranfield.app.commands.convert",
    },
    "Compare": {
        "compare": "cranfield.app.commands.evaluate",
        "diff": "cranfield.app.commands.diff",
        "snapshot": "cranfield.app.commands.snapshot",
        "power": "cranfield.app.commands.evaluate",
        "history": "cranfield.app.commands.history",
    },
    "Systems": {
        "system": "cranfield.app.commands.system",
        "components": "cranfield.app.commands.run",
        "grid": "cranfield.app.commands.run",
    },
}
"""Heading of help to the commands of the core below it with their modules; each is `NAME_command`, with `SETTINGS` where it has any.

Those that talk with a terminal lie in this room. Products add theirs.
"""
GROUPS = frozenset({"system"})
"""Those of the core that are groups of commands: `SUBCOMMANDS` of their module names each command with its module."""


@dataclass(frozen=True)
class CommandTable:
    """The commands that there are."""

    headings: Mapping[str, tuple[str, ...]]
    """In the order of help."""
    modules: Mapping[str, str]
    groups: frozenset[str]
    added: Mapping[str, Mapping[str, str]]
    """Group to the commands that it gets from other products."""
    taken: tuple[str, ...] = ()
    """A sentence for each command of a product whose name was taken already."""

    @classmethod
    def of(cls, products: Sequence[Product]) -> CommandTable:
        """Those of the core and of products; a name that is there already is not taken again."""
        headings: dict[str, list[str]] = {heading: [*MODULES.get(heading, ())] for heading in HEADINGS}
        modules = {name: module for names in MODULES.values() for name, module in names.items()}
        groups, taken = set(GROUPS), []
        added: dict[str, dict[str, str]] = {}
        for product in products:
            for group, commands in product.subcommands.items():
                added.setdefault(group, {}).update(commands)
            for heading, names in product.commands.items():
                taken += [
                    f"the command {name} exists already; the one of {product.name} is ignored"
                    for name in names
                    if name in modules
                ]
                new = {name: module for name, module in names.items() if name not in modules}
                headings.setdefault(heading, []).extend(new)
                modules |= new
                groups |= product.groups & new.keys()
        ordered = {name: modules[name] for names in headings.values() for name in names}
        return cls(
            {heading: tuple(names) for heading, names in headings.items()},
            ordered,
            frozenset(groups),
            added,
            tuple(taken),
        )

    def commands_of(self, group: str) -> dict[str, str]:
        """The commands of a group with their modules, its own first, in the order of help.

        Raises:
            UsageError: it is of an installed package, and cannot be imported.
        """
        return {**part(self.modules[group]).SUBCOMMANDS, **self.added.get(group, {})}


@cache
def command_table(*, built_in: bool = False) -> CommandTable:
    """Every command; or those without installed packages, which are looked for where a name is none of these."""
    return CommandTable.of(built_in_products() if built_in else products())


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
    CommandState.debug = debug


@cache
def command_line(*names: str, listed: bool = False) -> typer.Typer:
    """The program with all of its commands, or with one: making a command takes as long as reading a small file.

    Args:
        names: of one command; or of a group of commands and one of those that it has.
        listed: its commands are listed and none is called: they have a sentence and no options.
    """
    table = command_table(built_in=bool(names))
    if names and names[0] not in table.modules:
        table = command_table()
    app = typer.Typer(
        name="cranfield",
        cls=type("Commands", (Commands,), {"headings": table.headings}),
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
    for name in first or table.modules:
        try:
            module = part(table.modules[name])
        except UsageError as error:  # of an installed package: the other commands are listed
            if first:
                raise
            note(f"warning: command {name}: {error}")
            continue
        if name in table.groups:
            commands = table.commands_of(name)
            settings = {"headings": {"Commands": tuple(commands)}, "default": getattr(module, "DEFAULT", "")}
            group = typer.Typer(
                cls=type("Commands", (Commands,), settings),
                no_args_is_help=True,
                rich_markup_mode=None,
                context_settings=HELP,
            )
            for subname in () if listed and not first else rest or commands:
                add_command(group, commands[subname], subname, listed=listed)
            app.add_typer(group, name=name, help=(module.__doc__ or "").partition("\n")[0])
        else:
            add_command(app, table.modules[name], name, listed=listed)
    return app


def add_command(app: typer.Typer, path: str, name: str, *, listed: bool = False) -> None:
    """Import the module of a command and add `NAME_command` of it, or its sentence alone where it is listed."""
    module = importlib.import_module(path)
    command = getattr(module, f"{name.replace('-', '_')}_command")
    instead = getattr(module, "INSTEAD", {}).get(name, {})
    settings = {"cls": type("Command", (Command,), {"instead": instead}), **getattr(module, "SETTINGS", {})}
    app.command(name, help=command.__doc__, **settings)((lambda: None) if listed else command_of(command))


def requested_command(arguments: Sequence[str]) -> tuple[str, ...]:
    """The command, or the group and its command, that the arguments begin with; nothing where they name none."""
    name = arguments[0] if arguments else ""
    table = command_table(built_in=True)
    if name and not name.startswith("-") and name not in table.modules:
        table = command_table()
    if name not in table.modules:
        return ()
    if name not in table.groups:
        return (name,)
    with suppress(UsageError):  # of an installed package that cannot be imported: making the command says so
        is_known = bool(arguments[1:2]) and arguments[1] in table.commands_of(name)
        return tuple(arguments[:2]) if is_known else (name,)
    return (name,)


WITHOUT_MATRICES = {"evaluate", "explain", "measures", "trec_eval"}
"""Commands that multiply no matrices: a second thread for that would spin beside numpy's import, and find nothing to do."""
FEW_COLLECTIONS = 300_000
"""Objects made between two looks for garbage: a start makes some hundred thousand, and they stay."""


def run_command_line(arguments: list[str]) -> int:
    """Run a command with its arguments; its exit code."""
    names = requested_command(arguments)
    if not names:
        for problem in installed_products()[1]:
            note(f"warning: {problem.sentence()}")
        for sentence in command_table().taken:
            note(f"warning: {sentence}")
    is_group = not names or (len(names) == 1 and names[0] in command_table().groups)
    listed = is_group and set(arguments[len(names) :]) <= {*HELP["help_option_names"], "--version"}
    return run_program(lambda: command_line(*names, listed=listed), arguments)


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
