"""The catalogue of measures as a Document: what `cranfield measures` prints."""

from __future__ import annotations

import math
from typing import Any

from cranfield.measures import CATALOGUE, DEFAULT_MEASURES, MeasureSpec
from cranfield.reporting.document import Column, Document, KeyValues, Paragraph, Section, Table


def measures_document() -> Document:
    """Every measure: spelling, meaning, parameters, source."""
    specs = list(CATALOGUE.values())
    meanings = KeyValues(
        tuple((spec.spelling, f"{spec.title[0].upper()}{spec.title[1:]}. {spec.sentence}") for spec in specs),
        "Measures, as they are written",
    )
    parameters = Table(
        (Column("measure", "code"), Column("parameter", "code"), Column("default", "code"), Column("meaning")),
        [
            (spec.name, parameter.name, repr(parameter.default), parameter.sentence)
            for spec in specs
            for parameter in spec.parameters
        ],
        "Parameters, written NAME(key=value)@k",
        shown=None,
    )
    aliases = KeyValues(tuple((spec.name, ", ".join(spec.aliases)) for spec in specs if spec.aliases), "Also read as")
    limits = KeyValues(tuple((spec.name, spec.defined_for) for spec in specs), "Defined for")
    sources = KeyValues(tuple((spec.name, spec.source) for spec in specs), "Sources")
    default = Paragraph(f"Without -m: {', '.join(DEFAULT_MEASURES)}. The first decides.")
    return Document(
        title="Measures",
        subtitle=(),
        sections=(Section("measures", "Catalogue", (meanings, default, parameters, aliases, limits, sources)),),
        tidy=lambda: Table(
            tuple(Column(name) for name in ("name", "spelling", "title", "sentence", "formula", "aliases", "source")),
            [
                (spec.name, spec.spelling, spec.title, spec.sentence, spec.formula, " ".join(spec.aliases), spec.source)
                for spec in specs
            ],
            "Measures",
            shown=None,
        ),
        payload=lambda: {
            "schema_version": 1,
            "default": list(DEFAULT_MEASURES),
            "measures": [_record(spec) for spec in specs],
        },
    )


def _record(spec: MeasureSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "title": spec.title,
        "sentence": spec.sentence,
        "formula": spec.formula,
        "cutoff": spec.cutoff,
        "parameters": [
            {
                "name": parameter.name,
                "default": parameter.default,
                "sentence": parameter.sentence,
                **({"choices": list(parameter.choices)} if parameter.choices else {}),
                **({"minimum": parameter.minimum} if parameter.minimum is not None else {}),
            }
            for parameter in spec.parameters
        ],
        "aliases": list(spec.aliases),
        "range": [bound if math.isfinite(bound) else None for bound in spec.range],
        "higher_is_better": spec.higher_is_better,
        "defined_for": spec.defined_for,
        "source": spec.source,
    }
