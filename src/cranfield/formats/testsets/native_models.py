"""The schema of a test set in YAML or JSON, as pydantic models: what may be said, its type and its bounds.

The string under each field is its description in the published JSON Schema. What one field alone cannot tell (ids used
twice, a query without judgments) is checked in `testset_checks`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic.config import JsonDict, JsonValue

from cranfield.formats.io.located import PlainScalar, Text
from cranfield.formats.io.tree import describe
from cranfield.formats.testsets.native_fields import (
    CLOSED,
    AnyRegex,
    ClassName,
    Database,
    Date,
    FilledText,
    Grade,
    Id,
    Lines,
    OrShort,
    ParamName,
    Regex,
    Strict,
    complaint,
    short_span,
    without_nul,
)
from cranfield.model import Credit, Grouping
from cranfield.model.meta import DEFAULT_REFRESH_DAYS

TARGETS = ("patterns", "spans", "entities", "answer_files", "predicates")
"""Keys of a query that say by a rule what is relevant."""
GRADED = ("judgments", "ratings", "groups")
"""Keys that say it by document id."""


class PatternModel(Strict):
    """Ids that are relevant, by a regular expression."""

    regex: Regex
    """Python regular expression, searched for anywhere in the result id (anchor it with ^ and $), case-sensitive."""
    grade: Grade = 1
    """How relevant a match is."""
    credit: Credit = "once"
    """`once`: the pattern is one expected item, earned by the first match. `every`: each match is an item."""
    expected_count: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """How many documents match in the whole corpus, where known; needed by measures that count, with `every`."""


class SpanModel(Strict):
    """Lines of a file that are relevant; a result that overlaps them is one."""

    path: FilledText
    """The file."""
    lines: Lines
    """First and last line, counted from 1: `41-61`."""
    grade: Grade = 1
    """How relevant it is."""


def _short_span(value: Any) -> Any:
    if isinstance(value, str):
        span = short_span(value)
        if span is None:
            raise complaint(
                "is no span of lines", expected="PATH:FIRST-LAST or PATH:FIRST-LAST:GRADE", got=describe(value)
            )
        return SpanModel(path=span.path, lines=f"{span.start}-{span.end}", grade=span.grade)
    if not isinstance(value, dict):
        raise complaint("is no span of lines", expected="PATH:FIRST-LAST, or path and lines", got=describe(value))
    return value


_SHORT_SPAN_SCHEMA = {"type": "string", "pattern": r":[0-9]{1,9}-[0-9]{1,9}(:[-+.0-9eE]+)?$"}
AnySpan = Annotated[SpanModel, BeforeValidator(_short_span), OrShort(_SHORT_SPAN_SCHEMA)]


class PredicateModel(Strict):
    """Documents that are relevant because a query to your own database names them."""

    sql: FilledText
    """A query that gives document ids in its first column."""
    database: FilledText = "corpus"
    """Name in `databases`."""
    grade: Grade = 1
    """How relevant such a document is."""


class NegativeModel(Strict):
    """How sure a system may be when there is nothing to find."""

    below: Grade | None = None
    """Results whose score is under it do not count; without it every result counts."""
    field: Text = ""
    """A field of the answer (`confidence`) that is compared with `below` in place of the scores."""


class LegacyModel(Strict):
    """The old form of what is asked for."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": [key], "properties": {key: {"minItems": 1}}}  # at least one of them says something
                for key in ("ids", "patterns")
            ]
        }
    )

    ids: list[FilledText] = Field(default_factory=list)
    """Result ids of it."""
    patterns: list[Regex] = Field(default_factory=list)
    """Regular expressions on the result id, searched for."""


def _legacy(value: Any) -> Any:
    """A list stands for its ids; either says something."""
    values = {"ids": value} if isinstance(value, list) else value
    if (
        isinstance(values, dict)
        and not values.get("ids")
        and not values.get("patterns")
        and not values.keys() - {"ids", "patterns"}
    ):
        raise complaint("names neither ids nor patterns")
    return values


_LIST_OF_IDS = {"type": "array", "minItems": 1, "items": {"type": ["string", "number", "boolean"], "pattern": r"\S"}}
AnyLegacy = Annotated[LegacyModel, BeforeValidator(_legacy), OrShort(_LIST_OF_IDS)]


def _filled(key: str) -> JsonDict:
    return {"required": [key], "properties": {key: {"minItems": 1, "minProperties": 1}}}


_NEGATIVE: JsonDict = {"required": ["negative"], "properties": {"negative": {"not": {"const": False}}}}
_TRUTH: list[JsonValue] = [_filled(key) for key in (*GRADED, *TARGETS, "files")]


class QueryModel(Strict):
    """One query, what kind of question it is, and what is expected for it."""

    model_config = ConfigDict(
        json_schema_extra={
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
    )

    id: FilledText
    """Pairs the query with the runs; every query has its own."""
    text: FilledText
    """What is asked, as a user types it."""
    query_class: ClassName | None = Field(default=None, alias="class")
    """How such a question is measured: name or letter of a query class."""
    strata: dict[Id, Annotated[Text, AfterValidator(without_nul)]] = Field(
        default_factory=dict, json_schema_extra=CLOSED
    )
    """Any key to a value: class, task type, difficulty. Reports break results down by each."""
    params: dict[ParamName, Annotated[PlainScalar, AfterValidator(without_nul)]] = Field(
        default_factory=dict, json_schema_extra=CLOSED
    )
    """Filled into a system's command as `{params.NAME}`, for example a minimum version."""
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1
    """How often it is asked, in any unit: weighted means multiply by it."""
    negative: bool | NegativeModel = False
    """Nothing should be found: `true`, or how sure the system may be of what it shows."""
    judgments: dict[Id, Grade] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Document id to grade. 0 is judged and not relevant; under 0 is pooled and not judged."""
    ratings: dict[Id, Annotated[dict[Id, Grade | None], Field(min_length=1, json_schema_extra=CLOSED)]] = Field(
        default_factory=dict, json_schema_extra=CLOSED
    )
    """Document id to what each rater said, by the rater's name; null where the rater said nothing."""
    groups: dict[
        Id,
        Annotated[
            dict[Id, Grade | Annotated[dict[Id, Grade], Field(min_length=1, json_schema_extra=CLOSED)]],
            Field(min_length=1, json_schema_extra=CLOSED),
        ],
    ] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Judgments by subtopic, judge or opinion (see `grouping`): group to document id to grade; preferences may have
    subgroups between the two."""
    patterns: list[PatternModel] = Field(default_factory=list)
    """Relevance by pattern: what no pattern matches is not relevant."""
    spans: list[AnySpan] = Field(default_factory=list)
    """Relevance by place: `src/index.rs:41-61`, with its grade `src/index.rs:41-61:2`, or `{path, lines, grade}`."""
    entities: Annotated[dict[Id, Grade], Field(json_schema_extra=CLOSED)] | list[FilledText] = Field(
        default_factory=dict
    )
    """Relevance by symbol: `src/index.py::Index.add` to its grade, or a list of them."""
    answer_files: dict[Id, Grade] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Relevance by file: path to grade. Any result in it is one."""
    predicates: list[PredicateModel] = Field(default_factory=list)
    """Relevance by a query to your own database."""
    files: list[FilledText] = Field(default_factory=list)
    """Files that the results should cover. Where nothing else is expected, they are what is relevant too."""
    legacy: AnyLegacy | None = None
    """The old form of what is asked for, which should rank below the modern one: `{ids, patterns}`, or a list of ids."""


class ClassesModel(Strict):
    """Where a stratum gives the class of a question."""

    stratum: FilledText
    """Key of the stratum."""
    names: dict[Id, ClassName] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Its values to classes; without it the values are names or letters of classes themselves."""


class SourceModel(Strict):
    """Where results come from."""

    name: FilledText
    """What reports call it."""
    pattern: Regex
    """Regular expression on the result id, searched for."""


class MatchingModel(Strict):
    """What is done to the path, the lines and the entity of a result before it is compared with what is expected."""

    line_base: Literal[0, 1] = 1
    """The number that results give the first line of a file."""
    min_overlap: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Lines that a result and an expected span must share."""
    strip: list[FilledText] = Field(default_factory=list)
    """Beginnings of paths that are taken off, the longest that fits."""
    roots: list[FilledText] = Field(default_factory=list)
    """Folders at which a path begins; what is before the first of them is taken off."""
    chunk_suffix: AnyRegex = r"::\d+$"
    """Regular expression of what a chunk adds to the id of its entity; taken off."""


class AnchorModel(Strict):
    """Where an expected place hangs in the code."""

    symbol: FilledText
    """What the place lies in."""
    body: FilledText
    """SHA-256 of its text."""
    offset: int = 0
    """Lines from the first line of the symbol to the first line of the place."""
    lines: Annotated[int, Field(ge=0)] = 1
    """Lines of the place."""


class SplitModel(Strict):
    """Which queries are kept back."""

    seed: int
    """What it was drawn with."""
    share: Annotated[float, Field(ge=0, le=1)]
    """Of the queries that is held out."""
    by: list[FilledText] = Field(default_factory=list)
    """Strata within which it was drawn."""
    held_out: list[FilledText]
    """Query ids."""


class MetaModel(Strict):
    """About the test set; the tool keeps it true, and none of it changes the identity of the set."""

    review: Text = ""
    """Who looked at it: `agent curated, pending human review`, `reviewed`."""
    scale: list[Grade] = Field(default_factory=list)
    """Grades that judgments may have; empty: any."""
    made: Date | None = None
    """Date of this version."""
    refresh_days: Annotated[int, Field(ge=1, le=100_000)] = DEFAULT_REFRESH_DAYS
    """After so many days it is overdue for new queries."""
    commit: Text = ""
    """Commit of the repository that it is true of."""
    source_files: dict[Id, FilledText] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Path to SHA-256 of each file that something is expected in."""
    anchors: dict[Id, AnchorModel] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Expected place to where it hangs."""
    counts: dict[Id, Annotated[int, Field(ge=0)]] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Counts as they were written."""
    split: SplitModel | None = None
    """Which queries are kept back."""
    previous: Text = ""
    """Digest of the version that this one was made from."""
    history: list[FilledText] = Field(default_factory=list)
    """What was done, a sentence each, the latest last."""


class TestSetModel(Strict):
    """A Cranfield test set: queries with what is expected for each."""

    __test__ = False

    cranfield_testset: Literal[1]
    """Version of this schema; the key by which a file is detected as a test set."""
    name: FilledText
    """What reports call it."""
    version: Text = ""
    """Version of its content, in any form."""
    description: Text = ""
    """Where it comes from, for whom."""
    classes: ClassesModel | None = None
    """Which stratum says the class of a question, where the question does not say it itself."""
    sources: list[SourceModel] = Field(default_factory=list)
    """Where results come from, the highest authority first; a result is of the first that fits."""
    matching: MatchingModel = Field(default_factory=MatchingModel)
    """How results are laid over spans, entities and files."""
    databases: dict[Id, Database] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Name to place of what predicates ask: `sqlite:corpus.db`, `duckdb:corpus.duckdb`, `env:VARIABLE`."""
    consensus: Text = ""
    """Rule that makes the judgments of the ratings."""
    grouping: Grouping | None = None
    """What the groups of judgments are."""
    meta: MetaModel = Field(default_factory=MetaModel)
    """About the set; does not change its identity."""
    queries: Annotated[list[QueryModel], Field(min_length=1)]
    """The queries, in the order of reports."""
