"""Find out before the first query what would make every query fail, or answer from the wrong index.

Each check that does not hold says what was expected and what was found; all systems are checked before anything is
raised. What held is reported too: it belongs to the evidence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cranfield.concurrency.signals import sigterm_interrupts
from cranfield.config.expression import compile_path
from cranfield.config.reading import BinaryCheck, FileCheck, JsonValue, ProbeCheck
from cranfield.errors import PreflightError, Problem, shorten
from cranfield.model import Query
from cranfield.systems.configured import CheckFailedError, ConfiguredSystem, Step
from cranfield.systems.kinds.command import found_program
from cranfield.words import n_of


@dataclass(frozen=True, slots=True)
class PassedCheck:
    """A check that held, in the words of the config: no path but the user's, no time, no secret."""

    system: str
    check: str
    """What was checked: `file conf.json: baseDirectory`."""
    found: str
    """What was found: `"/data/search.db"`."""


def preflight(systems: Iterable[ConfiguredSystem], *, k: int = 10) -> tuple[PassedCheck, ...]:
    """Check all systems: what each kind of system needs, then what the config spells.

    Args:
        systems: what is to be measured.
        k: results a probe asks for.

    Returns:
        What held, in the order of the systems and their checks.

    Raises:
        PreflightError: with every check of every system that did not hold.
    """
    held: list[PassedCheck] = []
    problems: list[Problem] = []
    for system in systems:
        # Each stage only where the one before holds: a missing folder would be said once a file, a missing program
        # once a probe.
        for steps in (folder_steps(system), file_steps(system), probe_steps(system, k)):
            with sigterm_interrupts():
                failed = _take(system, steps, held)
            problems += failed
            if failed:
                break
    if problems:
        raise PreflightError(problems)
    return tuple(held)


def _take(system: ConfiguredSystem, steps: Iterable[Step], held: list[PassedCheck]) -> list[Problem]:
    hide = system.redactor.redact
    failed = []
    for label, check in steps:
        try:
            held.append(PassedCheck(system.name, hide(label), hide(check())))
        except CheckFailedError as failure:
            failed.append(
                Problem(
                    hide(label),
                    path=f"system {system.name}",
                    expected=hide(failure.expected),
                    got=hide(failure.found),
                    hint=failure.hint and hide(failure.hint),
                )
            )
    return failed


def folder_steps(system: ConfiguredSystem) -> Iterator[Step]:
    """That the working directory is there."""
    yield f"cwd {system.config.cwd}", partial(_folder, system.cwd)


def file_steps(system: ConfiguredSystem) -> Iterator[Step]:
    """What its kind needs, and the programs and files that the config spells."""
    yield from system.ready_steps()
    for check in system.config.preflight:
        if isinstance(check, BinaryCheck):
            yield f"binary {check.binary}", partial(found_program, system, check.binary)
        elif isinstance(check, FileCheck):
            path = system.cwd / check.file
            named = f"file {check.file}"
            if check.contains is not None:
                yield f"{named}: contains {shorten(check.contains)}", partial(_contains, path, check.contains)
            if check.equals is not None:
                yield f"{named}: equals {shorten(check.equals)}", partial(_equals, path, check.equals)
            if check.equals_json is not None:
                yield f"{named}: {check.equals_json.path}", partial(_equals_json, path, check.equals_json)
            if check.contains is None and check.equals is None and check.equals_json is None:
                yield named, partial(_exists, path)


def probe_steps(system: ConfiguredSystem, k: int) -> Iterator[Step]:
    """The queries that must find something."""
    for check in system.config.preflight:
        if isinstance(check, ProbeCheck):
            yield f"probe {shorten(check.probe)}", partial(_probe, system, check.probe, k)


def _folder(path: Path) -> str:
    if path.is_dir():
        return "a folder"
    found = "a file" if path.exists() else "nothing there"
    raise CheckFailedError("a folder", found, "cwd is relative to the config file.")


def _exists(path: Path) -> str:
    _read(path)
    return "a file"


def _contains(path: Path, text: str) -> str:
    data = _read(path)
    if text.encode("utf-8", "surrogatepass") in data:
        return "found"
    raise CheckFailedError(f"the text {shorten(text)}", f"{len(data)} bytes without it")


def _equals(path: Path, text: str) -> str:
    found = _read(path).decode("utf-8", "replace").strip()
    if found == text.strip():
        return shorten(found)
    raise CheckFailedError(shorten(text), shorten(found))


def _equals_json(path: Path, wanted: JsonValue) -> str:
    from jmespath.exceptions import JMESPathError

    expected = _as_json(wanted.value)
    try:
        found = _as_json(compile_path(wanted.path).search(json.loads(_read(path).decode("utf-8-sig"))))
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise CheckFailedError(f"{wanted.path} = {expected}", "a file that is not JSON") from None
    except (JMESPathError, ValueError, RecursionError):
        raise CheckFailedError(f"{wanted.path} = {expected}", "JSON in which the path cannot be evaluated") from None
    if found != expected:
        raise CheckFailedError(expected, found)
    return found


def _as_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _probe(system: ConfiguredSystem, text: str, k: int) -> str:
    answer, log = system.search(Query("preflight", text), k)
    if answer.hits:
        return n_of(len(answer.hits), "results")
    found = answer.outcome.value + (f" ({answer.reason})" if answer.reason else "")
    wrote = log.stderr_head.strip() or log.stdout_head.strip()
    raise CheckFailedError("at least one result", found, f"it wrote {shorten(wrote)}" if wrote else None)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CheckFailedError("a file", "nothing there", "the path is relative to the system's cwd.") from None
    except IsADirectoryError:
        raise CheckFailedError("a file", "a folder") from None
    except PermissionError:
        raise CheckFailedError("a file", "a file that may not be read") from None
    except OSError as error:
        raise CheckFailedError("a file", f"a file that cannot be read ({error.strerror})") from None
