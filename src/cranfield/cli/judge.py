"""`cranfield judge`: open the judging page of a book."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from cranfield.cli.book_options import DEFAULT_DATABASE, DbOption, open_books
from cranfield.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from cranfield.judging.store.store import Store

DEFAULT_PORT = 8734


def judge_command(
    book: Annotated[str, typer.Argument(metavar="BOOK", help="Name of a book.")],
    *,
    db: DbOption = DEFAULT_DATABASE,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on: of this machine.")] = (
        "127.0.0.1"
    ),
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65535,
            help=f"Port to listen on; 0: any free one; default: {DEFAULT_PORT}, or a free one where that is taken.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Where the texts of documents are: see the guide on texts."),
    ] = None,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser of this machine.")] = (
        True
    ),
) -> None:
    """Open the judging page of a book in the browser, for one user of this machine.

    The printed address holds a token that signs its user in. Ctrl-C ends the server; judgments are saved as they are made.
    """
    try:
        from cranfield.server.options import ServerOptions, server_secret
        from cranfield.server.run import run_server
    except ModuleNotFoundError:
        raise MissingExtraError.for_extra("the judging page", "web") from None

    store = open_books(db)
    try:
        _show_book(store, book)
        options = ServerOptions(host=host, port=port or free_port(host, preferred=port is None), secret=server_secret())
        texts = _texts(config)
        with suppress(KeyboardInterrupt):  # the ordinary end
            run_server(
                store, options, f"/books/{quote(book, safe='')}/judge", texts=texts, on_ready=_announce(browser=browser)
            )
    finally:
        store.close()


def _show_book(store: Store, name: str) -> None:
    """Name the book and what is left of it on stderr.

    Raises:
        UnknownNameError: there is none of this name.
    """
    book = store.books.get(name)
    typer.echo(f"{book.name}: {book.n_queries} queries, {book.n_items} items, in {store.where}", err=True)
    if book.state != "open":
        typer.echo(f"note: the book is {book.state}: it takes no judgments", err=True)


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


def _texts(config: Path | None) -> object:
    from cranfield.config.documents import load_workbench
    from cranfield.judging.documents.texts import DocumentTexts
    from cranfield.server.documents import DocumentPages

    return DocumentPages(DocumentTexts(None if config is None else load_workbench(config)))


def _announce(*, browser: bool) -> Callable[[str], None]:
    def announce(address: str) -> None:
        typer.echo(f"Judge at {address}")
        typer.echo("Ctrl-C ends the server.", err=True)
        if browser:
            webbrowser.open(address)

    return announce
