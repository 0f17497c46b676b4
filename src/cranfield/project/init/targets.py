"""Arguments of `cranfield init`: which is a file, which an address, which a command."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from cranfield.config.systems import NAME_PATTERN
from cranfield.config.template import placeholders
from cranfield.errors import Problem, UsageError, shorten
from cranfield.project.init.values import Target

ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_NAMED = re.compile(rf"({NAME_PATTERN})=(.+)", re.DOTALL)
_PROGRAMS = (b"#!", b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")
"""What a file that can be executed begins with."""
EXPECTED = "a file or folder, an address (http://...), or a command with {query} in quotes or after --"
SCRIPT = ".py"


def targets_of(arguments: Sequence[str]) -> list[Target]:
    """What each argument is; without any, the working folder.

    Raises:
        UsageError: with every argument that is nothing.
    """
    found: list[Target] = []
    problems: list[Problem] = []
    for argument in arguments or (".",):
        try:
            found.append(_target(argument))
        except UsageError as error:
            problems += error.problems
    if problems:
        raise UsageError(problems)
    return found


def _target(argument: str) -> Target:
    named = None if _exists(argument) or ADDRESS.match(argument) else _NAMED.fullmatch(argument)
    name, given = (named[1], named[2]) if named else ("", argument)
    if ADDRESS.match(given):
        return Target(given, "url", name)
    path = Path(given)
    if _exists(given):
        return _program(path, given, name) or Target(given, "path", name)
    if re.search(r"\s", given.strip()) or shutil.which(given):
        return _command(given, name)
    hint = "an example without any files of your own: cranfield demo"
    raise UsageError(Problem("no such file, folder or program", path=given, expected=EXPECTED, hint=hint))


def _exists(given: str) -> bool:
    return os.path.exists(given)  # noqa: PTH110 - Path.exists raises where a command is too long for a name


def _command(given: str, name: str) -> Target:
    try:
        argv = tuple(shlex.split(given))
    except ValueError as error:
        message = f"the command cannot be split into words: {str(error).lower()}"
        raise UsageError(message, expected="words as a shell splits them", got=shorten(given)) from None
    program = argv[0]
    if not Path(program).exists() and not shutil.which(program) and program != "{python}":
        hint = "the command runs in the folder of the config; a program beside it is written ./NAME"
        raise UsageError(Problem(f"no program {shorten(program)}", expected=EXPECTED, hint=hint))
    return Target(given, "command", name, argv, is_certain=_has_query(argv))


def _has_query(argv: Sequence[str]) -> bool:
    return any("query" in placeholders(word) for word in argv)


def _program(path: Path, given: str, name: str) -> Target | None:
    """A command of a file that is a program; None of another file."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        begins = stream.read(4).startswith(_PROGRAMS)
    if begins and shutil.which(path.absolute()):
        written = given if path.is_absolute() or given.startswith((".", "/")) else f"./{given}"
        return Target(given, "command", name, (written,), is_certain=False)
    if path.suffix == SCRIPT:
        return Target(given, "command", name, ("{python}", given), is_certain=False)
    return None
