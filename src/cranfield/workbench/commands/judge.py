"""`cranfield judge`: open the judging page of a book."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from annotated_types import Ge, Interval

from cranfield.app.command import note, say
from cranfield.base.errors import CranfieldError, MissingExtraError, UsageError
from cranfield.base.words import command_word
from cranfield.books.options import DEFAULT_DATABASE, DbOption, WorkbenchOption, open_books
from cranfield.cli.build import CONFIG_HELP, runs_of_systems
from cranfield.evaluation.options.declaration import Argument, Option
from cranfield.judging.commands.book import note_scale

if TYPE_CHECKING:
    from cranfield.books.store.store import Store
    from cranfield.books.store.values import BookInfo
    from cranfield.judging.documents.texts import DocumentTexts
    from cranfield.model import TestSet

DEFAULT_PORT = 8734
TargetArgument = Annotated[
    list[str],
    Argument(
        "Name of a book; or a run or a system of the config, to make a book from it; or two of them, to compare.",
        metavar="BOOK|RUN...",
    ),
]
TestSetOption = Annotated[
    Path | None,
    Option(
        "Test set for run files: texts of the queries, and existing judgments.",
        flag="--testset",
        metavar="FILE",
    ),
]
QueriesOption = Annotated[
    Path | None,
    Option("Ids and texts of the queries, for run files without a test set.", flag="--queries", metavar="FILE"),
]
DepthOption = Annotated[
    int, Option("Number of results to judge for each query, for run files.", flag="--depth", metavar="K"), Ge(1)
]
HostOption = Annotated[str, Option("Address of this machine to listen on.", flag="--host", metavar="ADDRESS")]
PortOption = Annotated[
    int | None,
    Option(
        f"Port to listen on; 0: any free port; default: {DEFAULT_PORT}, or a free port if it is in use.",
        flag="--port",
        metavar="N",
    ),
    Interval(ge=0, le=65535),
]
AsOption = Annotated[
    str,
    Option(
        "Your name in judgments and reports (not verified); default: the name of your account on this machine.",
        flag="--as",
        metavar="NAME",
        shows_default=False,
    ),
]
OpenOption = Annotated[bool, Option("Open the page in the browser of this machine.", flag="--open/--no-open")]


def judge_command(
    book: TargetArgument,
    *,
    testset: TestSetOption = None,
    queries: QueriesOption = None,
    depth: DepthOption = 10,
    db: DbOption = DEFAULT_DATABASE,
    host: HostOption = "127.0.0.1",
    port: PortOption = None,
    user: AsOption = "",
    workbench: WorkbenchOption = None,
    config: Annotated[Path | None, Option(CONFIG_HELP, metavar="FILE")] = None,
    browser: OpenOption = True,
) -> None:
    """Open the judging page of a book in the browser.

    It is for one user of this machine. The printed address holds a token that signs its user in. Ctrl-C ends the server; judgments are saved as they are made.
    A run file makes a book of its first results; two make a book of their lists, of which the better one is chosen blind.
    """
    try:
        from cranfield.app.loading import project_config
        from cranfield.judging.documents.texts import open_texts
        from cranfield.workbench.server.options import ServerOptions, server_secret
        from cranfield.workbench.server.run import run_server
    except ModuleNotFoundError:
        raise MissingExtraError.for_extra("the judging page", "web") from None

    named = None if _is_book_or_run(book, db) else runs_of_systems(book, config)
    if named is not None:
        book = named[0]
    from_runs = len(book) > 1 or Path(book[0]).is_file()
    store = open_books(db, create=from_runs)
    try:
        if from_runs:
            if named is not None and testset is None and queries is None:
                _, judged, testset = named
            else:
                judged = _judged(testset, queries)
            name = book_of_runs(store, book, judged, depth, testset)
        else:
            name = book[0]
        who = store.people.local(user)
        if not who.active:
            hint = f"`cranfield people activate {command_word(who.name)}` allows it to sign in"
            raise UsageError(f"{who.name} may not sign in", hint=hint)
        note(f"judging as {who.name} (not verified); --as NAME sets another name")
        number = port or free_port(host, preferred=port is None)
        options = ServerOptions(host=host, port=number, user=user, secret=server_secret())
        path = f"/books/{quote(name, safe='')}/judge"
        with (
            suppress(KeyboardInterrupt),  # the ordinary end
            closing(open_texts(workbench, project_config(config))) as texts,
        ):
            opened = _show_book(store, name, texts)
            if not store.people.is_member(opened.id, who.id):
                store.people.join(opened.id, who.id)
            run_server(store, options, path, texts=texts, on_ready=_announce(browser=browser))
    finally:
        store.close()


def _is_book_or_run(targets: list[str], db: str) -> bool:
    """Whether the target is a run file, or a book that is there: then it is no name of a system."""
    if any(Path(target).exists() for target in targets):
        return True
    if len(targets) > 1:
        return False
    with suppress(CranfieldError), closing(open_books(db)) as store:
        store.books.get(targets[0])
        return True
    return False


def _show_book(store: Store, name: str, texts: DocumentTexts) -> BookInfo:
    """Name the book and what is left of it on stderr, and return it.

    Raises:
        UnknownNameError: there is none of this name.
    """
    book = store.books.get(name)
    note(f"{book.name}: {book.n_queries} queries, {book.n_items} items, in {store.where}")
    if book.state != "open":
        note(f"note: the book is {book.state}: it accepts no judgments")
    if _is_without_text(store, book, texts):
        hint = "`documents:` of cranfield.yaml, or of the file of `--workbench`, names a source of texts"
        note(f"note: no texts of the documents; {hint}")
    return book


def _is_without_text(store: Store, book: BookInfo, texts: DocumentTexts) -> bool:
    """Whether no document of the first query has a text or an image."""
    from cranfield.books.settings import Mode
    from cranfield.books.store.values import ItemFilter

    queries = store.reading.queries(book.id)
    if book.settings.mode is Mode.PREFERENCE or not queries:
        return False
    found = [
        texts.get(item.doc, item.fields) for item in store.reading.items(book.id, ItemFilter(query=queries[0].name))
    ]
    return bool(found) and not any(document.image or (document.text and document.has_text) for document in found)


def free_port(host: str, *, preferred: bool) -> int:
    """A port that no program has: the default one where that is wanted and free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in (DEFAULT_PORT, 0) if preferred else (0,):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind((host, port))
                return int(probe.getsockname()[1])
    raise UsageError(f"cannot listen on {host}", expected="an address of this machine, such as 127.0.0.1")


def _announce(*, browser: bool) -> Callable[[str], None]:
    def announce(address: str) -> None:
        say(f"Judge at {address}")
        note("Ctrl-C ends the server.")
        if browser:
            from cranfield.workbench.server.options import start_page

            with suppress(OSError):  # the address is printed too
                webbrowser.open(start_page(address))

    return announce


def _judged(testset: Path | None, queries: Path | None) -> TestSet:
    from cranfield.app.loading import load
    from cranfield.formats.sniff import read_queries

    if testset is not None:
        return load(testset)
    if queries is not None:
        return read_queries(queries)
    raise UsageError(
        "run files without the texts of their queries",
        expected="--testset FILE, or --queries FILE if nothing is judged yet",
    )


def book_of_runs(store: Store, runs: list[str], judged: TestSet, depth: int, testset: Path | None = None) -> str:
    """The name of the book of one run, or of two that are compared; it is made, or what it lacks is added to it.

    Raises:
        UsageError: there are more than two runs, or nothing is to be judged.
    """
    from cranfield.base.errors import UnknownNameError
    from cranfield.books.settings import BookSettings, Mode, scale_of
    from cranfield.judging.pools.build import PoolRequest
    from cranfield.judging.pools.pool_io import made_over
    from cranfield.judging.preference import preference_pool
    from cranfield.judging.use_cases import pool_of, read_systems

    if len(runs) > 2:
        raise UsageError(
            f"{len(runs)} runs",
            expected="one, or two",
            hint="`cranfield pool RUN... --book NAME` adds more runs to the pool",
        )
    if len(runs) == 1:
        name = read_systems(runs, judged)[0].name
        pool = made_over(pool_of(runs, judged, PoolRequest(depth=depth, name=name)).pool, testset)
        settings = BookSettings(scale=scale_of(pool.scale))
    else:
        a, b = read_systems(runs, judged)
        name = f"{a.name} or {b.name}"
        pool = preference_pool(name, judged.queries, a, b, depth)
        settings = BookSettings(mode=Mode.PREFERENCE)
    try:
        store.books.add_pool(store.books.get(name).id, pool)
    except UnknownNameError:
        store.books.create(name, pool, settings)
        if settings.mode is Mode.GRADE:
            note_scale(settings.scale, judged)
    return name
