"""Evaluations of runs of any size, which are read in parts."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from cranfield.app.loading import named_testset
from cranfield.errors import MissingExtraError, Problem, UsageError, unknown_name
from cranfield.formats.io.files import STDIN
from cranfield.model import DEFAULT_CONVENTION, Absence, Convention, Meta, Query, TestSet
from cranfield.model.note import info
from cranfield.options.large import LargeOptions
from cranfield.options.scoring import ScoringOptions
from cranfield.options.testset import NO_OPTIONS, TestSetOptions
from cranfield.ranking.scan import Duplicates, Missing
from cranfield.results.testset import TestSetRecord
from cranfield.testsets.check_judgments import Complaint, unknown_task_types
from cranfield.testsets.check_queries import NO_TEXTS, small_strata
from cranfield.testsets.similar import near_duplicates, too_many_met, words_of
from cranfield.testsets.validate import CHECKS, Finding, Validation, checks
from cranfield.words import n_of

if TYPE_CHECKING:
    import pyarrow as pa

    from cranfield.app.loading import TestSetLike
    from cranfield.measures import Measure
    from cranfield.options.compare import CompareOptions
    from cranfield.scale.judgment_files import JudgmentSource
    from cranfield.scale.judgment_rows import Progress
    from cranfield.scale.judgments import JudgmentTable
    from cranfield.scale.progress import OnProgress
    from cranfield.scale.query_texts import OwnTexts
    from cranfield.scale.results import Results
    from cranfield.scale.scoring import Scoring
    from cranfield.scale.values import ScaleSummary


LARGE_BYTES = 1 << 25
"""Of the files of a test set; a smaller one is read whole."""
MOST_NEAR = 100_000
"""Texts of which each is compared with others that are nearly the same; of more, those of the same words are found."""
MOST_FINDINGS = 10_000
"""Of a check; the others are counted."""


@dataclass(frozen=True)
class _LargeSet:
    table: JudgmentTable
    texts: pa.LargeStringArray | None
    with_strata: TestSet
    """The queries that have strata, without judgments."""


def size_of(path: Path) -> int:
    """Bytes of a test set on disk; 0 of what is no file or folder."""
    if str(path) == STDIN:
        return 0
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file() and file.name != "corpus.jsonl")
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.parent.glob(path.name) if file.is_file())


def validate_large(
    path: Path,
    format: str | None = None,  # noqa: A002 - as `load`
    options: TestSetOptions = NO_OPTIONS,
    progress: Progress | None = None,
) -> Validation | None:
    """Everything the checks find in a large test set, in bounded memory.

    Args:
        path: as of `load`.
        format: name of its format, where the content does not tell.
        options: what is done to it.
        progress: see `scale.judgment_rows.Progress`.

    Returns:
        The findings, and notes of the test set about them; None where the set is not large, or has to be read whole: it is in another format, other options than
        `queries` are given, a package adds checks of its own, or the texts are of no query of the set.

    Raises:
        TestSetError: with everything that is wrong with its files.
    """
    path = named_testset(path)
    if size_of(path) < LARGE_BYTES or replace(options, queries=None) != NO_OPTIONS or len(checks()) > len(CHECKS):
        return None
    try:
        from cranfield.scale.judgment_files import find_source
        from cranfield.scale.query_texts import NotUnicodeError
    except ImportError:  # without pyarrow
        return None
    source = find_source(path, format)
    if source is None:
        return None
    try:
        read = _read(source, options.queries, progress)
    except NotUnicodeError:
        return None
    if read is None:
        return None
    notes = info(*_notes(read))
    testset = TestSetRecord(
        *(source.name, "", read.table.digest, read.table.n_queries), notes=notes, refresh_days=Meta().refresh_days
    )
    found = [
        Finding(name, CHECKS[name].level, *complaint)
        for name, find in _CHECKS.items()
        for complaint in _some(find, read)
    ]
    found.sort(key=lambda finding: list(CHECKS).index(finding.check))
    return Validation.of(testset, found, with_runs=False)


def _read(source: JudgmentSource, queries: Path | None, progress: Progress | None) -> _LargeSet | None:
    from cranfield.scale.judgment_digest import digest_of
    from cranfield.scale.judgment_files import read_set
    from cranfield.scale.query_texts import read_text_file

    table, texts = read_set(source, progress)
    own = None if texts is None else texts.of(table.query_ids)
    if queries is not None:
        texts = read_text_file(queries, progress)
        other = None if texts is None else texts.of(table.query_ids)
        if other is None or other.n_missing == table.n_queries:
            return None
        own = _with_texts(own, other)
    strata = {} if own is None else own.strata
    digest = digest_of(table, None if own is None else own.texts, strata)
    ids = ((table.query_ids[place].as_py(), strata[place]) for place in sorted(strata))
    with_strata = tuple(Query(query_id, "", values) for query_id, values in ids if values)
    table = replace(table, digest=digest)
    return _LargeSet(table, None if own is None else own.texts, TestSet(table.name, with_strata))


def _with_texts(own: OwnTexts | None, other: OwnTexts) -> OwnTexts:
    """Texts of another file in the place of a set's own, as `formats.testsets.overlay.with_queries` takes them."""
    import pyarrow.compute as pc

    if own is None:
        return other
    return replace(own, texts=pc.if_else(pc.equal(other.texts, ""), own.texts, other.texts))


def _some(find: Callable[[_LargeSet], Iterator[Complaint]], read: _LargeSet) -> Iterator[Complaint]:
    """The first complaints of a check, and the number of the others."""
    n_more = 0
    for number, complaint in enumerate(find(read)):
        if number < MOST_FINDINGS:
            yield complaint
        else:
            n_more += 1
    if n_more:
        yield "", f"{n_more} more of this kind"


def _without_relevant(read: _LargeSet) -> Iterator[Complaint]:
    table = read.table
    # The documents of a query stand by falling grade: the first has the highest.
    n_judged = np.diff(table.start)
    highest = np.full(table.n_queries, -1.0)
    highest[n_judged > 0] = table.grade[table.start[:-1][n_judged > 0]]
    for place in np.flatnonzero(highest <= 0).tolist():
        absent = f"{Absence.NONE_RELEVANT} ({n_judged[place]} judged)"
        yield table.query_ids[place].as_py(), f"{absent}, and it is not declared negative"


def _texts(read: _LargeSet) -> Iterator[tuple[int, str]]:
    """Place and text of each query."""
    if read.texts is None:
        return
    for first in range(0, len(read.texts), 1 << 16):
        yield from enumerate(read.texts[first : first + (1 << 16)].to_pylist(), start=first)


def _missing_texts(read: _LargeSet) -> Iterator[Complaint]:
    blank = [place for place, text in _texts(read) if not text.strip()]
    if read.texts is None or len(blank) == read.table.n_queries:
        yield "", NO_TEXTS
    else:
        yield from ((read.table.query_ids[place].as_py(), "it has no text") for place in blank)


def _near_repeats(read: _LargeSet) -> Iterator[Complaint]:
    ids = read.table.query_ids
    if read.table.n_queries <= MOST_NEAR:
        texts = {ids[place].as_py(): text for place, text in _texts(read)}
        pairs, n_cut = near_duplicates(texts.items())
        for earlier, query_id in pairs:
            yield query_id, f"it says nearly the same as query {earlier}: {texts[query_id]!r}, {texts[earlier]!r}"
        if n_cut:
            yield "", too_many_met(n_cut)
        return
    if read.texts is None:
        return
    for place, first in _same_words(read):
        text, other = (read.texts[row].as_py() for row in (place, first))
        if words_of(text) == words_of(other):
            yield ids[place].as_py(), f"it has the words of query {ids[first].as_py()}: {text!r}, {other!r}"


def _same_words(read: _LargeSet) -> list[tuple[int, int]]:
    """Places of texts whose words are, by their keys, those of an earlier one, and the place of that one."""
    keys = np.zeros(read.table.n_queries, dtype=np.uint64)
    filled = np.zeros(read.table.n_queries, dtype=np.bool_)
    for place, text in _texts(read):
        if text.strip():
            words = " ".join(sorted(words_of(text)))
            digest = blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            keys[place], filled[place] = int.from_bytes(digest, "big"), True
    rows = np.flatnonzero(filled)
    _, first, own = np.unique(keys[rows], return_index=True, return_inverse=True)
    earliest = rows[first[own]]
    again = earliest != rows
    return list(zip(rows[again].tolist(), earliest[again].tolist(), strict=True))


def _notes(read: _LargeSet) -> Iterator[str]:
    if read.texts is not None and read.table.n_queries > MOST_NEAR:
        n = n_of(read.table.n_queries, "queries", "{:,}".format)
        yield f"near duplicates: of {n}, texts with the same words were looked for, and no others"


_CHECKS: dict[str, Callable[[_LargeSet], Iterator[Complaint]]] = {
    "relevant": _without_relevant,
    "task types": lambda read: unknown_task_types(read.with_strata),
    "near duplicates": _near_repeats,
    "texts": _missing_texts,
    "small strata": lambda read: small_strata(read.with_strata),
}
"""The checks that can find something, by their names in `testsets.validate.CHECKS`."""

ENGINES = ("local", "spark")
LARGE_ROWS = 5_000_000
"""From so many rows on, a command says that a Parquet file can be read in parts."""
ROW_BYTES = 200
"""Of a row of a Parquet file that is read as a whole."""
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
        UsageError: options that do not go together.
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
    """Of the verdict: `permutation` (the default), `t` or `bootstrap`."""
    alpha: float
    """Significance level; by default 0.05."""
    margin: float
    """Largest difference that does not matter."""
    seed: int
    """Of everything random."""


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
        UsageError: options that do not go together.
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
    from cranfield.options.compare import CompareOptions

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
    from cranfield.model import TestSet
    from cranfield.scale.judgment_files import read_judgments
    from cranfield.scale.judgments import JudgmentTable

    table = read_judgments(Path(testset)) if isinstance(testset, str | Path) else None
    return table or JudgmentTable.of_testset(testset if isinstance(testset, TestSet) else load(testset))


def _check(scoring: ScoringOptions, options: LargeOptions) -> None:
    problems = []
    for name in sorted(NOT_LARGE):
        if getattr(scoring, name) != getattr(_USUAL, name):
            option = f"--{name.replace('_', '-').replace('limits', 'evidence')}"
            problems.append(Problem(f"{option} has no meaning for a run that is read in parts", hint="leave it out"))
    spark_only = [name for name in ("master", "spark_conf") if name in options.given and options.engine != "spark"]
    problems += [
        Problem(f"--{name.replace('_', '-')} is of another engine", hint="add --engine spark") for name in spark_only
    ]
    if options.engine == "spark" and options.memory:
        problems.append(Problem("--memory is of this machine", hint="an engine's memory is set in --spark-conf"))
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
            *(runs, judgments(), lambda systems: _declared(systems, measures, given, options, primary), folder),
            master=options.master,
            conf=options.spark_conf,
            columns=options.columns,
        )
    files = ParquetRuns(find_runs([str(run) for run in runs]), rules.file_order, options.columns)
    declared = _declared(files.systems(), measures, given, options, primary)
    table = judgments()
    from cranfield.scale.local import LocalEvaluation
    from cranfield.scale.plan import DEFAULT_MEMORY, memory_bytes
    from cranfield.scale.progress import silent
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
                f"there is no system {options.baseline_system!r}",
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
