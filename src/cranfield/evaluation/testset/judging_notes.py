"""What a reader of figures has to know of judgments that were frozen from a book."""

from __future__ import annotations

from collections.abc import Iterator

from cranfield.base.errors import shorten
from cranfield.base.numbers import format_interval, format_value
from cranfield.base.words import and_list, count_noun, join_first
from cranfield.model import Judging, JudgingPool, TestSet

SHOWN_DIGEST = 12
REPORTED = ("alpha-ordinal", "Krippendorff's alpha (ordinal)")
"""The coefficient in the note, and its title."""


def judging_notes(testset: TestSet) -> tuple[str, ...]:
    """Where the judgments come from, and what limits what they can be used for; empty for a set that is not from a book."""
    judging = testset.meta.judging
    return () if judging is None else tuple(_notes(judging))


def _notes(judging: Judging) -> Iterator[str]:
    coverage = judging.coverage
    pooled, judged = coverage.get("pooled", 0), coverage.get("judged", 0)
    persons = sum(rater.kind == "person" for rater in judging.raters)
    of = (
        f"{judged} of {count_noun(pooled, 'pooled documents')} judged"
        if pooled
        else count_noun(judged, "judged documents")
    )
    yield (
        f"judgments of the book {judging.book}, version {judging.number}: {of}, by {count_noun(persons, 'persons')}, "
        f"grades by {judging.rule}{_agreement(judging)}"
    )
    others = {kind: coverage.get(f"by {kind}", 0) for kind in ("carried", "rule", "model")}
    listed = [f"{n} by {kind}" for kind, n in others.items() if n]
    if listed:
        yield f"grades not given by a person: {and_list(listed)}"
    yield from _by_id_notes(judging)
    if judging.pool is not None and (note := pool_note(judging.pool)):
        yield note
    if guidelines := mixed_guidelines(judging):
        yield guidelines


def _by_id_notes(judging: Judging) -> Iterator[str]:
    if judging.by_id:
        yield (
            f"judged by document ids instead of targets: {count_noun(len(judging.by_id), 'queries')} "
            f"({join_first(judging.by_id)}); documents that are not in the pool are unjudged, even if they match a target"
        )
    if judging.unmatched:
        n = count_noun(len(judging.unmatched), "targets")
        yield f"targets kept as they are, because no pooled document matches them: {n} ({join_first(judging.unmatched)})"
    if judging.overruled:
        listed = join_first(
            f"{row.query} {shorten(row.doc)} {row.rule:g}, now {row.grade:g}" for row in judging.overruled
        )
        yield f"graded differently from their target: {count_noun(len(judging.overruled), 'documents')} ({listed})"


def _agreement(judging: Judging) -> str:
    name, title = REPORTED
    found = next((row for row in judging.agreement if row.name == name), None)
    if found is None or found.value is None:
        return ""
    interval = "" if found.ci_low is None else f", 95 % CI {format_interval((found.ci_low, found.ci_high))}"
    return f"; {title} {format_value(found.value)}{interval}, n={found.n}"


def pool_note(pool: JudgingPool) -> str:
    """What the judged documents may be used for; empty for a fixed depth."""
    note = method_note(pool.method, pool.depth, pool.complete_to)
    runs = f" of {and_list(list(pool.runs))}" if pool.runs else ""
    return f"the judged documents are a pool{runs}, {note}; figures of other systems may be biased" if note else ""


def method_note(method: str, depth: int, complete_to: int) -> str:
    """What the way a pool was chosen means for figures made of its judgments; empty for a fixed depth."""
    match method:
        case "budget":
            return (
                f"chosen by budget: complete to rank {complete_to} of {depth}; below, documents that most systems "
                "return were taken first, which favours systems that agree with the others"
            )
        case "stratified":
            return (
                f"complete to rank {complete_to}; deeper ranks are a sample with the inclusion probabilities in the "
                "pool: a mean over its judged documents alone is not an estimate"
            )
        case "traces":
            return "retrieved for users by the systems in production: other systems may find what was never retrieved"
        case "holes":
            return "chosen by effect on one comparison: not a sample, and not suitable for other comparisons"
        case _:
            return ""


def mixed_guidelines(judging: Judging) -> str:
    """That documents were judged by several versions of the guidelines; empty where it is one, or none is known."""
    used = [row for row in judging.guidelines if row.n]
    if len({row.digest for row in used}) < 2:
        return ""
    listed = and_list([f"version {row.version} ({count_noun(row.n, 'grades')})" for row in used])
    return f"judged by several versions of the guidelines: {listed}; their grades may not be comparable"


def guideline_text(testset: TestSet) -> str:
    """The guidelines of a set in short, as `testset diff` shows them: `version 2 (1f3a…)`; empty where none is known."""
    judging = testset.meta.judging
    if judging is None:
        return ""
    used = (row for row in judging.guidelines if row.n)
    return ", ".join(f"version {row.version} ({row.digest.removeprefix('sha256:')[:SHOWN_DIGEST]})" for row in used)


def guidelines_differ(old: TestSet, new: TestSet) -> str:
    """That figures on two test sets do not mean the same, as they were judged by other guidelines; empty where not."""
    first, second = (testset.meta.judging for testset in (old, new))
    if first is None or not first.has_other_guidelines(second):
        return ""
    return (
        f"judged by different guidelines: {guideline_text(old) or 'unknown'} and {guideline_text(new) or 'unknown'}; "
        "a difference of figures may come from the guidelines"
    )
