"""Replace queries of a test set by queries of a log, judged in a sheet or in a book."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge

from cranfield.app.command import Exit, note
from cranfield.app.commands.shared import (
    ForceOption,
    SetArgument,
    TodayOption,
    day_of,
    load_set,
    refuse_existing,
)
from cranfield.base.words import command_word
from cranfield.books.options import DEFAULT_DATABASE, DbOption, open_books
from cranfield.evaluation.options.declaration import Option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.formats.testsets.query_log import QueryLog
    from cranfield.judging.refresh.files import Labels
    from cranfield.judging.refresh.refresh import RefreshPlan, Renewal


EXIT_NO_AGREEMENT = 1
LogOption = Annotated[
    Path, Option("Query log: lines `query TAB count`, or JSON Lines.", flag="--log", metavar="QUERIES")
]
CountOption = Annotated[int, Option("Number of queries to replace.", flag="--n", metavar="N"), Ge(1)]
SampleOption = Annotated[
    Literal["random", "top", "frequency"],
    Option("Sampling of the log: uniform, the most frequent, or weighted by frequency."),
]
SeedOption = Annotated[int, Option("Random seed of the plan.", flag="--seed", metavar="N"), Ge(0)]
DropOption = Annotated[
    list[str] | None,
    Option("Query to remove; repeat for more; default: sampled.", flag="--drop", metavar="QUERY_ID"),
]
PlanOption = Annotated[Path | None, Option("Step 1: write the CSV sheet to label.", flag="--plan", metavar="SHEET")]
RunsOption = Annotated[
    list[Path] | None,
    Option("Run whose top results to label; repeat for more.", flag="--run", metavar="RUN"),
]
DepthOption = Annotated[
    int, Option("Number of results to label per run and query.", flag="--depth", metavar="N"), Ge(1)
]
QueriesOption = Annotated[
    Path | None, Option("Also write the new queries: `id TAB text`.", flag="--queries-out", metavar="FILE")
]
RatersOption = Annotated[str, Option("Names of the two raters: columns of the sheet.", flag="--raters", metavar="A,B")]
LabelsOption = Annotated[
    Path | None, Option("Step 2: the sheet labelled by both raters.", flag="--labels", metavar="SHEET")
]
KappaOption = Annotated[float, Option("Cohen's kappa that the raters must exceed.", flag="--kappa", metavar="K")]
ConsensusOption = Annotated[
    str, Option("Consensus rule for the grades of the two raters.", flag="--consensus", metavar="RULE")
]
VersionOption = Annotated[
    str, Option("Version of the new test set; default: the next version.", flag="--version", metavar="TEXT")
]
NewSetOption = Annotated[Path | None, Option("Step 2: file for the new version.", flag="--out", metavar="NEW")]
BookOption = Annotated[
    str | None,
    Option("Label in this book, created in step 1, instead of a sheet.", flag="--book", metavar="NAME"),
]


def refresh_command(
    testset: SetArgument,
    *,
    log: LogOption,
    n: CountOption = 20,
    sample: SampleOption = "random",
    seed: SeedOption = 0,
    drop: DropOption = None,
    plan: PlanOption = None,
    runs: RunsOption = None,
    depth: DepthOption = 10,
    queries: QueriesOption = None,
    raters: RatersOption = "rater1,rater2",
    labels: LabelsOption = None,
    kappa: KappaOption = 0.6,
    consensus: ConsensusOption = "mean",
    version: VersionOption = "",
    out: NewSetOption = None,
    book: BookOption = None,
    db: DbOption = DEFAULT_DATABASE,
    force: ForceOption = False,
    today: TodayOption = None,
) -> None:
    """Replace queries with queries from a log, in two steps.

    Step 1: --plan SHEET samples the queries and writes a sheet to label. Step 2: --labels SHEET --out NEW writes the next
    version if the two raters agree. With --book NAME the results are graded in a book: without --out it is made, with
    --out NEW its grades are read.
    """
    from cranfield.judging.refresh.refresh import plan_refresh, renew

    _refuse_steps(plan, labels, book, kappa)
    _refuse_same({"SET": testset, "--log": log, "--plan": plan, "--queries-out": queries, "--labels": labels})
    made = plan_refresh(load_set(testset), _read_log(log), n, sample=sample, seed=seed, drop=drop or ())
    if plan is not None:
        _write_plan(made, plan, queries, runs or [], depth, raters, force=force)
    elif book is not None and out is None:
        _make_book(made, book, db, runs or [], depth, (kappa, consensus))
        _write_queries(made, queries, force=force)
    else:
        out = _new_file(out, testset, force=force)
        found, limit = _labels(labels, raters, book, db, kappa)
        renewal = renew(made, found, rule=consensus, version=version, seed=seed, today=day_of(today))
        _finish(renewal, limit, testset, out)


def _refuse_steps(plan: Path | None, labels: Path | None, book: str | None, kappa: float) -> None:
    """Refuse options of both steps, or of none."""
    from cranfield.base.errors import UsageError

    if book is None and (plan is None) == (labels is None):
        raise UsageError("refresh has two steps", expected="--plan SHEET first; then --labels SHEET --out NEW")
    if book is not None and (plan is not None or labels is not None):
        raise UsageError("--book replaces the sheet", expected="no --plan and no --labels")
    if not -1 <= kappa <= 1:  # nor is it a number
        raise UsageError(f"--kappa is {kappa:g}", expected="a number from -1 to 1")


def _read_log(log: Path) -> QueryLog:
    from cranfield.evaluation.testset.check_queries import same_form
    from cranfield.formats.testsets.query_log import read_query_log

    query_log = read_query_log(log, same_form)
    for sentence in query_log.notes:
        note(f"note: {sentence}")
    return query_log


def _new_file(out: Path | None, testset: Path, *, force: bool) -> Path:
    """The file for the next version, which is not that of the old one."""
    from cranfield.base.errors import UsageError

    if out is None:
        raise UsageError("no output file for the next version", expected="--out NEW")
    if out.resolve() == testset.resolve():
        raise UsageError("the old version is kept", path=str(out), expected="a file other than SET")
    refuse_existing(out, force=force)
    return out


def _refuse_same(files: Mapping[str, Path | None]) -> None:
    """Refuse two roles for one file: what is read here would be written over."""
    from cranfield.base.errors import UsageError

    roles: dict[Path, str] = {}
    for role, path in files.items():
        if path is not None and (first := roles.setdefault(path.resolve(), role)) != role:
            raise UsageError(f"{first} and {role} are the same file", path=str(path), expected="different files")


def _write_plan(
    made: RefreshPlan, plan: Path, queries: Path | None, runs: list[Path], depth: int, raters: str, *, force: bool
) -> None:
    from cranfield.base.errors import UsageError
    from cranfield.base.words import count_noun
    from cranfield.evaluation.testset.split import strata_keys
    from cranfield.judging.refresh.files import N_RATERS, write_sheet
    from cranfield.model.query import CLASS

    names = [name.strip() for name in raters.split(",") if name.strip()]
    if len(set(names)) != N_RATERS:
        raise UsageError(f"--raters {raters!r}", expected="two names, such as ann,bob")
    for path in filter(None, (plan, queries)):
        refuse_existing(path, force=force)
    pools = {}
    if runs:
        from cranfield.judging.refresh.refresh import candidates

        pools = candidates(made, runs, depth)
    keys = tuple(key for key in strata_keys(made.testset) if key != CLASS)
    rows = write_sheet(plan, made.new, pools, names, keys)
    _write_queries(made, queries, force=True)
    _note_plan(made)
    note(f"wrote {plan}: {count_noun(rows, 'rows')} to label")
    if not runs:
        note(
            "note: without a run, the sheet contains no documents: run the systems on the new queries, and "
            "plan again with --run"
        )


def _write_queries(made: RefreshPlan, queries: Path | None, *, force: bool) -> None:
    from cranfield.formats.io.files import write_text

    if queries is not None:
        refuse_existing(queries, force=force)
        write_text(queries, [f"{query.id}\t{query.text}\n" for query in made.new])


def _note_plan(made: RefreshPlan) -> None:
    from cranfield.base.words import count_noun

    note(
        f"sampled ({made.sample}, seed {made.seed}): {len(made.new)} of {count_noun(made.n_log, 'queries')} of the log"
    )
    if made.n_known:
        note(f"skipped: {made.n_known} that are in the test set or nearly identical to one of its queries")
    note(f"leaving: {', '.join(made.leaving)}")


def _make_book(made: RefreshPlan, book: str, db: str, runs: list[Path], depth: int, rules: tuple[float, str]) -> None:
    """A book of the results of the new queries, for two raters whose kappa has to be above the limit."""
    from cranfield.base.errors import UsageError
    from cranfield.base.words import count_noun
    from cranfield.judging.refresh.refresh import candidates

    if not runs:
        raise UsageError(
            "without a run, there is nothing to grade",
            expected="--run RUN",
            hint="--plan SHEET --queries-out FILE writes the new queries, to run the systems on them",
        )
    from cranfield.judging.book.grades import refresh_pool, refresh_settings

    pool = refresh_pool(made, candidates(made, runs, depth), depth)
    with closing(open_books(db, create=True)) as store:
        info = store.books.create(book, pool, refresh_settings(made, *rules))
    _note_plan(made)
    note(
        f"created book {book}: {count_noun(info.n_items, 'documents')} for two raters, kappa must be above {rules[0]:g}"
    )


def _labels(labels: Path | None, raters: str, book: str | None, db: str, kappa: float) -> tuple[Labels, float]:
    """The labels of a sheet or a book, and the kappa that they must exceed."""
    from cranfield.judging.refresh.files import read_sheet

    if labels is not None:
        return read_sheet(labels, [name.strip() for name in raters.split(",")]), kappa
    from cranfield.judging.book.grades import contents_of, labels_of

    with closing(open_books(db)) as store:
        contents = contents_of(store, book or "")
    limit = contents.info.settings.kappa_limit
    return labels_of(contents, store.where), kappa if limit is None else limit


def _finish(renewal: Renewal, kappa: float, source: Path, out: Path) -> None:
    from cranfield.base.words import count_noun
    from cranfield.formats.convert import format_after, write_testset
    from cranfield.formats.io.files import STDIN
    from cranfield.formats.testsets.storage import format_of
    from cranfield.judging.refresh.files import save_renewed

    note(renewal.agreement.sentence)
    if not renewal.agreement.exceeds(kappa):
        note(
            f"error: not written: kappa must be above {kappa:g}. Resolve the disagreements of the raters, and "
            "label again."
        )
        raise Exit(EXIT_NO_AGREEMENT)
    saved = None
    if str(source) != STDIN and (entry := format_of(source)) is format_after(entry, source, out):
        saved = save_renewed(renewal.testset, [query.id for query in renewal.plan.new], source, out, entry)
    for sentence in saved.notes if saved is not None else write_testset(renewal.testset, out):
        note(f"note: {sentence}")
    for sentence in renewal.strata_drift:
        note(f"warning: {sentence}")
    old, new = renewal.plan.testset, renewal.testset
    note(
        f"wrote {out}: version {new.version}, {count_noun(len(new.queries), 'queries')}, {len(renewal.plan.new)} of them new"
    )
    if old.meta.split is not None:
        split = f"`cranfield testset split {command_word(out)}`"
        note(f"note: the held-out part was removed with the replaced queries; {split} creates a new one")
