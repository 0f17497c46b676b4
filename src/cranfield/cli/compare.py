"""`cranfield compare`: is the candidate better than the baseline? Which of many systems is best?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypedDict

import typer

from cranfield.cli.shared import (
    EXIT_SYSTEM,
    ContrastOption,
    ConventionOption,
    DepthOption,
    DuplicatesChoice,
    FailOnOption,
    Format,
    FormatOption,
    HtmlOption,
    MeasureOption,
    MissingChoice,
    NoCacheOption,
    RunFormatOption,
    SeedOption,
    TestSetFormatOption,
    contrasts_of,
    deliver,
    note_reader,
    one_stdin,
    today,
    verdict_exit_code,
)
from cranfield.cli.testset_options import testset_options
from cranfield.errors import Problem, UsageError
from cranfield.evaluation.verdict_table import VerdictCode

if TYPE_CHECKING:
    from cranfield.evaluation.values import Evaluation, Limits
    from cranfield.project.testset_options import TestSetOptions

Contrasts = Sequence[tuple[str, str, str]]

BaselineLessOption = Annotated[
    bool, typer.Option("--baseline-less", help="Of three runs or more, the first is no baseline.")
]
SensitivityOption = Annotated[
    bool,
    typer.Option(
        "--sensitivity",
        help="Sensitivity analysis of two runs: repeat with other measures, cutoffs, tests, queries and judgments.",
    ),
]
TestOption = Annotated[
    str,
    typer.Option(
        "--test",
        metavar="NAME",
        help="Procedure of the verdict and its interval: permutation, t, wilcoxon, sign or bootstrap.",
    ),
]
MarginOption = Annotated[
    float | None,
    typer.Option(
        "--margin", metavar="X", help="Largest difference that does not matter; without it nothing is equivalent."
    ),
]
MoreArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[MORE]...", help="Runs of more systems: every pair is compared, Holm-adjusted."),
]


@testset_options
def compare_command(
    testset: Annotated[Path, typer.Argument(metavar="TESTSET", help="A test-set file, or TREC qrels.")],
    baseline: Annotated[Path, typer.Argument(metavar="BASELINE", help="Baseline run.")],
    candidate: Annotated[Path, typer.Argument(metavar="CANDIDATE", help="Candidate run.")],
    more: MoreArgument = None,
    *,
    measures: MeasureOption = None,
    primary: Annotated[
        str | None, typer.Option("--primary", metavar="MEASURE", help="Measure of the verdict; default the first.")
    ] = None,
    test: TestOption = "permutation",
    margin: MarginOption = None,
    alpha: Annotated[float, typer.Option("--alpha", metavar="X", help="Significance level (alpha).")] = 0.05,
    seed: SeedOption = 0,
    convention: ConventionOption = "trec",
    missing: MissingChoice = None,
    duplicates: DuplicatesChoice = None,
    contrast: ContrastOption = None,
    depth: DepthOption = None,
    no_cache: NoCacheOption = False,
    max_failed: Annotated[
        float, typer.Option("--max-failed", metavar="SHARE", help="More failed queries than this, and it is invalid.")
    ] = 0.1,
    min_judged: Annotated[
        float | None, typer.Option("--min-judged", metavar="SHARE", help="Less judged than this, and it is invalid.")
    ] = None,
    baseline_less: BaselineLessOption = False,
    sensitivity: SensitivityOption = False,
    fail_on: FailOnOption = None,
    output: FormatOption = Format.TEXT,
    html: HtmlOption = None,
    testset_format: TestSetFormatOption = None,
    run_format: RunFormatOption = None,
    options: TestSetOptions,
) -> None:
    """Compare two runs query by query, or three and more at once, and reach a verdict with its evidence."""
    from cranfield.evaluation.values import Limits
    from cranfield.project.loading import load
    from cranfield.project.recipe import evaluate, make_names_unique, with_measure

    runs = [baseline, candidate, *(more or ())]
    _refuse(many=len(runs) > 2, baseline_less=baseline_less, sensitivity=sensitivity, fail_on=fail_on)
    contrasts = contrasts_of(contrast)
    judged = load(testset, format=testset_format, options=options)
    one_stdin([testset, *runs])
    note_reader(runs)
    evaluations = [
        with_measure(
            evaluate(
                judged,
                run,
                measures=measures or None,
                convention=convention,
                missing=missing.value if missing else None,
                duplicates=duplicates.value if duplicates else None,
                run_format=run_format,
                depth=depth,
                cache=not no_cache,
            ),
            primary,
        )
        for run in runs
    ]
    evaluations = make_names_unique(evaluations, runs)
    declared: Declared = {
        "primary": primary,
        "test": test,
        "alpha": alpha,
        "margin": margin,
        "seed": seed,
        "limits": Limits(max_failed, min_judged),
    }
    if more:
        names = _many(evaluations, declared, contrasts, output, html, baseline_less=baseline_less)
    else:
        again = Again((runs[0], runs[1]), run_format, options) if sensitivity else None
        names = _two(evaluations, declared, contrasts, output, html, again)
    invalid = EXIT_SYSTEM if VerdictCode.INVALID in names else 0
    raise typer.Exit(verdict_exit_code(names, fail_on) or invalid)


class Declared(TypedDict):
    """What is declared before the numbers are seen."""

    primary: str | None
    test: str
    alpha: float
    margin: float | None
    seed: int
    limits: Limits


class Again(NamedTuple):
    """What it takes to score both runs anew, on other grades."""

    runs: tuple[Path, Path]
    run_format: str | None
    options: TestSetOptions


def _refuse(*, many: bool, baseline_less: bool, sensitivity: bool, fail_on: Sequence[VerdictCode] | None) -> None:
    """Options that do not go with so many runs, all of them."""
    problems = []
    if many and sensitivity:
        problems.append(Problem("--sensitivity is about two runs", hint="compare the two in question alone"))
    if baseline_less and not many:
        problems.append(
            Problem("--baseline-less is about three runs or more", hint="of two, the first is the baseline")
        )
    if many and baseline_less and {VerdictCode.BETTER, VerdictCode.WORSE} & set(fail_on or ()):
        problems.append(Problem("--fail-on better and worse are about a baseline", hint="leave out --baseline-less"))
    if many and VerdictCode.EQUIVALENT in (fail_on or ()):
        problems.append(Problem("--fail-on equivalent is about two runs", expected="better, worse or not-significant"))
    if problems:
        raise UsageError(problems)


def _two(
    evaluations: Sequence[Evaluation],
    declared: Declared,
    contrasts: Contrasts,
    output: Format,
    html: Path | None,
    again: Again | None,
) -> list[VerdictCode]:
    """Compare two and deliver the report; the verdict."""
    from cranfield.project.recipe import compare
    from cranfield.reporting import comparison_document

    first, second = evaluations
    comparison = compare(first, second, **declared)
    varied = None
    if again is not None:
        from cranfield.project.sensitivity import sensitivity

        options = again.options
        varied = sensitivity(
            comparison,
            runs=again.runs,
            scale=options.scale,
            to_scale=options.to_scale,
            run_format=again.run_format,
        )
    deliver(comparison_document(comparison, contrasts=contrasts, today=today(), sensitivity=varied), output, html)
    return [comparison.verdict.code]


def _many(
    evaluations: Sequence[Evaluation],
    declared: Declared,
    contrasts: Contrasts,
    output: Format,
    html: Path | None,
    *,
    baseline_less: bool,
) -> list[VerdictCode]:
    """Compare three or more and deliver the report; the verdict, and each against the baseline, as words to fail on."""
    from cranfield.project.recipe import compare_many
    from cranfield.reporting import many_document

    many = compare_many(evaluations, baseline=None if baseline_less else evaluations[0].name, **declared)
    deliver(many_document(many, contrasts=contrasts, today=today()), output, html)
    return list(many.claims)
