"""Symbols looked up in the packages themselves: imported in the sandbox, without network, within limits, or not at all."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from cranfield.benefit.codecheck.python.environment import PACKAGES, Environment
from cranfield.benefit.codecheck.python.sandbox import sandboxed_python
from cranfield.benefit.codecheck.python.ty import CheckerError, ProgramOutput, run_limited

_SECONDS, _BYTES, _PROCESSES = 30, 6 << 30, 64
_MAX_ENDS = 3
"""Times that a package may end the process before the rest is given up."""
_FOLDER = "/lookup"

Lookup = tuple[str, ...]
"""See `importer.py`."""


class Presence(StrEnum):
    """Whether a symbol is there."""

    THERE = "there"
    MISSING = "missing"
    UNKNOWN = "unknown"
    ABSENT = "absent"
    """No package has a class of the name."""


@dataclass(frozen=True, slots=True)
class LookupAnswer:
    """What a lookup found."""

    state: Presence
    why: str = ""
    deprecated: str = ""
    """Why the symbol is deprecated; empty: it is not, as far as it says."""
    perhaps_deprecated: str = ""
    """A sentence on deprecation that may be about a part of the symbol, such as an argument."""
    modules: tuple[str, ...] = ()
    """Modules that define a class of the same name, for a class."""


async def look_up(
    environment: Environment, imports: Sequence[str], lookups: Sequence[Lookup], folder: Path, sandbox: str
) -> Mapping[Lookup, LookupAnswer]:
    """Answers to all lookups.

    Args:
        environment: of the packages.
        imports: modules in the order in which code imports them.
        lookups: in the order of the code.
        folder: to which files can be written.
        sandbox: path of bubblewrap; empty: the one on the path.

    Raises:
        CheckerError: there is no sandbox, or no Python that can import the packages.
    """
    if not environment.python:
        raise CheckerError(f"no Python {environment.version} is available to import packages")
    here = folder / "lookup"
    here.mkdir(exist_ok=True)
    shutil.copy(Path(__file__).with_name("importer.py"), here)
    try:
        start = await sandboxed_python(environment.python, {_FOLDER: here, **environment.inside}, here, sandbox)
    except CheckerError as error:
        raise CheckerError(f"packages are imported only in a sandbox, but {error}") from None
    argv = [*start, f"{_FOLDER}/importer.py", f"{_FOLDER}/request.json", *PACKAGES]
    return await _Lookups(argv, here, environment, imports, lookups).answers()


class _Lookups:
    """Lookups that are left, and what is known of the others."""

    def __init__(
        self, argv: list[str], folder: Path, environment: Environment, imports: Sequence[str], lookups: Sequence[Lookup]
    ) -> None:
        self._argv, self._folder = argv, folder
        self._packages = sorted(environment.modules)
        self._imports, self._left = list(imports), list(lookups)
        self._found: dict[Lookup, LookupAnswer] = {}

    async def answers(self) -> Mapping[Lookup, LookupAnswer]:
        for _ in range(_MAX_ENDS + 1):
            if not self._left:
                return self._found
            output, rows = await self._run()
            imported = [row["imported"] for row in rows if "imported" in row]
            answers = {self._left[row.pop("number")]: row for row in rows if "number" in row}
            for lookup, row in answers.items():
                modules = tuple(row.pop("modules", ()))
                self._found[lookup] = LookupAnswer(**row | {"state": Presence(row["state"]), "modules": modules})
            self._left = [each for each in self._left if each not in answers]
            if self._left:
                self._give_up(imported, output, is_in_lookups=bool(answers))
        why = f"packages ended the process that imports them {_MAX_ENDS + 1} times"
        return {**self._found, **dict.fromkeys(self._left, LookupAnswer(Presence.UNKNOWN, why))}

    async def _run(self) -> tuple[ProgramOutput, list[dict[str, Any]]]:
        request = {"packages": self._packages, "imports": self._imports, "lookups": self._left}
        (self._folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        token = secrets.token_hex(16)
        output = await run_limited(
            self._argv, cwd=self._folder, seconds=_SECONDS, n_bytes=_BYTES, n_processes=_PROCESSES, line=token
        )
        rows: list[dict[str, Any]] = []
        for line in output.stdout.decode("utf-8", "replace").split("\n"):
            with suppress(ValueError):  # cut, or written into by a package
                rows += [json.loads(line.removeprefix(token))] if line.startswith(token) else []
        return output, rows

    def _give_up(self, imported: Sequence[str], output: ProgramOutput, *, is_in_lookups: bool) -> None:
        """Leave out what ended the process: a module with all of its symbols, or one lookup."""
        how = output.describe()
        if not is_in_lookups and len(imported) < len(self._imports):
            module = self._imports[len(imported)]
            why = f"importing {module} ended the process or its output: {how}"
            lost = [each for each in self._left if _is_in(each, module)]
            self._imports = [each for each in self._imports if not (each + ".").startswith(f"{module}.")]
        else:
            lost, why = self._left[:1], f"the lookup ended the process or its output: {how}"
        self._found |= dict.fromkeys(lost, LookupAnswer(Presence.UNKNOWN, why))
        self._left = [each for each in self._left if each not in lost]


def _is_in(lookup: Lookup, module: str) -> bool:
    return lookup[0] != "class" and f"{lookup[1]}.".startswith(f"{module}.")
