"""Holes of two systems, as a Document: what `cranfield holes` prints."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cranfield.base.numbers import format_count, format_delta, format_delta_interval, format_level
from cranfield.base.words import count_noun, join_first, or_list
from cranfield.evaluation.unjudged import Case
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.judging.pools.holes import Holes
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Block, Bullets, Code, Document, KeyValues, Paragraph, Section
from cranfield.reporting.sections.subject import testset_label
from cranfield.reporting.table_spec import Col, TableSpec

POOL = "holes.pool.json"
EFFECT = (
    "Effect: the largest change of the mean difference that the judgment alone can make, with every other unjudged document "
    "{lowest}. Expected effect: the root mean square of that change, each grade weighted by its share among the judged "
    "results at similar ranks; holes are in this order. After judging some holes, create the list again."
)
NO_PROOF = (
    "It is proved only for the permutation test (if all cases use the same sign patterns) that the extreme cases "
    "bound all others. Otherwise a verdict that is neither found nor excluded may be within reach."
)
RULE_VIEW = (
    "Judged by targets: matching documents are graded by the rater `rule`, all others are unjudged. Each "
    "matching document counts as a separate item, so figures differ from `cranfield compare` if that credits only the first match."
)


def holes_document(found: Holes, *, top: int = 20, written: str = "") -> Document:
    """The verdict, its best and worst case, the holes by expected effect, and how to judge them next.

    Args:
        found: the holes.
        top: holes listed in text; CSV and JSON have all.
        written: file of the pool of these holes; empty where none was written.
    """
    holes = TableSpec(
        "Unjudged results by expected effect",
        found.holes,
        (
            Col("query", lambda row: row.query, "query id"),
            Col("document", lambda row: row.doc, "code"),
            Col("rank in A", lambda row: row.rank_a, "count", "rank_a"),
            Col("rank in B", lambda row: row.rank_b, "count", "rank_b"),
            Col("effect", lambda row: row.effect, "value"),
            Col("expected", lambda row: row.expected_effect, "value", "expected_effect"),
            Col(
                "alone changes the verdict to",
                lambda row: or_list([code.text for code in row.turns]) if row.turns else "",
                key="turns",
            ),
        ),
    )
    sections = [Section("verdict", "Verdict", (KeyValues(tuple(_facts(found))), *_notes(found)))]
    if found.holes:
        effect = Paragraph(EFFECT.format(lowest=_lowest(found)), "note")
        sections.append(Section("holes", "Holes", (holes.table(shown=top), effect)))
    if found.differences:
        differences = TableSpec(
            "Grades by persons that replace others",
            found.differences,
            (
                Col("query", lambda row: row.query, "query id"),
                Col("document", lambda row: row.doc, "code"),
                Col("test set", lambda row: f"{row.grade:g}"),
                Col("persons", lambda row: f"{row.person:g}"),
            ),
        )
        sections.append(Section("differences", "Persons and the test set", (differences.table(shown=20),)))
    if found.holes:
        sections.append(Section("next", "Next pool", tuple(_next_pool(found, min(top, len(found.holes)), written))))
    return Document(
        title="Holes",
        subtitle=(
            f"A {found.baseline} (baseline), B {found.candidate} (candidate)",
            f"{found.measure}, test set {testset_label(found.testset)}, convention {found.convention}",
        ),
        sections=tuple(sections),
        tidy=holes.tidy,
        payload=lambda: to_jsonable(found),
    )


def _lowest(found: Holes) -> str:
    return "not relevant" if found.lowest <= 0 else f"given the lowest grade, {found.lowest:g}"


def _next_pool(found: Holes, n: int, written: str) -> Iterator[Block]:
    if not written:
        yield Paragraph(
            f"The same command with `--out {POOL}` writes the first {count_noun(n, 'holes')} as a pool. Judge it:"
        )
    yield Code(f"cranfield book create NAME --pool {written or POOL}\ncranfield judge NAME", in_text=True)
    by_id = "; from then on, its judged queries are judged by document ids" if found.is_rule else ""
    yield Paragraph(
        "The same command with `--book NAME` then counts the grades; `cranfield book freeze NAME --onto TESTSET --out FILE` "
        f"puts them into the test set{by_id}."
    )


def _facts(found: Holes) -> Iterator[tuple[str, str]]:
    now = "no query has a value on both sides" if found.delta is None else format_delta(found.delta)
    interval = format_delta_interval((found.ci_low, found.ci_high))
    level = format_level(found.alpha)
    if found.closed is not None:
        yield (
            "verdict now",
            f"{found.closed.text}: {format_delta(found.delta_closed)}, documents without a match count as 0",
        )
    label = "verdict now" if found.closed is None else "with every match as a separate item"
    yield label, f"{found.verdict.text}: {now} ({level} CI {interval}, n = {found.n})"
    supposed = found.supposed
    if (
        found.delta is None
        or found.n != found.n_queries
        or not math.isclose(found.delta, supposed.delta, abs_tol=1e-12)
    ):
        yield f"if all unjudged documents are {_lowest(found)}", f"{_case(supposed, level)}, n = {found.n_queries}"
    is_bound = "" if found.exact else "; a bound"
    yield "worst case for B", _case(found.worst, level) + is_bound
    yield "best case for B", _case(found.best, level) + is_bound
    yield "within reach", _names(found.reachable)
    if found.excluded:
        yield "excluded", _names(found.excluded)
    if found.unknown:
        yield "neither found nor excluded", _names(found.unknown)
    for code, n in found.fewest.items():
        yield "fewest judgments that change it", f"{format_count(n)}, if all are in favour: {code.text}"
    total = count_noun(len(found.holes), "holes", format_count)
    in_queries = count_noun(len({hole.query for hole in found.holes}), "queries", format_count)
    yield "unjudged within the cutoff", f"{total} in {in_queries}"
    if found.n_by_persons is not None:
        others = f", and {format_count(found.n_ignored)} of queries that the test set does not have"
        known = format_count(found.n_by_persons - found.n_ignored)
        yield "grades by persons of the book", known + (others if found.n_ignored else "")


def _case(case: Case, level: str) -> str:
    interval = format_delta_interval((case.ci_low, case.ci_high))
    return f"{case.verdict.text}: {format_delta(case.delta)} ({level} CI {interval})"


def _names(codes: tuple[VerdictCode, ...]) -> str:
    return ", ".join(code.text for code in codes)


def _notes(found: Holes) -> Iterator[Block]:
    notes = []
    if found.is_final:
        notes.append(f"No judgment of these results can change the verdict ({found.verdict.text}).")
    if found.unknown:
        notes.append(NO_PROOF)
    if found.by_class:
        notes.append("These verdicts are based on the mean over all queries, not on the query classes.")
    if found.is_rule:
        notes.append(RULE_VIEW)
    if found.without_text:
        n = count_noun(len(found.without_text), "queries")
        notes.append(
            f"{n} with holes but without a text, which raters cannot judge: {join_first(found.without_text)}. "
            "`--queries FILE` gives texts."
        )
    if found.n_negative:
        text = "no document should be found: they have no holes, and are left out"
        notes.append(f"{count_noun(found.n_negative, 'queries')} for which {text}.")
    if found.invalid:
        notes.append(f"The comparison is invalid: {'; '.join(found.invalid)}.")
    if notes:
        yield Bullets(tuple(notes))
