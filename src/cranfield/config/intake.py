"""The block `intake:` of the operator's file: what is removed from production queries before they are stored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Literal, get_args

from pydantic import Field

from cranfield.config.reading import ExpressionError, compile_regex, compiles
from cranfield.config.strict import Finding, Strict, checked
from cranfield.config.systems import Name
from cranfield.errors import Problem, shorten

RedactionName = Literal["url", "secret", "email", "iban", "card", "phone", "ssn", "digits"]
REDACTION_NAMES: tuple[RedactionName, ...] = get_args(RedactionName)
"""Patterns that are part of Cranfield, in the order in which they are applied."""
COMBINED = r'^\S+ \S+ \S+ \[(?P<time>[^\]]+)\] "(?:GET|POST) (?P<url>[^ "]+)'
PLACEHOLDER_NAME = r"[a-z][a-z0-9_]{0,29}"


def compile_line_pattern(text: str) -> re.Pattern[str]:
    """Compile the pattern of a log: it has a group `query` or `url`."""
    pattern = compile_regex(text)
    if not {"query", "url"} & set(pattern.groupindex):
        raise ExpressionError("has no group for the query", "call it (?P<query>...), or (?P<url>...) for an address.")
    return pattern


def compile_redaction(text: str) -> re.Pattern[str]:
    """Compile a pattern of what is removed; refuse one that matches the empty text."""
    pattern = compile_regex(text)
    if pattern.search(""):
        raise ExpressionError("matches the empty text, so it would remove nothing")
    return pattern


def _check_time_format(text: str) -> Iterator[Finding]:
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)
    try:
        day = datetime.strptime(now.strftime(text), text).date()  # noqa: DTZ007  its date alone is used
    except ValueError:
        day = None
    if day != now.date():
        expected = "codes of strptime for year, month and day, such as %d/%b/%Y:%H:%M:%S %z"
        yield (), Problem("the format of the time does not give the day", expected=expected, got=shorten(text))


class LogFormat(Strict):
    """How the lines of a log are read."""

    pattern: Annotated[str, compiles(compile_line_pattern)] = COMBINED
    """Regular expression searched in each line, with a group `query`, or `url` whose parameter is the query; a group `time` is
    when it was asked. Other lines are dropped and counted. Default: the access log of Apache and nginx, common and combined."""
    parameter: Annotated[str, Field(min_length=1)] = "q"
    """Parameter of the address that holds the query."""
    time: Annotated[str, checked(_check_time_format)] = "%d/%b/%Y:%H:%M:%S %z"
    """Format of the time, in codes of strptime."""


class Intake(Strict):
    """Production queries: what is removed from them, and how long they are kept."""

    keep_days: Annotated[int, Field(ge=1, le=36_500)] = 90
    """Days that a query is kept."""
    redact: list[RedactionName] = Field(default_factory=lambda: list(REDACTION_NAMES))
    """What is replaced by its name, such as `<email>`, before anything is stored; default: all."""
    min_digits: Annotated[int, Field(ge=4, le=30)] = 9
    """`digits` are so many digits in a row, or more."""
    patterns: dict[
        Annotated[str, Field(pattern=f"^{PLACEHOLDER_NAME}$")], Annotated[str, compiles(compile_redaction)]
    ] = Field(default_factory=dict, json_schema_extra={"additionalProperties": {"type": "string"}})
    """Further patterns by name: regular expressions, applied before the others."""
    longest: Annotated[int, Field(ge=10, le=10_000)] = 500
    """Characters of the longest query; longer ones are dropped and counted."""
    logs: dict[Name, LogFormat] = Field(default_factory=dict)
    """Formats of logs by name, besides `combined`."""
