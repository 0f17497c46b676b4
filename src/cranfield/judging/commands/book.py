"""Manage books: pools with their raters and judgments."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from annotated_types import Ge, Interval

from cranfield.app.command import Report, note, say
from cranfield.base.words import command_word
from cranfield.books.options import DEFAULT_DATABASE, DbOption, WorkbenchOption, open_books
from cranfield.evaluation.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.books.pool_file import Pool
    from cranfield.books.settings import BookSettings, GradeScale
    from cranfield.books.store.store import Store
    from cranfield.model import TestSet

SUBCOMMANDS = {
    "create": __name__,
    "list": __name__,
    "show": __name__,
    "log": __name__,
    "preference": __name__,
    "add-item": __name__,
    "guideline": __name__,
    "calibrate": __name__,
    "reopen": __name__,
    "text": __name__,
    "rate": "cranfield.judging.commands.book_results",
    "models": "cranfield.judging.commands.book_results",
    "close": __name__,
    "open": __name__,
    "agreement": "cranfield.judging.commands.book_results",
    "sensitivity": "cranfield.judging.commands.book_results",
    "freeze": "cranfield.judging.commands.book_results",
    "import": "cranfield.judging.commands.book_results",
    "export": "cranfield.judging.commands.book_results",
}
"""Command to its module, in the order help lists them."""


Kind = TypeVar("Kind", bound=StrEnum)
BookArgument = Annotated[str, Argument("Name of the book.", metavar="BOOK")]
ByOption = Annotated[
    str | None,
    Option("Account that the log records; default: the user of this machine.", flag="--by", metavar="NAME"),
]


def named(kind: type[Kind], what: str, given: str) -> Kind:
    """The value of this name.

    Raises:
        UnknownNameError: there is none.
    """
    from cranfield.base.errors import UnknownNameError

    if given not in list(kind):
        raise UnknownNameError.among(what, given, list(kind))
    return kind(given)


def acting_account(store: Store, name: str | None) -> int:
    """The id of the account that the log records for a command: one by name, or that of the user of this machine.

    Raises:
        UnknownNameError: there is no account of this name.
    """
    return (store.people.local() if name is None else store.people.get(name)).id


def note_scale(scale: GradeScale, judged: TestSet | None) -> None:
    """Say on stderr that a new book has other grades than the judgments of the test set, which declares none."""
    from cranfield.evaluation.joint import grades_of

    if judged is None or not judged.grades or judged.meta.scale:
        return
    own = grades_of(judged)
    if own != scale.grades:
        given, used = (", ".join(f"{grade:g}" for grade in grades) for grades in (own, scale.grades))
        note(
            f"note: the scale of the book is {scale.name} ({used}): the test set declares no scale; to use "
            f"the grades of its judgments, add `meta: {{scale: [{given}]}}` to it before you create the book"
        )


PoolOption = Annotated[Path, Option("Pool that `cranfield pool` wrote.", flag="--pool", metavar="FILE")]
ScaleOption = Annotated[
    str | None,
    Option(
        (
            "Grades: binary, graded, detail, or a YAML file with levels; default: the scale of the test set of "
            "the pool, else graded."
        ),
        flag="--scale",
        metavar="NAME",
    ),
]
PreferenceOption = Annotated[
    bool, Option("Ask which of two lists is better; each item of the pool contains both lists.", flag="--preference")
]
RatersOption = Annotated[int, Option("Number of raters per item.", flag="--raters", metavar="N"), Interval(ge=1, le=10)]
OverlapOption = Annotated[
    float,
    Option("Share of the items that get this number of raters; the others get one.", flag="--overlap", metavar="SHARE"),
    Interval(ge=0, le=1),
]
MostRatersOption = Annotated[
    int,
    Option("Maximum number of raters of an item before adjudication.", flag="--most-raters", metavar="N"),
    Interval(ge=1, le=20),
]
EscalateFromOption = Annotated[
    int,
    Option("Minimum difference between grades that requires another rater.", flag="--escalate-from", metavar="N"),
    Ge(1),
]
QuotaOption = Annotated[
    int | None,
    Option("Maximum number of judgments of one rater; default: no limit.", flag="--quota", metavar="N"),
    Ge(1),
]
RepeatsOption = Annotated[
    float,
    Option("Share of a rater's items that are shown a second time.", flag="--repeats", metavar="SHARE"),
    Interval(ge=0, le=0.5),
]
CalibrationFirstOption = Annotated[
    int,
    Option(
        (
            "Number of calibration items that each rater should grade; 0: queries with calibration items do not "
            "come first."
        ),
        flag="--calibration-first",
        metavar="N",
    ),
    Ge(0),
]
LeaseSecondsOption = Annotated[
    int,
    Option("Time for which an item is reserved for a rater.", flag="--lease-seconds", metavar="S"),
    Interval(ge=10, le=86_400),
]
ConsensusOption = Annotated[str, Option("Consensus rule that combines the grades.", flag="--consensus", metavar="RULE")]
KappaLimitOption = Annotated[
    float | None,
    Option("Freeze only if Cohen's kappa is above this value; default: no limit.", flag="--kappa-limit", metavar="X"),
    Interval(ge=-1, le=1),
]
BlindOption = Annotated[
    bool, Option("Never show ranks, systems and other grades, not even after grading.", flag="--blind")
]
SeedOption = Annotated[int, Option("Random seed for orders and overlap.", flag="--seed", metavar="N"), Ge(0)]
GuidelineOption = Annotated[
    Path | None,
    Option("Guidelines for raters, as Markdown; default: built in.", flag="--guideline", metavar="FILE"),
]


def create_command(
    name: BookArgument,
    *,
    pool: PoolOption,
    scale: ScaleOption = None,
    preference: PreferenceOption = False,
    raters: RatersOption = 1,
    overlap: OverlapOption = 1.0,
    most_raters: MostRatersOption = 3,
    escalate_from: EscalateFromOption = 2,
    quota: QuotaOption = None,
    repeats: RepeatsOption = 0.0,
    calibration_first: CalibrationFirstOption = 5,
    lease_seconds: LeaseSecondsOption = 600,
    consensus: ConsensusOption = "median",
    kappa_limit: KappaLimitOption = None,
    blind: BlindOption = False,
    seed: SeedOption = 0,
    guideline: GuidelineOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Create a book from a pool. Raters do not judge items with carried-over or prefilled grades."""
    from cranfield.books.settings import BookSettings, Mode, scale_of
    from cranfield.judging.pools.pool_io import read_pool

    content = read_pool(pool)
    settings = BookSettings(
        mode=Mode.PREFERENCE if preference else Mode.GRADE,
        scale=scale_of(content.scale) if scale is None else read_scale(scale),
        raters_per_item=raters,
        overlap=overlap,
        most_raters=most_raters,
        escalate_from=escalate_from,
        quota=quota,
        repeats=repeats,
        calibration_first=calibration_first,
        lease_seconds=lease_seconds,
        consensus=check_rule(consensus),
        kappa_limit=kappa_limit,
        reveal="never" if blind else "after",
        seed=seed,
    )
    make_book(name, content, settings, guideline, db)


def make_book(name: str, pool: Pool, settings: BookSettings, guideline: Path | None, db: str) -> None:
    """Make the book, and print what it holds."""
    from cranfield.base.words import count_noun
    from cranfield.judging.pools.pool_io import require_texts

    text = None if guideline is None else read_guideline(guideline)
    require_texts(pool)
    with closing(open_books(db, create=True)) as store:
        info = store.books.create(name, pool, settings, guideline=text)
    documents, queries = count_noun(info.n_items, "documents"), count_noun(info.n_queries, "queries")
    say(f"book {info.name}: {documents} of {queries}, in {store.where}")
    say(f"next: `cranfield judge {command_word(info.name)}`")


def read_scale(given: str) -> GradeScale:
    """A scale by name, or of a YAML file with `name` and `levels`.

    Raises:
        UsageError: there is none of this name; or the file is no scale, with all of its problems.
    """
    from cranfield.base.errors import ConfigError, UnknownNameError
    from cranfield.books.settings import SCALES, GradeScale
    from cranfield.formats.io.validation import load_model

    if given in SCALES:
        return SCALES[given]
    if not given.endswith((".yaml", ".yml", ".json")):
        raise UnknownNameError.among("scale", given, SCALES)
    return load_model(Path(given), GradeScale, ConfigError)


def check_rule(name: str) -> str:
    """The name of a consensus rule.

    Raises:
        UnknownNameError: there is none of this name.
    """
    from cranfield.base.errors import UnknownNameError
    from cranfield.stats.consensus import CONSENSUS

    if name not in CONSENSUS:
        raise UnknownNameError.among("consensus rule", name, CONSENSUS)
    return name


def read_guideline(path: Path) -> str:
    """The text of a file of guidelines.

    Raises:
        InputError: it cannot be read, is not text, or is empty.
    """
    from cranfield.base.errors import InputError
    from cranfield.formats.io.files import decode, read_bytes

    text = decode(read_bytes(path, InputError), path, InputError)
    if not text.strip():
        raise InputError("the guidelines are empty", path=str(path))
    return text


def add_item_command(
    book: BookArgument,
    query: Annotated[str, Argument("Id of a query of the book.", metavar="QUERY")],
    doc: Annotated[str, Argument("Id of the document.", metavar="DOC")],
    *,
    field: Annotated[
        list[str] | None,
        Option("Field shown to raters, such as title=...; repeat for more.", metavar="NAME=TEXT"),
    ] = None,
    by: ByOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Add a document that no system returned, to judge it."""
    from cranfield.base.errors import Problem, UsageError, shorten

    pairs = [text.partition("=") for text in field or ()]
    problems = [
        Problem(f"--field is {shorten(name)}", expected="NAME=TEXT such as title=Wool socks")
        for name, equals, _ in pairs
        if not equals or not name
    ]
    if problems:
        raise UsageError(problems)
    with closing(open_books(db)) as store:
        number = store.books.get(book).id
        item = store.books.add_item(
            number, query, doc, {name: text for name, _, text in pairs}, acting_account(store, by)
        )
        say(f"item {item}: document {doc} of query {query}")


def guideline_command(
    book: BookArgument,
    file: Annotated[
        Path | None, Argument("New guidelines, as Markdown; default: show the current ones.", metavar="FILE")
    ] = None,
    *,
    by: ByOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Show the guidelines, or create a new version. Each judgment stores the version of its guidelines."""
    with closing(open_books(db)) as store:
        info = store.books.get(book)
        if file is None:
            say(info.guideline.rstrip("\n"))
            return
        version = store.books.set_guideline(info.id, read_guideline(file), acting_account(store, by))
        if version == info.guideline_version:
            say(f"version {version} already has this text")
            return
        say(f"version {version} holds")
        say(
            f"judged under earlier versions: `cranfield book reopen {command_word(book)} --before-guideline {version} --dry-run`"
        )


def calibrate_command(
    book: BookArgument,
    file: Annotated[Path, Argument("CSV with the columns query, doc, grade and, optionally, reason.", metavar="FILE")],
    *,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Add calibration documents with a known grade. Raters judge them like others, without being informed."""
    from cranfield.base.words import count_noun
    from cranfield.books.store.books import read_calibration
    from cranfield.books.store.schema import Origin

    rows = read_calibration(file)
    with closing(open_books(db)) as store:
        info = store.books.get(book)
        say(count_noun(store.books.calibration(info.id, rows), "calibration items"))
        items = [item for item in store.reading.items(info.id) if item.origin is Origin.CALIBRATION]
        if n_bare := sum(not item.fields for item in items):
            say(f"{n_bare} without a title or text in the book: raters may recognise these")


def reopen_command(
    book: BookArgument,
    *,
    state: Annotated[str | None, Option("Items in this state: done, adjudicate, adjudicated.", metavar="STATE")] = None,
    query: Annotated[str | None, Option("Items of this query.", metavar="ID")] = None,
    stale: Annotated[bool, Option("Judgments of texts that have changed since.")] = False,
    flagged: Annotated[bool, Option("Items with a flag.")] = False,
    rater: Annotated[str | None, Option("Judgments of this rater.", metavar="NAME")] = None,
    before_guideline: Annotated[
        int | None,
        Option("Judgments under guidelines before this version.", metavar="VERSION"),
    ] = None,
    skipped: Annotated[str | None, Option("Items that were skipped for this reason.", metavar="REASON")] = None,
    reason: Annotated[str, Option("Reason, for the log.", metavar="TEXT")] = "",
    dry_run: Annotated[bool, Option("Only count the items; change nothing.")] = False,
    by: ByOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Reopen the items that match all options. The log keeps the withdrawn judgments."""
    from cranfield.base.errors import UsageError
    from cranfield.base.words import count_noun
    from cranfield.books.store.schema import ItemState, SkipReason
    from cranfield.books.store.values import ItemFilter

    where = ItemFilter(
        state=None if state is None else named(ItemState, "state", state),
        query=query,
        stale=True if stale else None,
        flagged=True if flagged else None,
        rater=rater,
        before_guideline=before_guideline,
        skipped=None if skipped is None else named(SkipReason, "reason of a skip", skipped),
    )
    if where == ItemFilter():
        hint = "select the items to judge again: --stale, --flagged, --rater, --query, --before-guideline, --skipped or --state"
        raise UsageError("no items selected", hint=hint)
    with closing(open_books(db)) as store:
        number = store.books.get(book).id
        if rater is not None:
            store.people.get(rater)
        if dry_run:
            say(f"{count_noun(store.reading.count(number, where), 'items')} would be reopened")
            return
        say(f"{count_noun(store.books.reopen(number, where, acting_account(store, by), reason), 'items')} reopened")


def close_command(book: BookArgument, *, db: DbOption = DEFAULT_DATABASE) -> None:
    """Close a book to new judgments. Open items can still be adjudicated, and the book can be frozen."""
    with closing(open_books(db)) as store:
        store.books.close(store.books.get(book).id)
        say(f"book {book} is closed")


def open_command(book: BookArgument, *, db: DbOption = DEFAULT_DATABASE) -> None:
    """Take judgments again."""
    with closing(open_books(db)) as store:
        store.books.open(store.books.get(book).id)
        say(f"book {book} is open")


EVENTS_AT_ONCE = 5_000


def list_command(*, db: DbOption = DEFAULT_DATABASE) -> Report:
    """List all books with their progress."""
    from cranfield.judging.book.grades import all_books
    from cranfield.judging.reports.book import books_document

    with closing(open_books(db)) as store:
        return Report(document=books_document(all_books(store)))


def show_command(book: BookArgument, *, db: DbOption = DEFAULT_DATABASE) -> Report:
    """Show the progress of a book: judged, judged 0 and unjudged documents, states, raters, queries."""
    from cranfield.judging.book.grades import book_progress
    from cranfield.judging.reports.book import book_document

    with closing(open_books(db)) as store:
        return Report(document=book_document(book_progress(store, book)))


def log_command(
    book: BookArgument,
    *,
    after: Annotated[int, Option("Only events after this one.", metavar="ID"), Ge(0)] = 0,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Print the log as JSON lines: who gave which grade, when, after how long, under which guidelines."""
    with closing(open_books(db)) as store:
        number = store.books.get(book).id
        while events := store.log.events(number, after, EVENTS_AT_ONCE):
            for event in events:
                say(json.dumps(asdict(event), ensure_ascii=False))
            after = events[-1].id


def preference_command(book: BookArgument, *, db: DbOption = DEFAULT_DATABASE) -> Report:
    """Show which of two lists raters prefer: wins, ties, an exact sign test, an interval."""
    from cranfield.base.errors import UsageError
    from cranfield.books.settings import Mode
    from cranfield.judging.preference import book_preference
    from cranfield.judging.reports.pool import preference_document

    with closing(open_books(db)) as store:
        info = store.books.get(book)
        if info.settings.mode is not Mode.PREFERENCE:
            raise UsageError(
                f"book {info.name} contains grades", expected="a preference book: `cranfield judge RUN RUN`"
            )
        result = book_preference(store, info)
    return Report(document=preference_document(result))


def text_command(
    documents: Annotated[list[str], Argument("Ids of documents.", metavar="DOC...")],
    *,
    workbench: WorkbenchOption = None,
) -> Report:
    """Show the texts of documents as raters see them, or the reason for a missing text. Tests `documents:` of the config or the operator's file."""
    from cranfield.app.loading import project_config
    from cranfield.judging.documents.texts import open_texts
    from cranfield.judging.reports.texts import texts_document

    with closing(open_texts(workbench, project_config())) as texts:
        found = [texts.get(doc_id) for doc_id in documents]
    return Report(document=texts_document(found))
