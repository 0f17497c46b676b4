"""The Python programs that a server starts: their commands and environments, and what it writes to the process of a job."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pydantic import BaseModel, SecretStr

from cranfield.base.errors import traceback_of
from cranfield.config.models import Config
from cranfield.config.strict import ENV, placeholders
from cranfield.workbench.config import VARIABLE, Workbench
from cranfield.workbench.service.values import Claim, Json

if TYPE_CHECKING:
    from cranfield.workbench.service.context import Context


OF_SERVER = frozenset({"CRANFIELD_DB", "CRANFIELD_SECRET", "CRANFIELD_MCP_TOKEN", "CRANFIELD_PUSH_AUTH"})
"""Variables of the server that no system and no upload needs, with those of the options of `serve`."""
_OF_OPTION = re.compile(r"CRANFIELD_SERVE_\w+")
_OF_DATABASE = re.compile(r"PG[A-Z]+")
"""Variables of PostgreSQL's library: `PGPASSWORD`, `PGPASSFILE`, `PGSERVICE`, …"""
OF_READER = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "SYSTEMROOT")
"""Variables that a program has which starts nothing."""


def child_command(module: str, *arguments: str) -> list[str]:
    """What starts a module of Cranfield; files of the working directory must not be taken for modules."""
    return [sys.executable, "-P", "-m", module, *arguments]


def system_environment(
    workbench: Workbench | None, config: Config | None, known: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The variables of a program that may start systems of a config.

    Those of the server are left out, and those of PostgreSQL and those that the operator's file names, unless the config names
    them too.

    Args:
        workbench: the operator's file.
        config: cranfield.yaml.
        known: the variables of the server.
    """
    withheld = OF_SERVER | set(filter(_OF_OPTION.fullmatch, known))
    withheld |= {*_named(workbench), *database_variables(known)} - {*_named(config)}
    return _with_whole_path({name: value for name, value in known.items() if name not in withheld})


def database_variables(known: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables by which PostgreSQL's library finds a server and a password: for a process that opens the database."""
    return {name: value for name, value in known.items() if _OF_DATABASE.fullmatch(name)}


def reader_environment(known: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of a program that reads what was sent: no secret, no address of a database."""
    return _with_whole_path({name: known[name] for name in OF_READER if name in known} | {"PYTHONWARNINGS": "ignore"})


def _with_whole_path(variables: dict[str, str]) -> dict[str, str]:
    """Without the empty entries of `PYTHONPATH`, which stand for the working directory."""
    folders = [*filter(None, variables.pop("PYTHONPATH", "").split(os.pathsep))]
    return variables | ({"PYTHONPATH": os.pathsep.join(folders)} if folders else {})


def _named(value: object) -> Iterator[str]:
    """Names of environment variables in a file: `env:NAME`, `{env.NAME}`, and those in `env` lists and under `…_env`."""
    match value:
        case SecretStr():
            yield from _named(value.get_secret_value())
        case BaseModel():
            yield from _named(value.model_dump())
        case str():
            if value.startswith(VARIABLE):
                yield value.removeprefix(VARIABLE)
            yield from (name.removeprefix(ENV) for name in placeholders(value) if name.startswith(ENV))
        case Mapping():
            for key, item in value.items():
                if key == "env" or str(key).endswith("_env"):
                    yield from [item] if isinstance(item, str) else map(str, item or ())
                yield from _named(item)
        case list() | tuple():
            for item in value:
                yield from _named(item)


PASSED_ON = {"jobs", "limits", "tunable", "watch"}
"""Blocks of the operator's file that a job needs."""


class ProcessStatus(IntEnum):
    """Exit status of the process."""

    ENDED = 0
    """The job is done or has failed, and the database says so."""
    REFUSED = 4
    """Another server has the job: nothing was written."""
    INTERRUPTED = 130
    """The answers so far are kept in the folder of the job."""


@dataclass(frozen=True)
class JobTask:
    """What the server writes to the process."""

    claim: Claim
    database: str
    config: str | None
    workbench: Json
    workbench_folder: str
    folder: str
    with_messages: bool
    """Whether the log of the server has the messages of unexpected errors, which may quote anything."""
    database_variables: Mapping[str, str] = field(default_factory=database_variables)
    """Environment variables of PostgreSQL's library, for this process and not for the systems that it starts."""

    @classmethod
    def of(cls, context: Context, claim: Claim, folder: Path, *, with_messages: bool = False) -> JobTask:
        """The order for a job of a server."""
        database, config = context.store.database, context.config_file.path
        path = database.path
        place = database.url.render_as_string(hide_password=False) if path is None else f"sqlite:{path.absolute()}"
        blocks = context.workbench.model_dump(mode="json", include=PASSED_ON, exclude_defaults=True, by_alias=True)
        config_path = None if config is None else str(config.absolute())
        workbench_folder = str(context.workbench.folder.absolute())
        return cls(claim, place, config_path, blocks, workbench_folder, str(folder), with_messages)

    def log_error(self, _kind: object, error: BaseException, _trace: object) -> None:
        """Write an unexpected error to the log of the server, as `sys.excepthook`."""
        sys.stderr.write(traceback_of(error, with_messages=self.with_messages))

    @property
    def line(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, stream: TextIO) -> JobTask:
        """The order of a line."""
        stored = json.loads(stream.readline())
        return cls(Claim(**stored.pop("claim")), **stored)
