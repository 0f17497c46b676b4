"""`cranfield view`: reports in the browser."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer


def view_command(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="Folder of reports, a report, or its results.json; default: cranfield-out."
        ),
    ] = Path("cranfield-out"),
    *,
    file: Annotated[
        bool, typer.Option("--file", help="Open the file itself, without a server, and return at once.")
    ] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port of the server; default: a free one.")
    ] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
) -> None:
    """Show reports in the browser, until Ctrl-C.

    A server on this machine alone (127.0.0.1) shows the reports of the folder and the files that they link to. Where no
    browser can be opened, as over ssh, the address is printed. Results without a report get one from the saved runs,
    without asking a system.
    """
    from cranfield.errors import UsageError
    from cranfield.project.viewing.browser import open_address
    from cranfield.project.viewing.find import shown_at
    from cranfield.project.viewing.server import served

    shown = shown_at(target)
    for warning in shown.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if file:
        if not shown.start:
            raise UsageError("several reports, and --file opens one", path=str(target), expected="the path of one")
        url = (shown.root / shown.start).resolve().as_uri()
        typer.echo(url)
        if not no_browser:
            open_address(url)
        return
    with suppress(KeyboardInterrupt), served(shown, port) as server:
        typer.echo(server.url)
        opened = not no_browser and open_address(server.url)
        typer.echo(
            f"{'opened in the browser' if opened else 'open this address in a browser'}; Ctrl-C ends it", err=True
        )
        while True:
            time.sleep(3600)
