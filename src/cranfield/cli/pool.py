"""Pool the results of several systems, to be judged."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cranfield.cli.book_options import DEFAULT_DATABASE, DbOption, note_scale, open_books
from cranfield.cli.named import takes_runs
from cranfield.cli.option_groups import ConventionOption, option_groups
from cranfield.cli.shared import MeasureOption, Output, TestSetFormatOption, deliver

if TYPE_CHECKING:
    from cranfield.judging.pools.pool_file import Pool
    from cranfield.model import TestSet
    from cranfield.options.testset import TestSetOptions

SUBCOMMANDS = {
    **dict.fromkeys(("build", "check", "export", "estimate"), __name__),
    **dict.fromkeys(("accept", "alternatives"), "cranfield.cli.alternatives"),
}
DEFAULT = "build"
"""The command of `cranfield pool RUN...`."""


PoolArgument = Annotated[Path, typer.Argument(metavar="POOL", help="Pool file.")]
RunsArgument = Annotated[
    list[str],
    typer.Argument(metavar="[NAME=]RUN...", help="Runs in any format that `cranfield evaluate` reads."),
]
DepthOption = Annotated[int, typer.Option("--depth", metavar="K", help="Ranks of each run that are in the pool.")]
TestSetOption = Annotated[
    Path | None,
    typer.Option("--testset", metavar="FILE", help="Test set: texts of the queries, and what is judged already."),
]
OutOption = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the pool to this JSON file.")]

IncludeOption = Annotated[
    bool,
    typer.Option(
        "--include-judged/--exclude-judged",
        help="Keep documents that the test set has judged, with their grades; default: leave them out.",
    ),
]
SampleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sample",
        metavar="FIRST-LAST:SHARE%",
        help="Also draw a share of the documents of deeper ranks, such as 11-50:30%; repeat for more ranges.",
    ),
]
BudgetOption = Annotated[
    int | None,
    typer.Option("--budget", metavar="N", help="Take the N most useful documents only; not a fixed depth."),
]
SeedOption = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Random seed of samples and orders.")]
NameOption = Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the pool; default: of the test set.")]
PresetOption = Annotated[
    Literal["alternatives"] | None,
    typer.Option(
        "--preset",
        help="alternatives: of queries without a relevant result down to the depth, the results of the runs that miss it.",
    ),
]
RatersOption = Annotated[int, typer.Option("--raters", metavar="N", max=10, help="Raters of each document.")]
SecondsOption = Annotated[
    float, typer.Option("--seconds", metavar="S", help="Seconds that a judgment takes, for the cost.")
]
BookOption = Annotated[
    str | None, typer.Option("--book", metavar="NAME", help="Make a book of the pool, to be judged.")
]


@takes_runs("runs", scored=False)
@option_groups
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
    output: Output,
) -> None:
    """Pool the results of runs (the default command): a preview, and with --out or --book the pool."""
    from cranfield.app.judging import pool_of
    from cranfield.judging.pools.pool_io import made_over, require_texts, write_pool
    from cranfield.judging.pools.request import PoolRequest, parse_samples
    from cranfield.judging.pools.summary import summarise_pool
    from cranfield.reporting.documents.pool import pool_document

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
    deliver(pool_document(summary, pool.items), output)
    if out is not None:
        write_pool(pool, out)
        typer.echo(f"wrote {out}", err=True)
    if book is not None:
        _make_book(pool, judged, book, db, raters)


@takes_runs("runs", scored=False)
@option_groups
def check_command(
    runs: RunsArgument,
    *,
    testset: TestSetOption = None,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
    depth: DepthOption = 10,
    measures: MeasureOption = None,
    convention: ConventionOption = "trec",
    output: Output,
) -> None:
    """Score each run without the judgments that only it brought in: would a new system be scored unfairly?"""
    from cranfield.app.judging import read_systems
    from cranfield.judging.pools.check import check_pool, deepest_rank
    from cranfield.measures import DEFAULT_MEASURES, parse_all
    from cranfield.model import convention_named
    from cranfield.reporting.documents.pool import check_document

    judged = _load_judged(testset, testset_format, options)
    chosen = parse_all(measures or DEFAULT_MEASURES[:1])
    rules = convention_named(convention)
    systems = read_systems(runs, judged, convention, deepest_rank(chosen, rules, depth))
    deliver(check_document(check_pool(systems, judged, chosen, rules, depth=depth)), output)


@option_groups
def export_command(
    pool: PoolArgument,
    *,
    testset: TestSetOption = None,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="TREC qrels to write.")],
) -> None:
    """Write TREC qrels: judged documents with their grade, those of the pool that are not judged with -1."""
    from cranfield.formats.testsets.trec import write_qrels
    from cranfield.judging.pools.export import pool_qrels
    from cranfield.judging.pools.pool_io import read_pool

    found = pool_qrels(read_pool(pool), _load(testset, testset_format, options))
    for note in found.notes:
        typer.echo(f"note: {note}", err=True)
    write_qrels(found.testset, out)
    typer.echo(f"wrote {out}: {found.n_judged} judged, {found.n_pooled} in the pool and not judged (-1)")


@takes_runs("runs", scored=False)
@option_groups
def estimate_command(
    pool: PoolArgument,
    runs: RunsArgument,
    *,
    testset: TestSetOption = None,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
    cutoff: Annotated[
        list[int] | None,
        typer.Option(
            "--cutoff", metavar="K", help="Cutoff of the precision; repeat for more. Default: the pool's depth."
        ),
    ] = None,
    convention: ConventionOption = "trec",
    output: Output,
) -> None:
    """Estimate precision, and the number of relevant documents, from a judged sample and its inclusion probabilities."""
    from cranfield.app.judging import read_systems
    from cranfield.judging.pools.estimate import estimate_pool
    from cranfield.judging.pools.pool_io import read_pool
    from cranfield.reporting.documents.pool import estimate_document

    sampled = read_pool(pool)
    judged = _load_judged(testset, testset_format, options)
    cutoffs = tuple(dict.fromkeys(cutoff or [sampled.depth]))
    found = estimate_pool(sampled, judged, read_systems(runs, judged, convention), cutoffs)
    deliver(estimate_document(found), output)


def _load_judged(testset: Path | None, testset_format: str | None, options: TestSetOptions) -> TestSet:
    from cranfield.errors import UsageError

    judged = _load(testset, testset_format, options)
    if judged is None:
        raise UsageError("there is no test set", expected="the judged one: --testset FILE")
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
    from cranfield.judging.settings import BookSettings, scale_of
    from cranfield.words import n_of

    settings = BookSettings(scale=scale_of(pool.scale), raters_per_item=raters, seed=pool.seed)
    with closing(open_books(db, create=True)) as store:
        made = store.books.create(name, pool, settings)
    size = f"{n_of(made.n_items, 'documents')} of {n_of(made.n_queries, 'queries')}"
    typer.echo(f"made book {made.name}: {size}", err=True)
    note_scale(settings.scale, judged)
