"""The type checker: ty, in a version whose rules are known, run on a folder for a version of Python and a platform."""

from __future__ import annotations

import json
import re
import shutil
import sys
import sysconfig
from asyncio import timeout
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cranfield.base.concurrency.child_process import NotStartedError, TooMuchOutputError, child_process, exit_reason
from cranfield.base.installation import this_installation

TY_VERSION = "0.0.105"
"""Names of rules change between versions, and a rule that is not known would find nothing: no other version is used."""
RUNNING = f"{sys.version_info[0]}.{sys.version_info[1]}"
"""Version of the Python that runs this."""
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
"""Versions of Python of whose standard library the checker knows what is in it."""
PLATFORMS = {"": "all", "linux": "linux", "macos": "darwin", "darwin": "darwin", "windows": "win32", "win32": "win32"}

SYNTAX = "invalid-syntax"
DEPRECATED = "deprecated"
OVERLOAD = "no-matching-overload"
NO_MODULE = "import-not-found"
ATTRIBUTE = "missing-attribute"
OF_UNION = "missing-union-attribute"
NO_NAME = "missing-module-member"
REVEALED = "revealed-type"
ARGUMENT_RULES = {
    OVERLOAD,
    "unknown-argument",
    "missing-argument",
    "too-many-positional-arguments",
    "positional-only-parameter-as-kwarg",
}
"""Rules of arguments that a function does not have."""
SYMBOL_RULES = {NO_MODULE, NO_NAME, ATTRIBUTE, "unresolved-reference", *ARGUMENT_RULES}
"""Rules of symbols that do not exist, and of calls with arguments that a function does not have. Types are not checked."""

_SETTINGS = '[rules]\ndeprecated = "warn"\n\n[analysis]\nrespect-type-ignore-comments = false\n'
_LACKING = re.compile(r"not defined on `(?P<type>[^`]*)` in union")
_SECONDS, _BYTES = 60, 8 << 30
_MAX_OUTPUT = 32 << 20


class CheckerError(Exception):
    """The checker cannot run; the message says why."""


class OutputError(CheckerError):
    """A program wrote too much."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding of the type checker."""

    rule: str
    file: str
    line: int
    column: int
    end: tuple[int, int]
    message: str
    lacking: str = ""
    """Type that lacks the attribute, where it is of a union."""

    @property
    def place(self) -> tuple[str, int, int]:
        """File, line and column."""
        return self.file, self.line, self.column


@dataclass(frozen=True, slots=True)
class Workplace:
    """Folders of a check: `code` with the files of an answer alone, and settings and packages outside of it."""

    folder: Path
    program: str
    version: str
    """Version of Python for which the type checker takes the code to be."""
    platform: str

    @property
    def code(self) -> Path:
        """Folder of the files."""
        return self.folder / "code"

    async def run_copies(self, copies: Mapping[str, str]) -> tuple[Diagnostic, ...]:
        """What the type checker finds in other texts of files, and in files besides: they are there for this run alone.

        Raises:
            CheckerError: it could not run to its end.
        """
        files = {self.code / name: text for name, text in copies.items()}
        before = {file: file.read_bytes() for file in files if file.is_file()}
        for file, text in files.items():
            file.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            return await self.run_types(sorted(copies)) if copies else ()
        finally:
            for file in files:
                if file in before:
                    file.write_bytes(before[file])
                else:
                    file.unlink()

    async def run_types(self, files: Sequence[str]) -> tuple[Diagnostic, ...]:
        """What the type checker finds in files.

        Raises:
            CheckerError: it could not run to its end.
        """
        argv = [self.program, "check", "--project", ".", "--config-file", "../ty.toml", "--python", "../environment"]
        argv += ["--python-version", self.version, "--python-platform", self.platform, "--output-format", "gitlab"]
        argv += [
            "--exit-zero",
            "--no-progress",
            "--color",
            "never",
            "--no-respect-ignore-files",
            *(f"./{name}" for name in files),
        ]
        output = await run_limited(argv, cwd=self.code, seconds=_SECONDS, n_bytes=_BYTES)
        try:
            rows = json.loads(output.stdout)
            return tuple(_diagnostic(row) for row in rows)
        except (ValueError, KeyError, TypeError):
            raise CheckerError(f"the type checker failed: {output.describe()}") from None


def _diagnostic(row: Any) -> Diagnostic:
    rule, places = row["check_name"], row["location"]["positions"]
    lacking = _LACKING.search(row["description"]) if rule == OF_UNION else None
    return Diagnostic(
        rule=rule,
        file=row["location"]["path"].removeprefix("./"),
        line=places["begin"]["line"],
        column=places["begin"]["column"],
        end=(places["end"]["line"], places["end"]["column"]),
        message=row["description"].removeprefix(f"{rule}: "),
        lacking=lacking["type"] if lacking else "",
    )


def write_settings(place: Workplace, packages: Path | None = None) -> None:
    """Write the settings into the folder of a workplace, which is empty.

    Args:
        place: to write to.
        packages: folder of the packages that the code may import; None: there are none.
    """
    folder = place.folder
    place.code.mkdir()
    library = folder / "environment" / "lib" / f"python{RUNNING}"
    library.mkdir(parents=True)
    if packages is None:
        (library / "site-packages").mkdir()
    else:
        (library / "site-packages").symlink_to(packages, target_is_directory=True)
    (folder / "ty.toml").write_text(_SETTINGS, encoding="utf-8")
    (folder / "environment" / "pyvenv.cfg").write_text(f"home = {sys.base_prefix}\n", encoding="utf-8")


def find_type_checker() -> str:
    """Path of the program, beside this Python first; empty: it is not there."""
    return shutil.which("ty", path=sysconfig.get_path("scripts")) or shutil.which("ty") or ""


async def require_type_checker(place: Workplace) -> str:
    """The version of the type checker.

    Raises:
        CheckerError: it is not there in the version whose rules are known.
    """
    if not place.program:
        raise CheckerError(f"the type checker ty is not installed: {this_installation().add('benefit')}")
    output = await run_limited([place.program, "--version"], cwd=place.code, seconds=_SECONDS, n_bytes=_BYTES)
    name, _, version = output.stdout.decode("utf-8", "replace").strip().partition(" ")
    if name != "ty" or not version:
        raise CheckerError(f"the version of the type checker ty is unknown: {output.describe()}")
    if version.split()[0] != TY_VERSION:
        raise CheckerError(
            f"the type checker ty is {version}; expected {TY_VERSION}: {this_installation().add('benefit')}"
        )
    return TY_VERSION


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """What a program wrote, and how it ended."""

    stdout: bytes
    stderr: str
    status: int | None
    """None: the time limit was reached."""

    def describe(self) -> str:
        """How it ended, with the last line that it wrote to stderr."""
        last = self.stderr.strip().rpartition("\n")[2][:200]
        return f"{'time limit' if self.status is None else exit_reason(self.status)}{': ' if last else ''}{last}"


async def run_limited(
    argv: Sequence[str], *, cwd: Path, seconds: int, n_bytes: int, n_processes: int = 0, line: str = ""
) -> ProgramOutput:
    """Run a program with limits of time and memory, and no variables but those named here.

    Args:
        argv: program and arguments.
        cwd: its working directory.
        seconds: of the processor, for each process; twice that of time.
        n_bytes: of memory, for each process.
        n_processes: that there may be at a time, with `n_bytes` for all together; 0: not watched.
        line: of its stdin; empty: it has none.

    Raises:
        CheckerError: it could not be started, or wrote too much.
    """
    launcher = [sys.executable, "-I", "-S", str(Path(__file__).with_name("limited.py")), str(seconds), str(n_bytes)]
    launcher.append(str(n_processes))
    env = {"PATH": "/usr/bin:/bin", "HOME": str(cwd.parent), "LANG": "C.UTF-8", "TY_MAX_PARALLELISM": "1"}
    try:
        async with child_process(
            [*launcher, *argv], cwd=cwd, env=env, stdin=bool(line), max_output_bytes=_MAX_OUTPUT
        ) as child:
            try:
                if line:
                    with suppress(OSError):  # it has ended: its status says why
                        await child.write_line(line)
                async with timeout(2 * seconds):
                    status: int | None = await child.run()
            except TimeoutError:
                status = None
            return ProgramOutput(bytes(child.stdout), child.stderr_from(0), status)
    except NotStartedError as error:
        raise CheckerError(f"{argv[0]} could not be started: {error}") from None
    except TooMuchOutputError:
        raise OutputError(f"{Path(argv[0]).name} wrote more than {_MAX_OUTPUT >> 20} MB") from None
