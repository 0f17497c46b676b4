"""A grid as a Document: what `cranfield grid` prints. The verdict is of the held-out queries alone."""

from __future__ import annotations

from dataclasses import replace

from cranfield.base.numbers import format_count, format_delta, format_value
from cranfield.evaluation.grid import GridChoice, GridPoint, GridResult
from cranfield.evaluation.result import evaluations_of
from cranfield.measures import CATALOGUE
from cranfield.model.results import to_jsonable
from cranfield.reporting.charts.differences import paired_dots
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.document import (
    MADE_BY,
    PILOT_STAMP,
    Block,
    Bullets,
    Chart,
    Document,
    KeyValues,
    Section,
    TonedCell,
    VerdictBlock,
    VerdictFact,
)
from cranfield.reporting.documents.comparison import sections_of
from cranfield.reporting.sections.collection import collection, warnings
from cranfield.reporting.sections.measures import measures
from cranfield.reporting.sections.subject import Preflight, Subject, provenance
from cranfield.reporting.sections.verdict import class_verdicts, query_differences, verdict_block
from cranfield.reporting.table_spec import Col, Cols, Columns, TableSpec

DRAWN = 25
"""Points in the picture, the best first."""
OPTIMISM = (
    "The winner is the best on the tuning queries, partly by chance. Optimism is its tuning mean minus its held-out mean "
    "(negative where lower is better); the two parts may also differ in difficulty."
)


def grid_document(choice: GridChoice, *, preflight: Preflight = ()) -> Document:
    """The winner against the config as written, then every point.

    Args:
        choice: a grid that was judged.
        preflight: (system, check, found) of every check that held before the first query.
    """
    found, names = choice.result, tuple(each.name for each in evaluations_of(choice.judged))
    subject = Subject.of(choice.judged, preflight=preflight, measure=found.primary, own_labels=names)
    compared = (class_verdicts, measures, query_differences) if found.comparison is not None else ()
    sections = sections_of(subject, (warnings, *compared, collection, provenance))
    return Document(
        title=f"Which settings of {found.system} are best?",
        subtitle=(
            (
                f"{format_count(len(_drawable(found)))} points over {', '.join(found.over)}; {found.primary}, "
                f"{found.test} test, convention {subject.record.convention}"
            ),
            f"test set {subject.record.testset.name.removesuffix(' (held out)')}: {found.split}",
        ),
        sections=(_winner(found), _points(found), *sections),
        tidy=_tidy(found).tidy,
        payload=lambda: to_jsonable(found),
        verdict=_verdict(found, subject),
        stamps=(PILOT_STAMP,) if found.pilot else (),
        made_by=MADE_BY,
    )


def _drawable(found: GridResult) -> tuple[GridPoint, ...]:
    """The points of the grid itself."""
    return tuple(point for point in found.points if point.settings)


def settings_of(point: GridPoint) -> str:
    """`fusion.method rrf, fusion.rrf_k 10`."""
    return ", ".join(f"{key} {value}" for key, value in point.settings.items()) or "as written"


def _verdict(found: GridResult, subject: Subject) -> VerdictBlock:
    winner = found.points[0]
    facts = (
        VerdictFact("Tuning mean", format_value(winner.tuning_mean), "of the winner"),
        VerdictFact("Held-out mean", format_value(winner.held_out_mean), "of the winner"),
        VerdictFact("Optimism", format_delta(found.optimism), "tuning minus held-out mean"),
    )
    block = verdict_block(subject)
    if block is None:
        sentence = f"No point is better than {found.system} as written on the tuning queries."
        return VerdictBlock("as written", sentence, "even", facts)
    sentence = f"{settings_of(winner)}, on the held-out queries: {block.sentence}"
    return replace(block, sentence=sentence, facts=(*block.facts, *facts))


def _winner(found: GridResult) -> Section:
    winner = found.points[0]
    items = [
        ("winner", f"{winner.name}: {settings_of(winner)}"),
        ("mean on the tuning queries", format_value(winner.tuning_mean)),
        ("mean on the held-out queries", format_value(winner.held_out_mean)),
        ("optimism", format_delta(found.optimism)),
    ]
    if found.comparison is not None:
        about = found.comparison.comparisons[found.primary]
        items += [
            ("better than as written, tuning", format_delta(found.tuning_gain)),
            ("better than as written, held out", format_delta(about.delta)),
        ]
    blocks: list[Block] = [KeyValues(tuple(items)), Bullets((OPTIMISM,))]
    if found.notes:
        blocks.append(Bullets(found.notes, "warning"))
    return Section("winner", "Winner", tuple(blocks))


def _points(found: GridResult) -> Section:
    winner = found.points[0]
    caption = (
        f"All points by mean {found.primary} on the tuning queries (n = {winner.n_tuning}, held out {winner.n_held_out}); "
        "the winner first. Only the winner is tested: choosing by held-out mean would be optimistic again"
    )
    columns: Columns[GridPoint] = (
        Col("point", lambda point: point.name),
        Cols(found.over, _setting, title=dict(zip(found.over, _short(found.over), strict=True)).__getitem__),
        Col(
            "tuning mean",
            lambda point: TonedCell(point.tuning_mean, "good" if point.name == found.winner else ""),
            "value",
        ),
        Col("held-out mean", lambda point: point.held_out_mean, "value"),
        Col("note", lambda point: _note(point, found)),
    )
    return Section("points", "All points", (_figure(found), TableSpec(caption, found.points, columns).table(shown=20)))


def _setting(point: GridPoint, key: str) -> str:
    return str(point.settings.get(key, ""))


def _short(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Places without their first step, where that leaves them apart."""
    short = tuple(key.partition(".")[2] or key for key in keys)
    return short if len(set(short)) == len(short) else keys


def _note(point: GridPoint, found: GridResult) -> str:
    roles = {"winner": found.winner, "as written": found.as_written}
    notes = [role for role, name in roles.items() if point.name == name]
    if point.same:
        notes.append(f"{len(point.same)} identical")
    return "; ".join((*notes, *point.broken_limits))


def _figure(found: GridResult) -> Chart:
    points = _drawable(found)
    drawn = points[:DRAWN]
    labels = [_label(point, found) for point in drawn]
    values = [(point.tuning_mean, point.held_out_mean) for point in drawn]
    columns: Columns[GridPoint] = (
        Col("point", lambda point: _label(point, found)),
        Col("tuning mean", lambda point: point.tuning_mean, "value"),
        Col("held-out mean", lambda point: point.held_out_mean, "value"),
    )
    table = TableSpec("Means on both parts", drawn, columns).table(shown=20)
    lower = "" if CATALOGUE[found.primary.name].higher_is_better else " (lower is better)"
    spec, narrow = (paired_dots(labels, values, f"mean {found.primary}{lower}", screen) for screen in SCREENS)
    more = f" The best {DRAWN} of {len(points)} are drawn." if len(points) > DRAWN else ""
    best = f"{labels[0]}: {format_value(values[0][0])} on the tuning queries, {format_value(values[0][1])} held out."
    return Chart(
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
    return f"{values} (as written)" if point.name == found.as_written else values


def _tidy(found: GridResult) -> TableSpec[tuple[GridPoint, str]]:
    """A row for each point and part."""
    rows = [(point, part) for point in found.points for part in ("tuning", "held out")]
    columns: Columns[tuple[GridPoint, str]] = (
        Col("point", lambda row: row[0].name),
        Cols(found.over, lambda row, key: _setting(row[0], key)),
        Col("measure", lambda _: str(found.primary)),
        Col("part", lambda row: row[1]),
        Col("mean", lambda row: row[0].tuning_mean if row[1] == "tuning" else row[0].held_out_mean),
        Col("n", lambda row: row[0].n_tuning if row[1] == "tuning" else row[0].n_held_out),
        Col("winner", lambda row: "yes" if row[0].name == found.winner else "no"),
        Col("as written", lambda row: "yes" if row[0].name == found.as_written else "no"),
        Col("not chosen because", lambda row: "; ".join(row[0].broken_limits)),
    )
    return TableSpec("", rows, columns)
