"""Extract hits from the output of a system: by regex, from JSON, from JSON lines, or by the default schema.

One invalid result makes the whole answer unparsable. Sorting, cutoff and duplicates are handled by `ranking`.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from cranfield.config.reading import (
    JsonExtract,
    JsonLinesExtract,
    Path,
    RegexExtract,
    ResultPaths,
    compile_empty_regex,
    compile_list_path,
    compile_path,
    compile_regex,
    compile_result_regex,
)
from cranfield.config.systems import SystemConfig
from cranfield.model import Answer, Hit, Order, Outcome
from cranfield.systems.calls.answer_schema import (
    MAX_HITS,
    UnparsableError,
    first_line,
    json_type,
    limit_hits,
    parse_answer,
    parse_hit,
    parse_number,
    plain_json,
)
from cranfield.systems.calls.explanation import read_explanation
from cranfield.systems.calls.regex_process import Found, SearchError, find


class _NotWholeError(Exception):
    """The system says that its answer is not whole."""


class Extractor:
    """Reads the output of one system according to its config."""

    def __init__(self, config: SystemConfig) -> None:
        extract = config.extract
        self._is_default_schema = extract is None
        self._order: Order = config.order
        self._timeout_s = getattr(config, "timeout_s", 0.0)
        self._empty = None if config.empty is None else compile_empty_regex(config.empty)
        self._regex = compile_result_regex(extract.regex) if isinstance(extract, RegexExtract) else None
        self._list = compile_list_path(extract.json_) if isinstance(extract, JsonExtract) else None
        self._is_lines = isinstance(extract, JsonLinesExtract)
        line = extract.jsonl if isinstance(extract, JsonLinesExtract) else True
        self._line = compile_list_path(line) if isinstance(line, str) else None
        patterns = extract.fields if isinstance(extract, RegexExtract) else {}
        self._patterns = {name: compile_regex(pattern) for name, pattern in patterns.items()}
        paths = extract if isinstance(extract, ResultPaths) else ResultPaths()
        named = {name: getattr(paths, name) for name in ("score", "title", "span", "tokens", "explanation")}
        named["id"] = paths.id or "@"
        self._paths = {name: compile_path(path) for name, path in named.items() if path is not None}
        self._result_fields = {name: compile_path(path) for name, path in paths.result_fields.items()}
        self._fields = {name: compile_path(path) for name, path in paths.fields.items()}
        self._explanations = None if paths.explanations is None else compile_path(paths.explanations)
        self._failed = None if paths.failed is None else compile_path(paths.failed)

    def read(self, output: str, k: int) -> Answer:
        """Parse output: hits, an empty answer, or a failure with its reason."""
        output = output.removeprefix("\ufeff")
        try:
            return self._read_or_empty(output, k)
        except _NotWholeError as error:
            return Answer(Outcome.ERROR, reason=str(error))
        except UnparsableError as error:
            return Answer(Outcome.UNPARSABLE, reason=str(error))

    def _read_or_empty(self, output: str, k: int) -> Answer:
        try:
            if self._is_default_schema:
                return parse_answer(_json_document(output), k, self._order)
            hits, fields = self._read(output, k)
        except SearchError:
            raise
        except UnparsableError:
            if self._empty is not None and self._find("empty", self._empty, output):
                return Answer(Outcome.EMPTY, fields=self._matched_fields(output))
            raise
        return Answer(Outcome.ANSWERED if hits else Outcome.EMPTY, hits, fields=fields)

    def _read(self, output: str, k: int) -> tuple[tuple[Hit, ...], Mapping[str, Any]]:
        if self._regex is not None:
            return limit_hits(self._from_regex(output, k), k, self._order), self._matched_fields(output)
        if self._is_lines:
            document: object = list(_json_lines(output))
            self._require_whole(document)
            results: Iterable[object] = self._from_lines(document)
        else:
            document = _json_document(output)
            self._require_whole(document)
            results = self._from_document(document)
        where = {name: f"extract.fields.{name}" for name in self._fields}
        fields = {
            name: plain_json(_pick(path, document, where[name]), where[name]) for name, path in self._fields.items()
        }
        return self._explained(limit_hits(self._hits(results), k, self._order), document), fields

    def _explained(self, hits: tuple[Hit, ...], document: object) -> tuple[Hit, ...]:
        """The hits with explanations that stand elsewhere in the document."""
        found = None if self._explanations is None else _pick(self._explanations, document, "extract.explanations")
        if not isinstance(found, dict):
            return hits
        return tuple(
            hit if hit.explanation is not None else replace(hit, explanation=read_explanation(found.get(hit.id)))
            for hit in hits
        )

    def _require_whole(self, document: object) -> None:
        """Raise `_NotWholeError` where `extract.failed` says that a part of the results is missing."""
        found = None if self._failed is None else _pick(self._failed, document, "extract.failed")
        if isinstance(found, dict):
            found = "; ".join(f"{name}: {_text(value)}" for name, value in found.items() if value)
        if found:
            raise _NotWholeError(first_line(f"the answer is incomplete: {_text(found)}"))

    def _matched_fields(self, output: str) -> dict[str, Any]:
        """The fields that a regular expression finds; of JSON none: where a document could be read they are in it."""
        found = {
            name: self._find(f"extract.fields.{name}", pattern, output) for name, pattern in self._patterns.items()
        }
        return {name: _scalar(match[min(len(match) - 1, 1)]) for name, matches in found.items() for match in matches}

    def _find(self, where: str, pattern: re.Pattern[str], output: str, most: int = 1) -> Found:
        return find(where, pattern, output, most, self._timeout_s)

    def _from_regex(self, output: str, k: int) -> Iterator[Hit]:
        pattern = self._regex
        if pattern is None or not output.strip():
            return
        names = pattern.groupindex
        group = names.get("id", min(pattern.groups, 1))
        found = self._find("extract.regex", pattern, output, max(MAX_HITS, 10 * k) + 1)
        for position, match in enumerate(found, start=1):
            values: dict[str, object] = {"id": match[group], **{name: match[place] for name, place in names.items()}}
            values |= {name: parse_number(match[names[name]]) for name in ("score", "tokens") if name in names}
            yield parse_hit(values, position, self._order)
        if not found:
            unset = "empty is not set; for an answer without results: empty: '^No results'"
            empty = unset if self._empty is None else "empty did not match"
            raise UnparsableError(f"no result matched extract.regex, and {empty}")

    def _from_document(self, document: object) -> list[object]:
        if self._list is None:
            return []
        results = _pick(self._list, document, "extract.json")
        if not isinstance(results, list):
            raise UnparsableError(f"extract.json gave {json_type(results)}, not a list")
        return results

    def _from_lines(self, lines: object) -> Iterator[object]:
        if not isinstance(lines, list):
            return
        found = False
        for line in lines:
            result = line if self._line is None else _pick(self._line, line, "extract.jsonl")
            if self._line is not None and result is None:
                continue
            found = True
            if self._line is not None and isinstance(result, list):
                yield from result
            else:
                yield result
        if lines and not found:
            raise UnparsableError("extract.jsonl found nothing in any line")

    def _hits(self, results: Iterable[object]) -> Iterator[Hit]:
        for position, result in enumerate(results, start=1):
            values = {name: _pick(path, result, f"extract.{name}") for name, path in self._paths.items()}
            if self._result_fields:
                values["fields"] = self._fields_of(result)
            yield parse_hit(values, position, self._order)

    def _fields_of(self, result: object) -> dict[str, object]:
        """What a result says of its document; null is nothing."""
        found = {
            name: _pick(path, result, f"extract.result_fields.{name}") for name, path in self._result_fields.items()
        }
        return {name: value for name, value in found.items() if value is not None}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _scalar(text: str | None) -> Any:
    """A number, true or false as such; else the text."""
    try:
        value = json.loads(text or "", parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, int | float) and math.isfinite(value) else text


def _pick(path: Path, value: object, where: str) -> Any:
    from jmespath.exceptions import JMESPathError

    try:
        return path.search(value)
    except (JMESPathError, TypeError, ValueError, RecursionError):
        raise UnparsableError(f"{where} cannot be evaluated on this output") from None


def _json_document(output: str) -> object:
    if not output.strip():
        raise UnparsableError("the output is blank, not JSON")
    try:
        return load_json(output)
    except json.JSONDecodeError as error:
        raise UnparsableError(f"the output is not JSON (line {error.lineno}, column {error.colno})") from None
    except DuplicateKeyError as error:
        raise UnparsableError(f"the output has {error}") from None
    except (ValueError, RecursionError):
        raise UnparsableError("the output cannot be parsed as JSON") from None


def _json_lines(output: str) -> Iterator[object]:
    # splitlines would also split at U+2028, which JSON text may contain.
    for number, line in enumerate(output.split("\n"), start=1):
        if line.strip():
            try:
                yield load_json(line)
            except DuplicateKeyError as error:
                raise UnparsableError(f"line {number} of the output has {error}") from None
            except (ValueError, RecursionError):
                raise UnparsableError(f"line {number} of the output is not JSON") from None


class DuplicateKeyError(ValueError):
    """An object of JSON has a key twice: readers do not agree on which value counts."""


def load_json(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is not JSON, holds NaN or Infinity, or an object has a key twice (`DuplicateKeyError`).
        RecursionError: it is nested too deep.
    """
    return json.loads(text, parse_constant=_no_constant, object_pairs_hook=with_unique_keys)


def with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Object hook of `json.loads`.

    Raises:
        DuplicateKeyError: a key stands twice.
    """
    values = dict(pairs)
    if len(values) < len(pairs):
        twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise DuplicateKeyError(f"the key {first_line(twice)!r} twice in one object")
    return values


def _no_constant(name: str) -> object:
    raise ValueError(name)
