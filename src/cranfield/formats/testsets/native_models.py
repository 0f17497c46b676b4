"""The schema of a test set in YAML or JSON, as pydantic models: keys, types and bounds.

The string under each field is its description in the published JSON Schema. Conditions on several fields (duplicate ids,
a query without judgments) are checked in `native`.

`python -m cranfield.formats.testsets.native_models` writes the published JSON Schema anew, for editors and other tools.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic import JsonValue as AnyJson
from pydantic.config import JsonDict, JsonValue

from cranfield.formats.io.files import write_text
from cranfield.formats.io.published_schema import published_schema, schema_text
from cranfield.formats.io.tree import describe
from cranfield.formats.io.validation import PlainScalar, Text
from cranfield.formats.testsets.golden_record import OF_QUERY, LabelModel, unknown_keys
from cranfield.formats.testsets.judging_models import JudgingModel
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
from cranfield.formats.testsets.vocabulary import KNOWN_VERSION, VERSION, is_known_version
from cranfield.model import Credit, Grouping
from cranfield.model.testset import DEFAULT_REFRESH_DAYS
from cranfield.words import n_of

TARGETS = ("patterns", "spans", "entities", "answer_files", "predicates")
"""Keys of a query that define relevance by a rule."""
GRADED = ("judgments", "ratings", "adjudicated", "groups")
"""Keys of a query that define relevance by document id."""


class PatternModel(Strict):
    """Relevant document ids, as a regular expression."""

    regex: Regex
    """Python regular expression, searched anywhere in the result id (anchor it with ^ and $), case-sensitive."""
    grade: Grade = 1
    """Grade of a match."""
    credit: Credit = "once"
    """`once`: the pattern is one expected item, credited to the first match. `every`: each match is an expected item."""
    expected_count: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Number of matching documents in the corpus, if known; with `every`, required by measures such as recall."""


class SpanModel(Strict):
    """Relevant lines of a file; a result that overlaps them matches."""

    path: FilledText
    """Path of the file."""
    lines: Lines
    """First and last line, counted from 1: `41-61`."""
    grade: Grade = 1
    """Grade of the span."""


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
    """Documents that a query to a database selects."""

    sql: FilledText
    """SQL query; its first column holds document ids."""
    database: FilledText = "corpus"
    """Name of the database in `databases`."""
    grade: Grade = 1
    """Grade of the selected documents."""


class NegativeModel(Strict):
    """Bound on the scores of results of a negative query."""

    below: Grade | None = None
    """Results with a lower score are ignored; by default all results count."""
    field: Text = ""
    """Field of the answer, such as `confidence`, that is compared with `below` instead of the scores."""


class LegacyModel(Strict):
    """Legacy form of the requested item."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": [key], "properties": {key: {"minItems": 1}}}  # at least one is not empty
                for key in ("ids", "patterns")
            ]
        }
    )

    ids: list[FilledText] = Field(default_factory=list)
    """Result ids of the legacy form."""
    patterns: list[Regex] = Field(default_factory=list)
    """Regular expressions, searched anywhere in the result id."""


def _legacy(value: Any) -> Any:
    """Read a list as ids; refuse a form without ids and patterns."""
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


def _of_label(label: LabelModel) -> LabelModel:
    """Refuse what the query itself says, and what would be lost."""
    if keys := [key for key in OF_QUERY if key in (label.model_extra or {})]:
        raise complaint(f"has {', '.join(keys)}, which the query itself says", expected="keys of a label")
    if keys := sorted(set(unknown_keys(label))):
        raise complaint(f"has unknown keys of entities, line ranges or facts: {', '.join(keys)}")
    if plain := [
        each for each in label.expected_entities if isinstance(each, str) or not (each.role or each.rationale)
    ]:
        raise complaint(
            f"has {n_of(len(plain), 'entities')} without a role", expected="entities with a role or a rationale"
        )
    if not is_known_version(version := (label.model_extra or {}).get(VERSION)):
        raise complaint("has an unknown schema version", expected=KNOWN_VERSION, got=describe(version))
    return label


def _filled(key: str) -> JsonDict:
    return {"required": [key], "properties": {key: {"minItems": 1, "minProperties": 1}}}


_NEGATIVE: JsonDict = {"required": ["negative"], "properties": {"negative": {"not": {"const": False}}}}
_TRUTH: list[JsonValue] = [_filled(key) for key in (*GRADED, *TARGETS, "files")]


class QueryModel(Strict):
    """A query, its class, and its judgments or expected items."""

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
    """Unique id, by which runs refer to the query."""
    text: FilledText
    """Text of the query, as a user types it."""
    query_class: ClassName | None = Field(default=None, alias="class")
    """Query class, by name or letter; it defines the measures."""
    need: Text = ""
    """Information need: what a good result must answer. Shown to raters."""
    notes: Text = ""
    """Notes on the query. Shown to raters."""
    strata: dict[Id, Annotated[Text, AfterValidator(without_nul)]] = Field(
        default_factory=dict, json_schema_extra=CLOSED
    )
    """Stratum to value, such as task type or difficulty. Reports break results down by stratum."""
    params: dict[ParamName, Annotated[PlainScalar, AfterValidator(without_nul)]] = Field(
        default_factory=dict, json_schema_extra=CLOSED
    )
    """Parameters for the system, such as a minimum version: `{params.NAME}` in a command."""
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1
    """Weight of the query in weighted means, for example its frequency."""
    negative: bool | NegativeModel = False
    """Negative query: no document is relevant. `true`, or a bound on the scores of results."""
    judgments: dict[Id, Grade] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Document id to grade. 0: judged not relevant; below 0: in the pool, not judged."""
    ratings: dict[Id, Annotated[dict[Id, Grade | None], Field(min_length=1, json_schema_extra=CLOSED)]] = Field(
        default_factory=dict, json_schema_extra=CLOSED
    )
    """Document id to the grade of each rater, by name; null for a missing grade."""
    adjudicated: dict[Id, Annotated[dict[Id, Grade], Field(min_length=1, max_length=1, json_schema_extra=CLOSED)]] = (
        Field(default_factory=dict, json_schema_extra=CLOSED)
    )
    """Document id to the grade by adjudication, with the name of who gave it; it takes precedence over `ratings`."""
    groups: dict[
        Id,
        Annotated[
            dict[Id, Grade | Annotated[dict[Id, Grade], Field(min_length=1, json_schema_extra=CLOSED)]],
            Field(min_length=1, json_schema_extra=CLOSED),
        ],
    ] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Judgments by subtopic, judge or preference group (see `grouping`): group to document id to grade. Groups of
    preferences may contain subgroups."""
    patterns: list[PatternModel] = Field(default_factory=list)
    """Relevance by pattern; documents that match no pattern are not relevant."""
    spans: list[AnySpan] = Field(default_factory=list)
    """Relevance by lines of a file: `src/index.rs:41-61`, with a grade `src/index.rs:41-61:2`, or `{path, lines, grade}`."""
    entities: Annotated[dict[Id, Grade], Field(json_schema_extra=CLOSED)] | list[FilledText] = Field(
        default_factory=dict
    )
    """Relevance by symbol: `src/index.py::Index.add` to grade, or a list of symbols."""
    entity_lines: dict[Id, Annotated[list[Lines], Field(min_length=1)]] = Field(
        default_factory=dict, json_schema_extra=CLOSED
    )
    """Lines of symbols in `entities`, by which results that name no symbol match: symbol to lines such as `41-61`."""
    answer_files: dict[Id, Grade] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Relevance by file: path to grade. Any result in the file matches."""
    predicates: list[PredicateModel] = Field(default_factory=list)
    """Relevance by a query to a database."""
    files: list[FilledText] = Field(default_factory=list)
    """Files that the results should cover. If nothing else is expected, they are also the relevant items."""
    legacy: AnyLegacy | None = None
    """Legacy form, which should be ranked below the modern one: `{ids, patterns}`, or a list of ids."""

    label: Annotated[LabelModel, AfterValidator(_of_label)] | None = Field(
        default=None, json_schema_extra={"not": {"anyOf": [{"required": [key]} for key in OF_QUERY]}}
    )
    """Label of a golden set, with the keys of its records: facts, narrative, roles, line ranges, provenance. No judgment."""


class ClassesModel(Strict):
    """Query classes taken from a stratum."""

    stratum: FilledText
    """Key of the stratum."""
    names: dict[Id, ClassName] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Value of the stratum to class; by default the values are names or letters of classes."""


class SourceModel(Strict):
    """A source of results."""

    name: FilledText
    """Name in reports."""
    pattern: Regex
    """Regular expression, searched anywhere in the result id."""


class MatchingModel(Strict):
    """How paths, lines and entities of results are normalised before matching."""

    line_base: Literal[0, 1] = 1
    """Line number of the first line of a file in the results."""
    min_overlap: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Minimum number of lines that a result and an expected span share."""
    strip: list[FilledText] = Field(default_factory=list)
    """Prefixes that are removed from paths; the longest match is used."""
    roots: list[FilledText] = Field(default_factory=list)
    """Folders at which paths begin; everything before the first of them is removed."""
    chunk_suffix: AnyRegex = r"::\d+$"
    """Regular expression of the suffix that a chunk adds to the id of its entity; it is removed."""
    ignore_identical_ids: bool = False
    """Results whose id is that of their query are left out of the lists."""
    places: bool = False
    """Graded ids that end in lines are places: a result with lines is looked up as `id:lines`."""


class AnchorModel(Strict):
    """Position of an expected place in the code."""

    symbol: FilledText
    """Symbol that contains the place."""
    body: FilledText
    """SHA-256 of the text of the symbol."""
    offset: int = 0
    """Distance in lines from the start of the symbol to the start of the place."""
    lines: Annotated[int, Field(ge=0)] = 1
    """Number of lines of the place."""


class SplitModel(Strict):
    """The held-out queries and how they were sampled."""

    seed: int
    """Random seed of the sample."""
    share: Annotated[float, Field(ge=0, le=1)]
    """Share of the queries that is held out."""
    by: list[FilledText] = Field(default_factory=list)
    """Strata of the stratified sample."""
    held_out: list[FilledText]
    """Ids of the held-out queries."""


class MetaModel(Strict):
    """Metadata of the test set, which `cranfield testset` updates; not part of its digest."""

    uncommitted: Text = ""
    """Changes of the repository that no commit had when the set was tied to it; empty: none."""
    review: Text = ""
    """Review status, such as `agent curated, pending human review` or `reviewed`."""
    scale: list[Grade] = Field(default_factory=list)
    """Grades that judgments may have; empty: any grade."""
    task_types: list[FilledText] = Field(default_factory=list)
    """Values of the stratum `task_type`; empty: `locate`, `explain`, `debug`, `extend`, `review` and `general`."""
    made: Date | None = None
    """Date of this version."""
    refresh_days: Annotated[int, Field(ge=1, le=100_000)] = DEFAULT_REFRESH_DAYS
    """Days after `made` until the set is due for a refresh."""
    commit: Text = ""
    """Commit of the repository that the expected places refer to."""
    source_files: dict[Id, FilledText] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Path to SHA-256 of each file with an expected place."""
    anchors: dict[Id, AnchorModel] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Expected place to its anchor."""
    counts: dict[Id, Annotated[int, Field(ge=0)]] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Stored counts of queries and judgments."""
    split: SplitModel | None = None
    """The held-out queries."""
    previous: Text = ""
    """Digest of the previous version."""
    history: list[FilledText] = Field(default_factory=list)
    """Changes, one sentence each, oldest first."""
    judging: JudgingModel | None = None
    """How the judgments were made, where they were frozen from a book."""
    assembly: dict[Id, AnyJson] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """How a golden set was assembled: models, prompts, tools, reviewers, error rates, retired models."""


class TestSetModel(Strict):
    """A Cranfield test set: queries with their judgments or expected items."""

    __test__ = False

    cranfield_testset: Literal[1]
    """Version of this schema; this key identifies a file as a test set."""
    name: FilledText
    """Name in reports."""
    version: Text = ""
    """Version of the content, in any form."""
    description: Text = ""
    """Origin and purpose of the set."""
    classes: ClassesModel | None = None
    """Stratum that gives the class of a query without `class`."""
    sources: list[SourceModel] = Field(default_factory=list)
    """Sources of results, highest authority first; a result belongs to the first that matches."""
    matching: MatchingModel = Field(default_factory=MatchingModel)
    """How results are matched with spans, entities and files."""
    databases: dict[Id, Database] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Name to location of a database for predicates: `sqlite:corpus.db`, `duckdb:corpus.duckdb`, `env:VARIABLE`."""
    consensus: Text = ""
    """Consensus rule that combines ratings into judgments."""
    grouping: Grouping | None = None
    """Meaning of the groups in `groups`: subtopics, judges or preferences."""
    meta: MetaModel = Field(default_factory=MetaModel)
    """Metadata; not part of the digest."""
    queries: Annotated[list[QueryModel], Field(min_length=1)]
    """The queries, in the order in which reports list them."""


SCHEMA_FILE = Path(__file__).with_name("testset.schema.json")


def testset_schema() -> dict[str, Any]:
    """The schema (draft 2020-12), made from the models."""
    return published_schema(TestSetModel, **{"$id": "urn:cranfield:testset:1"})


if __name__ == "__main__":
    write_text(SCHEMA_FILE, [schema_text(testset_schema())])
