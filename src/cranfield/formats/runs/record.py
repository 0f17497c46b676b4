"""One query's answer as a JSON record and back: the lines of a run file, and of a journal of a collection under way.

A record leaves out what is not there (no score, no title, no hits). Its JSON text is the same on every machine.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any, NoReturn

from cranfield.base.errors import Problem, RunFormatError, shorten, unknown_name
from cranfield.model import Answer, CallLog, Explanation, Hit, Outcome
from cranfield.model.explanation import explanation_from_record

ANSWER_KEYS = ("query_id", "outcome", "reason", "fields", "hits", "log")


HIT_KEYS = ("id", "score", "title", "span", "tokens", "redacted_id", "redacted_span", "fields", "explanation")


LOG_KEYS = (
    "latency_ms",
    "stdout_head",
    "stderr_head",
    "attempts",
    "repeat_ms",
    "unstable",
    "cached",
    "calls_before",
    "at",
    "age_s",
)


_LONE_SURROGATE = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")


_KINDS = {dict: "an object", list: "a list", str: "a string", float: "a finite number"}


def json_line(record: Mapping[str, Any]) -> str:
    """A record as one line of JSON with a line end: keys sorted, characters as they are.

    A lone surrogate (an id that is not UTF-8) is escaped, so that the file is UTF-8. Two that would be taken for one
    character are left as they are: encode with `surrogatepass`.

    Raises:
        RunFormatError: the record holds NaN, an infinity, or what JSON has no word for.
    """
    try:
        text = json.dumps(
            record, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_refuse
        )
    except _UnsayableError as error:
        raise _unsayable(record, str(error)) from None
    except (TypeError, RecursionError):  # keys of several types cannot be sorted; a list may hold itself
        raise _unsayable(record, "keys that are not text, or too many levels") from None
    except ValueError:
        raise _unsayable(record, "NaN, an infinity, or a list that contains itself") from None
    return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", text) + "\n"


class _UnsayableError(Exception):
    """A value that JSON has no word for; `str()` is its kind."""


def _refuse(value: object) -> NoReturn:
    raise _UnsayableError(f"a {type(value).__name__}")


def _unsayable(record: Mapping[str, Any], got: str) -> RunFormatError:
    whose = f"query {record['query_id']!r}" if "query_id" in record else "the run's header"
    return RunFormatError(
        f"{whose} cannot be written as JSON",
        expected="text, finite numbers, true, false, null, lists and mappings of them",
        got=got,
    )


def answer_record(query_id: str, answer: Answer, log: CallLog | None = None) -> dict[str, Any]:
    """One query's answer, and the log of its call where given, as plain data for `json_line`.

    Raises:
        RunFormatError: a score is NaN or infinite.
    """
    record: dict[str, Any] = {"query_id": query_id, "outcome": answer.outcome.value}
    if answer.reason is not None:
        record["reason"] = answer.reason
    if answer.fields:
        record["fields"] = dict(answer.fields)
    if answer.hits:
        record["hits"] = [_hit_record(query_id, rank, hit) for rank, hit in enumerate(answer.hits, start=1)]
    if log is not None:
        record["log"] = log_record(log)
    return record


def _hit_record(query_id: str, rank: int, hit: Hit) -> dict[str, Any]:
    record: dict[str, Any] = {key: getattr(hit, key) for key in HIT_KEYS}
    if hit.score is not None:
        score = finite(hit.score)
        if score is None:
            raise RunFormatError(
                f"query {query_id!r}, hit {rank} ({shorten(hit.id)}): the score is not a finite number",
                expected="a finite number, or no score",
                got=shorten(hit.score),
            )
        record["score"] = score
    if hit.fields is not None:
        record["fields"] = dict(hit.fields)
    if hit.explanation is not None:
        record["explanation"] = hit.explanation.record()
    return {key: value for key, value in record.items() if value is not None}


def log_record(log: CallLog) -> dict[str, Any]:
    """The log of one call as plain data."""
    found = {name: getattr(log, name) for name in _USUAL}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in found.items()
        if value != _USUAL[name]
    }


_USUAL = {field.name: field.default for field in fields(CallLog)}


"""Values that a record leaves out."""


def answer_from_record(record: object) -> tuple[str, Answer, CallLog | None]:
    """Query id, answer and log of a record that `answer_record` made.

    Raises:
        RunFormatError: with everything in it that is not as it should be.
    """
    reader = RecordReader()
    top = reader.mapping(record, "the line", ANSWER_KEYS)
    query_id = reader.text(top, "query_id", required=True) or ""
    log = reader.log(top["log"], "log") if "log" in top else None
    answer = Answer(
        outcome=reader.outcome(top),
        hits=tuple(reader.hits(top)),
        reason=reader.text(top, "reason"),
        fields=reader.mapping(top.get("fields", {}), "fields"),
    )
    if reader.problems:
        raise RunFormatError(reader.problems)
    return query_id, answer, log


@dataclass
class RecordReader:
    """Takes the members of a record one by one, and gathers what is wrong with them."""

    problems: list[Problem] = field(default_factory=list)
    _not_there: dict[str, Any] = field(default_factory=dict)
    """Stands in for an object that is something else: its members are not checked."""

    def wrong(self, message: str, *, expected: str | None = None, got: str | None = None) -> None:
        """Note one problem."""
        self.problems.append(Problem(message, expected=expected, got=got))

    def mapping(self, value: object, name: str, known: Sequence[str] = ()) -> dict[str, Any]:
        """An object, an empty one where it is something else; other keys than the `known` ones are problems."""
        if not isinstance(value, dict):
            self._not(name, value, dict)
            return self._not_there
        self.problems += [unknown_name("key", str(key), known) for key in value if known and key not in known]
        return value

    def text(self, owner: Mapping[str, Any], key: str, *, required: bool = False, of: str = "") -> str | None:
        """A string member; None when absent."""
        if key not in owner:
            if required and owner is not self._not_there:
                self.wrong(f"missing key {key!r}" + (f" in {of}" if of else ""))
            return None
        value = owner[key]
        if not isinstance(value, str):
            self._not(f"{of}.{key}" if of else key, value, str)
            return None
        return value

    def number(self, owner: Mapping[str, Any], key: str, *, of: str = "") -> float | None:
        """A finite number member, as a float; None when absent."""
        if key not in owner:
            return None
        number = finite(owner[key])
        if number is None:
            self._not(f"{of}.{key}" if of else key, owner[key], float)
        return number

    def outcome(self, owner: Mapping[str, Any]) -> Outcome:
        """The outcome of an answer."""
        name = self.text(owner, "outcome", required=True)
        if name in list(Outcome):
            return Outcome(name)
        if name is not None:
            self.problems.append(unknown_name("outcome", name, list(Outcome)))
        return Outcome.UNPARSABLE

    def hits(self, owner: Mapping[str, Any]) -> Iterator[Hit]:
        """The hits of an answer, in order."""
        hits = owner.get("hits", [])
        if not isinstance(hits, list):
            self._not("hits", hits, list)
            return
        for index, entry in enumerate(hits):
            name = f"hits[{index}]"
            hit = self.mapping(entry, name, HIT_KEYS)
            hit_id = self.text(hit, "id", required=True, of=name) or ""
            texts = {key: self.text(hit, key, of=name) for key in ("title", "span", "redacted_id", "redacted_span")}
            score, tokens = self.number(hit, "score", of=name), self.number(hit, "tokens", of=name)
            fields = self.mapping(hit["fields"], f"{name}.fields") if "fields" in hit else None
            explanation = self._explanation(hit["explanation"], f"{name}.explanation") if "explanation" in hit else None
            yield Hit(hit_id, score, tokens=tokens, fields=fields, explanation=explanation, **texts)

    def _explanation(self, value: object, name: str) -> Explanation | None:
        try:
            return explanation_from_record(value)
        except ValueError as error:
            self.wrong(f"wrong value for {name}", expected="a tree of name, value and children", got=str(error))
            return None

    def log(self, value: object, name: str) -> CallLog:
        """The log of a call."""
        log = self.mapping(value, name, LOG_KEYS)
        if log is not self._not_there and "latency_ms" not in log:
            self.wrong(f"missing key 'latency_ms' in {name}")
        attempts, before = (self.number(log, key, of=name) for key in ("attempts", "calls_before"))
        cached = log.get("cached", False)
        if not isinstance(cached, bool):
            self.wrong(f"wrong value for {name}.cached", expected="true or false", got=shorten(cached))
        return CallLog(
            latency_ms=self.number(log, "latency_ms", of=name) or 0.0,
            stdout_head=self.text(log, "stdout_head", of=name) or "",
            stderr_head=self.text(log, "stderr_head", of=name) or "",
            attempts=1 if attempts is None else int(attempts),
            repeat_ms=tuple(self._listed(log, "repeat_ms", float, of=name)),
            unstable=tuple(self._listed(log, "unstable", str, of=name)),
            cached=cached is True,
            calls_before=None if before is None else int(before),
            at=self.text(log, "at", of=name),
            age_s=self.number(log, "age_s", of=name),
        )

    def _listed(self, owner: Mapping[str, Any], key: str, kind: type, *, of: str) -> list[Any]:
        """A list of texts, or of finite numbers; empty when absent."""
        value = owner.get(key, [])
        sound = isinstance(value, list) and all(
            isinstance(item, str) if kind is str else finite(item) is not None for item in value
        )
        if not sound:
            expected = "a list of strings" if kind is str else "a list of finite numbers"
            self.wrong(f"wrong value for {of}.{key}", expected=expected, got=shorten(value))
        return [kind(item) for item in value] if sound else []

    def _not(self, name: str, value: object, kind: type) -> None:
        self.wrong(f"wrong value for {name}", expected=_KINDS[kind], got=shorten(value))


def finite(value: object) -> float | None:
    """A finite number of any type, NumPy's included, as a float; else None."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
