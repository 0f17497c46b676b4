"""A command is a function: its parameters are its options, its first lines are its help, and what it returns is its report.

The command line is made of it; nothing here knows of typer.
"""

import io
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cranfield.base.words import printable
from cranfield.evaluation.options.declaration import Option, declared

if TYPE_CHECKING:
    from cranfield.reporting.document import Document

C = TypeVar("C", bound=Callable[..., object])


class Status(IntEnum):
    """What a command came to; the number is its exit code."""

    OK = 0
    FAILED = 1
    """A rule failed, or the verdict is one to fail on."""
    VOID = 3
    """A system or a check failed, or scores do not count."""
    INCONCLUSIVE = 4


class Exit(Exception):  # noqa: N818 - it is no error
    """Ends a command that has no report with a status, from wherever it stands."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class OutputFormat(StrEnum):
    """What stdout carries."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    BRIEF = "brief"
    LATEX = "latex"
    XLSX = "xlsx"
    MODEL_CARD = "model-card"


@dataclass(frozen=True)
class Output:
    """What is done with a report: the options that every command with a report has."""

    format: Annotated[
        OutputFormat,
        Option(
            "Output format on stdout; brief is short Markdown, for a changelog or a pull request, latex a table for a paper, "
            "xlsx an Excel workbook, for a file or a pipe, model-card the front matter of a model card."
        ),
    ] = OutputFormat.TEXT
    full: Annotated[bool, Option("Print the whole report as text, not its short form.")] = False
    html: Annotated[Path | None, Option("Also write the report to this HTML file.", metavar="FILE")] = None
    save: Annotated[
        list[Path] | None,
        Option(
            "Also write the report to this file, in the form of its suffix: .xlsx, .md, .tex, .html, .csv, .json or .txt; "
            "repeat for more.",
            metavar="FILE",
        ),
    ] = None
    open: Annotated[bool, Option("Show the report in the browser.")] = False

    def __post_init__(self) -> None:
        """Refuse a suffix without a form before anything is done."""
        if self.save:
            from cranfield.base.errors import Problem, UsageError
            from cranfield.reporting.renderers.data import renderer_of

            problems: list[Problem] = []
            for path in self.save:
                try:
                    renderer_of(path)
                except UsageError as error:
                    problems += error.problems
            if problems:
                raise UsageError(problems)

    def with_full(self, *requested: object) -> "Output":
        """The same; with all of the text where an option requests more than the short form has."""
        return replace(self, full=self.full or any(requested))


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a command came to."""

    document: "Document | Callable[[], Document]"
    record: Callable[[], object] | None = None
    """What JSON is made of where no other form is requested, so that no document is made for it."""
    full: bool = False
    """An option requests more than the short form of the text has."""
    written: Sequence[Path] = ()
    """Files that the command wrote, the page of the report among them."""
    notes: Sequence[str] = ()
    """Lines on stderr after the report."""
    void: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """System to why its scores do not count; where there are any, the status is void."""
    status: int = Status.OK


@dataclass(frozen=True, slots=True)
class RunNames:
    """Which parameters of a command are runs, so that the name of a system may stand there."""

    parameters: tuple[str, ...]
    scored: bool = True
    """Whether the settings of scoring come from the config, where the test set does; else those of the test set alone."""


@dataclass(frozen=True)
class Fields:
    """The options of a block that a command takes."""

    names: tuple[str, ...]


def fields(*names: str) -> Fields:
    """Which options of its block a parameter takes, as a mark in its annotation."""
    return Fields(names)


def option_of(block: type, name: str) -> Any:
    """The annotation of a parameter that is one option of a block."""
    option = declared(block)[name]
    return Annotated[(option.kind, option.option, *option.bounds)]


def takes_runs(*parameters: str, scored: bool = True) -> Callable[[C], C]:
    """Let the name of a system stand for its saved run in some parameters of a command, and give it `--config` where it takes no config.

    Args:
        parameters: names of the parameters that are paths of runs.
        scored: as of `RunNames`.
    """

    def mark(command: C) -> C:
        command.run_names = RunNames(parameters, scored)  # type: ignore[attr-defined]
        return command

    return mark


def say(text: str = "", *, end: str = "\n") -> None:
    """Write a line on stdout."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 has no minus sign
    sys.stdout.write(text + end)
    sys.stdout.flush()


def note(text: str, *, end: str = "\n") -> None:
    """Write a line on stderr, made safe to print: what was left out, what was written, what comes next."""
    lines = [printable(line) for line in text.split("\n")] if end else [text]
    sys.stderr.write("\n".join(lines) + end)
    sys.stderr.flush()
