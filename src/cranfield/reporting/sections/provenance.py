"""Provenance: digests, conventions, settings, versions, checks, configurations."""

from __future__ import annotations

import json

from cranfield.evaluation.many_values import ManyComparison
from cranfield.evaluation.result import versions
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.numbers import format_count, format_percent, format_plain
from cranfield.reporting.document import (
    MADE_BY,
    Block,
    Bullets,
    Cell,
    Code,
    Column,
    Details,
    KeyValues,
    Section,
    Table,
)
from cranfield.reporting.sections.labels import testset_label
from cranfield.reporting.sections.subject import Subject, Systems
from cranfield.stats.table import ADJUSTMENTS, TESTS

FEW = 8
"""Options that more runs than this share are given once."""


def provenance(subject: Subject) -> Section:
    """Everything needed to reproduce the numbers."""
    inputs = (*_inputs(subject.systems), ("software", _made_with(subject)))
    blocks: list[Block] = [KeyValues(inputs, "Inputs and versions")]
    if len(subject.systems) > FEW:
        digests = tuple((label, evaluation.run_digest) for label, evaluation in subject.systems)
        blocks.append(Details("Digests of the runs", (KeyValues(digests),)))
    if notes := subject.evaluations[0].testset.notes:
        blocks.append(Bullets(tuple(f"test set: {note}" for note in notes), "warning"))
    if subject.result is not None:
        blocks.append(KeyValues(_declared(subject.result), "Declared settings"))
    if subject.preflight:
        rows: list[tuple[Cell, ...]] = [tuple(row) for row in subject.preflight]
        columns = (Column("system"), Column("check", "code"), Column("found", "code"))
        blocks.append(Table(columns, rows, "Preflight checks"))
    for label, evaluation in subject.systems:
        if evaluation.run is not None and evaluation.run.config:
            text = json.dumps(dict(evaluation.run.config), indent=2, ensure_ascii=False, default=str)
            blocks.append(Details(f"Configuration of {label}", (Code(text, "As configured, secrets redacted"),)))
    first = subject.evaluations[0]
    key_figure = f"{testset_label(first.testset)}, convention {first.ranking.convention.name}, {MADE_BY}"
    return Section("provenance", "Provenance", tuple(blocks), key_figure)


def _inputs(systems: Systems) -> tuple[tuple[str, str], ...]:
    first = systems[0][1]
    testset, convention = first.testset, first.ranking.convention
    items = [
        ("test set", f"{testset_label(testset)}, {testset.digest}"),
        ("review of the test set", testset.meta.review or "not stated"),
        ("convention", f"{convention.name}: {convention.sentence}"),
    ]
    shared = _options(first) if len({_options(evaluation) for _, evaluation in systems}) == 1 else ""
    if shared and len(systems) > FEW:
        items.append(("options of all runs", shared))
    for label, evaluation in systems:
        if len(systems) <= FEW:
            items.append((f"run of {label}", evaluation.run_digest))
        if evaluation.reading and not (shared and len(systems) > FEW):
            items.append((f"options of {label}", _options(evaluation)))
        if evaluation.run is not None and evaluation.run.config_digest:
            items.append((f"configuration of {label}", evaluation.run.config_digest))
        if evaluation.run is not None and evaluation.run.order != "given":
            items.append((f"order of {label}", f"by score, {evaluation.run.order}"))
    return tuple(items)


def _options(evaluation: Evaluation) -> str:
    """Options of the reader of a run."""
    return ", ".join(f"{name} {'all' if value is None else value}" for name, value in evaluation.reading.items())


def _made_with(subject: Subject) -> str:
    made = versions(*(("numpy",) if subject.result is None else ("numpy", "scipy")))
    return ", ".join(f"{name} {version}" for name, version in made.items())


def _declared(result: Comparison | ManyComparison) -> tuple[tuple[str, str], ...]:
    options = result if isinstance(result, Comparison) else result.options
    limits = options.limits
    return (
        ("primary measure", str(result.primary)),
        (
            "test of each pair" if isinstance(result, ManyComparison) else "test",
            f"{options.test}, {_interval(result)}",
        ),
        *(_adjustment(result) if isinstance(result, ManyComparison) else ()),
        *((("baseline", result.baseline or "none"),) if isinstance(result, ManyComparison) else ()),
        ("alpha", format_plain(options.alpha)),
        ("margin", "none" if options.margin is None else f"±{format_plain(options.margin)}"),
        ("seed", format_count(options.seed)),
        ("random draws", format_count(result.n_draws) if result.n_draws else "none (exact test)"),
        ("maximum failed share", _share(limits.max_failed_share)),
        ("minimum judged share", _share(limits.min_judged_share)),
    )


def _interval(result: Comparison | ManyComparison) -> str:
    if isinstance(result, ManyComparison) and result.options.adjustment == "max-t":
        return "mean difference: simultaneous over all pairs, max-T"
    options = result if isinstance(result, Comparison) else result.options
    return TESTS[options.test].interval_method


def _adjustment(many: ManyComparison) -> tuple[tuple[str, str], ...]:
    spec = ADJUSTMENTS[many.options.adjustment]
    smallest = f"{many.procedure.smallest_p:.2g}" if many.procedure.smallest_p else "0"
    return ("adjustment of all pairs", spec.title), ("smallest adjusted p possible", smallest)


def _share(limit: float | None) -> str:
    return "none" if limit is None else format_percent(limit)
