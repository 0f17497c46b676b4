"""The default schema of an answer, used where the config has no `extract`.

A hit is an id, a pair of id and score, or an object with `id` and optional `score`, `title`, `span`, `tokens`, `fields`,
`explanation`; or a document of LangChain, LlamaIndex or Haystack, alone or with its score, which goes by the `source` of its
metadata, else by its id. An answer is a list of hits, or an object with `hits` and optional `fields`, or with `error`; or what a pipeline of
Haystack returns: an object with `documents` of one component.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from typing import Any

from cranfield.base.errors import Problem
from cranfield.base.words import last_lines
from cranfield.formats.runs.record import finite
from cranfield.model import Answer, Hit, Order, Outcome
from cranfield.systems.calls.explanation import read_explanation

HIT_FIELDS = ("id", "score", "title", "span", "tokens", "fields", "explanation")
MAX_HITS = 10_000
"""Maximum number of hits of an answer; 10 k if that is larger."""
REASON_CHARS = 300
"""Maximum length of an error message of a system in a reason."""
_UNCUT_CHARS = 4 * REASON_CHARS
"""Maximum length before redaction: a truncated secret would not be recognised."""
_WRITTEN_LINES = 5
"""Last lines of stderr that are quoted next to a failed check."""
MAX_DEPTH = 100
"""Maximum nesting of a JSON value."""
EXPECTED = "a list of hits, or an object with hits"


class UnparsableError(Exception):
    """The output does not match the config; the message is the reason in reports."""


def parse_hit(values: Mapping[str, object], position: int, order: Order) -> Hit:
    """Parse the values of a result by their names, those of `HIT_FIELDS`.

    Raises:
        UnparsableError: one of them is invalid.
    """
    return Hit(
        parse_id(values.get("id"), position),
        parse_score(values.get("score"), position, order),
        parse_text(values.get("title")),
        parse_text(values.get("span")),
        parse_tokens(values.get("tokens"), position),
        fields=parse_fields(values.get("fields"), position),
        explanation=read_explanation(values.get("explanation")),
    )


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
        raise UnparsableError(f"result {position} has a token count that is not a finite number of 0 or more")
    return tokens


def parse_fields(value: object, position: int) -> Mapping[str, Any] | None:
    """Parse the fields of a result; None where it has none.

    Raises:
        UnparsableError: they are no object, or cannot be written as JSON.
    """
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise UnparsableError(f"result {position} has {json_type(value)} for fields, not an object")
    fields: dict[str, Any] = plain_json(dict(value), f"fields of result {position}")
    return fields or None


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
        raise UnparsableError(f"{json_type(value)} in place of a text cannot be written as JSON") from None


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


def output_hint(text: str) -> str | None:
    """`it wrote '…'`: the last lines of an output that is redacted already, where programs state a cause; None if blank."""
    found = last_lines(text, _WRITTEN_LINES)
    if not found:
        return None
    return f"it wrote {(found if len(found) <= REASON_CHARS else f'…{found[1 - REASON_CHARS :]}')!r}"


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
            return Answer(
                value.outcome, reason=parse_text(value.reason), fields=plain_json(dict(value.fields), "fields")
            )
        fields, results = value.fields, value.hits
    elif isinstance(value, Mapping):
        if value.get("error") is not None:
            return Answer(
                Outcome.ERROR, reason=first_line(parse_text(value["error"]) or "") or "an error without a message"
            )
        fields, results = value.get("fields") or {}, value["hits"] if "hits" in value else _of_pipeline(value)
    if not isinstance(fields, Mapping):
        raise UnparsableError(f"fields are {json_type(fields)}, not an object")
    hits = limit_hits((_hit(result, rank, order) for rank, result in enumerate(_as_list(results), start=1)), k, order)
    return Answer(Outcome.ANSWERED if hits else Outcome.EMPTY, hits, fields=plain_json(dict(fields), "fields"))


def _of_pipeline(value: Mapping[Any, object]) -> object:
    """The documents in what a pipeline returns: each of its components has an object of its outputs.

    Raises:
        UnparsableError: no component has documents, or several have.
    """
    found = {part: out["documents"] for part, out in value.items() if isinstance(out, Mapping) and "documents" in out}
    if not found:
        raise UnparsableError('the answer is an object without "hits"')
    if len(found) > 1:
        names = " and ".join(f"{part}.documents" for part in found)
        raise UnparsableError(
            f"the answer has {names}; name one with `extract: {{json: {next(iter(found))}.documents, …}}`"
        )
    return next(iter(found.values()))


def _as_list(results: object) -> Iterable[object]:
    """The results in order. Sets have no order; mappings and texts are not lists of results."""
    if isinstance(results, str | bytes | Mapping | set | frozenset) or not isinstance(results, Iterable):
        raise UnparsableError(f"the answer is {json_type(results)}, not {EXPECTED}")
    return results


def _hit(result: object, position: int, order: Order) -> Hit:
    score: object = None
    if isinstance(result, tuple | list):
        if len(result) != 2:
            raise UnparsableError(f"result {position} is a list of {len(result)}, not an id and its score")
        result, score = result
    values: Mapping[str, object] = result if isinstance(result, Mapping) else {"id": result}
    if isinstance(result, Hit):
        values = {name: getattr(result, name) for name in HIT_FIELDS}
    elif not isinstance(result, str) and (values.get("id") is None or values is not result):
        values = _document(result, position) or values
    return parse_hit(values if score is None else {**values, "score": score}, position, order)


def _document(result: object, position: int) -> dict[str, object] | None:
    """The values of a document as LangChain, LlamaIndex and Haystack have them, with `metadata` or `meta`; None where it is none.

    Raises:
        UnparsableError: it is one, and has neither a source nor an id.
    """
    from cranfield.formats.runs.table import document_values, hit_of

    values = document_values(result)
    if values is None or not any(isinstance(values.get(name), Mapping) for name in ("metadata", "meta")):
        return None
    hit = hit_of(values)
    if isinstance(hit, Problem):
        raise UnparsableError(f"result {position} is {hit.message}; expected {hit.expected}")
    return {name: getattr(hit, name) for name in HIT_FIELDS}


def _plain_value(value: object) -> object:
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if hasattr(value, "tolist"):
        listed: object = value.tolist()
        return listed
    from cranfield.formats.runs.table import document_values

    document = document_values(value)
    if document is not None:
        return json.loads(json.dumps(dict(document), default=str))
    return _attributes(value)


def _attributes(value: object) -> object:
    """An object of the user by the names of its attributes: of a dataclass, of pydantic, or of another class with public ones."""
    if callable(value):
        raise TypeError
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if callable(dump := getattr(value, "model_dump", None)):  # pydantic
        dumped: object = dump()
        return dumped
    public = {name: each for name, each in getattr(value, "__dict__", {}).items() if not name.startswith("_")}
    if not public:
        raise TypeError
    return public
