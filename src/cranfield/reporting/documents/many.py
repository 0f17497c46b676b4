"""Many systems in, a Document out: which are best, then every pair, the ranks, the strata and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any

from cranfield.evaluation.contrast import Asked, StrataContrast
from cranfield.evaluation.many_values import Agreement, ManyComparison, PairComparison, Ranks, StratumRow
from cranfield.evaluation.values import Summary
from cranfield.numbers import format_count, format_percent, format_plain
from cranfield.record import Fields, record_of
from cranfield.reporting import payload
from cranfield.reporting.document import PILOT_STAMP, Block, Document, KeyValues, Section
from cranfield.reporting.documents.comparison import MADE_BY, rules_of
from cranfield.reporting.facts import versions
from cranfield.reporting.payload import evaluation_payload, results_payload
from cranfield.reporting.sections.collection import Systems, collection, left_out, warnings
from cranfield.reporting.sections.contrast import contrasts_measured, strata_contrasts
from cranfield.reporting.sections.heatmap import heat_maps
from cranfield.reporting.sections.latency import latencies, latencies_against
from cranfield.reporting.sections.many import (
    against_section,
    labels_of,
    orders_section,
    pairs_section,
    ranks_section,
    systems_section,
    verdict_of_many,
)
from cranfield.reporting.sections.provenance import Preflight, overdue, provenance
from cranfield.reporting.tidy import tidy_evaluations
from cranfield.stats.table import TESTS


def many_document(
    many: ManyComparison,
    *,
    preflight: Preflight = (),
    contrasts: Sequence[Asked] = (),
    today: date | None = None,
) -> Document:
    """The report of many systems, verdict first.

    Args:
        many: what `compare_many` found.
        preflight: (system, check, found) of every check that held before the first query.
        contrasts: (key, value, value) of strata to contrast within each system, on its first measure.
        today: to say when the test set is overdue for new queries; None does not say.

    Raises:
        UsageError: a contrast of strata that are not there.
    """
    contrasted = contrasts_measured(many.evaluations, contrasts)
    labels = labels_of(many)
    systems = list(zip(labels, many.evaluations, strict=True))
    first = many.evaluations[0]
    sections: list[Section | None] = [
        systems_section(many),
        warnings(systems, overdue(first.testset, today)),
        against_section(many),
        pairs_section(many),
        ranks_section(many),
        heat_maps(many, labels),
        strata_contrasts(contrasted),
        orders_section(many),
        _latency(many, systems),
        _collection(many, systems),
        _provenance(many, systems, preflight),
    ]
    named = ["baseline" if name == many.baseline else "" for name in many.names]
    return Document(
        title=f"Which of {len(many.names)} systems is best?",
        subtitle=(
            *(f"{label} ({role})" if role else label for label, role in zip(labels, named, strict=True)),
            rules_of(first),
        ),
        sections=tuple(section for section in sections if section is not None),
        tidy=partial(tidy_evaluations, many.evaluations),
        payload=partial(many_payload, many, contrasted),
        record=lambda: results_payload(many.evaluations, contrasted) | _found(many),
        verdict=verdict_of_many(many),
        stamp=PILOT_STAMP if many.pilot else "",
        made_by=MADE_BY,
    )


def many_payload(many: ManyComparison, contrasts: Sequence[StrataContrast] = ()) -> dict[str, Any]:
    """What `cranfield compare` of three runs or more prints as JSON: every evaluation, and all that was found."""
    return evaluation_payload(many.evaluations, contrasts) | _found(many)


def _latency(many: ManyComparison, systems: Systems) -> Section | None:
    section = latencies(systems)
    if section is None or many.baseline is None:
        return section
    table = latencies_against(many.evaluations, many.baseline, many.options.alpha, many.options.seed)
    return section if table is None else replace(section, blocks=(table, *section.blocks))


def _collection(many: ManyComparison, systems: Systems) -> Section:
    section = collection(systems, many.primary.depth)
    return replace(section, blocks=(*section.blocks, *left_out(many.dropped, str(many.primary))))


def _provenance(many: ManyComparison, systems: Systems, preflight: Preflight) -> Section:
    section = provenance(systems, preflight)
    options, limits = many.options, many.options.limits
    failed, judged = limits.max_failed_share, limits.min_judged_share
    declared: Block = KeyValues(
        (
            ("primary measure", str(many.primary)),
            ("test of each pair", f"{options.test}, {TESTS[options.test].interval_method}"),
            ("baseline", many.baseline or "none"),
            ("alpha", format_plain(options.alpha)),
            ("margin", "none stated" if options.margin is None else f"±{format_plain(options.margin)}"),
            ("seed", format_count(options.seed)),
            ("random draws", format_count(many.n_draws) if many.n_draws else "none: exact"),
            ("limit of failed queries", "none" if failed is None else format_percent(failed)),
            ("least judged share", "none" if judged is None else format_percent(judged)),
        ),
        "Declared beforehand",
    )
    return replace(section, blocks=(section.blocks[0], declared, *section.blocks[1:]))


FIELDS: Fields = {
    **payload.FIELDS,
    ManyComparison: (
        "verdict=verdict.code verdict_sentence=verdict.sentence best=verdict.best reasons=verdict.reasons "
        "disagreements=verdict.disagreements baseline primary test=options.test alpha=options.alpha margin=options.margin "
        "seed=options.seed n_draws limits=options.limits n=query_ids.__len__ means=summaries pairs against_baseline=against "
        "omnibus ranks orders=agreements strata unpaired=dropped"
    ),
    Agreement: "a b kendall_tau=tau",
    PairComparison: "first second delta wins ties losses verdict test=result",
    Ranks: "means critical_difference not_told_apart=groups",
    StratumRow: "key value n means=summaries",
    Summary: "mean ci_low ci_high n",
}


def _found(many: ManyComparison) -> dict[str, Any]:
    record = {"provenance": {"versions": dict(versions("numpy", "scipy"))}, **record_of(many, FIELDS)}
    # What is a list in the order of the systems is written by their names.
    for measure, row in record["means"].items():
        record["means"][measure] = dict(zip(many.names, row, strict=True))
    for row in record["strata"]:
        row["means"] = {name: one["mean"] for name, one in zip(many.names, row["means"], strict=True)}
    if record["ranks"] is not None:
        record["ranks"]["means"] = dict(zip(many.names, record["ranks"]["means"], strict=True))
    return record
