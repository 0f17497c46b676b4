"""Versions of a golden set: `cranfield golden assemble`, `batch` and `models`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from annotated_types import Interval

from cranfield.app.command import Exit, Report, Status, note, takes_runs
from cranfield.app.commands.golden.options import RepoOption, RunArgument
from cranfield.app.commands.shared import MeasureOption, SeedOption
from cranfield.app.commands.testset.common import TodayOption, day_of
from cranfield.options.declaration import Argument, Option

AlphaOption = Annotated[
    float, Option("Significance level over all metrics.", flag="--alpha", metavar="P"), Interval(ge=0.0001, le=0.5)
]


@takes_runs("runs")
def assemble_command(
    run: RunArgument,
    *,
    repo: RepoOption = Path(),
    out: Annotated[Path, Option("Folder of the versions; the newest one is the version before.", metavar="DIR")] = Path(
        "golden"
    ),
    runs: Annotated[
        list[Path] | None, Option("Run of a system to evaluate; repeat for more.", flag="--run", metavar="RUN")
    ] = None,
    baseline: Annotated[Path | None, Option("Baseline of the gate, as git has it.", metavar="FILE")] = None,
    calibration: Annotated[Path | None, Option("JSON that `cranfield calibrate` writes.", metavar="FILE")] = None,
    draft: Annotated[bool, Option("Write a set that is not golden as draft_vX.Y.json.")] = False,
    today: TodayOption = None,
) -> Iterator[Report]:
    """Write the records of a run as a version of a golden set, where every criterion is met.

    Each criterion is printed with what was found. Exits with 1 where one is not met; nothing is called golden then.
    """
    from cranfield.app.golden_assemble import Evidence, assemble
    from cranfield.reporting.documents.golden_sets import assembly_document

    evidence = Evidence(tuple(runs or ()), baseline, calibration)
    assembly = assemble(run, repo, out, evidence, draft=draft, today=day_of(today))
    yield Report(document=assembly_document(assembly.result(draft=draft)))
    for path in assembly.written:
        note(f"wrote {path}")
    if not assembly.is_golden:
        raise Exit(Status.FAILED)


@takes_runs("runs")
def batch_command(
    old: Annotated[Path, Argument("Golden set so far, or the folder of its versions.", metavar="BLESSED")],
    new: Annotated[Path, Argument("Set of the new records alone.", metavar="BATCH")],
    *,
    runs: Annotated[
        list[Path] | None,
        Option("Run of a system over the queries of both, to compare its scores.", flag="--run", metavar="RUN"),
    ] = None,
    measure: MeasureOption = None,
    alpha: AlphaOption = 0.05,
    seed: SeedOption = 0,
) -> Report:
    """Compare a new batch of records with the blessed ones: counts, lengths, overlaps of words, and scores of systems.

    Exits with 1 where the batch differs significantly: it goes back to its authors.
    """
    from cranfield.app.golden_assemble import batch_scores
    from cranfield.app.loading import read_stored
    from cranfield.golden.batch_drift import BatchVerdict, batch_drift
    from cranfield.reporting.documents.golden_sets import batch_document

    blessed, batch = read_stored(old), read_stored(new)
    scores = batch_scores(blessed, batch, runs or (), measure)
    drift = batch_drift(blessed, batch, scores, alpha=alpha, seed=seed)
    return Report(
        document=batch_document(drift), status=Status.FAILED if drift.verdict is BatchVerdict.REQUEUE else Status.OK
    )


def models_command(
    runs: Annotated[list[Path], Argument("Folders of runs, in the order they were made.", metavar="RUN...")],
    *,
    acceptable: Annotated[float, Option("Share of rejected records that a model may have.", metavar="P")] = 0.1,
    unacceptable: Annotated[float, Option("Share at which it is to be retired.", metavar="P")] = 0.3,
) -> Report:
    """Test whether an oracle or an adversary has too many rejected records, by a sequential test.

    Exits with 1 where a model is to be retired.
    """
    from cranfield.golden.folder import RunFolder
    from cranfield.golden.index import RunIndex
    from cranfield.golden.model_records import model_records
    from cranfield.golden.retirement import Decision, ModelTests, SequentialTest, model_histories
    from cranfield.reporting.documents.golden_sets import models_document

    test = SequentialTest(acceptable, unacceptable)
    records = [record for run in runs for record in model_records(RunIndex(RunFolder.open(run)))]
    histories = model_histories(records, test)
    return Report(
        document=models_document(ModelTests(models=histories, test=test)),
        status=Status.FAILED if any(each.decision is Decision.RETIRE for each in histories) else Status.OK,
    )
