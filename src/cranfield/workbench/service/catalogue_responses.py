"""What the REST API answers of measures and systems, as models."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from cranfield.workbench.service.responses import Number, ResponseBody


class SystemResponse(ResponseBody):
    """A system that the operator's config allows."""

    name: str
    components: list[str]
    """Names for `components`; empty: it has none."""
    variants: list[str]


class SystemList(ResponseBody):
    """The systems of the config."""

    systems: list[SystemResponse]


class ParameterInfo(ResponseBody):
    """A parameter of a measure."""

    name: str
    default: Any
    sentence: str
    choices: list[str] = Field(default_factory=list)
    minimum: Number = None


class MeasureInfo(ResponseBody):
    """A row of the catalogue of measures."""

    name: str
    key: str
    """How `metrics` of an evaluation begins it: `recall` of `recall_at_10`."""
    title: str
    sentence: str
    """What it says, for people."""
    formula: str
    family: str
    cutoff: Literal["required", "optional", "none"]
    """Whether `@k` must, may or may not follow the name."""
    parameters: list[ParameterInfo]
    aliases: list[str]
    """Other names that are understood."""
    range: tuple[Number, Number]
    """Null: no bound."""
    higher_is_better: bool
    defined_for: str
    source: str


class MeasureList(ResponseBody):
    """The catalogue."""

    default: list[str]
    """What is computed where a request and the config name none."""
    measures: list[MeasureInfo]
