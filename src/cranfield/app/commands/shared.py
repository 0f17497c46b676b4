"""Options that several commands have, and what several commands do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cranfield.app.command import Status, note, option_of
from cranfield.base.errors import CranfieldError, Problem, UnknownNameError, UsageError, shorten
from cranfield.evaluation.options.blocks import CompareOptions, LargeOptions, ScoringOptions, TestSetOptions
from cranfield.evaluation.options.declaration import Argument, Option
from cranfield.evaluation.verdict_table import VerdictCode, parse_verdict
from cranfield.plugins import provided, required

if TYPE_CHECKING:
    from cranfield.app.experiment import AnswerCache
    from cranfield.app.run import JudgedFloors
    from cranfield.evaluation.many import ManyComparison
    from cranfield.evaluation.values import Evaluation
    from cranfield.model import TestSet

LARGE_BYTES = 16 * 1024 * 1024
"""Run files under this size are read in no time by either reader."""
ConventionOption = option_of(ScoringOptions, "convention")
SeedOption = option_of(CompareOptions, "seed")
AllowDirtyOption = option_of(TestSetOptions, "allow_dirty")
SortOption = Annotated[
    str, Option("Order of three or more runs: mean, rank (mean rank), name, given or a measure.", metavar="KEY")
]
PairsOption = Annotated[bool, Option("List all pairs of three or more runs; default: up to 15 pairs.")]
FAIL_ON = {
    VerdictCode.BETTER: Status.FAILED,
    VerdictCode.WORSE: Status.FAILED,
    VerdictCode.MIXED: Status.FAILED,
    VerdictCode.EQUIVALENT: Status.FAILED,
    VerdictCode.NOT_SIGNIFICANT: Status.INCONCLUSIVE,
    VerdictCode.INVALID: Status.VOID,
}
"""Verdicts that `--fail-on` takes, each with its exit code."""


def spell_fail_on(code: VerdictCode) -> str:
    """`not-significant`: how `--fail-on` spells a verdict."""
    return code.value.replace("_", "-")


def parse_fail_on(spelling: str) -> VerdictCode:
    """The verdict to fail on."""
    try:
        code = parse_verdict(spelling)
    except UnknownNameError:
        code = None
    if code not in FAIL_ON:
        raise ValueError(f"{spelling!r} is not one of {', '.join(map(spell_fail_on, FAIL_ON))}.")
    return code


def _fail_on_help() -> str:
    """`1 on this verdict: better, worse, equivalent; 4 on not-significant; 3 on invalid`."""
    names: dict[int, list[str]] = {}
    for code, status in FAIL_ON.items():
        names.setdefault(status, []).append(spell_fail_on(code))
    return "; ".join(f"{status} on {', '.join(spelled)}" for status, spelled in names.items())


ConfigArgument = Annotated[Path, Argument("Configuration file: test set, systems, measures.", metavar="CONFIG")]
OutFolderOption = Annotated[
    Path,
    Option(
        "Output folder for results.json, calls.json, report.html, report.md and the runs.",
        flag="--out",
        metavar="DIR",
        refuses_link=True,
    ),
]
TestSetNameOption = Annotated[
    str | None, Option("Name of the test set, if the config has several.", flag="--testset", metavar="NAME")
]
AllowDriftOption = Annotated[
    bool, Option("Accept a test set that no longer matches its repository.", flag="--allow-drift")
]
MeansOption = Annotated[
    Path | None,
    Option("Also write a CSV file of means, with one line per system.", flag="--means", metavar="FILE"),
]
MeasureOption = Annotated[
    list[str] | None,
    Option(
        "Measure such as nDCG@10; repeat for more. `cranfield measures` lists them.",
        flag="--measure",
        short="-m",
        metavar="MEASURE",
        choices="measures",
    ),
]
FloorOption = Annotated[
    list[str] | None,
    Option(
        "Exit with 1 if the mean of any system is below the bound. Forms: Hit@5=0.70 (all queries), "
        "Hit@5=0.60:difficulty (each stratum), Hit@5=0.60:difficulty=hard (one stratum); repeat for more.",
        flag="--floor",
        metavar="MEASURE=BOUND",
    ),
]
FailOnOption = Annotated[
    list[VerdictCode] | None,
    Option(
        f"Exit with {_fail_on_help()}; repeat for more.",
        flag="--fail-on",
        metavar="VERDICT",
        choices="verdicts",
        parse=parse_fail_on,
    ),
]
KeptOption = Annotated[bool, Option("Do not read or write the answer cache.", flag="--no-cache")]
RefreshOption = Annotated[bool, Option("Ignore cached answers and overwrite them.", flag="--refresh")]
PilotOption = Annotated[
    bool, Option("Mark all output as a pilot (a trial that is not for the record).", flag="--pilot")
]
TestSetFormatOption = Annotated[
    str | None,
    Option(
        "Format of the test set, such as qrels or beir; default: detected from the content.",
        flag="--testset-format",
        metavar="FORMAT",
        choices="testset_formats",
    ),
]
ContrastOption = Annotated[
    list[str] | None,
    Option(
        "Contrast two strata, with a confidence interval: difficulty=easy,hard; repeat for more.",
        flag="--contrast",
        metavar="KEY=A,B",
    ),
]


def contrasts_of(specs: Sequence[str] | None) -> list[tuple[str, str, str]]:
    """`KEY=A,B` options as key and two values.

    Raises:
        UsageError: with every one that is none.
    """
    found, problems = [], []
    for spec in specs or ():
        key, equals, values = spec.partition("=")
        pair = [value.strip() for value in values.split(",")]
        if not equals or not key.strip() or len(pair) != 2 or not all(pair):
            problems.append(Problem(f"--contrast is {shorten(spec)}", expected="KEY=A,B such as difficulty=easy,hard"))
        else:
            found.append((key.strip(), pair[0], pair[1]))
    if problems:
        raise UsageError(problems)
    return found


def today() -> date:
    """The user's own day, by which a test set is overdue for new queries."""
    return date.today()  # noqa: DTZ011


def require_single_stdin(paths: Sequence[Path]) -> None:
    """Refuse `-` for more than one of a command's files: standard input is there once."""
    if [str(path) for path in paths].count("-") > 1:
        raise UsageError("standard input (-) is named more than once", expected="at most one file named -")


def note_reader(runs: Sequence[Path]) -> None:
    """Say on stderr that large run files are read by Python, where the kernel was not built."""
    from cranfield.ranking.engine import why_in_python

    if any(run.is_file() and run.stat().st_size > LARGE_BYTES for run in runs):
        why = why_in_python()
        if why is not None:
            note(f"note: run files are read by Python, which is several times slower than the C kernel: {why}")
    if any(run.suffix.lower() == ".parquet" for run in runs):
        in_parts = provided("large_runs")
        n_rows = 0 if in_parts is None else in_parts.rows_of(runs)
        if in_parts is not None and n_rows >= in_parts.LARGE_ROWS:
            note(f"note: {n_rows:,} rows are read into memory; --memory 1GB reads them in parts, and faster")


def reader_in_parts(runs: Sequence[Path], large: LargeOptions) -> Any:
    """The module of the product that reads runs in parts, where they are large or an option of it is given; else None.

    Raises:
        UsageError: such an option is given, and no product reads runs in parts.
    """
    found = provided("large_runs") if large == LargeOptions() else required("large_runs")
    return found if found is not None and found.is_large(runs, large) else None


def load_and_evaluate(
    testset: Path,
    runs: Sequence[Path],
    measures: Sequence[str] | None,
    *,
    testset_format: str | None,
    options: TestSetOptions,
    scoring: ScoringOptions,
    primary: str | None = None,
) -> list[Evaluation]:
    """Load a test set, of a stored split its evaluated part, and score run files against it, each under a name of its own."""
    from cranfield.app.loading import load
    from cranfield.app.read_ahead import evaluate_files
    from cranfield.evaluation.testset.split import evaluated_part

    require_single_stdin([testset, *runs])
    note_reader(runs)
    try:
        loaded = load(testset, format=testset_format, options=options)
        if options.part is None:
            loaded = evaluated_part(loaded)
        return evaluate_files(loaded, runs, measures, scoring, primary=primary)
    except CranfieldError as error:
        others = (each for each in _what_is_not_there(runs, measures or ()) if each not in error.problems)
        error.problems = (*error.problems, *others)
        raise


def _what_is_not_there(runs: Sequence[Path], measures: Sequence[str]) -> Iterable[Problem]:
    """Run files that are missing and measures that are none, to be reported with the first problem of a call."""
    from cranfield.formats.io.files import is_there, refusal
    from cranfield.measures.parse import parse_all

    yield from (refusal(run, FileNotFoundError()) for run in runs if str(run) != "-" and not is_there(run))
    try:
        parse_all(measures)
    except CranfieldError as error:
        yield from error.problems


def answer_cache(*, no_cache: bool, refresh: bool) -> AnswerCache:
    """What is done with the answers of earlier runs.

    Raises:
        UsageError: both options were given.
    """
    if no_cache and refresh:
        hint = (
            "--no-cache neither reads nor writes the cache; --refresh overwrites cached answers. Pass only one of them."
        )
        raise UsageError("--no-cache and --refresh exclude each other", hint=hint)
    return "off" if no_cache else "refresh" if refresh else "use"


def void_of(evaluations: Iterable[Evaluation]) -> Mapping[str, Sequence[str]]:
    """Why scores do not count, by system."""
    from cranfield.evaluation.evidence.values import void_sentences

    return {each.name: found for each in evaluations if (found := void_sentences(each.evidence))}


def check_means_file(path: Path) -> None:
    """Refuse a file of means that is no CSV, before anything is computed."""
    if path.suffix.lower() != ".csv":
        raise UsageError("--means writes CSV", path=str(path), expected="a file whose name ends in .csv")


def write_means(result: ManyComparison | Sequence[Evaluation], path: Path, sort: str = "mean") -> None:
    """Write the means of every system as CSV, and name the file on stderr."""
    from cranfield.evaluation.result import result_of
    from cranfield.reporting.renderers.data import save_table
    from cranfield.reporting.sections.many import means_table

    save_table(means_table(result_of(result), sort), path)
    note(f"wrote {path}")


def floors_status(floors: JudgedFloors | None) -> tuple[Status, list[str]]:
    """Whether a floor is broken, and a line for each, with its system."""
    if floors is None:
        return Status.OK, []
    return Status.FAILED if floors.is_broken else Status.OK, [*floors.lines]


def verdict_status(verdicts: Iterable[VerdictCode], fail_on: Sequence[VerdictCode] | None) -> Status:
    """The status of the first verdict that is among those to fail on.

    A mixed verdict is among them where a worse one is: the candidate is worse in a class.
    """
    named = set(fail_on or ())
    if VerdictCode.WORSE in named:
        named.add(VerdictCode.MIXED)
    return next((FAIL_ON[verdict] for verdict in verdicts if verdict in named), Status.OK)


SetArgument = Annotated[Path, Argument("Test set, in any supported format.", metavar="SET")]
SetFormatOption = Annotated[
    str | None,
    Option(
        "Format of the test set; default: detected from the content.",
        flag="--testset-format",
        metavar="FORMAT",
        choices="testset_formats",
    ),
]
OutOption = Annotated[
    Path | None, Option("Write the changed test set to this file; default: SET.", flag="--out", metavar="FILE")
]
OutArgument = Annotated[Path, Argument("Output file; its extension selects the format.", metavar="OUT")]
ToOption = Annotated[str | None, Option("Format of OUT; default: from its extension.", flag="--to", metavar="FORMAT")]
ForceOption = Annotated[bool, Option("Replace an existing file or split.", flag="--force")]
TodayOption = Annotated[
    str | None, Option("Use this date instead of today, such as 2026-11-21.", flag="--today", metavar="DATE")
]


def day_of(text: str | None) -> date:
    """Today, or the day that was named.

    Raises:
        UsageError: it is no day.
    """
    from cranfield.base.errors import UsageError, shorten

    if text is None:
        return today()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--today is {shorten(text)}", expected="a date such as 2026-11-21") from None


def load_set(
    path: Path,
    format: str | None = None,  # noqa: A002  as above
    *,
    ask: bool = False,
    options: TestSetOptions | None = None,
) -> TestSet:
    """Read a test set as it is evaluated: with grades made of its ratings.

    Args:
        path: its file.
        format: name of its format, where the content does not tell.
        options: what is done to it; None: nothing.
        ask: whether the databases of its predicates are asked; runs cannot be scored otherwise.

    Raises:
        TestSetError: the file cannot be read as one, or a database does not answer.
    """
    from cranfield.app.loading import apply_options, log_unused, mapping_of, read_stored, target_needs_database
    from cranfield.evaluation.options.blocks import NO_OPTIONS

    given = NO_OPTIONS if options is None else options
    testset = read_stored(path, format, mapping_of(path, format, given.map))
    if not ask and given == NO_OPTIONS and target_needs_database(testset):
        return testset
    return log_unused(apply_options(testset, given, path.parent, path), str(path))


def refuse_existing(path: Path, *, force: bool) -> None:
    """Refuse to replace a file without `--force`, or a device or pipe.

    Raises:
        UsageError: it is there; it is a device or a pipe; or its folder is not there.
    """
    from cranfield.base.errors import UsageError

    if not path.parent.is_dir():
        raise UsageError("no such folder", path=str(path.parent))
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UsageError("a device or a pipe cannot be replaced", path=str(path), expected="a file")
    if path.exists() and not force:
        raise UsageError("the file already exists", path=str(path), hint="--force replaces it")


def save_set(
    changed: TestSet,
    path: Path,
    out: Path | None,
    *,
    format: str | None = None,  # noqa: A002  as above
) -> tuple[Path, ...]:
    """Save a changed set, and print what of the old file is lost; see `testsets.storage.save`. Returns the files."""
    from cranfield.formats.testsets.storage import save

    saved = save(changed, path, out, format=format)
    for sentence in saved.notes:
        note(f"note: {sentence}")
    return saved.files
