"""Commands that take judgments and whole books in and out: import, export."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cranfield.app.command import note
from cranfield.app.commands.book.results import ModelsOption, PseudonymsOption, RuleOption
from cranfield.app.commands.book_options import (
    DEFAULT_DATABASE,
    BookArgument,
    ByOption,
    DbOption,
    acting_account,
    open_books,
)
from cranfield.app.commands.testset.common import ForceOption, SetFormatOption, refuse_existing
from cranfield.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.judging.store.store import Store

WHOLE = "book"


def import_command(
    book: BookArgument,
    file: Annotated[
        Path, Argument("Book that `export` wrote, or judgments in any format of test sets.", metavar="FILE")
    ],
    *,
    testset_format: SetFormatOption = None,
    unknown: Annotated[
        Literal["error", "add", "skip"],
        Option("Documents that the book does not have: an error, added, or left out."),
    ] = "error",
    by: ByOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Import a whole book, or judgments into a book; a book that is not there is made of the judgments.

    Raters that the file names are accounts of persons, without a password; judgments without a rater are carried over.
    """
    from cranfield.judging.book.book_file import is_book, read_book
    from cranfield.words import n_of

    with closing(open_books(db, create=True)) as store:
        if testset_format is None and file.is_file() and is_book(file):
            dump = read_book(file)
            store.transfer.restore(dump, book)
            queries, items = n_of(len(dump.query), "queries"), n_of(len(dump.item), "items")
            note(f"imported book {book}: {queries}, {items}, {n_of(len(dump.event), 'events')}")
            return
        _import_judgments(store, book, file, testset_format, unknown, by)


def _import_judgments(
    store: Store,
    book: str,
    file: Path,
    testset_format: str | None,
    unknown: Literal["error", "add", "skip"],
    by: str | None,
) -> None:
    from cranfield.app.loading import read_stored
    from cranfield.judging.book.imports import book_of, import_judgments
    from cranfield.words import first_of, n_of

    testset = read_stored(file, testset_format)
    for each in testset.notes:
        note(f"note: {each}")
    if book not in {info.name for info in store.books.all()}:
        info = book_of(store, book, testset)
        note(f"made book {book}: {n_of(info.n_queries, 'queries')}, {n_of(info.n_items, 'items')}")
    done = import_judgments(store, book, testset, file, by=acting_account(store, by), unknown=unknown)
    if done.skipped:
        n = n_of(len(done.skipped), "queries and documents")
        note(f"left out: {n} that the book does not have ({first_of(done.skipped)})")
    if done.n_added:
        note(f"added: {n_of(done.n_added, 'documents')} that the book did not have")
    known = f"; {done.n_known} were there" if done.n_known else ""
    final = f", {n_of(done.n_final, 'adjudicated grades')}" if done.n_final else ""
    note(f"imported into book {book}: {n_of(done.n_new, 'judgments')}{final}{known}")


def export_command(
    book: BookArgument,
    out: Annotated[
        Path,
        Argument("File to write: .book.jsonl a whole book, else a test set or, with --run, a run.", metavar="FILE"),
    ],
    *,
    file_format: Annotated[
        str | None,
        Option(
            "book, or a format of test sets (of runs with --run); default: from the extension.",
            flag="--format",
            metavar="FORMAT",
        ),
    ] = None,
    run: Annotated[str | None, Option("Export the pooled results of this run, as TREC run.", metavar="NAME")] = None,
    rule: RuleOption = None,
    models: ModelsOption = False,
    pseudonyms: PseudonymsOption = False,
    force: ForceOption = False,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Export a whole book, its judgments in a format of another tool, or the pooled results of a run."""
    from cranfield.formats.convert import write_run, write_testset
    from cranfield.judging.book.contents import contents_of
    from cranfield.judging.book.exports import JUDGES, judgments_of, pooled_run
    from cranfield.words import n_of

    refuse_existing(out, force=force)
    with closing(open_books(db)) as store:
        if run is None and (file_format == WHOLE or (file_format is None and out.name.endswith(".book.jsonl"))):
            _export_whole(store, book, out, pseudonyms=pseudonyms)
            return
        contents = contents_of(store, book)
    if run is not None:
        found = pooled_run(contents, run)
        for sentence in write_run(found, out, "trec" if file_format in {None, "trec-run"} else file_format):
            note(f"note: {sentence}")
        note(f"wrote {out}: the pooled results of {run}, {n_of(len(found.answers), 'queries')}")
        return
    testset = judgments_of(contents, rule=rule, models=models, pseudonyms=pseudonyms, by_judge=file_format == JUDGES)
    for sentence in (*map(str, testset.notes), *write_testset(testset, out, file_format)):
        note(f"note: {sentence}")
    note(
        f"wrote {out}: {n_of(sum(map(len, testset.grades.values())), 'documents')}, grades by {testset.consensus or 'judge'}"
    )


def _export_whole(store: Store, book: str, out: Path, *, pseudonyms: bool) -> None:
    from cranfield.judging.book.book_file import write_book
    from cranfield.words import n_of

    dump = store.transfer.dump(book, pseudonyms=pseudonyms)
    write_book(dump, out)
    note(f"wrote {out}: {n_of(len(dump.item), 'items')}, {n_of(len(dump.event), 'events')}")
