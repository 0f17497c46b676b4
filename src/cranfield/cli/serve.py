"""Serve the books of a team."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from cranfield.cli.book_options import DEFAULT_DATABASE, DbOption, DocumentsOption, open_books
from cranfield.cli.judge import DEFAULT_PORT
from cranfield.errors import MissingExtraError, UsageError

HostOption = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")]
PortOption = Annotated[int, typer.Option("--port", metavar="N", min=1, max=65_535, help="Port to listen on.")]


def serve_command(
    *,
    accounts: Annotated[
        bool, typer.Option("--accounts", help="People sign in. Without it one user of this machine does.")
    ] = False,
    host: HostOption = "127.0.0.1",
    port: PortOption = DEFAULT_PORT,
    url: Annotated[
        str, typer.Option("--url", metavar="URL", help="Address that browsers use; default: host and port.")
    ] = "",
    trust_proxy: Annotated[
        list[str] | None,
        typer.Option("--trust-proxy", metavar="ADDRESS", help="Proxy whose X-Forwarded headers are believed."),
    ] = None,
    documents: DocumentsOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Serve all books of a database to a team, until interrupted."""
    try:
        from cranfield.judging.documents.texts import open_texts
        from cranfield.server.options import ServerOptions, is_loopback, server_secret
        from cranfield.server.run import run_server
    except ModuleNotFoundError:
        raise MissingExtraError.for_extra("the server", "web") from None
    options = ServerOptions(
        host=host,
        port=port,
        accounts=accounts,
        url=url.rstrip("/"),
        trusted_proxies=tuple(trust_proxy or ()),
        secret=server_secret(),
    )
    store = open_books(db)
    if accounts and not any(each.role == "admin" and each.active for each in store.people.all()):
        raise UsageError(
            "no administrator can sign in", path=store.where, hint="run `cranfield people add NAME --role admin` first"
        )
    if accounts and not options.secure and options.public.hostname not in {"127.0.0.1", "localhost", "::1"}:
        typer.echo("Warning: passwords cross the network unencrypted. Put a proxy with TLS in front of it.", err=True)
    if accounts and not trust_proxy and not is_loopback(options.public.hostname or "") and is_loopback(host):
        typer.echo(
            "Warning: all sign-ins come from the proxy's address and share one limit of failures. Name the proxy with "
            "--trust-proxy.",
            err=True,
        )
    with closing(open_texts(documents)) as texts:
        run_server(store, options, texts=texts, on_ready=lambda address: typer.echo(f"Serving at {address}"))
    store.close()
