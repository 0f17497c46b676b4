"""The catalogue of measures as a record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cranfield.measures.catalogue import (
    ALIASES,
    CATALOGUE,
    DEFAULT_MEASURES,
    TREC_CUTS,
    base_key,
    by_family,
    known_name,
)
from cranfield.measures.measure import WHY_NEEDED, Measure, MeasureSpec, ParameterSpec
from cranfield.measures.parse import parse
from cranfield.model.results import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRecord:
    """A measure of the catalogue; texts are as of `MeasureSpec`."""

    name: str
    key: str
    """How `metrics` of an evaluation begins it: `recall` of `recall_at_10`."""
    family: str
    spelling: str
    """`P@k`, `AP`, `AP@k`."""
    title: str
    sentence: str
    formula: str
    cutoff: Literal["required", "optional", "none"]
    parameters: tuple[ParameterSpec, ...]
    aliases: tuple[str, ...]
    presets: tuple[tuple[str, str], ...]
    trec_names: tuple[str, ...]
    range: tuple[float | None, float | None]
    """None: no bound."""
    higher_is_better: bool
    aggregate: str
    defined_for: str
    why_unscored: str
    needs: str
    """What it cannot be computed without: why a query has no value then; empty: nothing."""
    source: str

    @property
    def meaning(self) -> str:
        """Title and sentence."""
        return f"{self.title[0].upper()}{self.title[1:]}. {self.sentence}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureCatalogue(Record):
    """Measures by family."""

    default: tuple[str, ...]
    """The measures where none are named."""
    measures: tuple[MeasureRecord, ...]


def describe_measures(names: Sequence[str] = ()) -> MeasureCatalogue:
    """The records of some measures, or of all.

    Args:
        names: names or spellings of measures, other tools' too; none: every measure.

    Raises:
        MeasureError: naming each that is unknown.
    """
    chosen = [_named(name) for name in names]
    return MeasureCatalogue(
        default=tuple(DEFAULT_MEASURES),
        measures=tuple(
            _record(family, spec)
            for family, specs in by_family().items()
            for spec in specs
            if not names or spec.name in chosen
        ),
    )


def _named(text: str) -> str:
    """Name of a measure that may stand without its cutoff."""
    text = known_name(text)
    name = ALIASES.get(text, TREC_CUTS.get(text, text))
    return name if name in CATALOGUE else parse(text).name


def _record(family: str, spec: MeasureSpec) -> MeasureRecord:
    low, high = (bound if math.isfinite(bound) else None for bound in spec.range)
    return MeasureRecord(
        name=spec.name,
        key=base_key(Measure(spec.name)),
        family=family,
        spelling=spec.spelling,
        title=spec.title,
        sentence=spec.sentence,
        formula=spec.formula,
        cutoff=spec.cutoff,
        parameters=spec.parameters,
        aliases=spec.aliases,
        presets=spec.presets,
        trec_names=trec_names(spec),
        range=(low, high),
        higher_is_better=spec.higher_is_better,
        aggregate=spec.aggregate,
        defined_for=spec.defined_for,
        why_unscored=spec.why_unscored,
        needs=WHY_NEEDED[spec.needs].value if spec.needs else "",
        source=spec.source,
    )


def trec_names(spec: MeasureSpec) -> tuple[str, ...]:
    """How trec_eval writes it: bare, and with an example of a cutoff."""
    example = {"rank": "10", "share": "0.10", "multiple": "0.20"}[spec.cutoff_kind]
    return tuple(name for name in (spec.trec_name, spec.trec_cut_name and f"{spec.trec_cut_name}_{example}") if name)
