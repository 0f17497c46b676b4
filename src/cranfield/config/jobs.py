"""Jobs of the server, and limits on what is sent to it, in the operator's file."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cranfield.config.strict import Strict


class JobsConfig(Strict):
    """How the server works on jobs: evaluations and comparisons."""

    workers: Annotated[int, Field(ge=0, le=64)] = 1
    """Jobs that this server works on at a time; with 0 it takes none, and others on the same database do."""
    folder: str | None = None
    """Folder of answers that were collected and are not stored yet, so that an interrupted job goes on where it stopped.
    Default: `.cranfield/jobs` next to the file of SQLite; with PostgreSQL, in the working directory."""
    lease_s: Annotated[float, Field(ge=1, le=3600)] = 60.0
    """Seconds after which another server takes the job of one that no longer answers."""
    keep_days: Annotated[float, Field(ge=0)] = 7.0
    """Days for which the answers of a failed or cancelled job are kept, so that a retry goes on with them. Results in the
    database are never deleted."""


class LimitsConfig(Strict):
    """Limits on what is sent to the server."""

    upload_mb: Annotated[int, Field(ge=1, le=4096)] = 100
    """Largest upload of a test set or a run, in megabytes, when it is no longer compressed."""
    rows: Annotated[int, Field(ge=1)] = 2_000_000
    """Most lines of an upload: judgments of a test set, results of a run."""
    queries: Annotated[int, Field(ge=1)] = 20_000
    """Most queries of an uploaded test set."""
    upload_s: Annotated[float, Field(gt=0)] = 60.0
    """Longest time that reading an upload may take, in seconds."""
    upload_memory_mb: Annotated[int, Field(ge=256)] = 2048
    """Most memory of the process that reads an upload, in megabytes."""
    requests_per_minute: Annotated[int, Field(ge=0)] = 600
    """Most requests of an account to the REST API in a minute; 0: any number."""
    k: Annotated[int, Field(ge=1)] = 1000
    """Most results that a request may ask systems for."""
    job_s: Annotated[float, Field(gt=0)] = 7200.0
    """Longest time of a job in seconds, from its start on one server; then it has failed."""
    queued_per_account: Annotated[int, Field(ge=1)] = 50
    """Most jobs of one account that wait in the queue."""
