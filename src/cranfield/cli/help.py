"""How help looks: commands under headings, long lists of options under theirs, lists of names filled in, examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from typer.core import TyperCommand, TyperGroup

from cranfield.cli import registries
from cranfield.cli.build import with_config_testset
from cranfield.options import declaration as option_names
from cranfield.words import or_list

WHOLE_SENTENCE = 300
"""Characters of a command's first sentence that help may show; none is as long."""
HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
LONG = 14
"""Options from which on they are listed under headings."""
HEADINGS: Mapping[str, tuple[str, ...]] = {
    "Statistics": (
        *("seed", "alpha", "sensitivity", "baseline_less", "difference", "n_queries", "power", "contrast", "fail_on"),
    ),
    "Output": (
        *("out", "output", "html", "means", "sort", "pairs", "by_query", "history", "markdown", "junit"),
        *("step_summary", "top", "force"),
    ),
}
"""Heading to the parameters below it; those of an option group have the heading of their group."""
ORDER = ("Options", "Statistics", "Scoring", "Test set", "Run files of any size", "Output")
"""The headings, in the order of help."""


def _conventions() -> str:
    from cranfield.model import CONVENTIONS

    return or_list([f"{name} ({convention.phrase})" for name, convention in CONVENTIONS.items()])


def _parts() -> str:
    from cranfield.testsets.split import PARTS

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

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the test set of the config before runs that are names."""
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
        headings = {**{name: heading for heading, names in HEADINGS.items() for name in names}, **of_groups}
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
