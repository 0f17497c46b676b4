"""Places of runs and results: paths of this machine, and URIs of the file systems that Spark knows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from cranfield.base.errors import ProblemList, RunFormatError
from cranfield.scale.source import find_runs, opened_parquet

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
STORES = ("s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "oss", "cos", "cosn", "obs")
"""File systems whose URIs name a bucket or container after `//`."""


def is_remote(place: str | Path) -> bool:
    """Whether a place is a URI of another file system than this machine's."""
    found = SCHEME.match(str(place))
    return found is not None and found[0].lower() != "file:"


def local_path(place: str | Path) -> Path:
    """The path of a place on this machine."""
    return Path(re.sub(r"(?i)^file:(?://(?=/))?", "", str(place)))


def uri_of(place: str | Path) -> str:
    """How Spark names a place: without a scheme it would look in the file system of the cluster. Nothing is quoted in it."""
    if not is_remote(place):
        return f"file://{local_path(place).resolve()}"
    scheme, _, rest = str(place).partition(":")
    is_short = rest.startswith("/") and not rest.startswith("//")  # what a Path makes of two slashes
    has_host = scheme.lower() in STORES or ":" in rest[1:].partition("/")[0]
    return f"{scheme}:/{rest}" if is_short and has_host else str(place)


def uri_to_read(place: str | Path) -> str:
    """The same where a pattern of file names is understood: one that is the name of a file is that file."""
    uri = uri_of(place)
    is_file = not is_remote(place) and local_path(place).exists()
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", uri) if is_file else uri


def places_of_runs(runs: Sequence[str | Path]) -> dict[str, list[str]]:
    """Name of each run to what Spark reads for it: the files of this machine, or a URI as it is.

    Raises:
        RunFormatError: with each path that names no Parquet file.
        UsageError: the paths look like the parts of one run.
    """
    local = iter(find_runs([str(local_path(run)) for run in runs if not is_remote(run)]))
    found: list[tuple[str, list[str]]] = []
    for run in runs:
        if is_remote(run):
            found.append((_name_of(uri_of(run)), [uri_of(run)]))
        else:
            of_run = next(local)
            found.append((of_run.name, [uri_to_read(path) for path in of_run.files]))
    return dict(zip(_different([name for name, _ in found]), (places for _, places in found), strict=True))


def groups_of(uris: Sequence[str]) -> list[list[str]]:
    """The files of a run in groups whose columns are of one kind, which Spark reads as a table each.

    Args:
        uris: of `places_of_runs`; what is no file of this machine is one group.

    Raises:
        RunFormatError: with each file that cannot be read.
    """
    groups: dict[object, list[str]] = {}
    problems = ProblemList(RunFormatError)
    for uri in uris:
        path = Path(re.sub(r"\\(.)", r"\1", local_path(uri).as_posix()))
        kind = None
        if not is_remote(uri) and path.is_file():
            try:
                with opened_parquet(path) as file:
                    kind = tuple(zip(file.schema_arrow.names, map(str, file.schema_arrow.types), strict=True))
            except RunFormatError as error:
                problems.problems += error.problems
        groups.setdefault(kind, []).append(uri)
    problems.raise_if_any()
    return list(groups.values())


def _name_of(uri: str) -> str:
    """The last part of a URI that is no pattern, without its ending."""
    parts = [part for part in uri.partition("://")[2].split("/") if part and not re.search(r"[*?\[{]", part)]
    return re.sub(r"\.parquet$", "", parts[-1]) if parts else "run"


def _different(names: Sequence[str]) -> Iterator[str]:
    """The names, numbered where two are equal."""
    is_numbered = len(set(names)) < len(names)
    return (f"{name}-{number}" if is_numbered else name for number, name in enumerate(names, start=1))
