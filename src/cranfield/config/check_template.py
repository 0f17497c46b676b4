"""Checks of texts with placeholders: that the names in braces are known, and that each query makes a different call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cranfield.config.strict import Finding
from cranfield.config.template import ENV, PLACEHOLDERS, REQUEST_PLACEHOLDERS, is_placeholder, placeholders, texts
from cranfield.errors import Problem, unknown_name
from cranfield.formats.io.tree import Loc

NO_QUERY = "no {query}: every query would make the same call"


def check_placeholders(place: Loc, text: str, known: Sequence[str]) -> Iterator[Finding]:
    """Names in braces that are no placeholder."""
    for name in placeholders(text):
        if not is_placeholder(name, known):
            near = [*known]
            if "." in name:  # {param.min_ios}, {params.min ios}
                near.append("params." + name.split(".", 1)[1])
            problem = unknown_name("placeholder", name, near)
            literal = f"{{{{{name}}}}} is the literal text {{{name}}}."
            hint = f"{problem.hint} {literal}" if problem.hint else literal
            yield place, replace(problem, expected=", ".join(known), hint=hint)


def depends_on_query(value: object, known: Sequence[str]) -> bool:
    """Whether a query changes the call; also true where a placeholder is misspelt, which is a problem of its own."""
    names = {name for text in texts(value) for name in placeholders(text)}
    return any(name == "query" or name.startswith("params.") or not is_placeholder(name, known) for name in names)


def check_command(command: list[str]) -> Iterator[Finding]:
    """A command that is started once for each query."""
    for index, element in enumerate(command):
        yield from check_placeholders((index,), element, PLACEHOLDERS)
    yield from _check_program(command)
    if any(name != "python" for name in placeholders(command[0]) if is_placeholder(name)):
        yield (0,), Problem("the program itself cannot depend on the query", got=command[0])
    if not depends_on_query(command[1:], PLACEHOLDERS):
        yield (), Problem(NO_QUERY)


def check_started_once(command: list[str], hint: str) -> Iterator[Finding]:
    """A command that is started once for all queries, so that no query can be an argument."""
    yield from _check_program(command)
    for index, element in enumerate(command):
        for name in placeholders(element):
            if name == "python":
                continue
            if is_placeholder(name):
                yield (index,), Problem("the program is started once, for all queries", got=element, hint=hint)
            else:
                yield from check_placeholders((index,), f"{{{name}}}", ("python",))


def check_opened_once(value: object) -> Iterator[Finding]:
    """Texts of a session that is opened once for all queries: variables of the environment may stand in them."""
    for text in texts(value):
        for name in placeholders(text):
            if is_placeholder(name, REQUEST_PLACEHOLDERS) and not name.startswith(ENV):
                hint = "write what depends on the query in arguments."
                yield (), Problem("the session is opened once, for all queries", got=text, hint=hint)
            else:
                yield from check_placeholders((), f"{{{name}}}", (ENV + "NAME",))


def check_request(value: object) -> Iterator[Finding]:
    """Texts of a request that is sent for each query."""
    for text in texts(value):
        yield from check_placeholders((), text, REQUEST_PLACEHOLDERS)


def _check_program(command: list[str]) -> Iterator[Finding]:
    if not command[0].strip():
        yield (0,), Problem("the program's name is blank")
