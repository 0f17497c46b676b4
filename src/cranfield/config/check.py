"""What a config's models alone cannot tell: names that refer to each other, expressions that must compile.

Each check yields where (a path of keys) and what; `load` adds file and line, a system built in code raises them as
they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from cranfield.config.expression import (
    ExpressionError,
    compile_empty_regex,
    compile_list_path,
    compile_path,
    compile_result_regex,
)
from cranfield.config.models import Check, Config, Extract, SystemConfig
from cranfield.config.template import PLACEHOLDERS, is_placeholder, placeholders
from cranfield.errors import ConfigError, Problem, unknown_name
from cranfield.model import CONVENTIONS

SUMMARY_FILES = frozenset({"report.html", "report.md", "results.json"})
"""What a run over several test sets writes beside their folders."""

Place = tuple[str | int, ...]
Finding = tuple[Place, Problem]


def dotted(place: Place) -> str:
    """`systems.old.command[2]`: a path of keys as a person writes it."""
    text = ""
    for key in place:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text


def check_config(config: Config) -> Iterator[Finding]:
    """Everything wrong with a config that is well-formed."""
    if config.convention not in CONVENTIONS:
        yield ("convention",), unknown_name("convention", config.convention, CONVENTIONS)
    yield from _check_sets(config)
    yield from _check_names(config)
    for name, system in config.systems.items():
        for place, problem in check_system(system):
            yield ("systems", name, *place), problem


def check_system(system: SystemConfig) -> Iterator[Finding]:
    """Everything wrong with one system that is well-formed; places start inside the system."""
    yield from _check_command(system.command)
    yield from _check_env(system)
    yield from _in("extract", _check_extract(system.extract))
    yield from _compiles(("empty",), system.empty, compile_empty_regex)
    for index, check in enumerate(system.preflight):
        for place, problem in _check_check(check):
            yield ("preflight", index, *place), problem
    if system.order != "given" and not _has_score(system.extract):
        yield (
            ("order",),
            Problem(
                f"results are to be sorted by score, {system.order}, and no score is extracted",
                hint="name it in extract (a group called score, or score: PATH), or say order: given.",
            ),
        )


def require_valid(name: str, system: SystemConfig) -> None:
    """Raise `ConfigError` with all that is wrong with a system built in code."""
    problems = [replace(problem, path=dotted(("systems", name, *place))) for place, problem in check_system(system)]
    if problems:
        raise ConfigError(problems)


def _in(key: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    return (((key, *place), problem) for place, problem in findings)


def _compiles(place: Place, text: str | None, compile_: Callable[[str], object]) -> Iterator[Finding]:
    if text is None:
        return
    try:
        compile_(text)
    except ExpressionError as error:
        yield place, Problem(str(error), hint=error.hint)


def _check_names(config: Config) -> Iterator[Finding]:
    for role in ("baseline", "candidate"):
        name = getattr(config, role)
        if name is not None and name not in config.systems:
            yield (role,), unknown_name("system", name, config.systems)
    if config.baseline is not None and config.baseline == config.candidate:
        yield ("candidate",), Problem("baseline and candidate are the same system", hint="name two systems.")
    if len(config.systems) > 2 and any(one.systems is None for one in config.sets.values()):
        missing = [role for role in ("baseline", "candidate") if getattr(config, role) is None]
        if missing:
            said = " and ".join(missing)
            yield (
                ("systems",),
                Problem(f"{len(config.systems)} systems and no {said}", hint=f"name the {said}: `{missing[0]}: NAME`."),
            )
    for name in config.systems:
        if name.endswith(".log"):
            yield ("systems", name), Problem(f"{name} would be the name of another run's log", hint="drop the .log")
    yield from _check_cases("systems", config.systems)


def _check_cases(key: str, names: Collection[str]) -> Iterator[Finding]:
    """Names become file names, and some file systems take Old and old for one."""
    for folded, count in Counter(name.casefold() for name in names).items():
        if count > 1:
            same = [name for name in names if name.casefold() == folded]
            yield (key, same[1]), Problem(f"{key} {' and '.join(same)} differ only in upper and lower case")


def _check_sets(config: Config) -> Iterator[Finding]:
    if (config.testset is None) == (config.testsets is None):
        got = "none" if config.testset is None else "both"
        yield (
            () if config.testset is None else ("testsets",),
            Problem("the test set", expected="exactly one of testset and testsets", got=got),
        )
    for name, one in (config.testsets or {}).items():
        if name.casefold() in SUMMARY_FILES:
            yield (
                ("testsets", name),
                Problem(f"{name} is the name of the summary's file", hint="call the set otherwise."),
            )
        for index, system in enumerate(one.systems or ()):
            if system not in config.systems:
                yield ("testsets", name, "systems", index), unknown_name("system", system, config.systems)
        if one.systems is not None and len(set(one.systems)) < len(one.systems):
            yield ("testsets", name, "systems"), Problem("a system against itself", hint="name two systems, or one.")
    yield from _check_cases("testsets", config.testsets or {})


def _check_command(command: list[str]) -> Iterator[Finding]:
    for index, element in enumerate(command):
        for name in placeholders(element):
            if not is_placeholder(name):
                known = [*PLACEHOLDERS]
                if "." in name:  # {param.min_ios}, {params.min ios}
                    known.append("params." + name.split(".", 1)[1])
                problem = unknown_name("placeholder", name, known)
                literal = f"{{{{{name}}}}} is the literal text {{{name}}}."
                hint = f"{problem.hint} {literal}" if problem.hint else literal
                yield ("command", index), replace(problem, expected=", ".join(PLACEHOLDERS), hint=hint)
    names = {name for element in command[1:] for name in placeholders(element)}
    if not command[0].strip():
        yield ("command", 0), Problem("the program's name is blank")
    if any(name != "python" for name in placeholders(command[0]) if is_placeholder(name)):
        yield ("command", 0), Problem("the program itself cannot depend on the query", got=command[0])
    if "query" not in names and not any(name.startswith("params.") for name in names) and _all_known(command):
        yield ("command",), Problem("no {query}: the system would be given the same call for every query")


def _all_known(command: list[str]) -> bool:
    return all(is_placeholder(name) for element in command for name in placeholders(element))


def _check_env(system: SystemConfig) -> Iterator[Finding]:
    for name, value in system.env.items():
        if not name or "=" in name or "\0" in name:
            yield ("env", name), Problem("not the name of an environment variable")
        if "\0" in value.get_secret_value():
            yield ("env", name), Problem("the value holds a NUL character")


def _check_extract(extract: Extract) -> Iterator[Finding]:
    kinds = [kind for kind, value in _kinds(extract) if value is not None]
    if len(kinds) != 1:
        got = " and ".join(kinds) or "none"
        yield (), Problem("how results are read", expected="exactly one of regex, json and jsonl", got=got)
    yield from _compiles(("regex",), extract.regex, compile_result_regex)
    yield from _compiles(("json",), extract.json_, compile_list_path)
    if isinstance(extract.jsonl, str):
        yield from _compiles(("jsonl",), extract.jsonl, compile_list_path)
    for key in ("id", "score", "title", "span"):
        if kinds == ["regex"] and getattr(extract, key) is not None:
            yield (key,), Problem(f"a regex takes the {key} from a group", hint=f"name the group: (?P<{key}>...).")
        else:
            yield from _compiles((key,), getattr(extract, key), compile_path)
    if kinds == ["regex"] and extract.fields:
        yield ("fields",), Problem("fields are read from JSON, and results here by regex")
    for name, path in extract.fields.items():
        yield from _compiles(("fields", name), path, compile_path)


def _kinds(extract: Extract) -> tuple[tuple[str, object], ...]:
    return ("regex", extract.regex), ("json", extract.json_), ("jsonl", extract.jsonl)


def _has_score(extract: Extract) -> bool:
    if extract.regex is None:
        return extract.score is not None
    try:
        return "score" in compile_result_regex(extract.regex).groupindex
    except ExpressionError:
        return True  # that it does not compile is said already


def _check_check(check: Check) -> Iterator[Finding]:
    kinds = [kind for kind in ("binary", "file", "probe") if getattr(check, kind) is not None]
    if len(kinds) != 1:
        got = " and ".join(kinds) or "none"
        yield (), Problem("what to check", expected="exactly one of binary, file and probe", got=got)
    if "file" not in kinds:
        for key in ("contains", "equals", "equals_json"):
            if getattr(check, key) is not None:
                yield (key,), Problem(f"{key} goes with file", hint="add `file: PATH` to the same check.")
    if check.equals_json is not None:
        yield from _compiles(("equals_json", "path"), check.equals_json.path, compile_path)
