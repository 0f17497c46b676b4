"""Checks Python files: they compile, their symbols exist and are available on the target, and none is deprecated."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from cranfield.base.words import join_first
from cranfield.benefit.codecheck.python.deprecated import Use, find_uses
from cranfield.benefit.codecheck.python.environment import Environment, existing_environment
from cranfield.benefit.codecheck.python.facts import FileFacts, inspect_files
from cranfield.benefit.codecheck.python.install import installed_environment, requirement_lines
from cranfield.benefit.codecheck.python.packages import check_packages
from cranfield.benefit.codecheck.python.reading import rows_that_exist
from cranfield.benefit.codecheck.python.sandbox import find_python, run_tests
from cranfield.benefit.codecheck.python.symbols import Sources, is_among, missing_symbols, split_unknown
from cranfield.benefit.codecheck.python.ty import (
    DEPRECATED,
    PLATFORMS,
    RUNNING,
    SYNTAX,
    VERSIONS,
    CheckerError,
    Diagnostic,
    Workplace,
    find_type_checker,
    require_type_checker,
    write_settings,
)
from cranfield.benefit.codecheck.report import (
    CheckReport,
    CheckState,
    CodeCheck,
    CodeFinding,
    DeprecationMap,
    Target,
    is_older,
    packaged_deprecations,
)

At = tuple[str, int, int]
_IGNORE = re.compile(r"#(?=[^\n]*\b(?:type|ty)\s*:\s*ignore)[^\n]*")
"""Comments by which code tells a type checker not to look."""
CODE_CHECKS = tuple(check for check in CodeCheck if check is not CodeCheck.TESTS)
_TYPED = (CodeCheck.SYMBOLS, CodeCheck.AVAILABLE, CodeCheck.NOT_DEPRECATED)
_MAX_NOTED = 5
"""Unknown symbols that a note names."""


class PythonChecker:
    """Checks Python files without executing them. The packages of the target are imported, in a sandbox alone."""

    def __init__(self, *, program: str = "", sandbox: str = "", deprecations: DeprecationMap | None = None) -> None:
        self._sandbox = sandbox
        self._deprecations = deprecations or packaged_deprecations("python")
        self._program = program or find_type_checker()
        self._program_version = ""

    async def check(self, files: Mapping[str, str], target: Target, tests: str = "") -> CheckReport:
        """Check files by path; see `Checker`."""
        try:
            environment, no_packages = await environment_of(target), ""
        except CheckerError as error:
            environment, no_packages = Environment(), str(error)
        with tempfile.TemporaryDirectory(prefix="cranfield-code-") as folder:
            work = _Work(Path(folder), self._program, files, target, self._deprecations, environment)
            if no_packages:
                work.leave(no_packages, *_TYPED, *([CodeCheck.TESTS] if tests else []))
            try:
                self._program_version = self._program_version or await require_type_checker(work.place)
                await work.check_files(self._program_version, self._sandbox, has_packages=not no_packages)
            except CheckerError as error:
                work.leave(str(error), *CODE_CHECKS)
            if tests and not no_packages:
                await work.run_tests(tests, self._sandbox)
            return work.report(tests)


async def environment_of(target: Target) -> Environment:
    """The packages of a target: those of its environment, or its requirements, which are installed.

    Raises:
        CheckerError: they are not there, or cannot be installed; the message says which, and why.
    """
    version = _short(target.version)
    if target.environment:
        found = existing_environment(target.environment)
        if version and found.version != version:
            raise CheckerError(
                f"environment {target.environment} has Python {found.version}; expected Python {version}"
            )
    elif requirements := target.requirements or requirement_lines(target.packages):
        found = await installed_environment(requirements, version or RUNNING)
    else:
        return Environment()
    found.require(target.packages)
    return found


def _short(version: str) -> str:
    return ".".join(version.split(".")[:2])


class _Work:
    """One check, and what it has found so far."""

    def __init__(
        self,
        folder: Path,
        program: str,
        files: Mapping[str, str],
        target: Target,
        deprecations: DeprecationMap,
        environment: Environment,
    ) -> None:
        self._environment = environment
        self._version = _short(target.version) or environment.version or RUNNING
        self._target = replace(target, version=self._version, packages=environment.versions)
        self._deprecations = deprecations
        self._platform = PLATFORMS.get(target.platform, "all")
        self.place = Workplace(folder, program, self._version, self._platform)
        write_settings(self.place, environment.folder)
        self._findings: list[CodeFinding] = []
        self._unknown: list[CodeFinding] = []
        self._notes: list[str] = [*environment.left_out]
        self._undecided: set[CodeCheck] = set()
        self._versions = {"python": RUNNING, "target": self._version}
        self._texts: dict[str, str] = {}
        self._sources: Sources | None = None
        self._n_symbols = 0
        if environment.folder and self._platform not in {"all", sys.platform}:
            self._notes.append(f"the packages are for {sys.platform}, but the code is for {target.platform}")
        for name, text in sorted(files.items()):
            self._take(name, text)

    def _take(self, name: str, text: str) -> None:
        """Write a file, if it is one that Python reads and that stays inside of the folder."""
        path = PurePosixPath(name)
        if path.suffix != ".py":
            self._notes.append(f"{name}: not checked, because it is not a Python file")
        elif path.is_absolute() or ".." in path.parts or "\0" in name or path.parts[0].startswith("-"):
            self._findings.append(
                CodeFinding(CodeCheck.COMPILES, name, 0, "", "its path is outside the folder of the code")
            )
        else:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
            self._texts[str(path)] = _IGNORE.sub(lambda comment: "#" * len(comment[0]), text)
            file = self.place.code / path
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(self._texts[str(path)].encode("utf-8", "surrogatepass"))
            except OSError as error:
                del self._texts[str(path)]
                self._findings.append(
                    CodeFinding(CodeCheck.COMPILES, name, 0, "", f"it cannot be written: {error.strerror}")
                )

    def leave(self, note: str, *checks: CodeCheck) -> None:
        """Note why checks are not decided; without any named, those that need types."""
        self._notes.append(note)
        self._undecided.update(checks or _TYPED)

    def report(self, tests: str) -> CheckReport:
        """What was found."""
        return CheckReport(
            states={check: self._state(check) for check in (*CODE_CHECKS, *((CodeCheck.TESTS,) if tests else ()))},
            findings=tuple(sorted(self._findings, key=lambda finding: (finding.file, finding.line))),
            unknown=tuple(self._unknown),
            notes=(*self._notes, *self._unknown_notes()),
            versions={**self._versions, **self._environment.versions},
            n_symbols=self._n_symbols,
        )

    def _unknown_notes(self) -> Iterator[str]:
        """How much is unknown, with the first symbols of each reason."""
        by_reason: dict[str, list[str]] = {}
        unknown = [each for each in self._unknown if each.check is CodeCheck.SYMBOLS]
        for each in unknown:
            by_reason.setdefault(each.message, []).append(f"{each.file}:{each.line} {each.symbol}".strip())
        if unknown:
            of = f" of {self._n_symbols}" if self._n_symbols >= len(unknown) else ""
            reasons = (f"{join_first(names, _MAX_NOTED)}: {reason}" for reason, names in by_reason.items())
            yield f"{len(unknown)}{of} symbols are unknown: {'; '.join(reasons)}"
        yield from dict.fromkeys(each.message for each in self._unknown if each.check is CodeCheck.NOT_DEPRECATED)

    def _state(self, check: CodeCheck) -> CheckState:
        if any(finding.check is check for finding in self._findings):
            return CheckState.FAILED
        if check in self._undecided:
            return CheckState.MISSING
        leaves_open = {check, CodeCheck.SYMBOLS} if check in _TYPED else {check}
        return CheckState.UNKNOWN if any(each.check in leaves_open for each in self._unknown) else CheckState.PASSED

    async def check_files(self, ty: str, sandbox: str, *, has_packages: bool) -> None:
        """Everything but the tests.

        Args:
            ty: version of the type checker.
            sandbox: path of bubblewrap; empty: the one on the path.
            has_packages: those of the target are there; without them symbols are not looked at.

        Raises:
            CheckerError: a program that checks could not run.
        """
        self._versions["ty"] = ty
        if self._version not in VERSIONS:
            raise CheckerError(f"Python {self._version} is not known; expected one of {', '.join(VERSIONS)}")
        if not self._texts:
            if not self._findings and not self._undecided:
                self._findings.append(CodeFinding(CodeCheck.COMPILES, "", 0, "", "no Python file"))
            self._undecided.update(_TYPED)
            return
        facts = await inspect_files(self.place.code, list(self._texts))
        rows, typed = await self._check_syntax(facts)
        if not typed or not has_packages:
            return
        for name in self._texts.keys() - typed - {name for name in facts if facts[name].unread}:
            (self.place.code / name).unlink()
        sources = self._sources = Sources({name: self._texts[name] for name in typed}, facts, self._environment)
        self._note_hidden(sources)
        if len(typed) < len(self._texts):
            rows = await self.place.run_types(typed)
        uses = await find_uses(self.place, sources, self._deprecations.by_name)
        removed = [use for use in uses if self._check_use(use) is CodeCheck.AVAILABLE]
        await self._check_symbols(sources, rows, removed, sandbox)
        marked = [row for row in rows if row.rule == DEPRECATED and not any(use.is_on_lines_of(row) for use in uses)]
        await self._check_deprecated(sources, marked)

    def _check_use(self, use: Use) -> CodeCheck | None:
        """The check that a use of a symbol of the map fails; None: none does, or the type of the object is unknown."""
        entry = use.entry
        if entry.is_removed(self._target):
            failed, message = CodeCheck.AVAILABLE, f"removed in {entry.package or 'Python'} {entry.removed}"
        elif entry.is_deprecated(self._target):
            failed, message = CodeCheck.NOT_DEPRECATED, f"deprecated since {entry.package or 'Python'} {entry.since}"
        else:
            return None
        finding = CodeFinding(failed, use.file, use.line, entry.name, message, entry.source, entry.current)
        if use.is_sure:
            self._findings.append(finding)
            return failed
        self._unknown.append(replace(finding, message=f"{message}, if the object (of unknown type) is of that class"))
        return None

    async def _check_deprecated(self, sources: Sources, rows: Sequence[Diagnostic]) -> None:
        """Check what the type checker marks: packages name an alternative, for the standard library the map does."""
        if not rows:
            return
        names = sorted({row.file for row in rows})
        with tempfile.TemporaryDirectory(prefix="cranfield-code-") as folder:
            bare = replace(self.place, folder=Path(folder))
            write_settings(bare)
            shutil.copytree(self.place.code, bare.code, dirs_exist_ok=True)
            of_library = {row.place for row in await bare.run_types(names) if row.rule == DEPRECATED}
        found = {(each.file, each.line) for each in self._findings if each.check is CodeCheck.NOT_DEPRECATED}
        for row in rows:
            if row.place in of_library or not self._environment.folder:
                self._notes.append(f"{row.file}:{row.line}: {row.message}; the map has no alternative for it")
            elif (row.file, row.line) not in found and not sources.facts[row.file].depends_on_version(row.line):
                self._findings.append(replace(sources.finding(row, CodeCheck.NOT_DEPRECATED), current=row.message))

    async def run_tests(self, tests: str, sandbox: str) -> None:
        """Run tests beside the files, where that is possible."""
        if any(finding.check is CodeCheck.COMPILES for finding in self._findings) or not self._texts:
            self.leave("tests are not run, because the code does not compile", CodeCheck.TESTS)
        elif self._environment.folder and not self._environment.python:
            self.leave(
                f"tests are not run, because no Python {self._version} with the packages is available",
                CodeCheck.TESTS,
            )
        elif shadowing := self._shadowing():
            self.leave(f"tests are not run, because {min(shadowing)} shadows a module", CodeCheck.TESTS)
        else:
            for name, text in self._texts.items():
                (self.place.code / name).write_bytes(text.encode("utf-8", "surrogatepass"))
            python = self._environment.python or find_python(self._version) or find_python(RUNNING)
            is_this = python == find_python(RUNNING)
            try:
                reason = await run_tests(self.place.code, tests, python, self._environment, program=sandbox)
                if is_this and self._version != RUNNING:
                    self._notes.append(f"tests ran on Python {RUNNING}")
                if reason and is_this and await self._needs_newer():
                    self.leave(f"tests fail on Python {RUNNING}, but the code is for {self._version}", CodeCheck.TESTS)
                elif reason:
                    self._findings.append(CodeFinding(CodeCheck.TESTS, "", 0, "", reason))
            except CheckerError as error:
                self.leave(f"tests are not run: {error}", CodeCheck.TESTS)

    async def _needs_newer(self) -> bool:
        """Whether the code may need what this Python lacks and that of the target has."""
        if not is_older(RUNNING, self._version):
            return False
        sources = self._sources
        if sources is None or sources.texts.keys() != self._texts.keys():
            return True
        if any(facts.error for facts in sources.facts.values()):
            return True
        there = await missing_symbols(self.place, sources)
        here = await missing_symbols(replace(self.place, version=RUNNING), sources)
        return any(not is_among(row, there) for row in here)

    async def _check_syntax(self, facts: Mapping[str, FileFacts]) -> tuple[tuple[Diagnostic, ...], list[str]]:
        """All diagnostics, and the files that compile on the target."""
        running, wanted = VERSIONS.index(RUNNING) if RUNNING in VERSIONS else -1, VERSIONS.index(self._version)
        unread = [name for name in self._texts if facts[name].unread]
        for name in unread:
            self.leave(f"{name}: {facts[name].unread}", *(_TYPED if facts[name].compiles else CODE_CHECKS))
        readable = [
            name
            for name in self._texts
            if not facts[name].unread and (not facts[name].error or (facts[name].is_syntax and wanted > running))
        ]
        rows = await self.place.run_types(readable) if readable else ()
        errors: dict[str, Diagnostic] = {}
        for row in rows:
            if row.rule == SYNTAX:
                errors.setdefault(row.file, row)
        for name in [name for name in self._texts if name not in unread]:
            known = facts[name]
            if name not in readable:
                self._findings.append(CodeFinding(CodeCheck.COMPILES, name, known.line, "", known.error))
            elif name in errors and (known.error or wanted != running):
                self._findings.append(
                    CodeFinding(CodeCheck.COMPILES, name, errors[name].line, "", errors[name].message, SYNTAX)
                )
            elif known.error:
                reason = f"its syntax is newer than Python {RUNNING}, which parses it"
                self._unknown.append(CodeFinding(CodeCheck.SYMBOLS, name, 0, "", reason))
                self.leave(f"{name}: {reason}", CodeCheck.NOT_DEPRECATED)
        failed = {finding.file for finding in self._findings}
        if failed:
            self._undecided.update(_TYPED)
        shadowing = self._shadowing()
        for name in sorted(shadowing):
            self.leave(f"{name}: has the same name as a module of the standard library")
        return rows, [name for name in readable if name not in failed | shadowing]

    def _shadowing(self) -> set[str]:
        """Files that would stand in the place of a module of the standard library."""
        return {
            name for name in self._texts if PurePosixPath(name).parts[0].removesuffix(".py") in sys.stdlib_module_names
        }

    def _note_hidden(self, sources: Sources) -> None:
        for name in sources.texts:
            known = sources.facts[name]
            if known.hidden:
                self.leave(f"{name}:{known.hidden[0]}: hidden from type checkers")
            if known.encoding not in {"utf-8", "utf-8-sig"}:
                self.leave(f"{name}: encoding is {known.encoding}; expected utf-8")

    async def _check_symbols(
        self, sources: Sources, rows: tuple[Diagnostic, ...], removed: Sequence[Use], sandbox: str
    ) -> None:
        packages = await check_packages(self.place, sources, rows, sandbox)
        self._n_symbols = packages.n_symbols
        self._findings += packages.findings
        self._unknown += packages.unknown
        found = await missing_symbols(self.place, sources, rows)
        found = tuple(row for row in found if not any(use.is_at(row) for use in removed))
        missing, unknown = split_unknown(found, sources, packages.decided)
        self._unknown += [sources.finding(row, CodeCheck.SYMBOLS, reason) for row, reason in unknown]
        elsewhere = await self._find_elsewhere(sources, missing)
        for row in missing:
            if place := elsewhere.get(row.place):
                self._findings.append(sources.finding(row, CodeCheck.AVAILABLE, f"{row.message}. It exists {place}"))
            else:
                self._findings.append(sources.finding(row, CodeCheck.SYMBOLS))

    async def _find_elsewhere(self, sources: Sources, missing: tuple[Diagnostic, ...]) -> dict[At, str]:
        """Places of symbols that another version of Python has, or another platform, with a name of that."""
        there: dict[At, list[str]] = {row.place: [] for row in missing}
        left = missing
        for version in (VERSIONS[-1], VERSIONS[0], *VERSIONS[1:-1]):
            if left and version != self._version:
                for row in await _existing(replace(self.place, version=version), sources, left):
                    there[row.place].append(version)
            if version == VERSIONS[0]:
                left = tuple(row for row in missing if there[row.place])  # what neither end of the range has, none has
        names = {
            at: f"in Python {', '.join(sorted(found, key=VERSIONS.index))}" for at, found in there.items() if found
        }
        left = tuple(row for row in missing if row.place not in names)
        if self._platform != "all" and left:
            found = await _existing(replace(self.place, platform="all"), sources, left)
            names |= {row.place: "on another platform" for row in found}
        return names


async def _existing(other: Workplace, sources: Sources, rows: tuple[Diagnostic, ...]) -> list[Diagnostic]:
    """The diagnostics that another version or platform does not have, although it has what the symbol belongs to."""
    wrong = await missing_symbols(other, sources)
    absent = tuple(row for row in rows if not is_among(row, wrong))
    return await rows_that_exist(other, sources, absent, wrong)
