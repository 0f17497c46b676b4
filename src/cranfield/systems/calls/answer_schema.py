"""Cranfield's own form of an answer: what a function returns, a line of a program says, where the config says nothing.

Hits are a list. Each is an id, an id with a score, or an object with `id` and perhaps `score`, `title`, `span`, `tokens`.
The answer is that list, or an object with `hits`, perhaps `fields` of the query as a whole, or an `error`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any

from cranfield.model import Answer, Hit, Order, Outcome
from cranfield.systems.calls.values import UnreadableError, id_of, kept, kind_of, score_of, text_of, tokens_of

REASON_CHARS = 300
"""Kept of the words in which somebody else's code says what went wrong."""
_UNCUT_CHARS = 4 * REASON_CHARS
"""Kept of them until secrets are hidden: what is cut in the middle of one would no longer be known as one."""
MAX_DEPTH = 100
"""Levels of lists and objects in a value that is kept."""
EXPECTED = "a list of hits, or an object with hits"


def answer_in(value: object, k: int, order: Order) -> Answer:
    """The answer that a value is; one that cannot be read, or says that it failed, is a failure with its reason.

    Args:
        value: a list of hits, an object, or an `Answer`.
        k: results asked for.
        order: where it goes by score, each hit has to have one.
    """
    try:
        return read_answer(value, k, order)
    except UnreadableError as error:
        return Answer(Outcome.UNPARSABLE, reason=str(error))


def one_line(text: str) -> str:
    """The first line that is not blank, truncated."""
    return cut(next((line.strip() for line in text.splitlines() if line.strip()), ""), _UNCUT_CHARS)


def cut(text: str, chars: int) -> str:
    """At most so many characters of a text; the last one says that there were more."""
    return text if len(text) <= chars else text[: chars - 1] + "…"


def plain(value: object, what: str) -> Any:
    """The same value of nothing but what JSON has words for; NumPy's numbers and arrays become Python's.

    Raises:
        UnreadableError: JSON has no word for it.
    """
    try:
        found = json.loads(json.dumps(value, default=_plain_number, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise UnreadableError(f"{what} cannot be written as JSON") from None
    level = [found]
    for _ in range(MAX_DEPTH):
        level = [part for one in level for part in _parts(one)]
        if not level:
            return found
    raise UnreadableError(f"{what} cannot be kept: over {MAX_DEPTH} levels of lists and objects")


def _parts(value: Any) -> Iterable[Any]:
    """The lists and objects inside one."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in inside if isinstance(part, dict | list)]


def read_answer(value: object, k: int, order: Order) -> Answer:
    """The same, where somebody else says what becomes of an answer that cannot be read.

    Raises:
        UnreadableError: with the reason.
    """
    fields: object = {}
    results: object = value
    if isinstance(value, Answer):
        if value.outcome.is_failure or value.outcome is Outcome.MISSING:
            return value
        fields, results = value.fields, value.hits
    elif isinstance(value, Mapping):
        if value.get("error") is not None:
            return Answer(Outcome.ERROR, reason=one_line(text_of(value["error"]) or "") or "an error without words")
        if "hits" not in value:
            raise UnreadableError('the answer is an object without "hits"')
        fields, results = value.get("fields") or {}, value["hits"]
    if not isinstance(fields, Mapping):
        raise UnreadableError(f"fields are {kind_of(fields)}, not an object")
    hits = kept((_hit(one, rank, order) for rank, one in enumerate(_listed(results), start=1)), k, order)
    return Answer(Outcome.ANSWERED if hits else Outcome.EMPTY, hits, fields=plain(dict(fields), "fields"))


def _listed(results: object) -> Iterable[object]:
    """The results in order. A set has none, and a mapping or a text is no list of them."""
    if isinstance(results, str | bytes | Mapping | set | frozenset) or not isinstance(results, Iterable):
        raise UnreadableError(f"the answer is {kind_of(results)}, not {EXPECTED}")
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
            raise UnreadableError(f"result {position} is a list of {len(result)}, not an id and its score")
        values = {"id": result[0], "score": result[1]}
    else:
        values = {"id": result}
    return Hit(
        id_of(values.get("id"), position),
        score_of(values.get("score"), position, order),
        text_of(values.get("title")),
        text_of(values.get("span")),
        tokens_of(values.get("tokens"), position),
    )


def _plain_number(value: object) -> object:
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    listed: Iterator[object] | None = value.tolist() if hasattr(value, "tolist") else None
    if listed is None:
        raise TypeError
    return listed
