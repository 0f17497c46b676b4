"""What a server writes to the process of a job, and the exit status that it gets back."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from cranfield.base.errors import traceback_of
from cranfield.workbench.service.children import database_variables
from cranfield.workbench.service.values import Claim, Json

if TYPE_CHECKING:
    from cranfield.workbench.service.context import Context


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
