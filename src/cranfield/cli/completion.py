"""Completion in a shell: commands, options, and the values that are names. It imports no command but the one that is completed."""

from __future__ import annotations

import importlib
import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

VARIABLE = "_CRANFIELD_COMPLETE"
"""Set by the shell's function; names the shell."""
USUAL = (
    "nDCG@10",
    "nDCG@5",
    "RR",
    "RR@10",
    "AP",
    "P@5",
    "P@10",
    "R@10",
    "R@100",
    "Success@1",
    "Success@5",
    "Judged@10",
)
"""Measures with cutoffs that are offered before the names of all."""
MEASURE_NAMES = Path(__file__).with_name("measure_names.json")
"""The names of the catalogue, which imports numpy; `python -m cranfield.cli.completion` writes them anew."""


def catalogue_names() -> list[str]:
    """The names of the measures, as the file has them."""
    from cranfield.measures import CATALOGUE

    return list(CATALOGUE)


def _measures(context: Any) -> Iterable[str]:
    with_cutoff = {name.partition("@")[0] for name in USUAL}
    return (*USUAL, *(name for name in _measure_names(context) if name not in with_cutoff))


def _measure_names(_context: Any) -> Iterable[str]:
    found: list[str] = json.loads(MEASURE_NAMES.read_text(encoding="utf-8"))
    return found


def _conventions(_context: Any) -> Iterable[str]:
    from cranfield.model import CONVENTIONS

    return CONVENTIONS


def _tests(_context: Any) -> Iterable[str]:
    from cranfield.stats.table import TESTS

    return [name for name, spec in TESTS.items() if spec.can_declare]


def _adjustments(_context: Any) -> Iterable[str]:
    from cranfield.stats.table import ADJUSTMENTS

    return ADJUSTMENTS


def _verdicts(_context: Any) -> Iterable[str]:
    from cranfield.cli.shared import FAIL_ON, spell_fail_on

    return map(spell_fail_on, FAIL_ON)


def _systems(context: Any) -> Iterable[str]:
    return _keys(context, "systems")


def _testsets(context: Any) -> Iterable[str]:
    return _keys(context, "testsets")


def _runs(context: Any) -> Iterable[str]:
    return _systems(context)


def _first(context: Any) -> Iterable[str]:
    """What may stand where a test set does: one of the config, or a run, with the test set of the config."""
    is_of_runs = getattr(context.command.callback, "run_names", None) is not None
    return [*_testsets(context), *(_systems(context) if is_of_runs else ())]


COMPLETERS: Mapping[str, Callable[[Any], Iterable[str]]] = {
    "measures": _measures,
    "measure": _measures,
    "primary": _measures,
    "names": _measure_names,
    "convention": _conventions,
    "a": _conventions,
    "b": _conventions,
    "test": _tests,
    "adjust": _adjustments,
    "fail_on": _verdicts,
    "systems": _systems,
    "system": _systems,
    "name": _systems,
    "runs": _runs,
    "run": _runs,
    "baseline": _runs,
    "candidate": _runs,
    "more": _runs,
    "testset": _first,
}
"""Parameter of a command to the names that it takes; no name of another parameter is among them."""
NAMES_OF_SYSTEMS = ("components", "probe", "show")
"""Commands whose NAME is a system; elsewhere it is new."""
PATHS = ("testset", "runs", "run", "baseline", "candidate", "more")
"""Parameters that are paths too."""


def _keys(context: Any, block: str) -> list[str]:
    """The names under a block of the config of the project; none where it cannot be read."""
    from cranfield.project.named_testset import project_config

    given = context.params.get("project") or context.params.get("config")
    with suppress(Exception):  # a shell that completes shows no error
        path = project_config(Path(given) if given else None)
        if path is not None:
            import yaml

            loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
            found = yaml.load(path.read_bytes(), Loader=loader)  # noqa: S506 - a safe loader
            return [str(name) for name in found.get(block) or ()]
    return []


def complete(
    make: Callable[..., Any], requested: Callable[[Sequence[str]], tuple[str, ...]], commands: Sequence[str]
) -> int:
    """Print what completes the words that the shell gives, in the form that it reads; the exit code.

    Args:
        make: the program of a command, or of all of them.
        requested: the command that words begin with.
        commands: the names of all.
    """
    from typer.main import get_command

    typer = _of_typer()
    typer.completion_init()
    words = _words()
    names = requested(words)
    # The names of all commands are in a table: one command is enough to complete the first word.
    program = get_command(make(*(names or (() if words else ("measures",)))))
    for command in _leaves(program):
        for parameter in command.params:
            _attach(command, parameter)
    if not words:
        _offer_all(program, commands)
    return int(typer.shell_complete(program, {}, "cranfield", VARIABLE, os.environ[VARIABLE]))


def _of_typer() -> Any:
    """The module of typer that completes, untyped: what it imports from private modules is all that there is."""
    return importlib.import_module("typer.completion")


def _words() -> list[str]:
    """The words before the one that is completed, without the program and options before a command."""
    if "COMP_WORDS" in os.environ:
        line, number = os.environ["COMP_WORDS"], int(os.environ.get("COMP_CWORD") or 0)
        return _split(line)[1:number]
    line = os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = _split(line)[1:]
    return words if line.endswith(" ") else words[:-1]


def _split(line: str) -> list[str]:
    """Words of a line whose last quote may be open."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    with suppress(ValueError):
        words.extend(lexer)
    return words


def _leaves(command: Any) -> Iterator[Any]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield command
    else:
        for each in inner.values():
            yield from _leaves(each)


def _attach(command: Any, parameter: Any) -> None:
    """Complete a parameter by the names that it takes, and by files where it is a path."""
    names = COMPLETERS.get(parameter.name)
    if parameter.name == "name" and command.name not in NAMES_OF_SYSTEMS:
        names = None
    if names is None:
        return

    is_path = parameter.name in PATHS and (parameter.name != "testset" or parameter.type.name == "path")

    def offered(context: Any, incomplete: str) -> list[Any]:
        found = [name for name in names(context) if name.startswith(incomplete)]
        if is_path and found:
            found += _files(incomplete)
        return [_item(name) for name in dict.fromkeys(found)]

    parameter.shell_complete = offered


def _files(incomplete: str) -> list[str]:
    """Files whose path begins so; a shell completes folders by itself where no name fits."""
    with suppress(OSError, ValueError):
        return sorted(str(path) for path in Path().glob(f"{incomplete}*") if path.is_file())
    return []


def _offer_all(program: Any, names: Sequence[str]) -> None:
    """Complete the first word by the names of all commands, of which only one is there, and by the program's options."""
    inner = program.shell_complete

    def offered(context: Any, incomplete: str) -> list[Any]:
        if incomplete.startswith("-"):
            return list(inner(context, incomplete))
        return [_item(name) for name in names if name.startswith(incomplete)]

    program.shell_complete = offered


def _item(name: str) -> Any:
    """A completion, of the click that typer has its own copy of."""
    return importlib.import_module("typer.core").CompletionItem(name)


def install(shell: str | None) -> str:
    """Install completion for a shell; what was done.

    Args:
        shell: its name; None: that which runs the command.
    """
    name, path = _of_typer().install(shell or running_shell(), "cranfield", VARIABLE)
    return f"{name} completion is installed in {path}: start a new terminal"


def script(shell: str | None) -> str:
    """The text that a shell evaluates for completion.

    Args:
        shell: its name; None: that which runs the command.
    """
    return str(
        _of_typer().get_completion_script(prog_name="cranfield", complete_var=VARIABLE, shell=shell or running_shell())
    )


SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")


def running_shell() -> str:
    """The shell that runs the command, else the user's.

    Raises:
        UsageError: it is not known, or none that typer completes in.
    """
    from cranfield.errors import UsageError

    name = _of_typer()._get_shell_name() or Path(os.environ.get("SHELL", "")).name  # noqa: SLF001 - of a parent process
    if name not in SHELLS:
        expected = f"one of {', '.join(SHELLS)}"
        raise UsageError(
            "the shell is not known", expected=expected, got=name or "nothing", hint="start it from that shell"
        )
    return name


if __name__ == "__main__":
    MEASURE_NAMES.write_text(json.dumps(catalogue_names(), indent=0) + "\n", encoding="utf-8")
