"""The catalogue of measures as a Document: what `cranfield measures` prints."""

from __future__ import annotations

from itertools import groupby

from cranfield.measures.described import MeasureCatalogue, MeasureRecord
from cranfield.measures.measure import spell
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Block, Document, KeyValues, Paragraph, Section
from cranfield.reporting.table_spec import Col, TableSpec


def measures_document(catalogue: MeasureCatalogue, *, in_full: bool = False) -> Document:
    """The measures by family with their meanings, or each in full."""
    measures = catalogue.measures
    families = [_family(heading, [*own]) for heading, own in groupby(measures, key=lambda measure: measure.family)]
    tidy: TableSpec[MeasureRecord] = TableSpec(
        "",
        measures,
        (
            Col("name", lambda measure: measure.name),
            Col("family", lambda measure: measure.family),
            Col("spelling", lambda measure: measure.spelling),
            Col("title", lambda measure: measure.title),
            Col("sentence", lambda measure: measure.sentence),
            Col("formula", lambda measure: measure.formula),
            Col("aliases", lambda measure: " ".join((*measure.aliases, *(name for name, _ in measure.presets)))),
            Col("trec_eval", lambda measure: " ".join(measure.trec_names)),
            Col("source", lambda measure: measure.source),
        ),
    )
    return Document(
        title="Measures",
        subtitle=(),
        sections=tuple(map(_details, measures)) if in_full else (*families, _about(catalogue)),
        tidy=tidy.tidy,
        payload=lambda: to_jsonable(catalogue),
    )


def _family(heading: str, measures: list[MeasureRecord]) -> Section:
    slug = heading.lower().replace(" ", "-").replace(",", "")
    items = tuple((measure.spelling, measure.meaning) for measure in measures)
    return Section(slug, heading, (KeyValues(items),))


def _about(catalogue: MeasureCatalogue) -> Section:
    default = f"Default measures: {', '.join(catalogue.default)}. The first is the primary measure."
    more = (
        "`cranfield measures NAME ...` describes a measure: parameters, other names, formula, source. "
        "Names of trec_eval and ir_measures are understood."
    )
    return Section("more", "More", (Paragraph(default), Paragraph(more)))


def _details(measure: MeasureRecord) -> Section:
    low, high = ("any number" if bound is None else f"{bound:g}" for bound in measure.range)
    facts = (
        ("written", measure.spelling),
        ("formula", measure.formula),
        ("range", f"{low} to {high}"),
        ("better", "higher" if measure.higher_is_better else "lower"),
        ("defined for", measure.defined_for),
        *((("unscored", measure.why_unscored),) if measure.why_unscored else ()),
        *((("needs", measure.needs),) if measure.needs else ()),
        *((("aggregate", f"the {measure.aggregate}"),) if measure.aggregate != "mean" else ()),
        *((("also read as", ", ".join(measure.aliases)),) if measure.aliases else ()),
        *((name, f"{measure.name}({parameters})") for name, parameters in measure.presets),
        *((("in trec_eval", ", ".join(measure.trec_names)),) if measure.trec_names else ()),
        ("source", measure.source),
    )
    parameters = TableSpec(
        f"Parameters, written {measure.name}(key=value)",
        measure.parameters,
        (
            Col("parameter", lambda each: each.name, "code"),
            Col("default", lambda each: spell(each.default) if each.default != () else "", "code"),
            Col("meaning", lambda each: each.sentence),
        ),
    )
    blocks: list[Block] = [Paragraph(measure.meaning), KeyValues(facts)]
    blocks += [parameters.table(wrap=True)] if measure.parameters else []
    return Section(measure.name, measure.name, tuple(blocks))
