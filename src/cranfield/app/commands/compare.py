"""`cranfield compare`: is the candidate better than the baseline? Which of many systems is best?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from cranfield.app.command import Report, Status, takes_runs
from cranfield.app.commands.pair_progress import pair_progress
from cranfield.app.commands.shared import (
    ContrastOption,
    FailOnOption,
    MeansOption,
    MeasureOption,
    PairsOption,
    SortOption,
    TestSetFormatOption,
    check_means_file,
    contrasts_of,
    load_and_evaluate,
    today,
    verdict_status,
    write_means,
)
from cranfield.errors import Problem, UsageError
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.evaluation.many_values import ManyComparison
    from cranfield.evaluation.sensitivity import Sensitivity
    from cranfield.evaluation.values import Comparison, Evaluation
    from cranfield.options.compare import CompareOptions
    from cranfield.options.large import LargeOptions
    from cranfield.options.scoring import ScoringOptions
    from cranfield.options.testset import TestSetOptions
    from cranfield.reporting import Document

BaselineLessOption = Annotated[
    bool, Option("Do not treat the first of three or more runs as the baseline.", flag="--baseline-less")
]
SensitivityOption = Annotated[
    bool,
    Option(
        "Add a sensitivity analysis (two runs only): other measures, cutoffs, tests, queries and judgments.",
        flag="--sensitivity",
    ),
]
MoreArgument = Annotated[
    list[Path] | None,
    Argument("More runs: all pairs are compared, with adjusted p-values.", metavar="[MORE]..."),
]


@takes_runs("baseline", "candidate", "more")
def compare_command(
    testset: Annotated[Path, Argument("Test set file or TREC qrels.", metavar="TESTSET")],
    baseline: Annotated[Path, Argument("Baseline run.", metavar="BASELINE")],
    candidate: Annotated[
        Path | None,
        Argument("Candidate run; none where a Parquet run has several systems.", metavar="CANDIDATE"),
    ] = None,
    more: MoreArgument = None,
    *,
    measures: MeasureOption = None,
    compare: CompareOptions,
    sort: SortOption = "mean",
    pairs: PairsOption = False,
    means: MeansOption = None,
    contrast: ContrastOption = None,
    scoring: ScoringOptions,
    large: LargeOptions,
    baseline_less: BaselineLessOption = False,
    sensitivity: SensitivityOption = False,
    fail_on: FailOnOption = None,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
) -> Report:
    """Compare two or more runs with paired tests, and reach a verdict.

    The report has the evidence of the verdict.
    """
    from cranfield.app.large_runs import is_large

    runs = [run for run in (baseline, candidate, *(more or ())) if run is not None]
    of_many = {"--baseline-less": baseline_less, "--adjust": compare.adjust, "--pairs": pairs, "--sort": sort != "mean"}
    _refuse(many=len(runs) > 2, of_many=of_many, sensitivity=sensitivity, fail_on=fail_on)
    about: Shown = {"contrasts": contrasts_of(contrast), "today": today(), "sort": sort, "show_pairs": pairs}
    if means is not None:
        check_means_file(means)
    declared = replace(compare, limits=replace(compare.limits, evidence=scoring.limits.evidence))
    if is_large(runs, large):
        from cranfield.app.commands.large import evaluate_large_runs
        from cranfield.reporting import scale_document

        refused = {**of_many, "--sensitivity": sensitivity, "--contrast": contrast, "--means": means}
        summary = evaluate_large_runs(
            *(testset, runs, _with_primary(measures, compare.primary), testset_format, options, scoring, large),
            refused=refused | {"--verdict-strata": compare.strata},
            compare=declared,
        )
        verdicts = [pair.verdict.code for pair in summary.pairs]
        status = _status(verdicts, fail_on)
        return Report(document=scale_document(summary), full=bool(large.stratum), status=status)
    if candidate is None:
        raise UsageError("there is nothing to compare with", expected="a BASELINE and a CANDIDATE", got=str(baseline))
    evaluations = load_and_evaluate(
        testset,
        runs,
        measures,
        testset_format=testset_format,
        options=options,
        scoring=scoring,
        primary=compare.primary,
    )
    inputs = (str(testset), *map(str, runs))
    if more:
        many, document, verdicts = _compare_many(evaluations, declared, inputs, about, baseline_less=baseline_less)
    else:
        repeat = partial(_sensitivity, runs=(baseline, candidate), options=options, scoring=scoring)
        document, verdicts = _compare_two(evaluations, declared, inputs, about, repeat if sensitivity else None)
        many = None
    if means is not None:
        write_means(many or evaluations, means, sort)
    full = bool(sensitivity or pairs or contrast)
    return Report(document=document, full=full, status=_status(verdicts, fail_on))


def _status(verdicts: Sequence[VerdictCode], fail_on: Sequence[VerdictCode] | None) -> Status:
    invalid = Status.VOID if VerdictCode.INVALID in verdicts else Status.OK
    return verdict_status(verdicts, fail_on) or invalid


def _with_primary(measures: Sequence[str] | None, primary: str | None) -> Sequence[str] | None:
    """The measures, and the primary one, which is computed too."""
    from cranfield.measures import DEFAULT_MEASURES

    chosen = measures or DEFAULT_MEASURES
    return measures if primary is None or primary in chosen else [*chosen, primary]


class Shown(TypedDict):
    """What the report shows besides the results."""

    contrasts: Sequence[tuple[str, str, str]]
    today: date
    sort: str
    show_pairs: bool


def _refuse(
    *,
    many: bool,
    of_many: Mapping[str, object],
    sensitivity: bool,
    fail_on: Sequence[VerdictCode] | None,
) -> None:
    """Raise every option that does not fit the number of runs."""
    problems = []
    baseline_less = bool(of_many["--baseline-less"])
    if many and sensitivity:
        problems.append(Problem("--sensitivity is about two runs", hint="compare the two in question alone"))
    if not many:
        hint = "of two, the first is the baseline"
        problems += [Problem(f"{name} is about three runs or more", hint=hint) for name, on in of_many.items() if on]
    if many and baseline_less and {VerdictCode.BETTER, VerdictCode.WORSE} & set(fail_on or ()):
        problems.append(Problem("--fail-on better and worse are about a baseline", hint="leave out --baseline-less"))
    if many and VerdictCode.MIXED in (fail_on or ()):
        problems.append(Problem("--fail-on mixed is about two runs", expected="better, worse or not-significant"))
    if many and VerdictCode.EQUIVALENT in (fail_on or ()):
        problems.append(Problem("--fail-on equivalent is about two runs", expected="better, worse or not-significant"))
    if problems:
        raise UsageError(problems)


def _compare_two(
    evaluations: Sequence[Evaluation],
    declared: CompareOptions,
    inputs: tuple[str, ...],
    shown: Shown,
    repeat: Callable[[Comparison], Sensitivity] | None,
) -> tuple[Document, list[VerdictCode]]:
    """The report of two systems, and the verdict."""
    from cranfield.evaluation.compare import compare
    from cranfield.reporting import comparison_document

    first, second = evaluations
    comparison = replace(compare(first, second, declared), inputs=inputs)
    varied = None if repeat is None else repeat(comparison)
    return comparison_document(comparison, sensitivity=varied, **shown), [comparison.verdict.code]


def _sensitivity(
    comparison: Comparison, *, runs: tuple[Path, Path], options: TestSetOptions, scoring: ScoringOptions
) -> Sensitivity:
    from cranfield.app.sensitivity import sensitivity

    return sensitivity(comparison, runs=runs, scale=options.scale, to_scale=options.to_scale, scoring=scoring)


def _compare_many(
    evaluations: Sequence[Evaluation],
    declared: CompareOptions,
    inputs: tuple[str, ...],
    shown: Shown,
    *,
    baseline_less: bool,
) -> tuple[ManyComparison, Document, list[VerdictCode]]:
    """The comparison of three systems or more, its report, and the verdict overall and of each against the baseline."""
    from cranfield.evaluation.many import compare_many
    from cranfield.reporting import comparison_document

    first = None if baseline_less else evaluations[0].name
    many = replace(compare_many(evaluations, declared, baseline=first, progress=pair_progress()), inputs=inputs)
    return many, comparison_document(many, **shown), list(many.claims)
