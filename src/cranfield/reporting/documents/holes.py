"""Holes of two systems, as a Document: what `cranfield holes` prints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from cranfield.evaluation.unjudged import Case
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.judging.pools.found_holes import FoundHoles
from cranfield.judging.pools.holes import Hole, HoleAnalysis
from cranfield.numbers import format_count, format_delta, format_delta_interval, format_level
from cranfield.record import record_of
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Code,
    Column,
    Document,
    KeyValues,
    Paragraph,
    Section,
    Table,
    tidy_table,
)
from cranfield.reporting.sections.labels import testset_label
from cranfield.words import first_of, n_of, or_list

TIDY = ("query", "document", "rank_a", "rank_b", "effect", "expected_effect", "turns")
POOL = "holes.pool.json"
EFFECT = (
    "Effect: the largest change of the mean difference that the judgment alone can make, with every other unjudged document "
    "{lowest}. Expected effect: the root mean square of that change, each grade weighted by its share among the judged "
    "results at similar ranks; holes are in this order. Once some are judged, make the list again."
)
NO_PROOF = (
    "Only for the permutation test it is proved that the extreme cases bound all others (and only where all of them use the "
    "same sign patterns): a verdict that is neither found nor excluded may be within reach."
)
RULE_VIEW = (
    "Truth by targets: what matches is graded by the rater `rule`, what does not is unjudged. Each matching document counts "
    "as an item of its own, so figures differ from those of `cranfield compare` where only the first match is credited."
)


def holes_document(found: FoundHoles, *, top: int = 20, written: str = "") -> Document:
    """The verdict, its best and worst case, the holes by expected effect, and how to judge them next.

    Args:
        found: the holes.
        top: holes listed in text; CSV and JSON have all.
        written: file of the pool of these holes; empty where none was written.
    """
    analysis = found.analysis
    comparison = analysis.comparison
    names = [each.name for each in comparison.evaluations]
    convention = comparison.baseline.ranking.convention
    sections = [Section("verdict", "Verdict", (KeyValues(tuple(_facts(found))), *_notes(found)))]
    if analysis.holes:
        effect = Paragraph(EFFECT.format(lowest=_lowest(analysis)), "note")
        sections.append(Section("holes", "Holes", (_table(analysis, top), effect)))
    if found.view.differences:
        sections.append(Section("differences", "Persons and the test set", (_differences(found),)))
    if analysis.holes:
        sections.append(Section("next", "Next pool", tuple(_next_pool(found, min(top, len(analysis.holes)), written))))
    return Document(
        title="Holes",
        subtitle=(
            f"A {names[0]} (baseline), B {names[1]} (candidate)",
            f"{comparison.primary}, test set {testset_label(found.testset)}, convention {convention.name}",
        ),
        sections=tuple(sections),
        tidy=lambda: tidy_table(TIDY, [_row(hole) for hole in analysis.holes]),
        payload=lambda: _payload(found),
    )


def _lowest(analysis: HoleAnalysis) -> str:
    return "not relevant" if analysis.lowest <= 0 else f"of the lowest grade, {analysis.lowest:g}"


def _next_pool(found: FoundHoles, n: int, written: str) -> Iterator[Block]:
    if not written:
        yield Paragraph(
            f"The same command with `--out {POOL}` writes the first {n_of(n, 'holes')} as a pool. Judge it:"
        )
    yield Code(f"cranfield book create NAME --pool {written or POOL}\ncranfield judge NAME", in_text=True)
    by_id = ", whose queries that were judged are judged by ids of documents from then on" if found.view.is_rule else ""
    yield Paragraph(
        "The same command with `--book NAME` then counts the grades; `cranfield book freeze NAME --onto TESTSET --out FILE` "
        f"puts them into the test set{by_id}."
    )


def _facts(found: FoundHoles) -> Iterator[tuple[str, str]]:
    analysis = found.analysis
    about = analysis.comparison.measures[analysis.comparison.primary]
    now = "no query has a value on both sides" if about.delta is None else format_delta(about.delta)
    interval = format_delta_interval((about.ci_low, about.ci_high))
    level = format_level(analysis.comparison.alpha)
    if found.closed is not None:
        closed = found.closed.measures[found.closed.primary]
        yield (
            "verdict now",
            f"{found.closed.pooled_code.text}: {format_delta(closed.delta)}, what does not match counts 0",
        )
    label = "verdict now" if found.closed is None else "with every match an item"
    yield label, f"{analysis.verdict.text}: {now} ({level} CI {interval}, n = {about.n})"
    supposed = analysis.supposed
    if (
        about.delta is None
        or about.n != analysis.n_queries
        or not math.isclose(about.delta, supposed.delta, abs_tol=1e-12)
    ):
        yield f"with every unjudged {_lowest(analysis)}", f"{_case(supposed, level)}, n = {analysis.n_queries}"
    is_bound = "" if analysis.exact else "; a bound"
    yield "worst case for B", _case(analysis.worst, level) + is_bound
    yield "best case for B", _case(analysis.best, level) + is_bound
    yield "within reach", _names(analysis.reachable)
    if analysis.excluded:
        yield "excluded", _names(analysis.excluded)
    if analysis.unknown:
        yield "neither found nor excluded", _names(analysis.unknown)
    for code, n in analysis.fewest:
        yield "fewest found to turn it", f"{format_count(n)} if all turn out that way: {code.text}"
    total = n_of(len(analysis.holes), "holes", format_count)
    in_queries = n_of(len({hole.query for hole in analysis.holes}), "queries", format_count)
    yield "unjudged within the cutoff", f"{total} in {in_queries}"
    if found.people is not None:
        known = sum(len(docs) for query_id, docs in found.people.items() if query_id in found.testset.by_id)
        others = sum(map(len, found.people.values())) - known
        ignored = f", and {format_count(others)} of queries that the test set does not have" if others else ""
        yield "grades by persons of the book", format_count(known) + ignored


def _case(case: Case, level: str) -> str:
    interval = format_delta_interval((case.ci_low, case.ci_high))
    return f"{case.verdict.text}: {format_delta(case.delta)} ({level} CI {interval})"


def _names(codes: tuple[VerdictCode, ...]) -> str:
    return ", ".join(code.text for code in codes)


def _notes(found: FoundHoles) -> Iterator[Block]:
    analysis, notes = found.analysis, []
    if analysis.is_final:
        notes.append(f"No judgment of these lists can change the verdict: it stays {analysis.verdict.text}.")
    if analysis.unknown:
        notes.append(NO_PROOF)
    if analysis.comparison.by_class is not None:
        notes.append("The verdicts here are of the mean over all queries, not of the query classes.")
    if found.view.is_rule:
        notes.append(RULE_VIEW)
    open_queries = {hole.query for hole in analysis.holes}
    without = [query.id for query in found.testset.queries if query.id in open_queries and not query.text.strip()]
    if without:
        n = n_of(len(without), "queries")
        notes.append(
            f"{n} with holes and without a text, which no rater can judge: {first_of(without)}. `--queries FILE` gives texts."
        )
    negative = int(analysis.comparison.baseline.ranking.is_negative.sum())
    if negative:
        text = "nothing should be found: they have no holes, and take no part"
        notes.append(f"{n_of(negative, 'queries')} for which {text}.")
    void = analysis.comparison.verdict
    if void.code is VerdictCode.INVALID:
        notes.append(f"The comparison does not count: {'; '.join(void.reasons)}.")
    if notes:
        yield Bullets(tuple(notes))


def _table(analysis: HoleAnalysis, top: int) -> Table:
    columns = (
        *(
            Column("query", "query id"),
            Column("document", "code"),
            Column("rank in A", "count"),
            Column("rank in B", "count"),
        ),
        *(Column("effect", "value"), Column("expected", "value"), Column("alone turns the verdict to")),
    )
    rows = [_row(hole) for hole in analysis.holes]
    return Table(columns, rows, "Unjudged results by expected effect", shown=top)


def _row(hole: Hole) -> tuple[Cell, ...]:
    turns = or_list([code.text for code in hole.turns]) if hole.turns else ""
    return (hole.query, hole.doc, hole.rank_a, hole.rank_b, hole.effect, hole.expected_effect, turns)


def _differences(found: FoundHoles) -> Table:
    columns = (Column("query", "query id"), Column("document", "code"), Column("test set"), Column("persons"))
    rows: list[tuple[Cell, ...]] = [
        (each.query, each.doc, f"{each.grade:g}", f"{each.person:g}") for each in found.view.differences
    ]
    return Table(columns, rows, "Grades of persons that take the place of others")


def _payload(found: FoundHoles) -> dict[str, Any]:
    analysis = found.analysis
    comparison = analysis.comparison
    about = comparison.measures[comparison.primary]
    return {
        "schema_version": 1,
        "testset": found.testset.name,
        "baseline": comparison.baseline.name,
        "candidate": comparison.candidate.name,
        "measure": comparison.primary.canonical,
        "test": comparison.test,
        "alpha": comparison.alpha,
        "margin": comparison.margin,
        "verdict": analysis.verdict.value,
        "delta": about.delta,
        "ci_low": about.ci_low,
        "ci_high": about.ci_high,
        "verdict_closed": None if found.closed is None else found.closed.pooled_code.value,
        "supposed": record_of(analysis.supposed),
        "worst": record_of(analysis.worst),
        "best": record_of(analysis.best),
        "exact": analysis.exact,
        "n_queries": analysis.n_queries,
        "reachable": [code.value for code in analysis.reachable],
        "excluded": [code.value for code in analysis.excluded],
        "unknown": [code.value for code in analysis.unknown],
        "fewest": {code.value: n for code, n in analysis.fewest},
        "holes": [record_of(hole) for hole in analysis.holes],
        "differences": [record_of(each) for each in found.view.differences],
    }
