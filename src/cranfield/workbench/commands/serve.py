"""Serve the books of a team, and the evaluations of its systems."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from annotated_types import Interval

from cranfield.app.command import note, say
from cranfield.base.errors import MissingExtraError, UsageError
from cranfield.base.platforms import SERVER, require
from cranfield.books.options import DEFAULT_DATABASE, WorkbenchOption, open_books
from cranfield.cli.ending import CommandState
from cranfield.evaluation.options.declaration import Argument, Option
from cranfield.plugins import installed_products

if TYPE_CHECKING:
    from cranfield.books.store.store import Store
    from cranfield.workbench.config import ServerConfig, ServerSetting, Workbench
    from cranfield.workbench.server.options import ServerOptions

VARIABLE = "CRANFIELD_SERVE_"


class LogForm(StrEnum):
    """Form of the log."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


def _setting(flag: str, metavar: str, text: str) -> Option:
    """The option of a setting, with its environment variable."""
    name = flag.partition("/")[0].removeprefix("--").replace("-", "_").upper()
    return Option(text, flag=flag, metavar=metavar, env=f"{VARIABLE}{name}")


ConfigArgument = Annotated[
    Path | None,
    Argument("Systems, test sets and gate: cranfield.yaml.", metavar="CONFIG", env="CRANFIELD_CONFIG"),
]
ServerDbOption = Annotated[
    str | None,
    Option(
        f"Database: a path, sqlite:PATH or postgresql://...; default: {DEFAULT_DATABASE}.",
        flag="--db",
        metavar="URL",
        env="CRANFIELD_DB",
    ),
]
AccountsOption = Annotated[
    bool | None,
    _setting("--accounts/--no-accounts", "", "Require people to sign in; default: one user, on this machine."),
]
HostOption = Annotated[str | None, _setting("--host", "ADDRESS", "Address to listen on.")]
PortOption = Annotated[int | None, _setting("--port", "N", "Port to listen on."), Interval(ge=1, le=65_535)]
UrlOption = Annotated[str | None, _setting("--url", "URL", "URL that browsers use; default: host and port.")]
ProxyOption = Annotated[
    list[str] | None,
    _setting("--trust-proxy", "ADDRESS", "Proxy whose X-Forwarded headers are trusted; repeat for more."),
]
ALLOW = "Additional host name that programs such as a scraper may use; repeat for more."
AllowHostOption = Annotated[list[str] | None, _setting("--allow-host", "NAME", ALLOW)]
CONNECTIONS = "Maximum number of connections; up to three quarters may be active requests, further requests get 503."
ConnectionsOption = Annotated[int | None, _setting("--connections", "N", CONNECTIONS), Interval(ge=10, le=100_000)]
LOG = "Format of the log on stderr; auto: text on a terminal, json elsewhere."
LogOption = Annotated[LogForm | None, _setting("--log", "FORM", LOG)]
STOP = "Seconds that running requests have to finish when the server stops."
StopOption = Annotated[float | None, _setting("--stop-seconds", "S", STOP), Interval(ge=0, le=600)]
DRAIN = "Seconds that the server keeps serving after the stop signal, while /readyz fails."
DrainOption = Annotated[float | None, _setting("--drain-seconds", "S", DRAIN), Interval(ge=0, le=600)]
PrintOption = Annotated[
    bool, Option("Print every setting and its origin; do not start the server.", flag="--print-config")
]


def serve_command(
    context: typer.Context,
    config: ConfigArgument = None,
    *,
    workbench: WorkbenchOption = None,
    db: ServerDbOption = None,
    accounts: AccountsOption = None,
    host: HostOption = None,
    port: PortOption = None,
    url: UrlOption = None,
    trust_proxy: ProxyOption = None,
    allow_hosts: AllowHostOption = None,
    connections: ConnectionsOption = None,
    log: LogOption = None,
    drain_s: DrainOption = None,
    stop_s: StopOption = None,
    print_config: PrintOption = False,
) -> None:
    """Serve books and evaluations to a team, until interrupted.

    All books of a database, and the systems of a config.

    What decides about a setting, in this order: the option, its environment variable, the block `server:` of the operator's file,
    the default. `--print-config` shows it.
    """
    from cranfield.workbench.config import Workbench, load_workbench

    operator = load_workbench(workbench) if workbench else Workbench()
    options = {
        "db": db,
        "accounts": accounts,
        "host": host,
        "port": port,
        "url": url,
        "connections": connections,
        "log": log,
        "trust_proxy": trust_proxy,
        "allow_hosts": allow_hosts,
        "drain_s": drain_s,
        "stop_s": stop_s,
    }
    settings = resolve_options(context, options, operator.server)
    if print_config:
        print_settings(settings, {"config": config, "workbench": workbench})
        return
    serve(settings, config, operator)


def serve(settings: tuple[ServerSetting, ...], config: Path | None, operator: Workbench) -> None:
    """Serve until interrupted.

    Raises:
        PlatformError: this operating system cannot run its jobs.
        UsageError: others could reach the server without accounts, the address is taken, or the database cannot be used.
        ConfigError: with everything that is wrong with the config.
    """
    require(SERVER)
    try:
        from cranfield.judging.documents.texts import DocumentTexts
        from cranfield.workbench.server.options import server_options
        from cranfield.workbench.server.run import run_server
        from cranfield.workbench.service.context import ConfigFile
        from cranfield.workbench.service.service import open_service
    except ModuleNotFoundError:
        raise MissingExtraError.for_extra("the server", "web") from None
    config_file = ConfigFile(config)
    server, documents = server_options(settings), operator.with_documents_of(config_file.current())
    with closing(open_books(server.db, create=True)) as store, closing(DocumentTexts(documents)) as texts:
        if store.is_new:
            note(f"{store.where} is a new database")
        for problem in installed_products()[1]:
            note(f"warning: {problem.sentence()}")
        warn(store, server)
        service = open_service(store, config_file, operator)
        run_server(
            store,
            server,
            texts=texts,
            service=service,
            with_messages=CommandState.debug,
            on_ready=lambda address: say(f"Serving at {address}"),
        )


def resolve_options(
    context: typer.Context, options: Mapping[str, object], file: ServerConfig
) -> tuple[ServerSetting, ...]:
    """Every setting of the server: of the command line, the environment, the operator's file."""
    from cranfield.workbench.config import SettingOrigin, resolve_settings

    origins = {"COMMANDLINE": SettingOrigin.OPTION, "ENVIRONMENT": SettingOrigin.ENVIRONMENT}
    given = {}
    for name, value in options.items():
        source = context.get_parameter_source(name)
        given[name] = value, origins.get(source.name if source else "", SettingOrigin.DEFAULT)
    return resolve_settings(given, file)


def print_settings(settings: tuple[ServerSetting, ...], files: Mapping[str, Path | None]) -> None:
    """Print each setting, its value and where it comes from; passwords are masked."""
    from cranfield.workbench.config import shown_settings

    for name, path in files.items():
        say(f"{name:<12} {path or 'none'}")
    for name, value, origin in shown_settings(settings):
        say(f"{name:<12} {value}  ({origin})")


def warn(store: Store, options: ServerOptions) -> None:
    """Refuse a server that no administrator can sign in to; warn of one that is open to eavesdroppers.

    Raises:
        UsageError: people sign in, and there is no administrator.
    """
    from cranfield.workbench.server.options import is_loopback

    if not options.accounts:
        return
    if not any(each.role == "admin" and each.active for each in store.people.all()):
        raise UsageError(
            "no administrator can sign in", path=store.where, hint="run `cranfield people add NAME --role admin` first"
        )
    if not options.secure and options.public.hostname not in {"127.0.0.1", "localhost", "::1"}:
        note("Warning: passwords cross the network unencrypted. Put a proxy with TLS in front of it.")
    if not options.trusted_proxies and not is_loopback(options.public.hostname or "") and is_loopback(options.host):
        note(
            "Warning: all sign-ins come from the proxy's address and share one limit of failures. Name the proxy with "
            "--trust-proxy."
        )
