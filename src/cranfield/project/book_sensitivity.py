"""Whether the verdict on two runs depends on how the ratings of a book become grades: each rule, and each rater left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypedDict

from cranfield.errors import CranfieldError
from cranfield.evaluation.compare import compare
from cranfield.evaluation.sensitivity import SENSITIVITY_DRAWS, Family, Sensitivity, Variation
from cranfield.evaluation.values import Comparison
from cranfield.judging.book.contents import BookContents
from cranfield.judging.book.freeze import persons_table
from cranfield.judging.book.grades import RatedBook, rated_book
from cranfield.judging.book.sensitivity import BookSensitivity, BothMeans
from cranfield.model import TestSet
from cranfield.options.compare import CompareOptions
from cranfield.options.scoring import ScoringOptions
from cranfield.project.inputs import RunLike
from cranfield.project.recipe import evaluate_with_options
from cranfield.results.testset import TestSetRecord
from cranfield.stats.consensus import CONSENSUS
from cranfield.words import and_list, n_of

FEWEST_RATERS = 2
"""With one, leaving him or her out leaves nothing."""


def book_sensitivity(
    contents: BookContents,
    runs: tuple[RunLike, RunLike],
    *,
    primary: str = "nDCG@10",
    rule: str | None = None,
    to: str | None = None,
    options: CompareOptions | None = None,
    scoring: ScoringOptions | None = None,
    models: bool = False,
) -> BookSensitivity:
    """Compare two runs on the grades of a book, and again under each rule and without each rater.

    Args:
        contents: the book.
        runs: baseline and candidate.
        primary: the measure that decides.
        rule: the declared consensus rule; None is that of the book.
        to: scale or map that each rating is mapped to first.
        options: the test, its level and seed; None: as `compare`.
        scoring: how the runs are read and scored.
        models: whether a model's grade counts where nothing else gives one.

    Raises:
        InputError: a run cannot be read.
        UsageError: nothing is graded, or there is no such measure or rule.
    """
    declared = options or CompareOptions(draws=SENSITIVITY_DRAWS)
    kept = scoring or ScoringOptions()

    def compared(testset: TestSet) -> Comparison:
        first, second = (evaluate_with_options(testset, run, [primary], kept) for run in runs)
        return compare(first, second, declared)

    made = partial(rated_book, contents, to=to, models=models)
    rated = made(rule=rule)
    comparison = compared(rated.testset)
    found = list(_repeated(contents, compared, rated.testset.consensus, made))
    means = tuple(item[1] for item in found if not isinstance(item, str))
    variations = tuple(item[0] for item in found if not isinstance(item, str))
    left_out = tuple(item for item in found if isinstance(item, str))
    varied = Sensitivity(comparison.verdict.code, variations, left_out, comparison.test, comparison.n_draws)
    return BookSensitivity(
        testset=TestSetRecord.of(rated.testset),
        rule=rated.testset.consensus,
        baseline=comparison.baseline.name,
        candidate=comparison.candidate.name,
        measure=comparison.primary,
        verdict=comparison.verdict.code,
        sentence=comparison.verdict.sentence,
        line=_line(varied),
        n_unchanged=varied.n_agree,
        sensitivity=varied,
        means=means,
        differences=rated.differences,
    )


def _line(found: Sensitivity) -> str:
    kinds: dict[Family, str] = {
        "consensus rule": "consensus rules",
        "adjudication": "without adjudication",
        "without a rater": "without one of the raters",
    }
    counts = {family: sum(row.family == family for row in found.variations) for family in kinds}
    parts = [
        n_of(n, kinds[family]) if family == "consensus rule" else f"{n} {kinds[family]}"
        for family, n in counts.items()
        if n
    ]
    out = f"; {len(found.left_out)} not applicable" if found.left_out else ""
    if not parts:
        return f"No alternative analysis is possible{out}"
    return f"Verdict unchanged under {found.n_agree} of {len(found.variations)} ({and_list(parts)}){out}"


def _repeated(
    contents: BookContents,
    compared: Callable[[TestSet], Comparison],
    declared: str,
    made: Callable[..., RatedBook],
) -> Iterator[tuple[Variation, BothMeans] | str]:
    """Each alternative, or why it is not applicable."""
    for family, name, changes in _alternatives(contents, declared, persons_table(contents).raters):
        try:
            rated = made(**changes)
            changed = compared(rated.testset) if rated.decided_by else None
        except CranfieldError as error:  # a scale without a map for the rule
            yield f"{family} {name}: {str(error).splitlines()[0]}"
            continue
        if changed is None:
            yield f"{family} {name}: no document has a grade"
            continue
        result = changed.measures[changed.primary]
        ends = (result.ci_low, result.ci_high)
        variation = Variation(family, name, result.delta or 0.0, *ends, result.n, changed.verdict.code)
        yield variation, BothMeans(result.baseline.mean, result.candidate.mean)


class _Changes(TypedDict, total=False):
    rule: str
    without: tuple[str, ...]
    adjudicated: bool


def _alternatives(
    contents: BookContents, declared: str, raters: Sequence[str]
) -> Iterator[tuple[Family, str, _Changes]]:
    """Family, name and what is changed."""
    for rule in CONSENSUS:
        yield "consensus rule", rule, {"rule": rule}
    if any(item.final is not None for item in contents.items):
        yield "adjudication", "not used", {"rule": declared, "adjudicated": False}
    for rater in raters if len(raters) >= FEWEST_RATERS else ():
        yield "without a rater", f"without {rater}", {"rule": declared, "without": (rater,)}
