"""`cranfield mcp`: the MCP server, through which an agent evaluates and compares."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.serve import ConfigArgument, LogForm, LogOption
from cranfield.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from cranfield.judging.store.store import Store
    from cranfield.mcp_server.evidence import FolderEvidence

DEFAULT_PORT = 8735


def mcp_command(
    config: ConfigArgument = None,
    *,
    db: Annotated[
        str | None,
        typer.Option(
            "--db", metavar="URL", help="Database of a server: stored test sets, runs and results are read too."
        ),
    ] = None,
    systems: Annotated[
        list[str] | None,
        typer.Option(
            "--systems", metavar="NAME", help="System that may be asked; repeat for more; default: all of CONFIG."
        ),
    ] = None,
    ask_none: Annotated[bool, typer.Option("--ask-none", help="No system may be asked: runs are evaluated.")] = False,
    writes: Annotated[
        bool,
        typer.Option(
            "--allow-writes", help="Store results: as jobs of --db; without it answers in the cache of CONFIG."
        ),
    ] = False,
    http: Annotated[
        bool, typer.Option("--http", help="Streamable HTTP with a token, in place of stdin and stdout.")
    ] = False,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="With --http: address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=1, max=65_535, help="With --http: port to listen on.")
    ] = DEFAULT_PORT,
    allow_hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", metavar="NAME", help="With --http: name under which clients reach it; repeat for more."
        ),
    ] = None,
    allow_origins: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin", metavar="URL", help="With --http: origin of a page that may call; default: none."
        ),
    ] = None,
    log: LogOption = LogForm.AUTO,
) -> None:
    """Serve evaluations to an AI agent by the Model Context Protocol, over stdin and stdout or HTTP.

    It reads CONFIG and the run files in its folder, or a server's database. It writes nothing and asks only systems of CONFIG.
    """
    if config is None and db is None:
        raise UsageError(
            "nothing to serve", expected="CONFIG, a cranfield.yaml, or --db", hint="`cranfield mcp cranfield.yaml`"
        )
    if systems and ask_none:
        raise UsageError("--systems and --ask-none exclude each other")
    allowed = frozenset(systems) if systems else frozenset() if ask_none else None
    try:
        from cranfield.mcp_server.server import make_server, protocol_app
    except ModuleNotFoundError:
        raise MissingExtraError.for_extra("the MCP server", "mcp") from None
    with ExitStack() as stack:
        store = None if db is None else stack.enter_context(closing(open_current(db)))
        evidence = evidence_of(store, config, allowed, writes=writes)
        if not http:
            make_server(evidence).run("stdio")
            return
        try:
            from cranfield.mcp_server import http as transport
        except ModuleNotFoundError:
            raise MissingExtraError.for_extra("the MCP server over HTTP", "web") from None
        options = transport.HttpOptions(host, port, tuple(allow_hosts or ()), tuple(allow_origins or ()), str(log))
        token, is_new = transport.fixed_token()
        if store is None:
            admit = transport.admit_holder(token)
            if is_new:
                typer.echo(f"Token: {token}", err=True)
        else:
            admit = transport.admit_accounts(store, "" if is_new else token)
        server = make_server(evidence, transport.may_write)
        app = protocol_app(server, options.hosts, options.allow_origins)
        transport.run_http(app, options, admit, lambda address: typer.echo(f"Serving at {address}", err=True))


def evidence_of(
    store: Store | None, config: Path | None, allowed: frozenset[str] | None, *, writes: bool
) -> FolderEvidence:
    """The evidence that is served."""
    from cranfield.mcp_server.evidence import FolderEvidence

    if store is None:
        return FolderEvidence(config, allowed=allowed, writes=writes)
    from cranfield.mcp_server.stored import StoredEvidence
    from cranfield.service.service import open_service

    return StoredEvidence(open_service(store, config), config, allowed=allowed, writes=writes)


def open_current(db: str) -> Store:
    """Open a database that is of this version's schema already: this command upgrades none.

    Raises:
        UsageError: there is none, or it is of another version.
    """
    from cranfield.cli.book_options import open_books

    try:
        from cranfield.database.base import REVISION
        from cranfield.judging.store.database import read_revision
    except ModuleNotFoundError:
        raise MissingExtraError.for_extra("a database", "web") from None
    found = read_revision(db)
    if found not in {None, REVISION}:
        hint = "run `cranfield db upgrade`, or the server, first"
        raise UsageError(f"the schema of the database is {found}", expected=REVISION, hint=hint)
    return open_books(db)
