"""Regular expressions and JMESPath expressions of a config, compiled before a query is sent.

Each function returns the compiled expression or raises `ExpressionError`, whose message stands after the name of the field.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from cranfield.errors import unknown_name

_PROJECTIONS = frozenset({"projection", "filter_projection", "value_projection"})
_NEVER_NULL = frozenset({"identity", "multi_select_dict", "multi_select_list"})
_UNLIKELY = "\u2042 7f3a91 \u2042"
"""Text that no system prints: a pattern that matches it matches anything."""


class ExpressionError(ValueError):
    """An expression that does not compile, or would mislead; `hint` is the next step."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class Path(Protocol):
    """A compiled JMESPath."""

    def search(self, value: Any) -> Any:
        """Evaluate over a JSON value."""
        ...


def compile_regex(text: str) -> re.Pattern[str]:
    """Compile a regular expression."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ExpressionError(f"is not a regular expression: {error}") from None


def compile_result_regex(text: str) -> re.Pattern[str]:
    """Compile `extract.regex`; refuse one that finds results where there are none."""
    pattern = compile_regex(text)
    if pattern.groupindex and "id" not in pattern.groupindex:
        named = ", ".join(pattern.groupindex)
        raise ExpressionError(f"names the groups {named} but none is `id`", "call the id's group (?P<id>...).")
    if pattern.search(""):
        raise ExpressionError("matches the empty text, so it would find results that have no id")
    return pattern


def compile_empty_regex(text: str) -> re.Pattern[str]:
    """Compile `empty`; refuse a pattern that would report every unreadable output as an empty list of results."""
    pattern = compile_regex(text)
    if pattern.search(_UNLIKELY):
        raise ExpressionError("matches any output, which would hide every parse failure", "use ^$ for blank output.")
    return pattern


def compile_path(text: str) -> Path:
    """Compile a JMESPath; unknown functions are found here, not at the first query."""
    import jmespath
    from jmespath.exceptions import JMESPathError
    from jmespath.functions import Functions

    try:
        compiled = jmespath.compile(text)
    except (JMESPathError, RecursionError) as error:
        position = getattr(error, "lex_position", None)
        at = "" if position is None else f" (character {position + 1})"
        raise ExpressionError(f"is not a JMESPath expression{at}") from None
    for node in _nodes(compiled.parsed):
        if node["type"] == "function_expression" and node["value"] not in Functions.FUNCTION_TABLE:
            problem = unknown_name("JMESPath function", node["value"], Functions.FUNCTION_TABLE)
            raise ExpressionError(f"calls an {problem.message}", problem.hint)
    return compiled


def compile_list_path(text: str) -> Path:
    """Compile the path of a list of results; refuse a path that would silently drop results.

    A JMESPath projection leaves nulls out: `results[].uri` loses the results that have no `uri`, and all that follow
    move up a rank.
    """
    compiled = compile_path(text)
    node: Mapping[str, Any] = compiled.parsed  # type: ignore[attr-defined]  # not in the protocol, on purpose
    while node["type"] in {"subexpression", "pipe"}:
        node = node["children"][-1]
    if node["type"] in _PROJECTIONS and node["children"][1]["type"] not in _NEVER_NULL:
        raise ExpressionError(
            "silently drops results that lack the selected field",
            "let it end at the list (results[]) and pick inside a result with id, score, title and span.",
        )
    return compiled


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node["children"]:
        if isinstance(child, Mapping):
            yield from _nodes(child)
