"""`cranfield calibrate`: can the confidence of a system be believed?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cranfield.app.command import Exit, Report, Status, note, takes_runs
from cranfield.app.commands.shared import (
    SeedOption,
    TestSetFormatOption,
    load_and_evaluate,
    require_single_stdin,
    void_of,
)
from cranfield.evaluation.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.evaluation.options.blocks import ScoringOptions, TestSetOptions
    from cranfield.evaluation.values import Evaluation
    from cranfield.gate.calibration.table import CalibrationAnswers
    from cranfield.measures.threshold import Threshold


Source = Annotated[
    Path,
    Argument(
        "Table with a score and an outcome per query (CSV, JSON, JSONL); or, with RUN, a test set.",
        metavar="TABLE|TESTSET",
    ),
]
RunArgument = Annotated[Path | None, Argument("Run whose answers have a confidence field.", metavar="[RUN]")]
ScoreOption = Annotated[
    str | None,
    Option(
        (
            "Column or answer field with the confidence; default: score, confidence or sufficiency_score; for a "
            "run, confidence first."
        ),
        flag="--score",
        metavar="NAME",
    ),
]
CorrectOption = Annotated[
    str | None,
    Option(
        (
            "For a run: the measure that defines a correct answer, such as Success@5 (default) or 'R@10 >= 0.5'. "
            "For a table: the column; default: correct, structure_correct, facts_correct."
        ),
        flag="--correct",
        metavar="RULE",
    ),
]
KindOption = Annotated[
    Literal["structural", "facts"] | None,
    Option("Kind of correctness in the column of a table; default: from its name.", flag="--correctness"),
]
AnswersOption = Annotated[
    Path | None,
    Option(
        "Scored answers, one row per query: query_id, facts_correct, structure_correct (CSV, JSON, JSONL).",
        flag="--answers",
        metavar="FILE",
    ),
]
ThresholdOption = Annotated[
    float, Option("Report the correctness of answers with at least this score.", flag="--threshold", metavar="X")
]
TargetOption = Annotated[
    float, Option("Share of correct answers that a recommended threshold must reach.", flag="--target", metavar="SHARE")
]
ByOption = Annotated[
    list[str] | None,
    Option("Stratum to report; repeat for more; default: all strata with few values.", flag="--by", metavar="STRATUM"),
]


@takes_runs("run")
def calibrate_command(
    testset: Source,
    run: RunArgument = None,
    *,
    score: ScoreOption = None,
    correct: CorrectOption = None,
    kind: KindOption = None,
    outcomes: AnswersOption = None,
    threshold: ThresholdOption = 0.8,
    target: TargetOption = 0.8,
    by: ByOption = None,
    seed: SeedOption = 0,
    scores: ScoringOptions,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
) -> Iterator[Report]:
    """Compare the confidence of a system with its correctness.

    Calibration: reliability, ECE, Brier score, thresholds and a diagnosis.
    """
    from cranfield.gate.calibration.report import CalibrationOptions, calibrate
    from cranfield.gate.reports.calibration import calibration_document

    settings = CalibrationOptions(threshold=threshold, target=target, by=by, seed=seed)
    require_single_stdin([path for path in (testset, run, outcomes) if path is not None])
    evaluations: list[Evaluation] = []
    if run is None:
        source = _of_table(testset, score, correct, kind, needs_correct=outcomes is None)
    else:
        rule = _rule(correct, kind)
        evaluations = load_and_evaluate(
            testset, [run], [str(rule.measure)], testset_format=testset_format, options=options, scoring=scores
        )
        source = _of_run(evaluations[0], score, rule)
    if outcomes is not None:
        from cranfield.gate.calibration.table import with_outcomes

        source = with_outcomes(source, outcomes)
    yield Report(document=calibration_document(calibrate(source, settings), source.answers))
    void = void_of(evaluations)
    for sentence in (sentence for found in void.values() for sentence in found):
        note(f"error: void: {sentence}")
    if void:
        raise Exit(Status.VOID)


def _rule(correct: str | None, kind: str | None) -> Threshold:
    from cranfield.base.errors import UsageError
    from cranfield.measures.threshold import parse_threshold

    if kind is not None:
        raise UsageError(
            "--correctness applies only to a table", hint="for a run, the measure defines structural correctness."
        )
    return parse_threshold(correct or "Success@5")


def _of_run(evaluation: Evaluation, score: str | None, rule: Threshold) -> CalibrationAnswers:
    from cranfield.gate.use_cases.calibration import answers_of_run

    return answers_of_run(evaluation, score, rule)


def _of_table(
    path: Path, score: str | None, correct: str | None, kind: str | None, *, needs_correct: bool
) -> CalibrationAnswers:
    from cranfield.gate.calibration.table import Correctness, TableColumns, read_scored

    meaning = None if kind is None else Correctness(kind)
    return read_scored(path, TableColumns(score=score, correct=correct, kind=meaning, needs_correct=needs_correct))
