"""`cranfield mcp`: the MCP server, through which an agent evaluates and compares."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Annotated

from annotated_types import Interval

from cranfield.app.command import note
from cranfield.base.errors import MissingExtraError, UsageError
from cranfield.books.options import open_books
from cranfield.cli.ending import EXIT_INTERRUPTED
from cranfield.evaluation.options.declaration import Option
from cranfield.workbench.commands.serve import ConfigArgument, LogForm, LogOption

DEFAULT_PORT = 8735


def mcp_command(
    config: ConfigArgument = None,
    *,
    db: Annotated[
        str | None,
        Option("Database of a server; its stored test sets, runs and results can be read too.", metavar="URL"),
    ] = None,
    systems: Annotated[
        list[str] | None,
        Option("System that may be queried; repeat for more; default: all systems of CONFIG.", metavar="NAME"),
    ] = None,
    ask_none: Annotated[bool, Option("Allow no queries to systems; only runs can be evaluated.")] = False,
    writes: Annotated[
        bool,
        Option("Store results in --db; a running server executes the jobs.", flag="--allow-writes"),
    ] = False,
    http: Annotated[bool, Option("Serve streamable HTTP with a token instead of stdin and stdout.")] = False,
    host: Annotated[str, Option("Address to listen on, with --http.", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[
        int, Option("Port to listen on, with --http.", metavar="N"), Interval(ge=1, le=65_535)
    ] = DEFAULT_PORT,
    allow_hosts: Annotated[
        list[str] | None,
        Option("Host name that clients use, with --http; repeat for more.", flag="--allow-host", metavar="NAME"),
    ] = None,
    allow_origins: Annotated[
        list[str] | None,
        Option(
            "Origin of a web page that may call the server, with --http; default: none.",
            flag="--allow-origin",
            metavar="URL",
        ),
    ] = None,
    log: LogOption = LogForm.AUTO,
) -> None:
    """Serve evaluations to an AI agent over MCP.

    The Model Context Protocol, over stdin and stdout or HTTP. It reads CONFIG and the run files in its folder, or
    a server's database. It writes nothing and asks only systems of CONFIG.
    """
    if config is None and db is None:
        raise UsageError(
            "nothing to serve", expected="CONFIG, a cranfield.yaml, or --db", hint="`cranfield mcp cranfield.yaml`"
        )
    if systems and ask_none:
        raise UsageError("--systems and --ask-none exclude each other")
    if writes and db is None:
        raise UsageError("results are stored in the database of a server", expected="--allow-writes with --db")
    allowed = frozenset(systems) if systems else frozenset() if ask_none else None
    try:
        import mcp  # noqa: F401 - there, or the command cannot work
    except ModuleNotFoundError:
        raise MissingExtraError.for_extra("the MCP server", "mcp") from None
    try:
        from cranfield.workbench.mcp.evidence import open_evidence
        from cranfield.workbench.mcp.http import Tokens, fixed_token, known_hosts, run_http
        from cranfield.workbench.mcp.server import make_server, protocol_app
    except ModuleNotFoundError:
        raise MissingExtraError.for_extra("the MCP server", "web") from None
    with ExitStack() as stack:
        stack.enter_context(_ending_at_once())
        store = None if db is None else stack.enter_context(closing(open_books(db)))
        evidence = stack.enter_context(open_evidence(store, config, allowed, writes=writes))
        if not http:
            make_server(evidence).run("stdio")
            return
        hosts = known_hosts(host, port, allow_hosts or ())
        token, is_new = fixed_token()
        if store is None and is_new:
            note(f"Token: {token}")
        tokens = Tokens("" if store is not None and is_new else token, store)
        app = protocol_app(make_server(evidence, tokens), hosts, allow_origins or ())
        run_http(app, host, port, str(log), lambda address: note(f"Serving at {address}"))


@contextmanager
def _ending_at_once() -> Iterator[None]:
    """End this process at Ctrl-C or SIGTERM: a thread of the `mcp` package waits for stdin, and Python would for the thread."""
    from cranfield.base.concurrency.interrupts import sigterm_interrupts

    try:
        with sigterm_interrupts():
            yield
    except KeyboardInterrupt:
        os._exit(EXIT_INTERRUPTED)
