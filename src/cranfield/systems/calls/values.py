"""Parse the values of a result: id, score, text, tokens.

One invalid result makes the whole answer unparsable: skipping it would move the results after it up a rank.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from numbers import Integral, Real

from cranfield.formats.runs.record import finite
from cranfield.model import Hit, Order

MAX_HITS = 10_000
"""Maximum number of hits of an answer; 10 k if that is larger."""


class UnparsableError(Exception):
    """The output does not match the config; the message is the reason in reports."""


def parse_id(value: object, position: int) -> str:
    """Parse an id: non-blank text or an integer.

    Raises:
        UnparsableError: it is neither.
    """
    if not isinstance(value, bool) and isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, str) and value.strip():
        return str(value)
    if value is None or isinstance(value, str):
        raise UnparsableError(f"result {position} has no id")
    raise UnparsableError(f"result {position} has {json_type(value)} for an id")


def parse_score(value: object, position: int, order: Order) -> float | None:
    """Parse a score; None only if the order is `given`.

    Raises:
        UnparsableError: it is no finite number.
    """
    if value is None and order == "given":
        return None
    score = finite(value)
    if score is None:
        raise UnparsableError(f"result {position} has no score that is a finite number")
    return score


def parse_tokens(value: object, position: int) -> float | None:
    """Parse a number of tokens; None if missing.

    Raises:
        UnparsableError: it is no finite number of 0 or more.
    """
    if value is None:
        return None
    tokens = finite(value)
    if tokens is None or tokens < 0:
        raise UnparsableError(f"result {position} has tokens that are no finite number of 0 or more")
    return tokens


def parse_text(value: object) -> str | None:
    """Parse a title or span; other values are written as JSON.

    Raises:
        UnparsableError: it cannot be written as JSON.
    """
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):  # keys of several kinds; a list that holds itself; too many levels
        raise UnparsableError(f"{json_type(value)} in the place of a text cannot be written as JSON") from None


def parse_number(text: str | None) -> object:
    """Parse a number matched by a regex; invalid text is returned unchanged, and rejected by `parse_score`."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def limit_hits(hits: Iterator[Hit], k: int, order: Order) -> tuple[Hit, ...]:
    """The hits, up to the maximum.

    Raises:
        UnparsableError: there are more, and they are to be sorted by score.
    """
    limit = max(MAX_HITS, 10 * k)
    taken: list[Hit] = []
    for hit in hits:
        if len(taken) == limit:
            if order == "given":
                break
            raise UnparsableError(f"over {limit} results, to be sorted by score")
        taken.append(hit)
    return tuple(taken)


def json_type(value: object) -> str:
    """Description of the type of a JSON value; the type name of other values."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    return "a number" if isinstance(value, Real) else type_name(value)


def type_name(value: object) -> str:
    """Type name with its article: `an int`."""
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"
