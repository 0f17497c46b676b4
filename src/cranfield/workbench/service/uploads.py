"""Uploaded test sets and runs: stored after a process of their own has read them, and refused what reaches beyond them."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from cranfield.base.concurrency.child_process import NotStartedError, TooMuchOutputError, child_process
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import CranfieldError, Problem
from cranfield.workbench.service.children import child_command, reader_environment
from cranfield.workbench.service.runs import temporary_folder
from cranfield.workbench.service.upload_child import UploadOutcome, UploadTask

if TYPE_CHECKING:
    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import RunInfo, SetInfo

MEGABYTE = 1_000_000
_NOT_IN_NAMES = re.compile(r"[^\w.-]+", re.ASCII)
_NOT_IN_REFERENCES = re.compile(r"[@/]")
NAME_CHARS = 80


@dataclass(frozen=True)
class Upload:
    """A file that was sent."""

    stream: BinaryIO
    """Its content, in any format; also packed by gzip or Zstandard, or in a ZIP archive."""
    filename: str = ""
    """As the sender calls it, for messages and for the format."""
    format: str | None = None
    """Name of its format, where the content does not tell."""
    queries: BinaryIO | None = None
    """Texts of the queries of a test set, where its format has none."""


def save_testset(service: Service, name: str, upload: Upload, by: int) -> SetInfo:
    """Store an uploaded test set under a name: a new version, or the one that is there where the content is the same.

    Args:
        service: where it is stored.
        name: of the test set; empty: the one that the file declares, else that of the file.
        upload: the file.
        by: id of the account.

    Raises:
        InputError: with everything that is wrong with the file, or what it may not name.
        UsageError: not a name, or that of a test set of the config.
    """
    from cranfield.workbench.service.runs import unpack_testset

    with _read(service, "testset", upload) as (path, found):
        testset = unpack_testset(path.read_bytes())
        declared = _NOT_IN_REFERENCES.sub("-", testset.name).strip()
        return service.testsets.keep(name.strip() or declared or _stem(upload), testset, format_name=found, by=by)


def save_run(service: Service, name: str, upload: Upload, by: int) -> RunInfo:
    """Store an uploaded run; as `save_testset`."""
    with _read(service, "run", upload) as (path, found):
        return service.runs.add(name.strip() or _stem(upload), path, format_name=found, by=by)


@contextmanager
def _read(service: Service, kind: Literal["testset", "run"], upload: Upload) -> Iterator[tuple[Path, str]]:
    """The file to store, and the name of the format that was read."""
    limits = service.workbench.limits
    with temporary_folder() as folder:
        file = safe_name(upload.filename)
        texts = None if upload.queries is None else f"queries-of-{file}"
        for target, source in ((file, upload.stream), (texts, upload.queries)):
            if target is not None and source is not None:
                with (folder / target).open("xb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)
        n_bytes, n_memory = int(limits.upload_mb * MEGABYTE), limits.upload_memory_mb * MEGABYTE
        task = UploadTask(kind, file, upload.format, texts, n_bytes, limits.rows, limits.queries, n_memory)
        found = read_apart(folder, task, limits.upload_s)
        yield folder / found.file, found.format


def read_apart(folder: Path, task: UploadTask, seconds: float) -> UploadOutcome:
    """Read a file of a folder in a process of its own.

    Raises:
        InputError: with everything that is wrong with the file; it takes too long, or too much memory.
    """
    try:
        status, output = event_loop().run(_ask(folder, task, seconds))
    except TimeoutError:
        raise task.error(f"reading the file takes over {seconds:g} s", path=task.file) from None
    except TooMuchOutputError:
        raise task.error("the file has too many problems to list", path=task.file) from None
    except NotStartedError as error:
        raise CranfieldError(f"the process that reads uploads could not be started: {error}") from None
    if status or not output.strip():
        raise task.error("the file cannot be read: the reader process ended early", path=task.file)
    found = json.loads(output.splitlines()[-1])
    outcome = UploadOutcome(found["file"], found["format"], tuple(found["problems"]))
    if outcome.problems:
        raise task.error([Problem(**{**each, "parameters": tuple(each["parameters"])}) for each in outcome.problems])
    return outcome


async def _ask(folder: Path, task: UploadTask, seconds: float) -> tuple[int, bytes]:
    argv = child_command("cranfield.workbench.service.upload_child", str(folder), json.dumps(asdict(task)))
    async with child_process(argv, cwd=Path("/"), env=reader_environment()) as child, asyncio.timeout(seconds):
        return await child.run(), bytes(child.stdout)


def safe_name(filename: str) -> str:
    """A file name of letters, digits, `.`, `_` and `-` that keeps its ending: it is never a path, an option or `-`."""
    plain = _NOT_IN_NAMES.sub("_", filename.replace("\\", "/").rpartition("/")[2])[-NAME_CHARS:].lstrip(".-_")
    return plain or "upload"


def _stem(upload: Upload) -> str:
    from cranfield.formats.io.files import stem

    return stem(Path(safe_name(upload.filename)))
