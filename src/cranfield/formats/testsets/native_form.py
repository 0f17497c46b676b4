"""The form of a test set in YAML or JSON: keys, types and bounds are those of `model`, and judgments stand under their query.

What `model` does not say is here: kinds of judgments, short forms, and the conditions on several keys in the published JSON Schema
(`native` checks them). The string under each field is its description in that schema.

`python -m cranfield.formats.testsets.native_form` writes the schema anew, for editors and other tools.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WrapSerializer
from pydantic.config import JsonDict, JsonValue

from cranfield.base.words import count_noun
from cranfield.formats.io.files import write_text
from cranfield.formats.io.tree import describe
from cranfield.formats.io.validation import published_schema, schema_text
from cranfield.formats.testsets.golden_record import OF_QUERY, LabelModel, unknown_keys
from cranfield.formats.testsets.vocabulary import KNOWN_VERSION, VERSION, is_known_version
from cranfield.model import Criteria, Legacy, Negative, Passage, Pattern, PredicateRule, Query, Span, TestSetHead
from cranfield.model.kinds import FilledText, Finite, Flag, Grade, Id, InFile, Kind, UnfitError, source_text, whole
from cranfield.model.query import ClassName

TARGETS = ("patterns", "spans", "entities", "answer_files", "predicates", "criteria", "passages")
"""Keys of a query that define relevance by a rule."""
GRADED = ("judgments", "ratings", "adjudicated", "groups")
"""Keys of a query that define relevance by document id."""

_NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
SHORT_SPAN = re.compile(
    rf"(?P<path>.*[^\s:].*):(?P<start>[0-9]{{1,9}})-(?P<end>[0-9]{{1,9}})(?::(?P<grade>{_NUMBER}))?"
)
"""`src/index.rs:41-61`, or with its grade `src/index.rs:41-61:2`."""
LINES = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def lines_of(text: str) -> tuple[int, int]:
    """First and last line of `41-61`, or of `41`; raise `UnfitError` where it is neither."""
    found = LINES.fullmatch(text)
    if not found:
        raise UnfitError("says no lines", expected="two line numbers, as 41-61", got=repr(text))
    start = int(found[1])
    end = int(found[2] or start)
    if start < 1 or end < start:
        raise UnfitError(
            "says no lines", expected="a first line of 1 or more, and a last one not before it", got=repr(text)
        )
    return start, end


def _lines(text: str) -> str:
    lines_of(text)
    return text


Lines = Annotated[
    str, Kind(_lines, source_text, described={"type": ["string", "integer"], "pattern": f"^{LINES.pattern}$"})
]


def short_span(text: str) -> Span | None:
    """The span that `src/index.rs:41-61:2` says; None where it says none."""
    found = SHORT_SPAN.fullmatch(text)
    if not found or "\0" in text:
        return None
    start, end = int(found["start"]), int(found["end"])
    grade = float(found["grade"] or 1) + 0.0
    return Span(found["path"], start, end, grade) if 1 <= start <= end and math.isfinite(grade) else None


class _OrShort:
    """Says in the JSON Schema that a value may be written in a short form too."""

    def __init__(self, short: JsonDict, more: JsonDict | None = None) -> None:
        self.short = short
        self.more = more or {}

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        """The short form, or the value's own with what has to hold beside it."""
        return {"anyOf": [self.short, {**handler(core_schema), **self.more}]}


@dataclass(frozen=True, slots=True)
class SpanEntry(InFile):
    """Relevant lines of a file; a result that overlaps them matches."""

    path: FilledText
    """Path of the file."""
    lines: Lines
    """First and last line, counted from 1: `41-61`."""
    grade: Grade = 1.0
    """Grade of the span."""

    @property
    def span(self) -> Span:
        """What it says."""
        return Span(self.path, *lines_of(self.lines), self.grade)


def _read_span(value: Any) -> Any:
    if isinstance(value, str):
        span = short_span(value)
        if span is None:
            raise UnfitError(
                "is not a span of lines", expected="PATH:FIRST-LAST or PATH:FIRST-LAST:GRADE", got=describe(value)
            )
        return SpanEntry(span.path, f"{span.start}-{span.end}", span.grade)
    if not isinstance(value, dict):
        raise UnfitError("is not a span of lines", expected="PATH:FIRST-LAST, or path and lines", got=describe(value))
    return value


def _write_span(entry: SpanEntry, plain: Any) -> Any:
    """The short form, where it means the same."""
    text = f"{entry.path}:{entry.lines}" if entry.grade == 1 else f"{entry.path}:{entry.lines}:{whole(entry.grade)}"
    return text if short_span(text) == entry.span else plain(entry)


_SHORT_SPAN_SCHEMA: JsonDict = {"type": "string", "pattern": r":[0-9]{1,9}-[0-9]{1,9}(:[-+.0-9eE]+)?$"}
AnySpan = Annotated[SpanEntry, BeforeValidator(_read_span), WrapSerializer(_write_span), _OrShort(_SHORT_SPAN_SCHEMA)]


def _read_legacy(value: Any) -> Any:
    """Read a list as ids; refuse a form without ids and patterns."""
    values = {"ids": value} if isinstance(value, list) else value
    if (
        isinstance(values, dict)
        and not values.get("ids")
        and not values.get("patterns")
        and not values.keys() - {"ids", "patterns"}
    ):
        raise UnfitError("names neither ids nor patterns")
    return values


def _write_legacy(legacy: Legacy, plain: Any) -> Any:
    return plain(legacy) if legacy.patterns else list(legacy.ids)


_LIST_OF_IDS: JsonDict = {
    "type": "array",
    "minItems": 1,
    "items": {"type": ["string", "number", "boolean"], "pattern": r"\S"},
}
_ONE_IS_FILLED: JsonDict = {
    "anyOf": [{"required": [key], "properties": {key: {"minItems": 1}}} for key in ("ids", "patterns")]
}
AnyLegacy = Annotated[
    Legacy, BeforeValidator(_read_legacy), WrapSerializer(_write_legacy), _OrShort(_LIST_OF_IDS, _ONE_IS_FILLED)
]


def _read_forbidden(value: Any) -> Any:
    """Read text as an id."""
    return {"where": {"id": source_text(value)}} if isinstance(source_text(value), str) else value


def _write_forbidden(target: Criteria, plain: Any) -> Any:
    """The id alone, where that is the condition."""
    return target.where["id"] if target == Criteria({"id": target.where.get("id", "")}) else plain(target)


AnyForbidden = Annotated[
    Criteria,
    BeforeValidator(_read_forbidden),
    WrapSerializer(_write_forbidden),
    _OrShort({"type": ["string", "number", "boolean"], "pattern": r"\S"}),
]


def _read_passage(value: Any) -> Any:
    """Read text as a quote; refuse a passage that nothing identifies."""
    values = {"quote": value} if isinstance(value, str) else value
    if not isinstance(values, dict):
        raise UnfitError("is no passage", expected="a quote, or quote, path, chars or pages", got=describe(value))
    given = {key for key in ("quote", "path", "chars", "pages") if str(source_text(values.get(key, ""))).strip()}
    if not given & {"quote", "chars", "pages"}:
        raise UnfitError("is not identified", expected="a quote; or a path with chars (`120-340`) or pages (`12`)")
    if "quote" not in given and "path" not in given:
        raise UnfitError("names no document", expected="the path that its chars or pages are of")
    return values


def _write_passage(passage: Passage, plain: Any) -> Any:
    """The quote alone, where that is all."""
    return passage.quote if passage == Passage(passage.quote) else plain(passage)


AnyPassage = Annotated[
    Passage,
    BeforeValidator(_read_passage),
    WrapSerializer(_write_passage),
    _OrShort(
        {"type": "string", "pattern": r"\S"},
        {"anyOf": [{"required": ["quote"]}, {"required": ["path", "chars"]}, {"required": ["path", "pages"]}]},
    ),
]


def _write_negative(negative: Negative, plain: Any) -> Any:
    """The field first."""
    return dict(reversed(plain(negative).items()))


AnyNegative = Flag | Annotated[Negative, WrapSerializer(_write_negative)]
"""`true` stands for a bound on nothing."""


def _of_label(label: LabelModel) -> LabelModel:
    """Refuse what the query itself says, and what would be lost."""
    if keys := [key for key in OF_QUERY if key in (label.model_extra or {})]:
        raise UnfitError(f"has {', '.join(keys)}, which are keys of the query itself", expected="keys of a label")
    if keys := sorted(set(unknown_keys(label))):
        raise UnfitError(f"has unknown keys of entities, line ranges or facts: {', '.join(keys)}")
    if plain := [
        each for each in label.expected_entities if isinstance(each, str) or not (each.role or each.rationale)
    ]:
        raise UnfitError(
            f"has {count_noun(len(plain), 'entities')} without a role", expected="entities with a role or a rationale"
        )
    if not is_known_version(version := (label.model_extra or {}).get(VERSION)):
        raise UnfitError("has an unknown schema version", expected=KNOWN_VERSION, got=describe(version))
    return label


def _filled(key: str) -> JsonDict:
    return {"required": [key], "properties": {key: {"minItems": 1, "minProperties": 1}}}


_NEGATIVE: JsonDict = {"required": ["negative"], "properties": {"negative": {"not": {"const": False}}}}
_TRUTH: list[JsonValue] = [_filled(key) for key in (*GRADED, *TARGETS, "files")]
_ONE_KIND_OF_TRUTH: JsonDict = {
    "anyOf": [*_TRUTH, _NEGATIVE],
    "allOf": [
        {
            "not": {
                "allOf": [
                    {"anyOf": [_filled(key) for key in GRADED]},
                    {"anyOf": [_filled(key) for key in TARGETS]},
                ]
            }
        },
        {"not": {"allOf": [_filled("groups"), {"anyOf": [_filled("judgments"), _filled("ratings")]}]}},
        {"not": {"allOf": [_NEGATIVE, {"anyOf": _TRUTH}]}},
    ],
}
_NOT_OF_QUERY: JsonDict = {"not": {"anyOf": [{"required": [key]} for key in OF_QUERY]}}

Grades = Mapping[Id, Finite]
Groups = Mapping[Id, Annotated[Mapping[Id, Finite | Annotated[Grades, Field(min_length=1)]], Field(min_length=1)]]


@dataclass(frozen=True, slots=True)
class QueryEntry(Query):
    """A query, its class, and its judgments or expected items."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid", "json_schema_extra": _ONE_KIND_OF_TRUTH}

    id: FilledText
    text: FilledText
    negative: AnyNegative = False  # type: ignore[assignment]  # as a file has it
    judgments: Grades = field(default_factory=dict)
    """Document id to grade. 0: judged not relevant; below 0: in the pool, not judged."""
    ratings: Mapping[Id, Annotated[Mapping[Id, Finite | None], Field(min_length=1)]] = field(default_factory=dict)
    """Document id to the grade of each rater, by name; null for a missing grade."""
    adjudicated: Mapping[Id, Annotated[Grades, Field(min_length=1, max_length=1)]] = field(default_factory=dict)
    """Document id to the grade by adjudication, with the name of who gave it; it takes precedence over `ratings`."""
    groups: Annotated[Groups, PlainSerializer(lambda groups: groups)] = field(default_factory=dict)
    """Judgments by subtopic, judge or preference group (see `grouping`): group to document id to grade. Groups of
    preferences may contain subgroups."""
    patterns: tuple[Pattern, ...] = ()
    """Relevance by pattern; documents that match no pattern are not relevant."""
    spans: tuple[AnySpan, ...] = ()
    """Relevance by lines of a file: `src/index.rs:41-61`, with a grade `src/index.rs:41-61:2`, or `{path, lines, grade}`."""
    entities: Grades | tuple[FilledText, ...] = ()
    """Relevance by symbol: `src/index.py::Index.add` to grade, or a list of symbols."""
    entity_lines: Mapping[Id, Annotated[tuple[Lines, ...], Field(min_length=1)]] = field(default_factory=dict)
    """Lines of symbols in `entities`, by which results that name no symbol match: symbol to lines such as `41-61`."""
    answer_files: Grades = field(default_factory=dict)
    """Relevance by file: path to grade. Any result in the file matches."""
    predicates: tuple[PredicateRule, ...] = ()
    """Relevance by a query to a database."""
    criteria: tuple[Criteria, ...] = ()
    """Relevance by conditions on the fields of a result: `{where: {book: one, "text contains": a long road}, grade: 2}`."""
    passages: tuple[AnyPassage, ...] = ()
    """Relevance by text, however documents are cut: quotes, or `{quote, path, chars, pages, grade}`."""
    files: tuple[FilledText, ...] = ()
    """Files that the results should cover. If nothing else is expected, they are also the relevant items."""
    legacy: AnyLegacy | None = None
    """Legacy form, which should be ranked below the modern one: `{ids, patterns}`, or a list of ids."""
    forbidden: tuple[AnyForbidden, ...] = ()
    """Results that must not be found, for `Forbidden`: ids, or conditions `{where: {tenant: other}}`. No part of the grades."""
    label: Annotated[
        Annotated[LabelModel, AfterValidator(_of_label)] | None, Field(json_schema_extra=_NOT_OF_QUERY)
    ] = None
    """Label of a golden set, with the keys of its records: facts, narrative, roles, line ranges, provenance. No judgment."""


@dataclass(frozen=True, slots=True)
class ClassesEntry(InFile):
    """Query classes taken from a stratum."""

    stratum: FilledText
    """Key of the stratum."""
    names: Mapping[Id, ClassName] = field(default_factory=dict)
    """Value of the stratum to class; by default the values are names or letters of classes."""


@dataclass(frozen=True)
class _Version(InFile):
    """What comes first in the file."""

    cranfield_testset: Literal[1]
    """Version of this schema; this key identifies a file as a test set."""


@dataclass(frozen=True)
class TestSetFile(TestSetHead, _Version):
    """A Cranfield test set: queries with their judgments or expected items."""

    classes: ClassesEntry | None = field(default=None, kw_only=True)
    """Stratum that gives the class of a query without `class`."""
    queries: Annotated[tuple[QueryEntry, ...], Field(min_length=1)]
    """The queries, in the order in which reports list them."""


SCHEMA_FILE = Path(__file__).with_name("testset.schema.json")


def testset_schema() -> dict[str, Any]:
    """The schema (draft 2020-12), made from the values of `model` and their form in a file."""
    return published_schema(TestSetFile, **{"$id": "urn:cranfield:testset:1"})


if __name__ == "__main__":
    write_text(SCHEMA_FILE, [schema_text(testset_schema())])
