"""`cranfield run`, and what is made of a config: demo, report, schema, components, grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import Output, OutputFormat, Report, Status, note, say
from cranfield.app.commands.shared import (
    AllowDriftOption,
    ContrastOption,
    FailOnOption,
    FloorOption,
    KeptOption,
    MeasureOption,
    OutFolderOption,
    PairsOption,
    PilotOption,
    RefreshOption,
    SeedOption,
    SortOption,
    TestSetNameOption,
    answer_cache,
    contrasts_of,
    floors_status,
    today,
    verdict_status,
)
from cranfield.app.commands.system import CONFIG, ConfigOption
from cranfield.evaluation.options.declaration import Argument, Option
from cranfield.plugins import required

if TYPE_CHECKING:
    from cranfield.app.loading import SetOverrides
    from cranfield.app.run import CompletedRun
    from cranfield.evaluation.verdict_table import VerdictCode


SensitivityOption = Annotated[bool, Option("Add a sensitivity analysis (two systems only).", flag="--sensitivity")]
ExplainOption = Annotated[
    bool, Option("Keep how the score of each result came about, of systems that can say so.", flag="--explain")
]
WORST_FIRST = (Status.VOID, Status.FAILED, Status.INCONCLUSIVE, Status.OK)
"""A system that does not work is worse than a verdict, and a verdict worse than none."""


def run_command(
    config: Annotated[
        Path,
        Argument(
            "Configuration file (test set, systems, measures); or, if systems follow, a test set file.",
            metavar="[CONFIG|TESTSET]",
        ),
    ] = Path("cranfield.yaml"),
    targets: Annotated[
        list[str] | None,
        Argument(
            "Without a config: systems and further files of the test set, in the forms that `cranfield init` accepts.",
            metavar="[[NAME=]FILE|URL|COMMAND]...",
        ),
    ] = None,
    *,
    measures: MeasureOption = None,
    floor: FloorOption = None,
    systems: Annotated[
        list[str] | None,
        Option("Run only this system; repeat for more, baseline first.", flag="--system", metavar="NAME"),
    ] = None,
    out: OutFolderOption = Path("cranfield-out"),
    seed: SeedOption = 0,
    pilot: PilotOption = False,
    allow_drift: AllowDriftOption = False,
    contrast: ContrastOption = None,
    sensitivity: SensitivityOption = False,
    sort: SortOption = "mean",
    pairs: PairsOption = False,
    explain: ExplainOption = False,
    no_cache: KeptOption = False,
    refresh: RefreshOption = False,
    fail_on: FailOnOption = None,
    output: Output,
    overrides: SetOverrides,
) -> Report:
    """Send every query to every system; score, compare and report.

    Every run sends every query. An interrupted collection resumes when the command is repeated. Answers of an earlier
    run are reused only if the config sets `cache_h` and the system declares what they depend on (`depends`). With --full, the
    last line is a command that scores the saved runs with other measures, without querying a system. Several test sets are
    run one after another, each into a subfolder of its name; the exit code is that of the worst result.

    Without a config, a test set and its systems are enough: `cranfield run code.csv './search {query}' -m Hit@5 --floor Hit@5=0.70`.
    """
    from cranfield.app.run import run_job

    job = run_job(
        config,
        out=out,
        systems=systems or None,
        seed=seed,
        pilot=pilot,
        allow_drift=allow_drift,
        contrasts=contrasts_of(contrast),
        sensitivity=sensitivity,
        sort=sort,
        pairs=pairs,
        cache=answer_cache(no_cache=no_cache, refresh=refresh),
        explain=explain,
        today=today(),
        overrides=replace(overrides, measures=tuple(measures or ())),
        floors=required("floors").parse_floors(floor) if floor else None,
        targets=[str(config), *targets] if targets else (),
    )
    parts = job.parts or (job,)
    status, notes = floors_status(job.floors)
    statuses = {_status(part, fail_on) for part in parts} | {status}
    if output.full or output.format is not OutputFormat.TEXT:
        what = "these runs" if len(parts) == 1 else "the runs of each test set"
        again = f"To score {what} with other measures, without querying the systems again, change -m in:"
        notes = [again, *(f"  {part.rescore}" for part in parts), *notes]
    return Report(
        document=job.document,
        full=bool(sensitivity or pairs or contrast),
        written=job.written,
        notes=notes,
        status=next(each for each in WORST_FIRST if each in statuses),
    )


def _status(job: CompletedRun, fail_on: Sequence[VerdictCode] | None) -> Status:
    """The status of one test set: of a verdict to fail on, or of broken limits."""
    verdicts = (
        [job.comparison.verdict.code] if job.comparison is not None else job.many.claims if job.many is not None else ()
    )
    return verdict_status(verdicts, fail_on) or (Status.VOID if job.void else Status.OK)


def demo_command(
    *,
    out: Annotated[Path, Option("Output folder of the demo.", metavar="DIR", refuses_link=True)] = Path(
        "cranfield-demo"
    ),
) -> Report:
    """Compare two search systems over the Python standard library.

    The report says which one is better.
    """
    from cranfield.app.demo.build import build_demo
    from cranfield.app.run import run_job
    from cranfield.base.installation import this_installation
    from cranfield.base.platforms import PROGRAMS, require

    require(PROGRAMS, "the demo, which starts its search systems as programs,")
    note(f"indexing the Python standard library twice, in {out} …")
    demo = build_demo(out)
    for line in demo.drift.sentences():
        note(line)
    job = run_job(demo.config, out=out)
    serve = this_installation().next_command("serve cranfield.yaml --workbench workbench.yaml", "web")
    return Report(document=job.document, written=job.written, notes=[f"Next, in {out}: {serve}"])


def report_command(
    results: Annotated[
        Path,
        Argument(
            "results.json of `cranfield run`, or a JSON report of another command with per-query results.",
            metavar="RESULTS",
        ),
    ],
    *,
    by_query: Annotated[bool, Option("Add a table of per-query results.")] = False,
    sort: SortOption = "mean",
    pairs: PairsOption = False,
) -> Report:
    """Make a report of saved results, in any form.

    Nothing is scored again. Times and outputs of the calls are read from the calls.json in the same folder.
    """
    from cranfield.reporting.documents.comparison import subject_document
    from cranfield.reporting.sections.subject import Subject

    subject = Subject.read(results, by_query=by_query, sort=sort, show_pairs=pairs, today=today())
    return Report(document=subject_document(subject), full=any((by_query, pairs)))


def schema_command(
    name: Annotated[str, Argument("Document: {schemas}.", metavar="[DOCUMENT]")] = "config",
) -> None:
    """Print the JSON Schema of the config, or of another document.

    An editor checks and completes a YAML file whose first line is `# yaml-language-server: $schema=FILE`; `cranfield init`
    writes that line, and the file.
    """
    from cranfield.app.schemas import schema_named

    say(schema_named(name).text, end="")


def components_command(
    name: Annotated[str, Argument("A fusion, or a system that lists its `components`.", metavar="NAME")],
    *,
    config: ConfigOption = CONFIG,
    testset: TestSetNameOption = None,
    out: OutFolderOption = Path("cranfield-components"),
    seed: SeedOption = 0,
    pilot: PilotOption = False,
    no_cache: KeptOption = False,
    refresh: RefreshOption = False,
    overrides: SetOverrides,
) -> Report:
    """Measure what each component of a system contributes.

    Alone, all together, and all but one.

    An interrupted collection resumes when the command is repeated.
    """
    from cranfield.app.grid import run_components

    job = run_components(
        name,
        config,
        out=out,
        testset=testset,
        seed=seed,
        pilot=pilot,
        cache=answer_cache(no_cache=no_cache, refresh=refresh),
        overrides=overrides,
    )
    return Report(document=job.document, written=job.written, status=Status.VOID if job.void_reasons else 0)


def grid_command(
    config: Annotated[Path, Argument("Configuration file with a `grid:` block.", metavar="CONFIG")] = Path(
        "cranfield.yaml"
    ),
    *,
    testset: TestSetNameOption = None,
    out: OutFolderOption = Path("cranfield-grid"),
    seed: SeedOption = 0,
    pilot: PilotOption = False,
    no_cache: KeptOption = False,
    refresh: RefreshOption = False,
    fail_on: FailOnOption = None,
    overrides: SetOverrides,
) -> Report:
    """Grid search: choose settings, and test them on held-out queries.

    The verdict compares the chosen settings with those of the config on the held-out queries. An interrupted collection
    resumes when the command is repeated.
    """
    from cranfield.app.grid import run_grid

    job = run_grid(
        config,
        out=out,
        testset=testset,
        seed=seed,
        pilot=pilot,
        cache=answer_cache(no_cache=no_cache, refresh=refresh),
        overrides=overrides,
    )
    verdicts = [] if job.result.comparison is None else [job.result.comparison.verdict]
    status = Status.VOID if job.void_reasons else verdict_status(verdicts, fail_on)
    return Report(document=job.document, written=job.written, status=status)
