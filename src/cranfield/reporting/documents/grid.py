"""A grid as a Document: what `cranfield grid` prints. The verdict is of the held-out queries alone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from cranfield.evaluation.grid import GridPoint, GridResult
from cranfield.evaluation.result import result_of
from cranfield.measures import CATALOGUE
from cranfield.numbers import format_count, format_delta, format_value
from cranfield.record import Fields, record_of
from cranfield.reporting.charts.differences import paired_dots
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.document import (
    MADE_BY,
    PILOT_STAMP,
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    Fact,
    Figure,
    KeyValues,
    Section,
    Table,
    TonedCell,
    VerdictBlock,
    tidy_table,
)
from cranfield.reporting.documents.comparison import sections_of
from cranfield.reporting.sections.class_verdict import class_verdicts
from cranfield.reporting.sections.collection import collection, warnings
from cranfield.reporting.sections.measures import measures
from cranfield.reporting.sections.movement import query_differences
from cranfield.reporting.sections.provenance import provenance
from cranfield.reporting.sections.subject import Preflight, Subject
from cranfield.reporting.sections.verdict import verdict_block
from cranfield.results import to_jsonable

DRAWN = 25
"""Points in the picture, the best first."""
OPTIMISM = (
    "The winner is the best on the tuning queries, partly by chance. Optimism is its tuning mean minus its held-out mean "
    "(negative where lower is better); the two parts may also differ in difficulty."
)


def grid_document(found: GridResult, *, preflight: Preflight = ()) -> Document:
    """The winner against the config as written, then every point.

    Args:
        found: a grid that was judged.
        preflight: (system, check, found) of every check that held before the first query.
    """
    comparison = found.comparison
    sides = {point.name: point.held_out for point in (found.written, found.winner)}
    shown = comparison if comparison is not None else tuple(sides.values())
    subject = Subject.of(shown, preflight=preflight, measure=found.primary, own_labels=tuple(sides))
    compared = (class_verdicts, measures, query_differences) if comparison is not None else ()
    sections = sections_of(subject, (warnings, *compared, collection, provenance))
    testset = found.written.held_out.testset
    convention = found.written.held_out.ranking.convention.name
    return Document(
        title=f"Which settings of {found.system} are best?",
        subtitle=(
            (
                f"{format_count(len(found.points))} points over {', '.join(found.keys)}; {found.primary}, "
                f"{found.options.test} test, convention {convention}"
            ),
            f"test set {testset.name.removesuffix(' (held out)')}: {found.split}",
        ),
        sections=(_winner(found), _points(found), *sections),
        tidy=partial(_tidy, found),
        payload=partial(_payload, found),
        verdict=_verdict(found, subject),
        stamps=(PILOT_STAMP,) if found.pilot else (),
        made_by=MADE_BY,
    )


def settings_of(point: GridPoint) -> str:
    """`fusion.method rrf, fusion.rrf_k 10`."""
    return ", ".join(f"{key} {value}" for key, value in point.settings.items()) or "as written"


def _verdict(found: GridResult, subject: Subject) -> VerdictBlock:
    facts = (
        Fact("Tuning mean", format_value(found.tuning_mean(found.winner)), "of the winner"),
        Fact("Held-out mean", format_value(found.held_out_mean(found.winner)), "of the winner"),
        Fact("Optimism", format_delta(found.optimism), "tuning minus held-out mean"),
    )
    block = verdict_block(subject)
    if block is None:
        sentence = f"No point is better than {found.system} as written on the tuning queries."
        return VerdictBlock("as written", sentence, "even", facts)
    sentence = f"{settings_of(found.winner)}, on the held-out queries: {block.sentence}"
    return replace(block, sentence=sentence, facts=(*block.facts, *facts))


def _winner(found: GridResult) -> Section:
    items = [
        ("winner", f"{found.winner.name}: {settings_of(found.winner)}"),
        ("mean on the tuning queries", format_value(found.tuning_mean(found.winner))),
        ("mean on the held-out queries", format_value(found.held_out_mean(found.winner))),
        ("optimism", format_delta(found.optimism)),
    ]
    if found.comparison is not None:
        about = found.comparison.measures[found.primary]
        items += [
            ("better than as written, tuning", format_delta(found.tuning_gain)),
            ("better than as written, held out", format_delta(about.delta)),
        ]
    blocks: list[Block] = [KeyValues(tuple(items)), Bullets((OPTIMISM,))]
    if found.notes:
        blocks.append(Bullets(found.notes, "warning"))
    return Section("winner", "Winner", tuple(blocks))


def _points(found: GridResult) -> Section:
    columns = (
        Column("point"),
        *(Column(key) for key in _short(found.keys)),
        Column("tuning mean", "value"),
        Column("held-out mean", "value"),
        Column("note"),
    )
    table = Table(
        columns,
        [_row(point, found) for point in found.all_points],
        f"All points by mean {found.primary} on the tuning queries (n = {found.winner.tuning.summaries[found.primary].n}, "
        f"held out {found.winner.held_out.summaries[found.primary].n}); the winner first. Only the winner is tested: "
        "choosing by held-out mean would be optimistic again",
        shown=20,
    )
    return Section("points", "All points", (_figure(found), table))


def _short(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Places without their first step, where that leaves them apart."""
    short = tuple(key.partition(".")[2] or key for key in keys)
    return short if len(set(short)) == len(short) else keys


def _row(point: GridPoint, found: GridResult) -> tuple[Cell, ...]:
    notes = []
    if point.name == found.winner.name:
        notes.append("winner")
    if point.name == found.written.name:
        notes.append("as written")
    if point.same:
        notes.append(f"{len(point.same)} identical")
    notes += point.void_reasons
    tuning, held_out = (each.summaries[found.primary] for each in (point.tuning, point.held_out))
    return (
        point.name,
        *(str(point.settings.get(key, "")) for key in found.keys),
        TonedCell(tuning.mean, "good" if point.name == found.winner.name else ""),
        held_out.mean,
        "; ".join(notes),
    )


def _figure(found: GridResult) -> Figure:
    drawn = found.points[:DRAWN]
    labels = [_label(point, found) for point in drawn]
    values = [(found.tuning_mean(point), found.held_out_mean(point)) for point in drawn]
    table = Table(
        (Column("point"), Column("tuning mean", "value"), Column("held-out mean", "value")),
        [(label, *pair) for label, pair in zip(labels, values, strict=True)],
        "Means on both parts",
    )
    lower = "" if CATALOGUE[found.primary.name].higher_is_better else " (lower is better)"
    spec, narrow = (paired_dots(labels, values, f"mean {found.primary}{lower}", screen) for screen in SCREENS)
    more = f" The best {DRAWN} of {len(found.points)} are drawn." if len(found.points) > DRAWN else ""
    best = f"{labels[0]}: {format_value(values[0][0])} on the tuning queries, {format_value(values[0][1])} held out."
    return Figure(
        "grid",
        "Means on the tuning and the held-out queries",
        f"{best}{more}",
        spec,
        narrow,
        table,
        (("good", "tuning"), ("band", "held out")),
        table_follows=True,
    )


def _label(point: GridPoint, found: GridResult) -> str:
    """`sum · 10 · 0.5`: the values, in the order of the table's columns."""
    values = " · ".join(str(value) for value in point.settings.values())
    return f"{values} (as written)" if point.name == found.written.name else values


def _tidy(found: GridResult) -> Table:
    columns = ("point", *found.keys, "measure", "part", "mean", "n", "winner", "as written", "not chosen because")
    rows: list[tuple[Cell, ...]] = []
    for point in found.all_points:
        for part, evaluation in (("tuning", point.tuning), ("held out", point.held_out)):
            summary = evaluation.summaries[found.primary]
            rows.append(
                (
                    point.name,
                    *(str(point.settings.get(key, "")) for key in found.keys),
                    *(str(found.primary), part, summary.mean, summary.n),
                    "yes" if point.name == found.winner.name else "no",
                    "yes" if point.name == found.written.name else "no",
                    "; ".join(point.void_reasons),
                )
            )
    return tidy_table(columns, rows)


FIELDS: Fields = {
    GridPoint: "name settings same",
    GridResult: (
        "system primary over=keys split tuning_queries=written.tuning.query_ids held_out_queries=written.held_out.query_ids "
        "winner=winner.name as_written=written.name optimism tuning_gain notes"
    ),
}
"""What is written of each class; see `cranfield.record`."""


def _payload(found: GridResult) -> dict[str, Any]:
    return {
        "schema_version": 1,
        **record_of(found, FIELDS),
        "points": [
            {
                **record_of(point, FIELDS),
                "tuning_mean": found.tuning_mean(point),
                "held_out_mean": found.held_out_mean(point),
                "broken_limits": list(point.void_reasons),
            }
            for point in found.all_points
        ],
        "comparison": None if found.comparison is None else to_jsonable(result_of(found.comparison)),
    }
