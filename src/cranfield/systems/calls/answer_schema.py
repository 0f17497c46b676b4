"""The default schema of an answer, used where the config has no `extract`.

A hit is an id, a pair of id and score, or an object with `id` and optional `score`, `title`, `span`, `tokens`. An answer is
a list of hits, or an object with `hits` and optional `fields`, or with `error`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any

from cranfield.model import Answer, Hit, Order, Outcome
from cranfield.systems.calls.values import (
    UnparsableError,
    json_type,
    limit_hits,
    parse_id,
    parse_score,
    parse_text,
    parse_tokens,
)

REASON_CHARS = 300
"""Maximum length of an error message of a system in a reason."""
_UNCUT_CHARS = 4 * REASON_CHARS
"""Maximum length before redaction: a truncated secret would not be recognised."""
MAX_DEPTH = 100
"""Maximum nesting of a JSON value."""
EXPECTED = "a list of hits, or an object with hits"


def to_answer(value: object, k: int, order: Order) -> Answer:
    """Convert a value to an answer; an invalid value is an unparsable answer with its reason.

    Args:
        value: a list of hits, an object, or an `Answer`.
        k: number of results requested.
        order: unless `given`, each hit needs a score.
    """
    try:
        return parse_answer(value, k, order)
    except UnparsableError as error:
        return Answer(Outcome.UNPARSABLE, reason=str(error))


def first_line(text: str) -> str:
    """The first line that is not blank, truncated."""
    return truncate(next((line.strip() for line in text.splitlines() if line.strip()), ""), _UNCUT_CHARS)


def truncate(text: str, chars: int) -> str:
    """Truncate a text to `chars` characters, the last one an ellipsis."""
    return text if len(text) <= chars else text[: chars - 1] + "…"


def plain_json(value: object, what: str) -> Any:
    """Convert a value to plain JSON types; NumPy numbers and arrays included.

    Raises:
        UnparsableError: it cannot be converted.
    """
    try:
        found = json.loads(json.dumps(value, default=_plain_value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise UnparsableError(f"{what} cannot be written as JSON") from None
    level = [found]
    for _ in range(MAX_DEPTH):
        level = [part for container in level for part in _parts(container)]
        if not level:
            return found
    raise UnparsableError(f"{what} cannot be kept: over {MAX_DEPTH} levels of lists and objects")


def _parts(value: Any) -> Iterable[Any]:
    """The lists and objects directly inside a value."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in inside if isinstance(part, dict | list)]


def parse_answer(value: object, k: int, order: Order) -> Answer:
    """As `to_answer`.

    Raises:
        UnparsableError: the value is invalid.
    """
    fields: object = {}
    results: object = value
    if isinstance(value, Answer):
        if value.outcome.is_failure or value.outcome is Outcome.MISSING:
            return value
        fields, results = value.fields, value.hits
    elif isinstance(value, Mapping):
        if value.get("error") is not None:
            return Answer(
                Outcome.ERROR, reason=first_line(parse_text(value["error"]) or "") or "an error without words"
            )
        if "hits" not in value:
            raise UnparsableError('the answer is an object without "hits"')
        fields, results = value.get("fields") or {}, value["hits"]
    if not isinstance(fields, Mapping):
        raise UnparsableError(f"fields are {json_type(fields)}, not an object")
    hits = limit_hits((_hit(result, rank, order) for rank, result in enumerate(_as_list(results), start=1)), k, order)
    return Answer(Outcome.ANSWERED if hits else Outcome.EMPTY, hits, fields=plain_json(dict(fields), "fields"))


def _as_list(results: object) -> Iterable[object]:
    """The results in order. Sets have no order; mappings and texts are not lists of results."""
    if isinstance(results, str | bytes | Mapping | set | frozenset) or not isinstance(results, Iterable):
        raise UnparsableError(f"the answer is {json_type(results)}, not {EXPECTED}")
    return results


def _hit(result: object, position: int, order: Order) -> Hit:
    if isinstance(result, Hit):
        values: Mapping[str, object] = {
            name: getattr(result, name) for name in ("id", "score", "title", "span", "tokens")
        }
    elif isinstance(result, Mapping):
        values = result
    elif isinstance(result, tuple | list):
        if len(result) != 2:
            raise UnparsableError(f"result {position} is a list of {len(result)}, not an id and its score")
        values = {"id": result[0], "score": result[1]}
    else:
        values = {"id": result}
    return Hit(
        parse_id(values.get("id"), position),
        parse_score(values.get("score"), position, order),
        parse_text(values.get("title")),
        parse_text(values.get("span")),
        parse_tokens(values.get("tokens"), position),
    )


def _plain_value(value: object) -> object:
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    listed: Iterator[object] | None = value.tolist() if hasattr(value, "tolist") else None
    if listed is None:
        raise TypeError
    return listed
