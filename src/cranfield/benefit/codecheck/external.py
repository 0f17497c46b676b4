"""A checker that is a command: a compiler is run on the files of an answer, and its diagnostics become findings.

The files lie in a new folder, alone; the environment is an allow-list; time, output and memory are limited. Nothing of the
answer is executed. What cannot be decided is a missing check, with the reason as a note.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from asyncio import timeout
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from cranfield.base.concurrency.child_process import NotStartedError, TooMuchOutputError, child_process, exit_reason
from cranfield.benefit.codecheck.report import CheckReport, CheckState, CodeCheck, CodeFinding, Target
from cranfield.benefit.codecheck.settings import CheckerSettings, DiagnosticRule

Alternative = Callable[[str, Target], str]
"""Replacement of a deprecated symbol, on a target, by the curated map; empty: it is not in the map."""
PRESETS = Path(__file__).with_name("presets")
_BY_COMPILER = (CodeCheck.COMPILES, CodeCheck.SYMBOLS, CodeCheck.AVAILABLE, CodeCheck.NOT_DEPRECATED)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_MAX_OUTPUT = 32 << 20
_SHOWN_LINES = 3


@dataclass(frozen=True, slots=True)
class CompilerDiagnostic:
    """A line of a compiler's report."""

    file: str
    line: int
    severity: str
    text: str
    """What the compiler says."""
    code: str = ""
    symbol: str = ""
    """Empty: a rule takes it from the message."""


class CheckerFailedError(Exception):
    """The command could not check; the message says why."""


class ExternalChecker:
    """Runs a command on the files of an answer."""

    def __init__(self, settings: CheckerSettings, alternative: Alternative) -> None:
        self._settings = settings
        self._alternative = alternative
        self._version: str | None = None

    async def check(self, files: Mapping[str, str], target: Target, tests: str = "") -> CheckReport:
        """Check files by path; see `Checker`."""
        notes, states = list[str](), dict.fromkeys(_BY_COMPILER, CheckState.MISSING)
        if tests:
            notes.append("a command checker does not run tests")
            states[CodeCheck.TESTS] = CheckState.MISSING
        with tempfile.TemporaryDirectory(prefix="cranfield-code-") as temporary:
            place = Path(temporary)
            names = _write(files, self._settings, place / "code", notes)
            if not names:
                states[CodeCheck.COMPILES] = CheckState.FAILED
                nothing = CodeFinding(CodeCheck.COMPILES, "", 0, "", "no source file in this language")
                return CheckReport(states, (nothing,), notes=tuple(notes))
            try:
                diagnostics = await self._diagnostics(names, target, place)
                version = await self._read_version(place)
            except CheckerFailedError as error:
                return CheckReport(states, notes=(*notes, str(error)))
        report = judge(diagnostics, self._settings, self._alternative, target)
        versions = {self._name: version} if version else {}
        return CheckReport(
            {**states, **report.states}, report.findings, report.unknown, (*notes, *report.notes), versions
        )

    @property
    def _name(self) -> str:
        return self._settings.preset or Path(self._settings.command[0]).name

    async def _diagnostics(self, names: Sequence[str], target: Target, place: Path) -> list[CompilerDiagnostic]:
        settings = self._settings
        if target.platform not in settings.targets and settings.targets and target.platform:
            raise CheckerFailedError(f"{self._name}: no target for platform {target.platform!r}")
        values = {"platform": target.platform, "version": target.version, "presets": str(PRESETS), **settings.values}
        template = settings.targets.get(target.platform, "") if settings.targets else "{version}"
        values["target"] = _fill(template, values)
        status, output = await self._run(list(arguments(settings.command, values, names)), place)
        found = list(_read_json(output, settings) if settings.json_list else _read_lines(output, settings))
        errors = [each for each in found if each.severity in settings.error_severities]
        if outside := next((each for each in errors if each.file not in names), None):
            raise CheckerFailedError(f"{self._name}: {outside.file}: {outside.text}")
        if status and not errors:
            raise CheckerFailedError(f"{self._name}: {exit_reason(status)}: {_first_lines(output)}")
        return found

    async def _read_version(self, place: Path) -> str:
        if self._version is None:
            command = self._settings.version_command
            filled = [*arguments(command, {"presets": str(PRESETS), **self._settings.values}, ())]
            status, output = await self._run(filled, place) if command else (0, "")
            self._version = output.strip().partition("\n")[0][:200] if not status else ""
        return self._version

    async def _run(self, argv: Sequence[str], place: Path) -> tuple[int, str]:
        """Exit status and output.

        Raises:
            CheckerFailedError: it did not start, ran into a limit, or was killed.
        """
        settings = self._settings
        env = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "HOME": str(place), "TMPDIR": str(place)}
        limit = f"ulimit -v {settings.memory_mb * 1024} 2>/dev/null; " if settings.memory_mb else ""
        shell = ["/bin/sh", "-c", f'{limit}exec "$@"{"" if settings.json_list else " 2>&1"}', "sh"]
        try:
            async with (
                timeout(settings.timeout_s),
                child_process(
                    [*shell, *argv], cwd=place / "code", env={**env, **settings.env}, max_output_bytes=_MAX_OUTPUT
                ) as child,
            ):
                status = await child.run()
                output = child.stdout.decode("utf-8", "replace") or child.stderr_from(0)
        except TimeoutError:
            raise CheckerFailedError(f"{self._name}: time limit of {settings.timeout_s:g} s exceeded") from None
        except TooMuchOutputError:
            raise CheckerFailedError(f"{self._name}: more than {_MAX_OUTPUT >> 20} MB of output") from None
        except NotStartedError as error:
            raise CheckerFailedError(f"{self._name}: could not be started: {error}") from None
        if status < 0:
            raise CheckerFailedError(f"{self._name}: {exit_reason(status)}")
        return status, output


def arguments(command: Sequence[str], values: Mapping[str, str], files: Sequence[str]) -> Iterator[str]:
    """A command with its placeholders filled in; an argument whose placeholder is empty is left out, with its option."""
    kept: list[str] = []
    for part in command:
        if part == "{files}":
            kept += files
        elif any(values.get(name) == "" for name in _PLACEHOLDER.findall(part)):
            if kept and kept[-1].startswith("-"):
                kept.pop()
        else:
            kept.append(_fill(part, values))
    yield from kept


def judge(
    diagnostics: Sequence[CompilerDiagnostic], settings: CheckerSettings, alternative: Alternative, target: Target
) -> CheckReport:
    """States and findings of diagnostics.

    Every error fails compiling. Where an error has no rule, the checks without findings are missing: a compiler that stops at
    a syntax error has not looked for symbols.
    """
    findings, unknown, notes = list[CodeFinding](), list[CodeFinding](), list[str]()
    has_error = is_unread = False
    for diagnostic in diagnostics:
        is_error = diagnostic.severity in settings.error_severities
        rule, found = _matching(diagnostic, settings.rules)
        if rule is None and not is_error:
            continue
        finding = _finding(diagnostic, rule, found)
        if rule is not None and rule.check == "unknown":
            unknown.append(replace(finding, check=CodeCheck.SYMBOLS))
            continue
        has_error, is_unread = has_error or is_error, is_unread or rule is None
        if finding.check is CodeCheck.NOT_DEPRECATED:
            current = alternative(finding.symbol, target)
            if not current:
                notes.append(f"{finding.file}:{finding.line}: {finding.symbol} is deprecated, but not in the map")
                continue
            finding = _finding(diagnostic, rule, {**found, "current": current})
        findings.append(finding)
    if has_error and not any(finding.check is CodeCheck.COMPILES for finding in findings):
        first = next(each for each in diagnostics if each.severity in settings.error_severities)
        findings.append(CodeFinding(CodeCheck.COMPILES, first.file, first.line, "", f"not compiled: {first.text}"))
    ruled = {rule.check for rule in settings.rules}
    failed = {finding.check for finding in findings}
    silent = CheckState.UNKNOWN if unknown else CheckState.PASSED
    states = {check: CheckState.FAILED if check in failed else silent for check in _BY_COMPILER}
    states[CodeCheck.COMPILES] = CheckState.FAILED if CodeCheck.COMPILES in failed else CheckState.PASSED
    for check in _BY_COMPILER[1:]:
        if check not in ruled:
            notes.append(f"{check}: the checker has no rule for it")
        if check not in failed and (check not in ruled or is_unread):
            states[check] = CheckState.MISSING
    return CheckReport(states, tuple(findings), tuple(unknown), tuple(notes))


def _matching(
    diagnostic: CompilerDiagnostic, rules: Sequence[DiagnosticRule]
) -> tuple[DiagnosticRule | None, dict[str, str]]:
    for rule in rules:
        match = re.search(rule.text, diagnostic.text)
        has_code = not rule.code or re.fullmatch(rule.code, diagnostic.code)
        if match and has_code and (not rule.severity or diagnostic.severity in rule.severity):
            return rule, {name: text for name, text in match.groupdict().items() if text}
    return None, {}


def _finding(diagnostic: CompilerDiagnostic, rule: DiagnosticRule | None, found: Mapping[str, str]) -> CodeFinding:
    check = CodeCheck.COMPILES if rule is None or rule.check == "unknown" else rule.check
    return CodeFinding(
        check,
        diagnostic.file,
        diagnostic.line,
        found.get("symbol", diagnostic.symbol),
        diagnostic.text,
        diagnostic.code,
        found.get("current", ""),
    )


def _write(files: Mapping[str, str], settings: CheckerSettings, folder: Path, notes: list[str]) -> list[str]:
    """Write the files that are checked, and return their names."""
    folder.mkdir()
    names = []
    for name, text in sorted(files.items()):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\0" in name:
            notes.append(f"{name}: not checked: outside the folder of the answer")
        elif not re.search(settings.source_files, path.as_posix()):
            notes.append(f"{name}: not checked: not a source file of the language")
        else:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
            names.append(path.as_posix())
    return names


def _read_lines(output: str, settings: CheckerSettings) -> Iterator[CompilerDiagnostic]:
    for line in output.splitlines():
        if found := re.search(settings.line, line):
            yield _diagnostic(found.groupdict())


def _read_json(output: str, settings: CheckerSettings) -> Iterator[CompilerDiagnostic]:
    import jmespath

    try:
        rows = jmespath.search(settings.json_list, json.loads(output))
    except ValueError:
        raise CheckerFailedError(f"the output is not JSON: {_first_lines(output)}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise CheckerFailedError(f"the output has no list of diagnostics at {settings.json_list}")
    for row in rows:
        yield _diagnostic(row)


def _diagnostic(values: Mapping[str, Any]) -> CompilerDiagnostic:
    line = str(values.get("line") or 0)
    return CompilerDiagnostic(
        str(values.get("file") or "").removeprefix("./"),
        int(line) if line.isdecimal() else 0,
        str(values.get("severity") or "error"),
        str(values.get("message") or ""),
        str(values.get("code") or ""),
        str(values.get("symbol") or ""),
    )


def _fill(part: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), part)


def _first_lines(output: str) -> str:
    return " / ".join(output.strip().splitlines()[:_SHOWN_LINES])[:300] or "no output"
