"""`cranfield init`: write cranfield.yaml from files, addresses and commands."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cranfield.app.command import Report, note
from cranfield.app.commands.shared import ForceOption
from cranfield.cli.main import Command
from cranfield.evaluation.options.declaration import Argument, Option


class InitCommand(Command):
    """A command that takes what follows `--` as one command line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Join the words after `--`, quoted as a shell reads them."""
        if "--" in args:
            place = args.index("--")
            rest = args[place + 1 :]
            args = [*args[:place], "--", *([shlex.join(rest)] if len(rest) > 1 else rest)]
        return super().parse_args(ctx, args)


SETTINGS = {"cls": InitCommand}


def init_command(
    targets: Annotated[
        list[str] | None,
        Argument(
            "Qrels, topics, a CSV of questions, run files, a folder, the URL of a search service, a command with {query}, "
            "a function (module:function), an MCP server, or a program that answers lines of JSON; default: the files in this folder.",
            metavar="[[NAME=]PATH|URL|COMMAND|MODULE:FUNCTION]... [-- COMMAND]",
        ),
    ] = None,
    *,
    config: Annotated[Path, Option("Configuration file to write.", metavar="FILE")] = Path("cranfield.yaml"),
    query: Annotated[str, Option("Query that returns results; used to try the systems.", metavar="TEXT")] = "",
    header: Annotated[
        list[str] | None,
        Option(
            "HTTP request header; write a secret as '{env.VARIABLE}'; repeat for more headers.", metavar="'NAME: VALUE'"
        ),
    ] = None,
    yes: Annotated[bool, Option("Ask no questions; use the most likely answers.", short="-y")] = False,
    force: ForceOption = False,
) -> Iterator[Report]:
    """Write cranfield.yaml from what you have.

    Inputs are judgments, queries, runs, the URL of a search service, a command, a Python function, an MCP server or a program that
    answers lines of JSON. Services, functions, commands and servers are called with a few queries, to find their parameters and the
    place of the results; where an address has `{port}`, the command after `--` is its server, which is started for that. Without
    judgments, a starter test set is written too. The last line of the output is the next command to run.
    """
    from cranfield.app.init.shape import take_default
    from cranfield.app.init.start import init_document, init_project, next_commands, offered_checks

    asks = not yes and _is_terminal()
    ask = _ask if asks else take_default
    result = init_project(targets or (), config, ask=ask, query=query, headers=header or (), force=force)
    yield Report(document=init_document(result), written=result.written)
    for line in offered_checks(result):
        note(f"note: {line}")
    note(f"Next: {next_commands(result)[0]}")


def _is_terminal() -> bool:
    """Whether a person can answer."""
    return sys.stdin.isatty()


def _ask(question: str, default: str, choices: Sequence[str] = ()) -> str:
    """Ask on the terminal; a default is taken by Enter."""
    while True:
        shown = f"{question} [{', '.join(choices)}]" if choices else question
        answer = str(typer.prompt(shown, default=default, err=True)).strip()
        if not choices or answer in choices:
            return answer
