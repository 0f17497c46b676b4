"""What a config's models alone cannot tell: names that refer to each other, expressions that must compile.

Each check yields where (a path of keys) and what; `load` adds file and line, a system built in code raises them as
they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from cranfield.config.check_http import check_basic, check_headers, check_url, check_values
from cranfield.config.expression import (
    ExpressionError,
    compile_empty_regex,
    compile_list_path,
    compile_path,
    compile_result_regex,
)
from cranfield.config.models import KINDS, Check, Config, Extract, SystemConfig
from cranfield.config.presets import PRESETS, filled
from cranfield.config.template import (
    ENV,
    PLACEHOLDERS,
    REQUEST_PLACEHOLDERS,
    is_placeholder,
    placeholders,
    texts,
)
from cranfield.errors import ConfigError, Problem, unknown_name
from cranfield.formats.io.validation import problems_of
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
    yield from _check_fusions(config)
    for name, system in config.systems.items():
        for place, problem in check_system(system):
            yield ("systems", name, *place), problem


def check_system(system: SystemConfig) -> Iterator[Finding]:
    """Everything wrong with one system that is well-formed; places start inside the system."""
    kinds = [kind for kind in KINDS if getattr(system, kind) is not None]
    if len(kinds) != 1:
        got = " and ".join(kinds) or "none"
        yield (), Problem("what the system is", expected=f"exactly one of {', '.join(KINDS)}", got=got)
        return
    yield from _CHECKS.get(system.kind, _nothing)(system)
    yield from _check_env(system)
    if system.with_ is not None and system.kind not in TAKES_WITH:
        yield ("with",), Problem(f"with goes with {', '.join(TAKES_WITH)}", got=system.kind)
    yield from _check_reading(system)
    for index, check in enumerate(system.preflight):
        for place, problem in _check_check(check):
            yield ("preflight", index, *place), problem


TAKES_WITH = ("preset", "plugin", "python")
NEEDS_EXTRACT = frozenset({"command", "http", "mcp"})
NEVER_EXTRACTS = frozenset({"run", "fusion"})


def _check_reading(system: SystemConfig) -> Iterator[Finding]:
    """How the answers of a system are read."""
    if system.extract is None:
        if system.kind in NEEDS_EXTRACT:
            yield (), Problem("missing key 'extract'", expected="how results are read: regex, json or jsonl")
    elif system.kind in NEVER_EXTRACTS:
        yield ("extract",), Problem(f"a {system.kind} has its results already", hint="leave extract out.")
    else:
        yield from _in("extract", _check_extract(system.extract))
        if system.order != "given" and not _has_score(system.extract):
            yield (
                ("order",),
                Problem(
                    f"results are to be sorted by score, {system.order}, and no score is extracted",
                    hint="name it in extract (a group called score, or score: PATH), or say order: given.",
                ),
            )
    yield from _compiles(("empty",), system.empty, compile_empty_regex)


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
    if len(config.systems) > 2 and config.candidate is not None and config.baseline is None:
        hint = "name the baseline too, or leave the candidate out to compare all systems."
        yield ("candidate",), Problem(f"a candidate among {len(config.systems)} systems and no baseline", hint=hint)
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


def _nothing(system: SystemConfig) -> Iterator[Finding]:  # noqa: ARG001 - the shape of the others
    return iter(())


def _check_placeholders(place: Place, element: str, known: Sequence[str]) -> Iterator[Finding]:
    for name in placeholders(element):
        if not is_placeholder(name, known):
            near = [*known]
            if "." in name:  # {param.min_ios}, {params.min ios}
                near.append("params." + name.split(".", 1)[1])
            problem = unknown_name("placeholder", name, near)
            literal = f"{{{{{name}}}}} is the literal text {{{name}}}."
            hint = f"{problem.hint} {literal}" if problem.hint else literal
            yield place, replace(problem, expected=", ".join(known), hint=hint)


def _check_command(system: SystemConfig) -> Iterator[Finding]:
    command = system.command or []
    for index, element in enumerate(command):
        yield from _check_placeholders(("command", index), element, PLACEHOLDERS)
    yield from _check_program("command", command)
    if not _depends_on_query(command[1:], PLACEHOLDERS):
        yield ("command",), Problem("no {query}: the system would be given the same call for every query")


def _check_program(key: str, command: list[str]) -> Iterator[Finding]:
    if not command[0].strip():
        yield (key, 0), Problem("the program's name is blank")
    if any(name != "python" for name in placeholders(command[0]) if is_placeholder(name)):
        yield (key, 0), Problem("the program itself cannot depend on the query", got=command[0])


def _depends_on_query(said: object, known: Sequence[str]) -> bool:
    """Whether a query changes the call; true too where a placeholder is misspelt, which is said already."""
    names = {name for text in texts(said) for name in placeholders(text)}
    return any(name == "query" or name.startswith("params.") or not is_placeholder(name, known) for name in names)


def _check_lines(system: SystemConfig) -> Iterator[Finding]:
    hint = "each query comes on stdin, as a line of JSON: query, k and params."
    yield from _check_started_once(("lines",), system.lines or [], hint)


def _check_started_once(place: Place, command: list[str], hint: str) -> Iterator[Finding]:
    """A program that stays is given no query on its command line."""
    if not command[0].strip():
        yield (*place, 0), Problem("the program's name is blank")
    for index, element in enumerate(command):
        for name in placeholders(element):
            if name == "python":
                continue
            if is_placeholder(name):
                problem = Problem("the program is started once, for all queries", got=element, hint=hint)
                yield (*place, index), problem
            else:
                yield from _check_placeholders((*place, index), f"{{{name}}}", ("python",))


def _check_http(system: SystemConfig) -> Iterator[Finding]:
    http = system.http
    if http is None:
        return
    bodies = [key for key, body in (("json", http.json_), ("form", http.form), ("text", http.text)) if body is not None]
    if len(bodies) > 1:
        yield ("http",), Problem("the body", expected="at most one of json, form and text", got=" and ".join(bodies))
    if bodies and http.method == "GET":
        yield ("http", "method"), Problem("a GET has no body", hint="say POST, or put what is asked in parameters.")
    parts = {
        "url": http.url,
        "headers": http.headers,
        "basic": http.basic,
        "parameters": http.parameters,
        "json": http.json_,
        "form": http.form,
        "text": http.text,
    }
    for key, part in parts.items():
        for text in texts(part):
            yield from _check_placeholders(("http", key), text, REQUEST_PLACEHOLDERS)
    if not _depends_on_query(parts, REQUEST_PLACEHOLDERS):
        yield ("http",), Problem("no {query}: the system would be given the same request for every query")
    yield from check_url(("http", "url"), http.url)
    yield from check_headers(("http", "headers"), http.headers)
    yield from check_values(("http",), http.parameters, http.form or {})
    is_from_env = all(_is_from_env(part) for part in (http.basic or "").partition(":")[::2])
    yield from check_basic(("http", "basic"), http.basic, http.headers, is_from_env=is_from_env)


def _is_from_env(text: str) -> bool:
    names = list(placeholders(text))
    return len(names) == 1 and text == f"{{{names[0]}}}" and names[0].startswith("env.")


def _check_mcp(system: SystemConfig) -> Iterator[Finding]:
    mcp = system.mcp
    if mcp is None:
        return
    if (mcp.command is None) == (mcp.url is None):
        got = "none" if mcp.command is None else "both"
        yield ("mcp",), Problem("where the tool is", expected="exactly one of command and url", got=got)
    if mcp.command is not None:
        hint = "what the tool is given for a query stands in arguments."
        yield from _check_started_once(("mcp", "command"), mcp.command, hint)
        if mcp.headers:
            yield ("mcp", "headers"), Problem("headers go with url")
    if mcp.url is not None:
        yield from check_url(("mcp", "url"), mcp.url)
        yield from check_headers(("mcp", "headers"), mcp.headers)
        for key, part in (("url", mcp.url), ("headers", mcp.headers)):
            for text in texts(part):
                yield from _check_opened_once(("mcp", key), text)
    for text in texts(mcp.arguments):
        yield from _check_placeholders(("mcp", "arguments"), text, REQUEST_PLACEHOLDERS)
    if not _depends_on_query(mcp.arguments, REQUEST_PLACEHOLDERS):
        yield ("mcp", "arguments"), Problem("no {query}: the tool would be called the same way for every query")


def _check_opened_once(place: Place, text: str) -> Iterator[Finding]:
    """What a session is opened with holds variables of the environment, and no query."""
    for name in placeholders(text):
        if is_placeholder(name, REQUEST_PLACEHOLDERS) and not name.startswith(ENV):
            hint = "what the tool is given for a query stands in arguments."
            yield place, Problem("the session is opened once, for all queries", got=text, hint=hint)
        else:
            yield from _check_placeholders(place, f"{{{name}}}", (ENV + "NAME",))


def _check_python(system: SystemConfig) -> Iterator[Finding]:
    module, colon, name = (system.python or "").partition(":")
    parts = [*module.split("."), *name.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        yield ("python",), Problem("not the name of a function", expected="module:name", got=system.python)
    if system.env and system.with_ is None:
        hint = "a function that `with` calls is given it, where it has a parameter `environment`."
        yield ("env",), Problem("a function sees the environment that Cranfield runs in, and no other", hint=hint)


def _check_run(system: SystemConfig) -> Iterator[Finding]:
    if "order" in system.model_fields_set:
        yield ("order",), Problem("a run file says itself how it is ordered", hint="leave order out.")


def _check_preset(system: SystemConfig) -> Iterator[Finding]:
    name = system.preset or ""
    if name not in PRESETS:
        yield ("preset",), unknown_name("preset", name, PRESETS)
        return
    problems = list(problems_of(PRESETS[name].settings, system.with_ or {}))
    for place, problem in problems:
        yield ("with", *place), problem
    if not problems:
        yield from ((("with",), problem) for _, problem in check_system(filled(system)))


FROM_ITS_PARTS = ("timeout_s", "retries", "backoff_s", "order", "env", "cwd", "empty", "depends")
"""Keys that would say nothing of a fusion: its parts have their own."""


def _check_fusion(system: SystemConfig) -> Iterator[Finding]:
    fusion = system.fusion
    for key in FROM_ITS_PARTS:
        if key in system.model_fields_set:
            yield (key,), Problem(f"a fusion takes {key} from its parts", hint=f"say {key} with each of them.")
    if fusion is not None and all(fusion.weights.get(part, 1) == 0 for part in fusion.of):
        yield ("fusion", "weights"), Problem("every part has weight 0", expected="a weight above 0 for at least one")


def _check_fusions(config: Config) -> Iterator[Finding]:
    for name, system in config.systems.items():
        if system.fusion is None:
            continue
        for index, part in enumerate(system.fusion.of):
            if part not in config.systems:
                yield ("systems", name, "fusion", "of", index), unknown_name("system", part, config.systems)
        if len(set(system.fusion.of)) < len(system.fusion.of):
            yield ("systems", name, "fusion", "of"), Problem("a system is named twice", hint="give it a weight.")
        for part in system.fusion.weights:
            if part not in system.fusion.of:
                place = ("systems", name, "fusion", "weights", part)
                yield place, unknown_name("part of the fusion", part, system.fusion.of)
        if name in _below(config, name):
            yield ("systems", name, "fusion", "of"), Problem("the fusion is made of itself")


def _below(config: Config, name: str) -> set[str]:
    """Every system that a fusion is made of, at any depth."""
    found: set[str] = set()
    left = [name]
    while left:
        system = config.systems.get(left.pop())
        parts = system.fusion.of if system is not None and system.fusion is not None else []
        left += [part for part in parts if part not in found]
        found |= set(parts)
    return found


_CHECKS: dict[str, Callable[[SystemConfig], Iterator[Finding]]] = {
    "command": _check_command,
    "http": _check_http,
    "python": _check_python,
    "mcp": _check_mcp,
    "lines": _check_lines,
    "run": _check_run,
    "preset": _check_preset,
    "fusion": _check_fusion,
}


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
    for key in ("id", "score", "title", "span", "tokens"):
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
