"""Provenance: digests, conventions, settings, versions, checks, configurations."""

from __future__ import annotations

import json

from cranfield.evaluation.result import ComparisonResult, ManyResult, SystemResult
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
from cranfield.reporting.sections.subject import Subject
from cranfield.stats.table import ADJUSTMENTS, TESTS

FEW = 8
"""Options that more runs than this share are given once."""


def provenance(subject: Subject) -> Section:
    """Everything needed to reproduce the numbers."""
    made_with = ", ".join(f"{name} {version}" for name, version in subject.record.versions.items())
    inputs = (*_inputs(subject), ("software", made_with))
    blocks: list[Block] = [KeyValues(inputs, "Inputs and versions")]
    if len(subject.systems) > FEW:
        digests = tuple((label, system.digest) for label, system in subject.systems)
        blocks.append(Details("Digests of the runs", (KeyValues(digests),)))
    if notes := subject.record.testset.notes:
        blocks.append(Bullets(tuple(f"test set: {note}" for note in notes), "warning"))
    if subject.compared is not None:
        blocks.append(KeyValues(_declared(subject.compared), "Declared settings"))
    if subject.calls.preflight:
        rows: list[tuple[Cell, ...]] = [tuple(row) for row in subject.calls.preflight]
        columns = (Column("system"), Column("check", "code"), Column("found", "code"))
        blocks.append(Table(columns, rows, "Preflight checks"))
    for label, system in subject.systems:
        if system.config:
            text = json.dumps(system.config, indent=2, ensure_ascii=False, default=str)
            blocks.append(Details(f"Configuration of {label}", (Code(text, "As configured, secrets redacted"),)))
    key_figure = f"{testset_label(subject.record.testset)}, convention {subject.record.convention}, {MADE_BY}"
    return Section("provenance", "Provenance", tuple(blocks), key_figure)


def _inputs(subject: Subject) -> tuple[tuple[str, str], ...]:
    systems, record, testset = subject.systems, subject.record, subject.record.testset
    items = [
        ("test set", f"{testset_label(testset)}, {testset.digest}"),
        ("review of the test set", testset.review or "not stated"),
        ("convention", f"{record.convention}: {record.convention_sentence}"),
    ]
    shared = _options(record.systems[0]) if len({_options(system) for _, system in systems}) == 1 else ""
    if shared and len(systems) > FEW:
        items.append(("options of all runs", shared))
    for label, system in systems:
        if len(systems) <= FEW:
            items.append((f"run of {label}", system.digest))
        if system.reading and not (shared and len(systems) > FEW):
            items.append((f"options of {label}", _options(system)))
        if system.config_digest:
            items.append((f"configuration of {label}", system.config_digest))
        if system.order != "given":
            items.append((f"order of {label}", f"by score, {system.order}"))
    return tuple(items)


def _options(system: SystemResult) -> str:
    """Options of the reader of a run."""
    return ", ".join(f"{name} {'all' if value is None else value}" for name, value in system.reading.items())


def _declared(result: ComparisonResult | ManyResult) -> tuple[tuple[str, str], ...]:
    limits = result.limits
    return (
        ("primary measure", str(result.primary)),
        (
            "test of each pair" if isinstance(result, ManyResult) else "test",
            f"{result.test}, {_interval(result)}",
        ),
        *(_adjustment(result) if isinstance(result, ManyResult) else ()),
        *((("baseline", result.baseline or "none"),) if isinstance(result, ManyResult) else ()),
        ("alpha", format_plain(result.alpha)),
        ("margin", "none" if result.margin is None else f"±{format_plain(result.margin)}"),
        ("seed", format_count(result.seed)),
        ("random draws", format_count(result.n_draws) if result.n_draws else "none (exact test)"),
        ("maximum failed share", _share(limits.max_failed_share)),
        ("minimum judged share", _share(limits.min_judged_share)),
    )


def _interval(result: ComparisonResult | ManyResult) -> str:
    if isinstance(result, ManyResult) and result.adjust == "max-t":
        return "mean difference: simultaneous over all pairs, max-T"
    return TESTS[result.test].interval_method


def _adjustment(many: ManyResult) -> tuple[tuple[str, str], ...]:
    spec = ADJUSTMENTS[many.adjust]
    smallest = f"{many.smallest_p:.2g}" if many.smallest_p else "0"
    return ("adjustment of all pairs", spec.title), ("smallest adjusted p possible", smallest)


def _share(limit: float | None) -> str:
    return "none" if limit is None else format_percent(limit)
