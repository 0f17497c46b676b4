"""The catalogue of measures as a Document: what `cranfield measures` prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cranfield.measures import ALIASES, CATALOGUE, DEFAULT_MEASURES, MeasureSpec, ParameterSpec, parse
from cranfield.measures.catalogue import TREC_CUTS, by_family
from cranfield.measures.measure import WHY_NEEDED, spell
from cranfield.measures.nearest import known_name
from cranfield.record import Fields, record_of
from cranfield.reporting.document import Block, Cell, Column, Document, KeyValues, Paragraph, Section, Table, tidy_table

HEADINGS = ("name", "family", "spelling", "title", "sentence", "formula", "aliases", "trec_eval", "source")


def measures_document(names: Sequence[str] = ()) -> Document:
    """The measures by family with their meanings, or a full description of some.

    Args:
        names: names or spellings of measures, other tools' too; none lists every measure.

    Raises:
        MeasureError: naming each that is unknown.
    """
    chosen = [_named(name) for name in names]
    known = [(family, spec) for family, specs in by_family().items() for spec in specs]
    specs = [(family, spec) for family, spec in known if not names or spec.name in chosen]
    sections = [_details(spec) for _, spec in specs] if names else [*map(_family, by_family().items()), _about()]
    return Document(
        title="Measures",
        subtitle=(),
        sections=tuple(sections),
        tidy=lambda: tidy_table(HEADINGS, [_row(family, spec) for family, spec in specs]),
        payload=lambda: {
            "schema_version": 1,
            "default": list(DEFAULT_MEASURES),
            "measures": [_record(spec) | {"family": family} for family, spec in specs],
        },
    )


def _named(text: str) -> str:
    """Name of a measure that may stand without its cutoff."""
    text = known_name(text)
    name = ALIASES.get(text, TREC_CUTS.get(text, text))
    return name if name in CATALOGUE else parse(text).name


def _row(family: str, spec: MeasureSpec) -> tuple[Cell, ...]:
    names = " ".join((*spec.aliases, *(name for name, _ in spec.presets)))
    return (
        *(spec.name, family, spec.spelling, spec.title, spec.sentence, spec.formula),
        *(names, " ".join(trec_names(spec)), spec.source),
    )


def trec_names(spec: MeasureSpec) -> list[str]:
    """How trec_eval writes it: bare, and with an example of a cutoff."""
    example = {"rank": "10", "share": "0.10", "multiple": "0.20"}[spec.cutoff_kind]
    return [name for name in (spec.trec_name, spec.trec_cut_name and f"{spec.trec_cut_name}_{example}") if name]


def _meaning(spec: MeasureSpec) -> str:
    return f"{spec.title[0].upper()}{spec.title[1:]}. {spec.sentence}"


def _family(entry: tuple[str, Sequence[MeasureSpec]]) -> Section:
    heading, specs = entry
    slug = heading.lower().replace(" ", "-").replace(",", "")
    return Section(slug, heading, (KeyValues(tuple((spec.spelling, _meaning(spec)) for spec in specs)),))


def _about() -> Section:
    return Section(
        "more",
        "More",
        (
            Paragraph(f"Default measures: {', '.join(DEFAULT_MEASURES)}. The first is the primary measure."),
            Paragraph(
                "`cranfield measures NAME ...` describes a measure: parameters, other names, formula, source. "
                "Names of trec_eval and ir_measures are understood."
            ),
        ),
    )


def _details(spec: MeasureSpec) -> Section:
    facts = [
        ("written", spec.spelling),
        ("formula", spec.formula),
        ("range", f"{format_bound(spec.range[0])} to {format_bound(spec.range[1])}"),
        ("better", "higher" if spec.higher_is_better else "lower"),
        ("defined for", spec.defined_for),
        *([("unscored", spec.why_unscored)] if spec.why_unscored else []),
        *([("needs", WHY_NEEDED[spec.needs])] if spec.needs else []),
        *([("aggregate", f"the {spec.aggregate}")] if spec.aggregate != "mean" else []),
        *([("also read as", ", ".join(spec.aliases))] if spec.aliases else []),
        *((name, f"{spec.name}({parameters})") for name, parameters in spec.presets),
        *([("in trec_eval", ", ".join(trec_names(spec)))] if trec_names(spec) else []),
        ("source", spec.source),
    ]
    blocks: list[Block] = [Paragraph(_meaning(spec)), KeyValues(tuple(facts))]
    if spec.parameters:
        blocks.append(
            Table(
                (Column("parameter", "code"), Column("default", "code"), Column("meaning")),
                [
                    (parameter.name, spell(parameter.default) if parameter.default != () else "", parameter.sentence)
                    for parameter in spec.parameters
                ],
                f"Parameters, written {spec.name}(key=value)",
                wrap=True,
                shown=None,
            )
        )
    return Section(spec.name, spec.name, tuple(blocks))


def format_bound(bound: float) -> str:
    """One end of a range."""
    return f"{bound:g}" if math.isfinite(bound) else "any number"


FIELDS: Fields = {
    MeasureSpec: "name title sentence formula cutoff parameters aliases range higher_is_better defined_for source",
    ParameterSpec: "name default sentence choices? minimum?",
}
"""What is written of each class; see `cranfield.record`."""


def _record(spec: MeasureSpec) -> dict[str, Any]:
    ends = [bound if math.isfinite(bound) else None for bound in spec.range]
    return record_of(spec, FIELDS) | {"range": ends}
