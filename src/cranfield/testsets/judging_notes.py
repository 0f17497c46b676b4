"""What a reader of figures has to know of judgments that were frozen from a book."""

from __future__ import annotations

from collections.abc import Iterator

from cranfield.model import Judging, JudgingPool, TestSet
from cranfield.numbers import format_interval, format_value
from cranfield.words import and_list, n_of

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
    of = f"{judged} of {n_of(pooled, 'pooled documents')} judged" if pooled else n_of(judged, "judged documents")
    yield (
        f"judgments of the book {judging.book}, version {judging.number}: {of}, by {n_of(persons, 'persons')}, "
        f"grades by {judging.rule}{_agreement(judging)}"
    )
    others = {kind: coverage.get(f"by {kind}", 0) for kind in ("carried", "rule", "model")}
    listed = [f"{n} by {kind}" for kind, n in others.items() if n]
    if listed:
        yield f"grades that no person gave: {and_list(listed)}"
    if judging.pool is not None and judging.pool.is_biased:
        yield biased_pool(judging.pool)
    if guidelines := mixed_guidelines(judging):
        yield guidelines


def _agreement(judging: Judging) -> str:
    name, title = REPORTED
    found = next((row for row in judging.agreement if row.name == name), None)
    if found is None or found.value is None:
        return ""
    interval = "" if found.ci_low is None else f", 95 % CI {format_interval((found.ci_low, found.ci_high))}"
    return f"; {title} {format_value(found.value)}{interval}, n={found.n}"


def biased_pool(pool: JudgingPool) -> str:
    """Why the judged documents of such a pool are no sample."""
    runs = f" of {and_list(list(pool.runs))}" if pool.runs else ""
    return (
        f"the judged documents are no random sample: the pool ({pool.method}) took those with the largest effect on the "
        f"results{runs}; figures of other systems may be biased"
    )


def mixed_guidelines(judging: Judging) -> str:
    """That documents were judged by several versions of the guidelines; empty where it is one, or none is known."""
    used = [row for row in judging.guidelines if row.n]
    if len({row.digest for row in used}) < 2:
        return ""
    listed = and_list([f"version {row.version} ({n_of(row.n, 'grades')})" for row in used])
    return f"judged by several versions of the guidelines: {listed}; their grades may not mean the same"


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
    if first is None or second is None or first.guideline == second.guideline:
        return ""
    return (
        f"judged by different guidelines: {guideline_text(old) or 'unknown'} and {guideline_text(new) or 'unknown'}; "
        "a difference of figures may come from the guidelines"
    )
