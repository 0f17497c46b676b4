"""Conditions on the fields of a result: which values a field has, and whether a value meets a condition."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from cranfield.model import Criteria, Hit, MatchingRules, TestSet
from cranfield.model.target import condition
from cranfield.ranking.matching.place import lines_of, overlap, path_of, place_of

FIELD_NAMES: Mapping[str, tuple[str, ...]] = {
    "text": ("text", "content", "page_content", "passage", "chunk", "snippet", "body", "excerpt"),
    "path": ("path", "file_path", "filepath", "file", "filename", "source"),
    "url": ("url", "uri", "link", "href", "permalink", "source"),
    "title": ("title", "name", "heading"),
}
"""Field of a condition to the names that it has in results; another field has its own name alone."""
_PORTS = {"http": ":80", "https": ":443"}

HitTest = Callable[[Hit], bool]


def criteria_test(target: Criteria, rules: MatchingRules) -> HitTest:
    """The function that tells whether a result meets every condition."""
    tests = [(field, _value_test(field, test, value, rules)) for field, test, value in conditions_of(target)]
    return lambda hit: all(any(map(fits, values_of(hit, field, rules))) for field, fits in tests)


def conditions_of(target: Criteria) -> Iterator[tuple[str, str, str]]:
    """Field, test and value of each condition."""
    for name, value in target.where.items():
        yield (*condition(name), value)


def expected_fields(testset: TestSet) -> tuple[str, ...]:
    """Names of the fields that conditions of a test set are on; the id, which every result has, is none."""
    targets = (target for found in testset.targets.values() for target in found if isinstance(target, Criteria))
    forbidden = (target for found in testset.forbidden.values() for target in found)
    fields = dict.fromkeys(field for target in (*targets, *forbidden) for field, _, _ in conditions_of(target))
    return tuple(field for field in fields if field not in {"id", "path", "url", "lines"})


def lacks_field(target: Criteria, hit: Hit, rules: MatchingRules) -> bool:
    """Whether a result has no value for a condition, so that it cannot be compared."""
    return any(not any(values_of(hit, field, rules)) for field, _, _ in conditions_of(target))


def values_of(hit: Hit, field: str, rules: MatchingRules) -> Iterator[str]:
    """The values of a field of a result, as text; the id stands for the path and the address too."""
    if field == "id":
        yield hit.id
    elif field == "path":
        yield place_of(hit, rules).path
    elif field == "url":
        yield hit.id
    elif field == "title" and hit.title is not None:
        yield hit.title
    elif field == "span" and hit.span is not None:
        yield hit.span
    elif field == "lines" and (lines := place_of(hit, rules).lines) is not None:
        yield f"{lines[0]}-{lines[1]}"
    for name in FIELD_NAMES.get(field, (field,)):
        for values in nested_fields(hit):
            yield from _texts(_inside(values, name))


def nested_fields(hit: Hit) -> list[Mapping[str, Any]]:
    """The fields of a result, then those of its metadata, as frameworks have them."""
    fields = hit.fields or {}
    return [fields, *(inner for key in ("metadata", "meta") if isinstance(inner := fields.get(key), Mapping))]


def _inside(values: Mapping[str, Any], name: str) -> Any:
    """The value of a name, which may have dots: `book.slug`."""
    if name in values or "." not in name:
        return values.get(name)
    first, _, rest = name.partition(".")
    inner = values.get(first)
    return _inside(inner, rest) if isinstance(inner, Mapping) else None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, bool):
        yield "true" if value else "false"
    elif isinstance(value, str):
        yield value
    elif isinstance(value, int | float):
        yield str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    elif isinstance(value, Iterable) and not isinstance(value, Mapping | bytes):
        for inner in value:
            yield from _texts(inner)


def _value_test(  # noqa: PLR0911 - a table of tests
    field: str, test: str, value: str, rules: MatchingRules
) -> Callable[[str], bool]:
    if test == "contains":
        wanted = _plain(value)
        return lambda found: wanted in _plain(found)
    if field == "lines" and test == "is":
        expected = lines_of(value, MatchingRules())
        return lambda found: (
            expected is not None
            and (lines := lines_of(found, MatchingRules())) is not None
            and overlap(expected, lines) > 0
        )
    if field == "path":
        value = path_of(value.strip("/"), rules) if test == "ends" else path_of(value, rules)
        if test == "ends":
            return lambda found: (found := path_of(found, rules)) == value or found.endswith(f"/{value}")
    elif test == "ends":
        return lambda found: found.endswith(value)
    if test == "glob":
        pattern = re.compile(fnmatch.translate(value))
        return lambda found: pattern.match(path_of(found, rules) if field == "path" else found) is not None
    if field == "path":
        return lambda found: path_of(found, rules) == value
    if field == "url":
        address = address_of(value, rules)
        return lambda found: address_of(found, rules) == address
    return lambda found: found.strip() == value.strip()


def _plain(text: str) -> str:
    """Text for `contains`: in one case, with single blanks."""
    return " ".join(text.casefold().split())


def address_of(text: str, rules: MatchingRules) -> str:
    """An address without the parts that do not count; scheme and host in lower case. Any other text is unchanged.

    Example:
        >>> address_of("HTTPS://Docs.example/a/#install", MatchingRules(urls=("fragment", "slash")))
        'https://docs.example/a'
    """
    if not rules.urls or "://" not in text:
        return text
    try:
        parts = urlsplit(text.strip())
        host = parts.netloc.lower().removesuffix(_PORTS.get(parts.scheme, ":"))
    except ValueError:
        return text
    scheme = "https" if "scheme" in rules.urls and parts.scheme == "http" else parts.scheme
    path = parts.path.rstrip("/") if "slash" in rules.urls else parts.path
    query = "" if "query" in rules.urls else parts.query
    return urlunsplit((scheme, host, path, query, "" if "fragment" in rules.urls else parts.fragment))
