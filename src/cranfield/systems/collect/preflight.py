"""Preflight checks: detect before the first query what would make every query fail or use the wrong index.

A failed check reports what was expected and what was found; all systems are checked before an error is raised. Passed
checks are part of the report.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cranfield.base.concurrency.interrupts import sigterm_interrupts
from cranfield.base.errors import PreflightError, Problem, shorten
from cranfield.base.words import count_noun
from cranfield.config.reading import BinaryCheck, EveryAnswerCheck, FileCheck, JsonValue, ProbeCheck, compile_path
from cranfield.formats.io.files import UnreadableError, refuse_device
from cranfield.model import Answer, Query
from cranfield.model.answer_rule import AnswerRule, parse_answer_rule
from cranfield.systems.calls.answer_schema import output_hint
from cranfield.systems.calls.stages import CheckFailedError, Step, in_stages
from cranfield.systems.configured import ConfiguredSystem
from cranfield.systems.kinds.command import check_program


@dataclass(frozen=True, slots=True)
class PassedCheck:
    """A check that passed, in terms of the config: no absolute path, no time, no secret."""

    system: str
    check: str
    """What was checked: `file conf.json: baseDirectory`."""
    found: str
    """What was found: `"/data/search.db"`."""


def preflight(
    systems: Iterable[ConfiguredSystem],
    *,
    k: int = 10,
    sample: Query | None = None,
    note: Callable[[str], object] = lambda _: None,
) -> tuple[PassedCheck, ...]:
    """Check all systems: what their kinds need, then the checks of the config.

    Args:
        systems: the systems.
        k: number of results requested by a probe.
        sample: query sent to a system that has rules on its answers, and no probe.
        note: called with a line before each step of a set-up, which may take long.

    Returns:
        The passed checks, in the order of the systems.

    Raises:
        PreflightError: with every failed check of every system.
    """
    passed: list[PassedCheck] = []
    problems: list[Problem] = []
    for system in systems:
        redact = system.redactor.redact
        with sigterm_interrupts():
            for label, check in steps_of(system, k, sample, note):
                try:
                    passed.append(PassedCheck(system.name, redact(label), redact(check())))
                except CheckFailedError as failed:
                    problems.append(_problem(system, label, failed))
    if problems:
        raise PreflightError(problems)
    return tuple(passed)


def _problem(system: ConfiguredSystem, label: str, failed: CheckFailedError) -> Problem:
    redact = system.redactor.redact
    shown = failed.redacted(redact)
    where = f"system {system.name}"
    return Problem(redact(label), path=where, expected=shown.expected, got=shown.found, hint=shown.hint)


def steps_of(
    system: ConfiguredSystem,
    k: int,
    sample: Query | None = None,
    note: Callable[[str], object] = lambda _: None,
) -> Iterator[Step]:
    """The checks of a system: a missing folder would fail every file check, a missing program every probe.

    Files are checked after the set-up, which may make them.
    """
    folder_step = f"cwd {system.config.cwd}", partial(_folder, system.cwd)
    answers: dict[str, Answer] = {}
    probes, rules = _probe_steps(system, k, answers), _rule_steps(system, k, answers, sample)
    return in_stages([folder_step], _set_up_steps(system, note), _file_steps(system), probes, rules)


def _set_up_steps(system: ConfiguredSystem, note: Callable[[str], object]) -> Iterator[Step]:
    """The steps of its set-up; those that were not made for another system are noted."""
    for label, step in system.set_up_steps():
        if system.set_up is not None and not system.set_up.is_open:
            note(f"{system.name}: {system.redactor.redact(label)}")
        yield label, step


def _file_steps(system: ConfiguredSystem) -> Iterator[Step]:
    """Checks of its kind, and of programs and files in the config."""
    yield from system.ready_steps()
    for check in system.config.preflight:
        if isinstance(check, BinaryCheck):
            yield f"binary {check.binary}", partial(check_program, system, check.binary)
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


def _probe_steps(system: ConfiguredSystem, k: int, answers: dict[str, Answer]) -> Iterator[Step]:
    """Probes: queries that must return results; their answers are kept in `answers`."""
    for check in system.config.preflight:
        if isinstance(check, ProbeCheck):
            yield f"probe {shorten(check.probe)}", partial(_probe, system, check.probe, k, answers)


def _rule_steps(system: ConfiguredSystem, k: int, answers: dict[str, Answer], sample: Query | None) -> Iterator[Step]:
    """Rules on every answer, on the answers of the probes or of a sample query."""
    rules = [check.every_answer for check in system.config.preflight if isinstance(check, EveryAnswerCheck)]
    if rules and not answers and sample is not None:
        answer, _ = system.search(sample, k)
        if not answer.outcome.is_failure:  # which is no answer; the collection counts it
            answers[sample.text] = answer
    for rule in rules if answers else ():
        yield f"every answer: {rule}", partial(_keeps, parse_answer_rule(rule), answers)


def _keeps(rule: AnswerRule, answers: Mapping[str, Answer]) -> str:
    for text, answer in answers.items():
        broken = rule.violation(answer.fields)
        if broken is not None:
            there = ", ".join(answer.fields) or "none (extract.fields declares them)"
            raise CheckFailedError(str(rule), f"{broken} in the answer to {shorten(text)}", f"fields of it: {there}")
    return f"kept in {count_noun(len(answers), 'answers')}"


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


def _probe(system: ConfiguredSystem, text: str, k: int, answers: dict[str, Answer]) -> str:
    answer, log = system.search(Query("preflight", text), k)
    if answer.hits:
        answers[text] = answer
        return count_noun(len(answer.hits), "results")
    found = answer.outcome.value + (f" ({answer.reason})" if answer.reason else "")
    raise CheckFailedError("at least one result", found, output_hint(log.stderr_head) or output_hint(log.stdout_head))


def _read(path: Path) -> bytes:
    try:
        refuse_device(path, pipes=True)
        return path.read_bytes()
    except UnreadableError as error:
        raise CheckFailedError("a file", "a device or a pipe") from error
    except FileNotFoundError:
        raise CheckFailedError("a file", "nothing there", "the path is relative to the system's cwd.") from None
    except IsADirectoryError:
        raise CheckFailedError("a file", "a folder") from None
    except PermissionError:
        raise CheckFailedError("a file", "a file without read permission") from None
    except OSError as error:
        raise CheckFailedError("a file", f"a file that cannot be read ({error.strerror})") from None
