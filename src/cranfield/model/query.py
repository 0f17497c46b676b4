"""A query of a test set, and the classes of query.

Query classes are one table: what a right answer is, the measures of the class, and the measures that do not apply.
Measures are given by their spelling, because this folder may not import `measures`.

The first eight classes are those of queries to a documentation search; negative queries are the ninth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from cranfield.base.errors import UnknownNameError
from cranfield.model.kinds import (
    FilledText,
    Finite,
    Flag,
    Id,
    InFile,
    Kind,
    OrNull,
    ParamName,
    PlainScalar,
    Scalar,
    ScalarText,
    Text,
    UnfitError,
    Weight,
    source_text,
    without_nul,
)

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

ClassTest = Literal["permutation", "sign", "mcnemar"]

MANY_ANSWERS = "several answers are equally right, so the rank of the first is not meaningful"
NOTHING_EXPECTED = "nothing should be found"
NEGATIVE = "negative"
"""Name of the class of queries without a relevant document."""


@dataclass(frozen=True)
class QueryClass:
    """One row of the table."""

    letter: str
    name: str
    title: str
    sentence: str
    """What a right answer is."""
    measures: tuple[str, ...]
    """The first decides within the class."""
    test: ClassTest
    """Paired test between two systems, on the first measure."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Name of a measure to the reason why it does not apply to the class."""
    others_refused: str = ""
    """Why only the measures in `measures` apply to the class; empty where others apply too."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        """In records a class is its name."""
        from pydantic_core import core_schema

        text = core_schema.str_schema()
        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else QUERY_CLASSES[value],
            json_schema_input_schema=text,
            serialization=core_schema.plain_serializer_function_ser_schema(lambda row: row.name, return_schema=text),
        )

    def why_refused(self, measure: str) -> str:
        """Why a measure, by its name without cutoff and parameters, does not apply; empty where it does."""
        own = {spelling.partition("@")[0] for spelling in self.measures}
        return self.refused.get(measure) or ("" if measure in own else self.others_refused)


CLASS = "class"
"""Key under which the class of a query is one of its strata."""

_FIRST_ANSWER = ("RR", "RankOfFirst", "TokensToHit", "Success", "ERR", "nERR", "NERR8", "NERR9", "NERR10", "NERR11")

QUERY_CLASSES: Mapping[str, QueryClass] = {
    entry.name: entry
    for entry in (
        QueryClass(
            "A",
            "canonical",
            "canonical lookup",
            "Exactly one result is right: the place where a thing is defined.",
            ("RR@10", "P@1"),
            "permutation",
        ),
        QueryClass(
            "B",
            "root",
            "root of a framework or package",
            "Exactly one result is right: the entry page.",
            ("RR@10", "P@1"),
            "permutation",
        ),
        QueryClass(
            "C",
            "synonym",
            "acronym or synonym",
            "The thing that the other name refers to.",
            ("RR@10",),
            "permutation",
        ),
        QueryClass(
            "D",
            "fragment",
            "part of a compound name",
            "All names that contain the part, at the top of the list.",
            ("P@5", "P@10", "R@10", "AllFound@10"),
            "permutation",
        ),
        QueryClass(
            "E",
            "deprecation",
            "modern and legacy form",
            "The modern form is ranked above the legacy form.",
            ("ModernFirst",),
            "sign",
        ),
        QueryClass(
            "F",
            "cross-source",
            "one subject in several sources",
            "The first result is from the source of highest authority with a relevant result in the list.",
            ("TopSource", "SourceRR"),
            "sign",
        ),
        QueryClass(
            "G",
            "prose",
            "question in prose",
            "Several pages are relevant; the best ones are ranked first.",
            ("nDCG@10", "Rprec"),
            "permutation",
        ),
        QueryClass(
            "H",
            "attribute",
            "things that share an attribute",
            "All things with the attribute, in any order.",
            ("P@5", "P@10"),
            "permutation",
            dict.fromkeys(_FIRST_ANSWER, MANY_ANSWERS),
        ),
        QueryClass(
            "N",
            NEGATIVE,
            "nothing to find",
            "No result is returned, or none above the confidence bound, without an error.",
            ("Silence",),
            "mcnemar",
            others_refused=NOTHING_EXPECTED,
        ),
    )
}
"""Name to row, in the order reports show them."""

LETTERS: Mapping[str, str] = {entry.letter: name for name, entry in QUERY_CLASSES.items()}
"""Letter to name: a test set may write either."""


def class_named(text: str) -> QueryClass:
    """Look a class up by name or letter; raise `UnknownNameError` with the nearest name when there is none."""
    name = LETTERS.get(text, text)
    if name not in QUERY_CLASSES:
        raise UnknownNameError.among("query class", text, [*QUERY_CLASSES, *LETTERS])
    return QUERY_CLASSES[name]


CLASS_NAMES = ", ".join(QUERY_CLASSES) + f", or a letter ({', '.join(LETTERS)})"


def _class(value: str) -> str:
    try:
        return class_named(value).name
    except UnknownNameError as error:
        (problem,) = error.problems
        raise UnfitError("is not a query class", expected=CLASS_NAMES, got=repr(value), hint=problem.hint) from None


ClassName = Annotated[FilledText, Kind(_class, described={"enum": [*QUERY_CLASSES, *LETTERS]})]
"""A query class, by name or letter; kept is its name."""


@dataclass(frozen=True, slots=True)
class Negative(InFile):
    """A query without a relevant document: right if no result is returned, or none above the bound."""

    below: Finite | None = None
    """Results with a lower score are ignored; by default all results count."""
    field: Text = ""
    """Field of the answer, such as `confidence`, that is compared with `below` instead of the scores."""


@dataclass(frozen=True, slots=True)
class Query(InFile):
    """Text of a query, its class, strata and parameters."""

    id: Text
    """Unique id, by which runs refer to the query."""
    text: Text = ""
    """Text of the query, as a user types it."""
    strata: Mapping[Id, ScalarText] = field(default_factory=dict)
    """Stratum to value, such as task type or difficulty. Reports break results down by stratum."""
    params: Mapping[ParamName, Annotated[PlainScalar, Kind(without_nul)]] = field(default_factory=dict)
    """Parameters for the system, such as a minimum version: `{params.NAME}` in a command."""
    weight: Weight = 1.0
    """Weight of the query in weighted means, for example its frequency."""
    query_class: Annotated[ClassName, OrNull()] = field(default="", metadata={"alias": "class"})
    """Query class, by name or letter; it defines the measures."""
    negative: Negative | None = None
    """Negative query: no document is relevant. `true`, or a bound on the scores of results."""
    need: Text = ""
    """Information need: what a good result must answer. Shown to raters."""
    notes: Text = ""
    """Notes on the query. Shown to raters."""
    exhaustive: Flag = False
    """Whether the graded documents are all there are: every other result is not relevant, and none is unjudged."""
    floors: Mapping[Id, Finite] = field(default_factory=dict)
    """Measure to the value that the query has to reach, and at which a gate fails below: `{P@5: 0.6, Success@3: 1}`."""

    def __hash__(self) -> int:
        """Hash of id and text: equal queries have equal hashes."""
        return hash((self.id, self.text))


def class_of(query: Query) -> str:
    """Name of the class of a query: `negative` wherever nothing should be found, else what it says; empty for none.

    Raises:
        UnknownNameError: there is no such class.
    """
    if query.negative is not None:
        return NEGATIVE
    return class_named(query.query_class).name if query.query_class else ""


def params_text(params: Mapping[str, Scalar]) -> str:
    """Parameters of a query as reports show them, beside its text; empty for none.

    Example:
        >>> params_text({"library": "store", "fuzzy": True})
        'library=store, fuzzy=true'
    """
    return ", ".join(f"{name}={source_text(value)}" for name, value in params.items())


def query_strata(query: Query) -> Mapping[str, str]:
    """Every stratum of a query, key to value; its class is one under the key `class`, unless it has a stratum of that name.

    Example:
        >>> query_strata(Query("q1", strata={"type": "how-to"}, query_class="G"))
        {'type': 'how-to', 'class': 'prose'}
    """
    if CLASS in query.strata or not (name := class_of(query)):
        return query.strata
    return {**query.strata, CLASS: name}


def is_in_stratum(query: Query, key: str, value: str) -> bool:
    """Whether a query is in a stratum; under the key `class` the name and the letter of its class are found too.

    Example:
        >>> query = Query("q1", strata={"class": "7"}, query_class="prose")
        >>> [is_in_stratum(query, "class", value) for value in ("7", "prose", "G", "root")]
        [True, True, True, False]
    """
    if query_strata(query).get(key) == value:
        return True
    return key == CLASS and bool(value) and class_of(query) == LETTERS.get(value, value)


def negative_of(query: Query) -> Negative | None:
    """Bound of a negative query; by default, no result may be returned."""
    return Negative() if query.negative is None and class_of(query) == NEGATIVE else query.negative
