"""`cranfield snapshot`: the first results of every query as a file in git."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from cranfield.app.command import Report, Status, fields
from cranfield.app.commands.shared import (
    AllowDriftOption,
    KeptOption,
    RefreshOption,
    TestSetFormatOption,
    TestSetNameOption,
    answer_cache,
)
from cranfield.base.errors import Problem, UsageError
from cranfield.evaluation.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.app.loading import SetOverrides
    from cranfield.evaluation.options.blocks import ScoringOptions


def snapshot_command(
    config: Annotated[
        Path,
        Argument(
            "Configuration file (test set, systems); or, if a run follows, a test set or a list of queries.",
            metavar="[CONFIG|TESTSET]",
        ),
    ] = Path("cranfield.yaml"),
    run: Annotated[Path | None, Argument("Without a config: a run file.", metavar="[RUN]")] = None,
    *,
    check: Annotated[
        bool, Option("Compare with the file and print a diff; exit with 1 if it differs, and write nothing.")
    ] = False,
    accept: Annotated[bool, Option("Replace the file.")] = False,
    k: Annotated[
        int | None,
        Option(
            "Results of each query; default: as many as the file has, 5 where there is none.",
            short="-k",
            metavar="N",
        ),
        Ge(1),
    ] = None,
    scores: Annotated[bool, Option("Write the score of each result too.")] = False,
    out: Annotated[
        Path | None,
        Option(
            "File of the snapshot; of several systems or test sets their names are added. Default: "
            "cranfield-snapshot.txt, with these names.",
            metavar="FILE",
        ),
    ] = None,
    systems: Annotated[
        list[str] | None, Option("Only this system of the config; repeat for more.", flag="--system", metavar="NAME")
    ] = None,
    testset: TestSetNameOption = None,
    allow_drift: AllowDriftOption = False,
    no_cache: KeptOption = False,
    refresh: RefreshOption = False,
    scoring: Annotated[ScoringOptions, fields("convention", "duplicates", "run_format")],
    testset_format: TestSetFormatOption = None,
    overrides: SetOverrides,
) -> Report:
    """Keep the first results of every query in a file; show changes.

    The systems of a config are queried, or a run file is read. Where there is no file, it is written. Where there is one, it is
    compared, and only --accept replaces it: exit code 1 if results differ. The header of the file is not compared. Judgments are
    not needed; with them, expected results are marked and those below the first k are listed.
    """
    from cranfield.app.snapshot import SnapshotOptions, snapshot_run, snapshot_systems
    from cranfield.evaluation.options.blocks import ScoringOptions as Scoring
    from cranfield.evaluation.snapshot import SnapshotAction
    from cranfield.reporting.documents.snapshot import snapshot_document

    cache = answer_cache(no_cache=no_cache, refresh=refresh)
    of_config = {"--system": systems, "--testset": testset, "--allow-drift": allow_drift, "--no-cache": no_cache}
    of_config["--refresh"] = refresh
    usual = Scoring()
    of_run = {f"--{name.replace('_', '-')}": getattr(scoring, name) != getattr(usual, name) for name in _OF_RUN}
    of_run["--testset-format"] = testset_format is not None
    refused, needs = (of_run, "a run file") if run is None else (of_config, "a config, without a run file")
    problems = [Problem(f"{option} is given", expected=needs) for option, given in refused.items() if given]
    if check and accept:
        problems.append(Problem("--check and --accept exclude each other", hint="--check writes nothing"))
    if problems:
        raise UsageError(problems)
    action = SnapshotAction.CHECK if check else SnapshotAction.ACCEPT if accept else SnapshotAction.WRITE
    wanted = SnapshotOptions(k, scores, out, action)
    if run is not None:
        found, written = snapshot_run(
            config, run, wanted, testset_format=testset_format, scoring=scoring, overrides=overrides
        )
    else:
        found, written = snapshot_systems(
            config,
            wanted,
            systems=systems or (),
            testset=testset,
            allow_drift=allow_drift,
            cache=cache,
            overrides=overrides,
        )
    return Report(
        document=snapshot_document(found),
        full=True,
        written=written,
        status=Status.FAILED if found.differs else Status.OK,
    )


_OF_RUN = ("convention", "duplicates", "run_format")
