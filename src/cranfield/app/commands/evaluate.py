"""`cranfield evaluate`, `compare` and `power`: runs against a test set."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from annotated_types import Ge

from cranfield.app.command import Report, Status, fields, note, takes_runs
from cranfield.app.commands.shared import (
    ContrastOption,
    FailOnOption,
    FloorOption,
    MeansOption,
    MeasureOption,
    PairsOption,
    SortOption,
    TestSetFormatOption,
    check_means_file,
    contrasts_of,
    floors_status,
    load_and_evaluate,
    reader_in_parts,
    today,
    verdict_status,
    void_of,
    write_means,
)
from cranfield.base.errors import Problem, UsageError
from cranfield.evaluation.options.declaration import Argument, Option
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.plugins import required

if TYPE_CHECKING:
    from cranfield.app.run import Floors
    from cranfield.evaluation.many import ManyComparison
    from cranfield.evaluation.options.blocks import CompareOptions, LargeOptions, ScoringOptions, TestSetOptions
    from cranfield.evaluation.sensitivity import Sensitivity
    from cranfield.evaluation.values import Comparison, Evaluation
    from cranfield.reporting import Document


MANY_PAIRS = 500
"""Testing fewer pairs one by one takes no time worth counting."""


def pair_progress() -> Callable[[int, int], None] | None:
    """Count pairs on stderr, where a person watches; None elsewhere."""
    if not sys.stderr.isatty():
        return None

    def count(done: int, total: int) -> None:
        if total >= MANY_PAIRS:
            note(f"\r{done:,} of {total:,} pairs" + ("\n" if done == total else ""), end="")

    return count


@takes_runs("runs")
def evaluate_command(
    testset: Annotated[Path, Argument("Test set file or TREC qrels.", metavar="TESTSET")],
    runs: Annotated[list[Path], Argument("Run files, or folders and quoted patterns of Parquet files.", metavar="RUN")],
    *,
    measures: MeasureOption = None,
    by_query: Annotated[bool, Option("Add a table of per-query results.")] = False,
    contrast: ContrastOption = None,
    floor: FloorOption = None,
    scoring: ScoringOptions,
    large: LargeOptions,
    means: MeansOption = None,
    sort: Annotated[str, Option("Order of several runs: given, name or a measure.", metavar="KEY")] = "given",
    history: Annotated[
        Path | None,
        Option("Append the means to the history in this folder.", metavar="DIR"),
    ] = None,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
) -> Report:
    """Score runs against a test set.

    Means with confidence intervals, failures and judged share.
    """
    if (in_parts := reader_in_parts(runs, large)) is not None:
        refused = {
            "--floor": floor,
            "--by-query": by_query,
            "--contrast": contrast,
            "--means": means,
            "--history": history,
        }
        summary = in_parts.evaluate_large_runs(
            testset,
            runs,
            measures,
            testset_format,
            options,
            scoring,
            large,
            refused=refused | {"--sort": sort != "given"},
        )
        return Report(document=in_parts.document_of(summary), full=bool(large.stratum))
    contrasts = contrasts_of(contrast)
    floors: Floors | None = required("floors").parse_floors(floor) if floor else None
    if means is not None:
        check_means_file(means)
    evaluations = load_and_evaluate(
        testset, runs, measures, testset_format=testset_format, options=options, scoring=scoring
    )
    judged = None if floors is None else floors.judge(evaluations)
    if sort != "given":
        from cranfield.reporting.sections.many import sorted_evaluations

        evaluations = sorted_evaluations(evaluations, sort)
    if means is not None:
        write_means(evaluations, means)

    def document() -> Document:
        from cranfield.reporting import evaluation_document

        made = evaluation_document(evaluations, by_query=by_query, contrasts=contrasts, today=today())
        return made if judged is None else judged.added_to(made)

    def record() -> object:
        from cranfield.evaluation.result import result_of
        from cranfield.model.results import to_jsonable

        found = result_of(evaluations)
        return found if judged is None else {**to_jsonable(found), **judged.record}

    void = void_of(evaluations)
    if history is not None and not void:
        _add_to_history(history, evaluations, document())
    status, notes = floors_status(judged)
    return Report(
        document=document,
        record=None if contrasts else record,
        full=by_query or bool(contrast),
        notes=notes,
        void=void,
        status=status,
    )


def _add_to_history(folder: Path, evaluations: list[Evaluation], document: Document) -> None:
    """Add the means to a history; it was requested, so the call fails where that is not possible."""
    import tempfile

    from cranfield.app.history import remember
    from cranfield.base.errors import UsageError
    from cranfield.reporting import save_report

    if not folder.is_dir():
        raise UsageError(
            "this is not a folder", path=str(folder), expected="the folder of the history, passed with --history"
        )
    primary = evaluations[0].measures[0] if evaluations[0].measures else None
    with tempfile.TemporaryDirectory() as made:
        report = Path(made) / "report.html"
        save_report(document, report)
        if why := remember(folder, evaluations, primary, report=report):
            raise UsageError(why)


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
        Argument("Candidate run; omit it if a Parquet run has several systems.", metavar="CANDIDATE"),
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
    runs = [run for run in (baseline, candidate, *(more or ())) if run is not None]
    of_many = {"--baseline-less": baseline_less, "--adjust": compare.adjust, "--pairs": pairs, "--sort": sort != "mean"}
    _refuse(many=len(runs) > 2, of_many=of_many, sensitivity=sensitivity, fail_on=fail_on)
    about: Shown = {"contrasts": contrasts_of(contrast), "today": today(), "sort": sort, "show_pairs": pairs}
    if means is not None:
        check_means_file(means)
    declared = replace(compare, limits=replace(compare.limits, evidence=scoring.limits.evidence))
    if (in_parts := reader_in_parts(runs, large)) is not None:
        refused = {**of_many, "--sensitivity": sensitivity, "--contrast": contrast, "--means": means}
        summary = in_parts.evaluate_large_runs(
            testset,
            runs,
            _with_primary(measures, compare.primary),
            testset_format,
            options,
            scoring,
            large,
            refused=refused | {"--verdict-strata": compare.strata},
            compare=declared,
        )
        verdicts = [pair.verdict.code for pair in summary.pairs]
        status = _status(verdicts, fail_on)
        return Report(document=in_parts.document_of(summary), full=bool(large.stratum), status=status)
    if candidate is None:
        raise UsageError("no run to compare with", expected="a BASELINE and a CANDIDATE", got=str(baseline))
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
        problems.append(Problem("--sensitivity needs exactly two runs", hint="compare two of the runs"))
    if not many:
        hint = "of two, the first is the baseline"
        problems += [Problem(f"{name} needs three or more runs", hint=hint) for name, on in of_many.items() if on]
    if many and baseline_less and {VerdictCode.BETTER, VerdictCode.WORSE} & set(fail_on or ()):
        problems.append(
            Problem("--fail-on better and --fail-on worse need a baseline", hint="leave out --baseline-less")
        )
    if many and VerdictCode.MIXED in (fail_on or ()):
        problems.append(Problem("--fail-on mixed needs exactly two runs", expected="better, worse or not-significant"))
    if many and VerdictCode.EQUIVALENT in (fail_on or ()):
        problems.append(
            Problem("--fail-on equivalent needs exactly two runs", expected="better, worse or not-significant")
        )
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


@takes_runs("baseline", "candidate")
def power_command(
    testset: Annotated[Path, Argument("Test set file or TREC qrels.", metavar="TESTSET")],
    baseline: Annotated[Path, Argument("Baseline run.", metavar="BASELINE")],
    candidate: Annotated[
        Path,
        Argument("Candidate run; the spread of the differences depends on both systems.", metavar="CANDIDATE"),
    ],
    *,
    measure: Annotated[
        str | None,
        Option(
            "Measure such as nDCG@10; default: the first default measure.",
            short="-m",
            metavar="MEASURE",
            choices="measures",
        ),
    ] = None,
    difference: Annotated[
        float | None,
        Option("True difference to detect, in units of the measure.", metavar="X"),
    ] = None,
    n_queries: Annotated[
        int | None,
        Option("Number of queries; with --difference, report the power.", metavar="N"),
        Ge(2),
    ] = None,
    power: Annotated[
        float,
        Option("Desired power: the probability of detecting the difference.", metavar="SHARE"),
    ] = 0.8,
    compare: Annotated[CompareOptions, fields("alpha", "seed")],
    scores: ScoringOptions,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
) -> Report:
    """Power analysis: how many queries does a difference need?

    From two runs: queries needed for a difference, or the difference that N queries can detect.
    """
    from cranfield.evaluation.power import plan
    from cranfield.reporting.documents.power import power_document

    runs, measures = [baseline, candidate], [measure] if measure else None
    first, second = load_and_evaluate(
        testset, runs, measures, testset_format=testset_format, options=options, scoring=scores
    )
    found = plan(
        first, second, difference=difference, queries=n_queries, alpha=compare.alpha, power=power, seed=compare.seed
    )
    return Report(document=power_document(found), void=void_of((first, second)))
