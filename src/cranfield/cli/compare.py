"""`cranfield compare`: is the candidate better than the baseline? Which of many systems is best?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypedDict

import typer

from cranfield.cli.ending import EXIT_SYSTEM
from cranfield.cli.named import takes_runs
from cranfield.cli.option_groups import PairsOption, SortOption, option_groups
from cranfield.cli.pair_progress import pair_progress
from cranfield.cli.shared import (
    ContrastOption,
    FailOnOption,
    MeansOption,
    MeasureOption,
    Output,
    TestSetFormatOption,
    check_means_file,
    contrasts_of,
    deliver,
    load_and_evaluate,
    today,
    verdict_exit_code,
    write_means,
)
from cranfield.errors import Problem, UsageError
from cranfield.evaluation.verdict_table import VerdictCode

if TYPE_CHECKING:
    from cranfield.app.large_runs import LargeOptions
    from cranfield.evaluation.many_values import ManyComparison
    from cranfield.evaluation.sensitivity import Sensitivity
    from cranfield.evaluation.values import Comparison, Evaluation
    from cranfield.options.compare import CompareOptions
    from cranfield.options.scoring import ScoringOptions
    from cranfield.options.testset import TestSetOptions
    from cranfield.reporting import Document

BaselineLessOption = Annotated[
    bool, typer.Option("--baseline-less", help="Do not treat the first of three or more runs as the baseline.")
]
SensitivityOption = Annotated[
    bool,
    typer.Option(
        "--sensitivity",
        help="Add a sensitivity analysis (two runs only): other measures, cutoffs, tests, queries and judgments.",
    ),
]
MoreArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[MORE]...", help="More runs: all pairs are compared, with adjusted p-values."),
]


@takes_runs("baseline", "candidate", "more")
@option_groups
def compare_command(
    testset: Annotated[Path, typer.Argument(metavar="TESTSET", help="Test set file or TREC qrels.")],
    baseline: Annotated[Path, typer.Argument(metavar="BASELINE", help="Baseline run.")],
    candidate: Annotated[
        Path | None,
        typer.Argument(metavar="CANDIDATE", help="Candidate run; none where a Parquet run has several systems."),
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
    output: Output,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
) -> None:
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
        from cranfield.cli.large import evaluate_large_runs
        from cranfield.reporting import scale_document

        refused = {**of_many, "--sensitivity": sensitivity, "--contrast": contrast, "--means": means}
        summary = evaluate_large_runs(
            *(testset, runs, _with_primary(measures, compare.primary), testset_format, options, scoring, large),
            refused=refused | {"--verdict-strata": compare.strata},
            compare=declared,
        )
        deliver(scale_document(summary), output.showing(large.stratum))
        _end([pair.verdict.code for pair in summary.pairs], fail_on)
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
    deliver(document, output.showing(sensitivity, pairs, contrast))
    if means is not None:
        write_means(many or evaluations, means, sort)
    _end(verdicts, fail_on)


def _end(verdicts: Sequence[VerdictCode], fail_on: Sequence[VerdictCode] | None) -> NoReturn:
    invalid = EXIT_SYSTEM if VerdictCode.INVALID in verdicts else 0
    raise typer.Exit(verdict_exit_code(verdicts, fail_on) or invalid)


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
