"""Where the numbers come from: digests, conventions, settings, versions, checks, configurations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date

from cranfield.evaluation.values import Comparison
from cranfield.model import TestSet
from cranfield.numbers import format_count, format_percent, format_plain
from cranfield.reporting.document import Block, Bullets, Cell, Code, Column, Details, KeyValues, Section, Table
from cranfield.reporting.facts import versions
from cranfield.reporting.sections.collection import Systems
from cranfield.words import n_of

Preflight = Sequence[tuple[str, str, str]]
"""(system, what was checked, what was found), for every check that held before the first query."""


def provenance(systems: Systems, preflight: Preflight, comparison: Comparison | None = None) -> Section:
    """All that is needed to make the same numbers again."""
    blocks: list[Block] = [KeyValues((*_inputs(systems), ("made with", _made_with(comparison))), "Inputs and versions")]
    if notes := systems[0][1].testset.notes:
        blocks.append(Bullets(tuple(f"test set: {note}" for note in notes), "warning"))
    if comparison is not None:
        blocks.append(KeyValues(_declared(comparison), "Declared beforehand"))
    if preflight:
        rows: list[tuple[Cell, ...]] = [tuple(row) for row in preflight]
        columns = (Column("system"), Column("check", "code"), Column("found", "code"))
        blocks.append(Table(columns, rows, "Checked before the first query"))
    for label, evaluation in systems:
        if evaluation.run is not None and evaluation.run.config:
            text = json.dumps(dict(evaluation.run.config), indent=2, ensure_ascii=False, default=str)
            blocks.append(Details(f"Configuration of {label}", (Code(text, "As written, without secrets"),)))
    return Section("provenance", "Provenance", tuple(blocks))


def _inputs(systems: Systems) -> tuple[tuple[str, str], ...]:
    first = systems[0][1]
    testset, convention = first.testset, first.ranking.convention
    version = f" {testset.version}" if testset.version else ""
    items = [
        ("test set", f"{testset.name}{version}, {format_count(len(testset.queries))} queries, {testset.digest}"),
        ("review of the test set", testset.meta.review or "not stated"),
        ("convention", f"{convention.name}: {convention.sentence}"),
    ]
    for label, evaluation in systems:
        items.append((f"run of {label}", evaluation.run_digest))
        if evaluation.reading:
            asked = ", ".join(
                f"{name} {'all' if value is None else value}" for name, value in evaluation.reading.items()
            )
            items.append((f"reading of {label}", asked))
        if evaluation.run is not None and evaluation.run.config_digest:
            items.append((f"configuration of {label}", evaluation.run.config_digest))
        if evaluation.run is not None and evaluation.run.order != "given":
            items.append((f"order of {label}", f"by score, {evaluation.run.order}"))
    return tuple(items)


def overdue(testset: TestSet, today: date | None) -> tuple[str, ...]:
    """Say when a test set is older than it may be; nothing where its age, or the day, is not known."""
    late = 0 if today is None else testset.meta.days_overdue(today)
    if not late:
        return ()
    days = n_of(late, "days", format_count)
    age = f"made on {testset.meta.made}, to be refreshed after {format_count(testset.meta.refresh_days)} days"
    return (f"test set {testset.name} is overdue for new queries by {days}: {age}",)


def _made_with(comparison: Comparison | None) -> str:
    made = versions(*(("numpy", "scipy") if comparison is not None else ("numpy",)))
    return ", ".join(f"{name} {version}" for name, version in made.items())


def _declared(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    limits = comparison.limits
    return (
        ("primary measure", str(comparison.primary)),
        ("test", f"{comparison.test}, {comparison.measures[comparison.primary].interval_method}"),
        ("alpha", format_plain(comparison.alpha)),
        ("margin", "none stated" if comparison.margin is None else f"±{format_plain(comparison.margin)}"),
        ("seed", format_count(comparison.seed)),
        ("random draws", format_count(comparison.n_draws) if comparison.n_draws else "none: exact"),
        ("limit of failed queries", _share(limits.max_failed_share)),
        ("least judged share", _share(limits.min_judged_share)),
    )


def _share(limit: float | None) -> str:
    return "none" if limit is None else format_percent(limit)
