"""The parts of a result, however it came: an id, a score, a text, a number of tokens, each as a hit has it.

All hits or none: a result that cannot be read is never left out, because those after it would move up a rank.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from numbers import Integral, Real

from cranfield.model import Hit, Order

MAX_HITS = 10_000
"""Results kept of one answer, or ten times k where that is more."""


class UnreadableError(Exception):
    """The output is not what the config says it is; the message is the reason a report shows."""


def id_of(value: object, position: int) -> str:
    """An id: text that is not blank, or a whole number.

    Raises:
        UnreadableError: it is neither.
    """
    if not isinstance(value, bool) and isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, str) and value.strip():
        return str(value)
    if value is None or isinstance(value, str):
        raise UnreadableError(f"result {position} has no id")
    raise UnreadableError(f"result {position} has {kind_of(value)} for an id")


def score_of(value: object, position: int, order: Order) -> float | None:
    """A score; None only where the list stands as given.

    Raises:
        UnreadableError: it is no finite number.
    """
    if value is None and order == "given":
        return None
    score = _finite(value)
    if score is None:
        raise UnreadableError(f"result {position} has no score that is a finite number")
    return score


def tokens_of(value: object, position: int) -> float | None:
    """What reading a result costs; None where it does not say.

    Raises:
        UnreadableError: it is no finite number of 0 or more.
    """
    if value is None:
        return None
    tokens = _finite(value)
    if tokens is None or tokens < 0:
        raise UnreadableError(f"result {position} has tokens that are no finite number of 0 or more")
    return tokens


def text_of(value: object) -> str | None:
    """A title or a span; what is no text is kept as JSON.

    Raises:
        UnreadableError: JSON has no word for it.
    """
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):  # keys of several kinds; a list that holds itself; too many levels
        raise UnreadableError(f"{kind_of(value)} in the place of a text cannot be written as JSON") from None


def number_in(text: str | None) -> object:
    """The number a regex found; what is not one stays text, for `score_of` to refuse."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def kept(hits: Iterator[Hit], k: int, order: Order) -> tuple[Hit, ...]:
    """The hits, as far as anybody will look.

    Raises:
        UnreadableError: there are too many, and the best may be among those not read yet.
    """
    limit = max(MAX_HITS, 10 * k)
    taken: list[Hit] = []
    for hit in hits:
        if len(taken) == limit:
            if order == "given":
                break
            raise UnreadableError(f"over {limit} results, to be sorted by score")
        taken.append(hit)
    return tuple(taken)


def kind_of(value: object) -> str:
    """What a JSON value is, in words; anything else by the name of its type."""
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
    return "a number" if isinstance(value, Real) else type_of(value)


def type_of(value: object) -> str:
    """The name of its type with its article: `an int`."""
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def _finite(value: object) -> float | None:
    """A number of any kind (NumPy's are numbers too) as a float; None where it is none, or not finite."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
