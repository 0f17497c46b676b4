"""Evaluations of runs of any size, which are read in parts."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from cranfield.base.errors import MissingExtraError, Problem, UsageError, unknown_name
from cranfield.evaluation.options.blocks import LargeOptions, ScoringOptions
from cranfield.model import DEFAULT_CONVENTION, Convention, TestSet
from cranfield.ranking.scan import Duplicates, Missing

if TYPE_CHECKING:
    from cranfield.app.loading import TestSetLike
    from cranfield.evaluation.options.blocks import CompareOptions
    from cranfield.measures import Measure
    from cranfield.scale.checkpoint import OnProgress
    from cranfield.scale.judgments import JudgmentTable
    from cranfield.scale.results import Results
    from cranfield.scale.scoring import Scoring
    from cranfield.scale.values import ScaleSummary


ENGINES = ("local", "spark")
LARGE_ROWS = 5_000_000
"""From so many rows on, a command says that a Parquet file can be read in parts."""
ROW_BYTES = 200
"""Memory in bytes of a row of a Parquet file that is read as a whole."""
ASSUMED_MEMORY = 8 << 30
"""Memory of a machine that does not say how much it has."""
_USUAL = ScoringOptions()
NOT_LARGE = {"failed", "ties", "run_format", "confusion", "latency", "limits", "name", "keep_undefined"}
"""Scoring options that a run which is read in parts does not have."""


def is_large(runs: Sequence[Path], options: LargeOptions) -> bool:
    """Whether runs are read in parts: folders and patterns of Parquet files, files of several systems or that memory cannot hold, or an option says so.

    Raises:
        MissingExtraError: they are, and there is no pyarrow.
        UsageError: they look like the parts of one run.
    """
    if options.given:
        _require_pyarrow(options)
        return True
    with_parquet = [run for run in runs if run.suffix.lower() == ".parquet" or run.is_dir() or not run.exists()]
    if not with_parquet:
        return False
    try:
        from cranfield.scale.source import has_several_systems, is_large_run, refuse_parts
    except ImportError:  # a run of one file says what it needs
        if any(run.is_dir() and next(run.rglob("*.parquet"), None) for run in with_parquet):
            _require_pyarrow(options)
        return False
    refuse_parts([str(run) for run in with_parquet])
    if any(run.is_dir() or is_large_run(str(run)) or has_several_systems(run) for run in with_parquet):
        return True
    return rows_of(runs) * ROW_BYTES > _memory_of_machine() / 2


def _require_pyarrow(options: LargeOptions) -> None:
    """See that it is there, before anything is read.

    Raises:
        MissingExtraError: it is not.
    """
    try:
        import pyarrow as pa  # noqa: F401 - asked for alone
    except ImportError:
        extra = "spark" if options.engine == "spark" else "parquet"
        raise MissingExtraError.for_extra("reading Parquet files in parts", extra) from None


def rows_of(runs: Sequence[Path]) -> int:
    """Rows of the Parquet files among some runs; 0 where they cannot be read, which their reader will report."""
    try:
        import pyarrow.parquet as pq

        return sum(pq.read_metadata(run).num_rows for run in runs if run.suffix.lower() == ".parquet" and run.is_file())
    except (ImportError, OSError, ValueError):
        return 0


def _memory_of_machine() -> int:
    if sys.platform == "win32":
        return ASSUMED_MEMORY
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def evaluate_large(
    judgments: Callable[[], JudgmentTable],
    runs: Sequence[Path],
    measures: Sequence[str] | None,
    scoring: ScoringOptions,
    options: LargeOptions,
    *,
    compare: CompareOptions | None = None,
    on_progress: OnProgress | None = None,
) -> ScaleSummary:
    """Evaluate runs of Parquet files, and compare every system with the first.

    Args:
        judgments: reads the test set; called once the runs are known to be there.
        runs: files, folders and patterns, each a run, or several systems in a column.
        measures: None is the default list.
        scoring: convention, depth, missing and duplicate results.
        options: how the runs are read.
        compare: what was declared of the comparison.
        on_progress: called with how many rows were read.

    Raises:
        RunFormatError: with the first problems of the files or their rows.
        UsageError: options that cannot be combined.
        MissingExtraError: without pyarrow.
    """
    _require_pyarrow(options)
    _check(scoring, options)
    from cranfield.measures import parse
    from cranfield.scale.summary import summarise_results

    temporary = tempfile.TemporaryDirectory(prefix="cranfield-") if options.out is None else nullcontext(options.out)
    primary = None if compare is None or compare.primary is None else parse(compare.primary)
    with temporary as folder:
        results = _results(Path(folder), judgments, runs, measures, scoring, options, on_progress, primary)
        return summarise_results(
            results,
            compare,
            table=options.query_table,
            cluster=options.cluster,
            strata=options.stratum,
            weight=options.weight,
        )


class ParquetOptions(TypedDict, total=False):
    """Options of `evaluate_parquet` that are about large runs, and about the comparison of their systems."""

    columns: Mapping[str, str]
    """What the columns are called, where the names are unusual: `{"score": "bm25", "system": "variant"}`."""
    memory: str
    """That may be taken, about: `800MB`, `4GB`; by default 1GB."""
    out: str | Path
    """A folder for the values of each query, as Parquet; an interrupted call goes on there."""
    baseline_system: str
    """The system that comes first; by default the first run, or the first name."""
    query_table: str | Path
    """Parquet or CSV file with a row a query."""
    cluster: str
    """Its column of the user or session, whose queries stay together in tests and intervals."""
    strata: Sequence[str]
    """Its columns of strata, such as the language."""
    weight: str
    """Its column of the weight of each query."""
    primary: str
    """Measure of the verdict; by default the first."""
    test: str
    """Test of the verdict: `permutation` (the default), `t` or `bootstrap`."""
    alpha: float
    """Significance level; by default 0.05."""
    margin: float
    """Largest difference that does not matter."""
    seed: int
    """Seed of everything random."""


def evaluate_parquet(
    testset: TestSetLike,
    runs: str | Path | Sequence[str | Path],
    *,
    measures: Sequence[str] | str | None = None,
    convention: str | Convention = DEFAULT_CONVENTION,
    missing: Missing | None = None,
    duplicates: Duplicates | None = None,
    depth: int | None = None,
    **options: Unpack[ParquetOptions],
) -> ScaleSummary:
    """Score Parquet runs of any size, in bounded memory, and compare every system with the first.

    Args:
        testset: a test set of graded document ids, or what `load` makes one of.
        runs: files, folders or patterns of Parquet files, a run each; a column `system` makes several systems of one run.
        measures: spellings such as `nDCG@10`; None is the default list.
        convention: the choices that score it, or the name of a known convention.
        missing: a judged query without an answer counts as 0 ("zero") or is left out ("skip"); None: the convention's rule.
        duplicates: a document twice in a query is an error, or the better row counts ("first"); None: the convention's rule.
        depth: ranks kept per query before any measure looks; None keeps all.
        options: `columns`, `memory`, `out`, `baseline_system`; `query_table` with its columns `cluster`, `strata` and
            `weight`; `primary`, `test`, `alpha`, `margin` and `seed` of the comparison. See `ParquetOptions`.

    Raises:
        InputError: files or rows that cannot be used, each named.
        UsageError: options that cannot be combined.
        MissingExtraError: without pyarrow.
    """
    large, compare = _split(options)
    return evaluate_large(
        lambda: _judgments_of(testset),
        [Path(run) for run in ([runs] if isinstance(runs, str | Path) else runs)],
        [measures] if isinstance(measures, str) else measures,
        ScoringOptions(convention=convention, missing=missing, duplicates=duplicates, depth=depth),
        large,
        compare=compare,
    )


def _split(options: ParquetOptions) -> tuple[LargeOptions, CompareOptions]:
    """What is about the runs, and what is about the comparison.

    Raises:
        UsageError: an option that there is not.
    """
    from cranfield.evaluation.options.blocks import CompareOptions

    unknown = [
        unknown_name("option", name, sorted(ParquetOptions.__annotations__))
        for name in options
        if name not in ParquetOptions.__annotations__
    ]
    if unknown:
        raise UsageError(unknown)
    given: dict[str, Any] = {"memory": "1GB", **options}
    declared = {name: given.pop(name) for name in ("primary", "test", "alpha", "margin", "seed") if name in given}
    if declared.get("primary") is not None:
        declared["primary"] = str(declared["primary"])
    places: dict[str, Any] = {
        name: Path(given.pop(name)) for name in ("out", "query_table") if given.get(name) is not None
    }
    strata = tuple(given.pop("strata", ()))
    return LargeOptions(**given, **places, stratum=strata), CompareOptions(**declared)


def _judgments_of(testset: TestSetLike) -> JudgmentTable:
    """The judgments of a test set, or of a file of them, which is read in columns where that is possible."""
    from cranfield.app.loading import load
    from cranfield.scale.judgment_files import read_judgments
    from cranfield.scale.judgments import JudgmentTable

    table = read_judgments(Path(testset)) if isinstance(testset, str | Path) else None
    return table or JudgmentTable.of_testset(testset if isinstance(testset, TestSet) else load(testset))


def _check(scoring: ScoringOptions, options: LargeOptions) -> None:
    problems = []
    for name in sorted(NOT_LARGE):
        if getattr(scoring, name) != getattr(_USUAL, name):
            option = f"--{name.replace('_', '-').replace('limits', 'evidence')}"
            problems.append(Problem(f"{option} cannot be used with a run that is read in parts", hint="leave it out"))
    spark_only = [name for name in ("master", "spark_conf") if name in options.given and options.engine != "spark"]
    problems += [
        Problem(f"--{name.replace('_', '-')} belongs to another engine", hint="add --engine spark")
        for name in spark_only
    ]
    if options.engine == "spark" and options.memory:
        problems.append(
            Problem("--memory applies to this machine only", hint="an engine's memory is set in --spark-conf")
        )
    table_only = [
        name for name in ("cluster", "stratum", "weight") if name in options.given and not options.query_table
    ]
    problems += [Problem(f"--{name} names a column", hint="--query-table FILE names its table") for name in table_only]
    if problems:
        raise UsageError(problems)


def _results(
    folder: Path,
    judgments: Callable[[], JudgmentTable],
    runs: Sequence[Path],
    measures: Sequence[str] | None,
    scoring: ScoringOptions,
    options: LargeOptions,
    on_progress: OnProgress | None,
    primary: Measure | None,
) -> Results:
    """Evaluate the runs into a folder."""
    from cranfield.scale.source import ParquetRuns, find_runs

    given, rules = scoring.resolved()
    if options.engine == "spark":
        from cranfield.scale.spark import check_order, evaluate_files

        check_order(rules)
        return evaluate_files(
            runs,
            judgments(),
            lambda systems: _declared(systems, measures, given, options, primary),
            folder,
            master=options.master,
            conf=options.spark_conf,
            columns=options.columns,
        )
    files = ParquetRuns(find_runs([str(run) for run in runs]), rules.file_order, options.columns)
    declared = _declared(files.systems(), measures, given, options, primary)
    table = judgments()
    from cranfield.scale.checkpoint import silent
    from cranfield.scale.local import LocalEvaluation
    from cranfield.scale.plan import DEFAULT_MEMORY, memory_bytes
    from cranfield.scale.results import ResultsInfo, ResultsWriter

    memory, state = memory_bytes(options.memory or DEFAULT_MEMORY), options.out
    evaluation = LocalEvaluation(files, table, declared, memory, state, on_progress or silent)
    with ResultsWriter(folder, declared) as writer:
        counted = evaluation.run(writer.write)
        return writer.finish(
            ResultsInfo.of(
                table,
                declared,
                n_rows=files.n_rows,
                n_rows_unjudged=int(counted.unjudged.sum()),
                n_duplicates=counted.n_duplicates,
                extra_queries=counted.extra_queries,
                runs=counted.runs,
            )
        )


def _declared(
    systems: Sequence[str],
    measures: Sequence[str] | None,
    given: ScoringOptions,
    options: LargeOptions,
    primary: Measure | None,
) -> Scoring:
    from cranfield.scale.scoring import Scoring

    if options.baseline_system is not None:
        if options.baseline_system not in systems:
            raise UsageError(
                f"no system {options.baseline_system!r}",
                expected=", ".join(map(repr, systems)),
                parameters=("baseline_system",),
            )
        systems = sorted(systems, key=lambda name: name != options.baseline_system)
    return Scoring.of(
        systems,
        measures,
        convention=given.convention,
        missing=given.missing,
        duplicates=given.duplicates,
        depth=given.depth,
        primary=primary,
    )
