"""Pool the results of several systems, to judge them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Le

from cranfield.app.command import Report, fields, note, say, takes_runs
from cranfield.app.commands.shared import (
    ConventionOption,
    ForceOption,
    MeasureOption,
    TestSetFormatOption,
    TodayOption,
    day_of,
    refuse_existing,
    save_set,
)
from cranfield.books.options import DEFAULT_DATABASE, DbOption, open_books
from cranfield.evaluation.options.blocks import PAIR_OPTIONS
from cranfield.evaluation.options.declaration import Argument, Option
from cranfield.judging.commands.book import note_scale

if TYPE_CHECKING:
    from cranfield.books.pool_file import Pool
    from cranfield.evaluation.options.blocks import CompareOptions, ScoringOptions, TestSetOptions
    from cranfield.judging.pools.rule_view import Grades
    from cranfield.model import TestSet


SUBCOMMANDS = dict.fromkeys(("build", "check", "export", "estimate", "accept", "alternatives"), __name__)
DEFAULT = "build"
"""The command of `cranfield pool RUN...`."""
PoolArgument = Annotated[Path, Argument("Pool file.", metavar="POOL")]
RunsArgument = Annotated[
    list[str],
    Argument("Runs in any format that `cranfield evaluate` reads.", metavar="[NAME=]RUN..."),
]
DepthOption = Annotated[
    int, Option("Depth of the pool: number of top results of each run.", flag="--depth", metavar="K")
]
TestSetOption = Annotated[
    Path | None,
    Option("Test set: texts of the queries, and existing judgments.", flag="--testset", metavar="FILE"),
]
OutOption = Annotated[Path | None, Option("Write the pool to this JSON file.", flag="--out", metavar="FILE")]

IncludeOption = Annotated[
    bool,
    Option(
        "Keep documents that are judged in the test set, with their grades; default: leave them out.",
        flag="--include-judged/--exclude-judged",
    ),
]
SampleOption = Annotated[
    list[str] | None,
    Option(
        "Also draw a share of the documents of deeper ranks, such as 11-50:30%; repeat for more ranges.",
        flag="--sample",
        metavar="FIRST-LAST:SHARE%",
    ),
]
BudgetOption = Annotated[
    int | None,
    Option("Take only the N most useful documents, instead of a fixed depth.", flag="--budget", metavar="N"),
]
SeedOption = Annotated[int, Option("Random seed of samples and orders.", flag="--seed", metavar="N"), Ge(0)]
NameOption = Annotated[
    str, Option("Name of the pool; default: the name of the test set.", flag="--name", metavar="NAME")
]
PresetOption = Annotated[
    Literal["alternatives"] | None,
    Option(
        "alternatives: for queries where a run has no relevant result down to the depth, pool the results of that run.",
        flag="--preset",
    ),
]
RatersOption = Annotated[int, Option("Raters of each document.", flag="--raters", metavar="N"), Le(10)]
SecondsOption = Annotated[float, Option("Seconds per judgment, for the cost estimate.", flag="--seconds", metavar="S")]
BookOption = Annotated[str | None, Option("Create a book from the pool, to judge it.", flag="--book", metavar="NAME")]


@takes_runs("runs", scored=False)
def build_command(
    runs: RunsArgument,
    *,
    depth: DepthOption = 10,
    testset: TestSetOption = None,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
    include_judged: IncludeOption = False,
    sample: SampleOption = None,
    budget: BudgetOption = None,
    preset: PresetOption = None,
    seed: SeedOption = 0,
    convention: ConventionOption = "trec",
    name: NameOption = "",
    raters: RatersOption = 1,
    seconds: SecondsOption = 20.0,
    out: OutOption = None,
    book: BookOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> Iterator[Report]:
    """Pool the results of runs (default command). Prints a preview; --out or --book create the pool."""
    from cranfield.judging.pools.build import PoolRequest, parse_samples
    from cranfield.judging.pools.pool_io import made_over, require_texts, write_pool
    from cranfield.judging.pools.summary import summarise_pool
    from cranfield.judging.reports.pool import pool_document
    from cranfield.judging.use_cases import pool_of

    judged = _load(testset, testset_format, options)
    request = PoolRequest(
        depth=depth,
        samples=parse_samples(sample or ()),
        budget=budget,
        include_judged=include_judged,
        seed=seed,
        name=name or book or (judged.name if judged is not None else "") or "pool",
        only_missed=preset is not None,
    )
    built = pool_of(runs, judged, request, convention)
    pool = made_over(built.pool, testset if options.qrels is None else None, options.queries)
    summary = summarise_pool(built, raters=raters, seconds=seconds)
    if book is not None:
        require_texts(pool)
    yield Report(document=pool_document(summary, pool.items))
    if out is not None:
        write_pool(pool, out)
        note(f"wrote {out}")
    if book is not None:
        _make_book(pool, judged, book, db, raters)


@takes_runs("runs", scored=False)
def check_command(
    runs: RunsArgument,
    *,
    testset: TestSetOption = None,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
    depth: DepthOption = 10,
    measures: MeasureOption = None,
    convention: ConventionOption = "trec",
) -> Report:
    """Leave-one-run-out check: score each run without the judgments of documents that only it returned."""
    from cranfield.judging.pools.check import check_pool, deepest_rank
    from cranfield.judging.reports.pool import check_document
    from cranfield.judging.use_cases import read_systems
    from cranfield.measures import DEFAULT_MEASURES, parse_all
    from cranfield.model import convention_named

    judged = _load_judged(testset, testset_format, options)
    chosen = parse_all(measures or DEFAULT_MEASURES[:1])
    rules = convention_named(convention)
    systems = read_systems(runs, judged, convention, deepest_rank(chosen, rules, depth))
    return Report(document=check_document(check_pool(systems, judged, chosen, rules, depth=depth)))


def export_command(
    pool: PoolArgument,
    *,
    testset: TestSetOption = None,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
    out: Annotated[Path, Option("TREC qrels to write.", metavar="FILE")],
) -> None:
    """Write TREC qrels: judged documents with their grade, unjudged documents of the pool with -1."""
    from cranfield.formats.testsets.trec import write_qrels
    from cranfield.judging.pools.pool_io import pool_qrels, read_pool

    found = pool_qrels(read_pool(pool), _load(testset, testset_format, options))
    for each in found.notes:
        note(f"note: {each}")
    write_qrels(found.testset, out)
    say(f"wrote {out}: {found.n_judged} judged, {found.n_pooled} pooled and unjudged (-1)")


@takes_runs("runs", scored=False)
def estimate_command(
    pool: PoolArgument,
    runs: RunsArgument,
    *,
    testset: TestSetOption = None,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
    cutoff: Annotated[
        list[int] | None,
        Option("Cutoff of the precision; repeat for more. Default: the pool's depth.", metavar="K"),
    ] = None,
    convention: ConventionOption = "trec",
) -> Report:
    """Estimate precision, and the number of relevant documents, from a judged sample and its inclusion probabilities."""
    from cranfield.judging.pools.check import estimate_pool
    from cranfield.judging.pools.pool_io import read_pool
    from cranfield.judging.reports.pool import estimate_document
    from cranfield.judging.use_cases import read_systems

    sampled = read_pool(pool)
    judged = _load_judged(testset, testset_format, options)
    cutoffs = tuple(dict.fromkeys(cutoff or [sampled.depth]))
    found = estimate_pool(sampled, judged, read_systems(runs, judged, convention), cutoffs)
    return Report(document=estimate_document(found))


def _load_judged(testset: Path | None, testset_format: str | None, options: TestSetOptions) -> TestSet:
    from cranfield.base.errors import UsageError

    judged = _load(testset, testset_format, options)
    if judged is None:
        raise UsageError("no test set given", expected="the judged test set: --testset FILE")
    return judged


def _load(testset: Path | None, testset_format: str | None, options: TestSetOptions) -> TestSet | None:
    """The test set; the queries alone where only those are given; None where neither is."""
    from cranfield.app.loading import apply_options, load
    from cranfield.formats.sniff import read_queries

    if testset is not None:
        return load(testset, format=testset_format, options=options)
    if options.queries is None:
        return None
    from dataclasses import replace

    return apply_options(read_queries(options.queries), replace(options, queries=None))


def _make_book(pool: Pool, judged: TestSet | None, name: str, db: str, raters: int) -> None:
    from cranfield.base.words import count_noun
    from cranfield.books.settings import BookSettings, scale_of

    settings = BookSettings(scale=scale_of(pool.scale), raters_per_item=raters, seed=pool.seed)
    with closing(open_books(db, create=True)) as store:
        made = store.books.create(name, pool, settings)
    size = f"{count_noun(made.n_items, 'documents')} of {count_noun(made.n_queries, 'queries')}"
    note(f"created book {made.name}: {size}")
    note_scale(settings.scale, judged)


TestSetArgument = Annotated[Path, Argument("Test set.", metavar="TESTSET")]


def accept_command(
    testset: TestSetArgument,
    pool: Annotated[Path, Argument("Pool of `--preset alternatives`.", metavar="POOL")],
    *,
    book: Annotated[str, Option("Book in which persons graded the pool.", metavar="NAME")],
    out: Annotated[Path, Option("Test set to write.", metavar="FILE")],
    force: ForceOption = False,
    today: TodayOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Add results of a pool that persons graded above 0 to a test set, with grade 1 and the systems that found them."""
    from cranfield.app.loading import read_stored
    from cranfield.judging.book.grades import contents_of, people_grades
    from cranfield.judging.pools.pool_io import read_pool
    from cranfield.judging.pools.results import with_alternatives

    refuse_existing(out, force=force)
    with closing(open_books(db)) as store:
        grades = people_grades(contents_of(store, book))
    changed = with_alternatives(read_stored(testset), read_pool(pool), grades, day_of(today))
    for path in save_set(changed, testset, out):
        note(f"wrote {path}: {changed.meta.history[-1]}")


@takes_runs("runs")
def alternatives_command(
    testset: TestSetArgument,
    runs: Annotated[list[Path], Argument("Run files.", metavar="RUN...")],
    *,
    measures: MeasureOption = None,
    convention: ConventionOption = "trec",
) -> Report:
    """Score runs with the alternatives of a test set and without them."""
    from cranfield.app.loading import load
    from cranfield.evaluation.options.blocks import ScoringOptions
    from cranfield.judging.reports.pool import alternatives_document
    from cranfield.judging.use_cases import with_and_without

    found = with_and_without(load(testset), runs, measures, ScoringOptions(convention=convention))
    return Report(document=alternatives_document(found))


MANY_QUERIES = 500
"""The bounds of fewer queries take no time worth counting."""
BaselineArgument = Annotated[str, Argument("Baseline run: FILE or NAME=FILE.", metavar="BASELINE")]
CandidateArgument = Annotated[str, Argument("Candidate run: FILE or NAME=FILE.", metavar="CANDIDATE")]
HolesTestSetOption = Annotated[Path, Option("Test set file or TREC qrels.", flag="--testset", metavar="TESTSET")]
PrimaryOption = Annotated[
    str | None,
    Option(
        "Primary measure; default: the first default measure.",
        flag="--measure",
        short="-m",
        metavar="MEASURE",
        choices="measures",
    ),
]
TopOption = Annotated[
    int, Option("Number of holes to list and to put into the pool.", flag="--top", metavar="N"), Ge(1)
]
HolesOption = Annotated[
    Path | None, Option("Write the first holes as a pool, to judge them.", flag="--out", metavar="FILE")
]
HolesBookOption = Annotated[
    str | None,
    Option("Book whose grades by persons replace those of the test set.", flag="--book", metavar="NAME"),
]


@takes_runs("baseline", "candidate")
def holes_command(
    baseline: BaselineArgument,
    candidate: CandidateArgument,
    *,
    testset: HolesTestSetOption,
    measure: PrimaryOption = None,
    top: TopOption = 20,
    out: HolesOption = None,
    book: HolesBookOption = None,
    db: DbOption = DEFAULT_DATABASE,
    compare: Annotated[CompareOptions, fields(*PAIR_OPTIONS)],
    scoring: ScoringOptions,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
) -> Report:
    """Find the unjudged results that could change a verdict.

    The verdict on two runs, with its best and worst case.
    """
    from cranfield.app.loading import load
    from cranfield.evaluation.testset.split import evaluated_part
    from cranfield.judging.reports.holes import holes_document
    from cranfield.judging.use_cases import holes_of_files

    declared = replace(compare, primary=measure)
    loaded = load(testset, format=testset_format, options=options)
    found = holes_of_files(
        evaluated_part(loaded) if options.part is None else loaded,
        (baseline, candidate),
        declared,
        scoring=scoring,
        people=_people(book, db),
        n_turns=top,
        progress=_progress(),
    )
    written = []
    if out is not None:
        from cranfield.judging.pools.pool_io import made_over, write_pool

        pool = found.pool(top, out.name.removesuffix(".json").removesuffix(".pool"))
        write_pool(made_over(pool, testset if options.qrels is None else None, options.queries), out)
        written.append(out)
    document = holes_document(found.result(), top=top, written="" if out is None else str(out))
    return Report(document=document, written=written)


def _people(book: str | None, db: str) -> Grades | None:
    """The grades by persons of a book."""
    if book is None:
        return None
    with closing(open_books(db)) as store:
        from cranfield.judging.book.grades import contents_of, people_grades

        return people_grades(contents_of(store, book))


def _progress() -> Callable[[int, int], None] | None:
    """Count queries on stderr, where a person watches; None elsewhere."""
    if not sys.stderr.isatty():
        return None

    def count(done: int, total: int) -> None:
        if total >= MANY_QUERIES and (done == total or not done % 50):
            note(f"\rbounds: {done:,} of {total:,} queries" + ("\n" if done == total else ""), end="")

    return count
