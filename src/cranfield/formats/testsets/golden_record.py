"""A record of a golden set, as pydantic models: its label, which a query of a test set in YAML or JSON has too, and the rest.

The string under each field is its description in the published JSON Schema.
`python -m cranfield.formats.testsets.golden_record` writes that schema anew, for editors and other tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, JsonValue, ValidationInfo, field_validator

from cranfield.formats.io.files import write_text
from cranfield.formats.io.records import OpenModel, StrictRecord
from cranfield.formats.io.tree import plain_values
from cranfield.formats.io.validation import published_schema, schema_text
from cranfield.model import EntityRole, Fact, Label, Lines
from cranfield.model.kinds import FilledText, Grade, Id, Text, UnfitError

ANY_ORDER = "any order"
"""Key of a context in which lines may end before they start: a record of a golden set fails alone, by the checks of its gate."""

Line = Annotated[int, Field(ge=1, le=999_999_999)]


def _not_before_start(end: int | None, info: ValidationInfo) -> int | None:
    start = info.data.get("start")
    if end is not None and start is not None and start > end:
        raise UnfitError("is before the start", expected="start, then end", got=f"{start}-{end}")
    return end


class _Open(OpenModel):
    model_config = ConfigDict(use_attribute_docstrings=True)


class LinesModel(_Open):
    """Lines of a file."""

    file: FilledText
    """Path of the file."""
    start: Line
    """First line, counted from 1."""
    end: Line
    """Last line."""

    @field_validator("end")
    @classmethod
    def _ascending(cls, end: int, info: ValidationInfo) -> int:
        if not (info.context or {}).get(ANY_ORDER):
            _not_before_start(end, info)
        return end


class EntityModel(_Open):
    """An expected entity."""

    entity_id: FilledText
    """`src/index.py::Index.add`."""
    role: Text | None = None
    """`primary`, `supporting` or `contextual`."""
    rationale: Text | None = None
    """Why it belongs to the answer."""


class FactModel(_Open):
    """A statement that can be checked."""

    fact: FilledText
    """The statement."""
    citations: list[LinesModel] = Field(default_factory=list)
    """Lines that show it, or show it to be false."""


class LabelModel(_Open):
    """What answers to the query are scored by, and provenance. Other keys are kept as they are."""

    expected_entities: list[FilledText | EntityModel] = Field(default_factory=list)
    """Entities of the answer, with their roles."""
    expected_line_ranges: list[LinesModel] = Field(default_factory=list)
    """Lines of the answer."""
    must_mention_facts: list[FilledText | FactModel] = Field(default_factory=list)
    """Facts that an answer must mention, with or without citations."""
    must_not_mention_facts: list[FilledText | FactModel] = Field(default_factory=list)
    """False statements that an answer must not make."""
    canonical_narrative: Text | None = None
    """The canonical answer in prose."""
    difficulty_rationale: Text | None = None
    """Why the query has its difficulty."""
    classifier_expectation: Text | None = None
    """Task type that a classifier is expected to report, where that is not the type of the query."""
    baseline_answerable: bool | None = None
    """Whether an agent without the tool under test could answer."""
    provenance: dict[str, JsonValue] | None = None
    """Who and what made and reviewed the record."""


class ExpectedTarget(StrictRecord):
    """An expected place in the form of a test set, where the keys of the format would be read as something else."""

    entity_id: FilledText | None = None
    """An entity."""
    file: FilledText | None = None
    """A file, or the file of lines."""
    start: Line | None = None
    """First line."""
    end: Line | None = None
    """Last line."""
    lines: list[Annotated[list[Line], Field(min_length=2, max_length=2)]] = Field(default_factory=list)
    """Lines of an entity."""
    grade: Grade = 1
    """Grade of the place."""

    _ascending = field_validator("end")(_not_before_start)


class GoldenLabel(LabelModel):
    """A record of a golden set: a query, what its answer is, and provenance. Other keys are kept as they are."""

    query_id: FilledText
    """Unique id."""
    query_text: FilledText
    """Text of the query, as a developer asks it."""
    task_type: Text | None = None
    """`locate`, `explain`, `debug`, `extend`, `review` or `general`, or a type that the metadata declares."""
    difficulty: Text | None = None
    """`easy`, `medium` or `hard`."""
    strata: dict[Id, Text | None] = Field(default_factory=dict)
    """Further strata; null: the key of the record that has this name is no stratum."""
    expected_files: list[FilledText] = Field(default_factory=list)
    """Files of the answer."""
    expected_targets: list[ExpectedTarget] | None = None
    """What is expected of a search, where that is not the entities, else the line ranges, else the files."""
    confidence: JsonValue = None
    """Confidence of the oracle: `high`, `medium` or `low`."""
    uncertainty_notes: JsonValue = None
    """What is unclear."""
    source_evidence: JsonValue = None
    """Lines that the oracle read."""
    validation: dict[str, JsonValue] | None = None
    """How the record was checked, and whether by a person."""
    correct: JsonValue = None
    """False: the record is known to be wrong."""
    schema_version: JsonValue = None
    """Version of the schema: 1.0.0."""


OF_QUERY = ("query_id", "query_text", "task_type", "difficulty", "strata", "expected_files", "expected_targets")
"""Keys of a record that are no part of its label."""
FACTS = ("must_mention_facts", "must_not_mention_facts")
"""Keys of the facts, which stand in every written record with a label."""
_NOT_MORE = {*LabelModel.model_fields, *OF_QUERY}


def label_of(model: LabelModel, values: Mapping[str, Any]) -> Label:
    """The label of a record; it may say nothing.

    Args:
        model: the record, or its label.
        values: the same as it stands in the file.
    """
    entities = (each for each in model.expected_entities if isinstance(each, EntityModel))
    return Label(
        tuple(EntityRole(e.entity_id, e.role or "", e.rationale or "") for e in entities if e.role or e.rationale),
        tuple(map(_lines, model.expected_line_ranges)),
        tuple(map(_fact, model.must_mention_facts)),
        tuple(map(_fact, model.must_not_mention_facts)),
        model.canonical_narrative or "",
        model.difficulty_rationale or "",
        model.classifier_expectation or "",
        model.baseline_answerable,
        plain_values(model.provenance or {}),
        {key: plain_values(value) for key, value in values.items() if key not in _NOT_MORE},
    )


def _lines(model: LinesModel) -> Lines:
    return Lines(model.file, int(model.start), int(model.end))


def _fact(fact: str | FactModel) -> Fact:
    return Fact(fact) if isinstance(fact, str) else Fact(fact.fact, tuple(map(_lines, fact.citations)))


def unknown_keys(model: LabelModel) -> Iterator[str]:
    """Keys of entities, line ranges and facts that have no place."""
    facts = [fact for fact in (*model.must_mention_facts, *model.must_not_mention_facts) if isinstance(fact, FactModel)]
    ranges = [*model.expected_line_ranges, *(lines for fact in facts for lines in fact.citations)]
    for each in (*model.expected_entities, *facts, *ranges):
        if not isinstance(each, str):
            yield from each.model_extra or {}


SCHEMA_FILE = Path(__file__).with_name("golden.schema.json")


def golden_schema() -> dict[str, Any]:
    """The schema of a record (draft 2020-12), made from the models."""
    return published_schema(GoldenLabel, **{"$id": "urn:cranfield:golden:1"})


if __name__ == "__main__":
    write_text(SCHEMA_FILE, [schema_text(golden_schema())])
