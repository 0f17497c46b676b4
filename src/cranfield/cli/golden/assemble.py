"""Versions of a golden set: `cranfield golden assemble`, `batch` and `models`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.ending import EXIT_VERDICT
from cranfield.cli.golden.options import RepoOption, RunArgument
from cranfield.cli.named import takes_runs
from cranfield.cli.option_groups import SeedOption, option_groups
from cranfield.cli.shared import MeasureOption, Output, deliver
from cranfield.cli.testset.common import TodayOption, day_of, note

AlphaOption = Annotated[
    float, typer.Option("--alpha", metavar="P", min=0.0001, max=0.5, help="Significance level over all metrics.")
]


@takes_runs("runs")
@option_groups
def assemble_command(
    run: RunArgument,
    *,
    repo: RepoOption = Path(),
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder of the versions; the newest one is the version before.")
    ] = Path("golden"),
    runs: Annotated[
        list[Path] | None, typer.Option("--run", metavar="RUN", help="Run of a system to evaluate; repeat for more.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="FILE", help="Baseline of the gate, as git has it.")
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option("--calibration", metavar="FILE", help="JSON that `cranfield calibrate` writes.")
    ] = None,
    draft: Annotated[bool, typer.Option("--draft", help="Write a set that is not golden as draft_vX.Y.json.")] = False,
    today: TodayOption = None,
    output: Output,
) -> None:
    """Write the records of a run as a version of a golden set, where every criterion is met.

    Each criterion is printed with what was found. Exits with 1 where one is not met; nothing is called golden then.
    """
    from cranfield.app.golden_assemble import Evidence, assemble
    from cranfield.reporting.documents.golden_sets import assembly_document

    evidence = Evidence(tuple(runs or ()), baseline, calibration)
    assembly = assemble(run, repo, out, evidence, draft=draft, today=day_of(today))
    deliver(assembly_document(assembly.result(draft=draft)), output)
    for path in assembly.written:
        note(f"wrote {path}")
    if not assembly.is_golden:
        raise typer.Exit(EXIT_VERDICT)


@takes_runs("runs")
@option_groups
def batch_command(
    old: Annotated[Path, typer.Argument(metavar="BLESSED", help="Golden set so far, or the folder of its versions.")],
    new: Annotated[Path, typer.Argument(metavar="BATCH", help="Set of the new records alone.")],
    *,
    runs: Annotated[
        list[Path] | None,
        typer.Option("--run", metavar="RUN", help="Run of a system over the queries of both, to compare its scores."),
    ] = None,
    measure: MeasureOption = None,
    alpha: AlphaOption = 0.05,
    seed: SeedOption = 0,
    output: Output,
) -> None:
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
    deliver(batch_document(drift), output)
    if drift.verdict is BatchVerdict.REQUEUE:
        raise typer.Exit(EXIT_VERDICT)


@option_groups
def models_command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, in the order they were made.")],
    *,
    acceptable: Annotated[
        float, typer.Option("--acceptable", metavar="P", help="Share of rejected records that a model may have.")
    ] = 0.1,
    unacceptable: Annotated[
        float, typer.Option("--unacceptable", metavar="P", help="Share at which it is to be retired.")
    ] = 0.3,
    output: Output,
) -> None:
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
    deliver(models_document(ModelTests(models=histories, test=test)), output)
    if any(each.decision is Decision.RETIRE for each in histories):
        raise typer.Exit(EXIT_VERDICT)
