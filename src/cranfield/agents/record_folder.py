"""Folders of records: append-only files of JSON Lines and a manifest, with one writer at a time.

A last line without an end, of a process that was killed, is no line: it is removed when the folder is opened for writing.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Generic, Protocol, Self, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from cranfield.agents.recording import open_whole_lines
from cranfield.base.errors import InputError, ProblemList, UsageError, shorten
from cranfield.formats.io.files import path_lock, read_bytes, shown, write_text
from cranfield.formats.io.validation import ClosedModel
from cranfield.repo.snapshot import Snapshot
from cranfield.repo.tree_state import TreeDifference, TreeState, differences

MANIFEST = "run.json"
PLAN = "plan.yaml"
CALLS = "calls.jsonl"
"""Answers of models, by their requests: see `agents.kept`."""
AnyRecord = TypeVar("AnyRecord", bound=BaseModel)


class Manifest(Protocol):
    """What every manifest has."""

    @property
    def name(self) -> str:
        """Part of the name of the folder."""
        ...

    @property
    def created_at(self) -> str:
        """In UTC."""
        ...

    def model_dump(self) -> dict[str, Any]:
        """As pydantic gives it."""
        ...


AnyManifest = TypeVar("AnyManifest", bound=Manifest)


def now() -> str:
    """The time in UTC: `2026-11-23T14:05:09Z`."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


class RecordFolder(ABC, Generic[AnyManifest]):
    """The files of a run. `open` reads; `writing` may append too, and holds the lock."""

    files: ClassVar[type[StrEnum]]
    """Append-only files, by their names."""
    schema_version: ClassVar[str]

    def __init__(self, path: Path, manifest: AnyManifest, files: dict[StrEnum, BinaryIO] | None = None) -> None:
        self.path = path
        self.manifest = manifest
        self._files = files
        """Those that are open for appending; None: the folder is open for reading."""

    @classmethod
    @abstractmethod
    def read_manifest(cls, path: Path) -> AnyManifest:
        """The manifest of a folder, by `manifest_of`."""

    @classmethod
    def open(cls, path: Path) -> Self:
        """For reading, also while another process writes.

        Raises:
            UsageError: there is no run in this folder.
            InputError: its manifest is damaged, or of another schema.
        """
        return cls(path, cls.read_manifest(path))

    @classmethod
    @contextmanager
    def writing(cls, path: Path) -> Iterator[Self]:
        """For appending; cut last lines are removed.

        Raises:
            UsageError: another process writes in this folder, or there is no run in it.
            InputError: as `open`.
        """
        manifest = cls.read_manifest(path)
        files: dict[StrEnum, BinaryIO] = {}
        with ExitStack() as stack:
            try:
                stack.enter_context(path_lock(path, wait=False))
            except BlockingIOError:
                raise UsageError("another process is writing to this run folder", path=shown(path)) from None
            try:
                files.update((step, open_whole_lines(path / step)) for step in cls.files if (path / step).is_file())
                yield cls(path, manifest, files)
            finally:
                for file in files.values():
                    file.close()

    @classmethod
    def create(cls, runs: Path, manifest: AnyManifest, others: Mapping[str, bytes] | None = None) -> Path:
        """Make the folder of a new run: its time and its name.

        Args:
            runs: folder of all runs; made where it is missing.
            manifest: of the run.
            others: files that are written first, by their paths in the folder: the plan.

        Returns:
            The folder, to be opened with `writing`.

        Raises:
            UsageError: the name cannot be part of a file name.
        """
        if not re.fullmatch(r"[\w.-]{1,80}", manifest.name):
            expected = "letters, digits, dots, hyphens and underscores, at most 80"
            raise UsageError("the run name is used in the folder name", got=shorten(manifest.name), expected=expected)
        stamp = manifest.created_at.replace(":", "-")
        for number in range(1, 1000):
            path = runs / (f"{stamp}-{manifest.name}" + (f"-{number}" if number > 1 else ""))
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            for name, data in (others or {}).items():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                (path / name).write_bytes(data)
            # Not `mode="json"`, which loses bytes of names that are no Unicode: those files would not be withheld.
            write_text(path / MANIFEST, [_line(manifest.model_dump(), indent=2)], errors="backslashreplace")
            return path
        raise UsageError("too many runs with this name in one second", path=shown(runs))

    def append(self, step: StrEnum, record: BaseModel | Mapping[str, Any]) -> None:
        """Add a record. When this returns, a kill does not lose it."""
        if self._files is None:
            raise UsageError("this run folder is open for reading", path=shown(self.path))
        if step not in self._files:
            self._files[step] = open_whole_lines(self.path / step)
        data = record.model_dump(mode="json") if isinstance(record, BaseModel) else dict(record)
        # Half a character that a model wrote becomes its escape, which JSON reads back.
        self._files[step].write(_line(data).encode("utf-8", "backslashreplace"))
        self._files[step].flush()

    def read(self, step: StrEnum, model: type[AnyRecord]) -> list[AnyRecord]:
        """All records of a step, in their order; none where its file is missing.

        Raises:
            InputError: with every line that is damaged or of another schema.
        """
        path = self.path / step
        return read_lines(path, model, self.schema_version) if path.is_file() else []


def manifest_of(path: Path, model: type[AnyRecord], schema_version: str, *, missing: str, hint: str) -> AnyRecord:
    """The manifest of a folder.

    Args:
        path: of the folder.
        model: of the manifest.
        schema_version: of all records.
        missing: message where there is none.
        hint: where to look then.

    Raises:
        UsageError: there is no run in this folder.
        InputError: the manifest is damaged, or of another schema.
    """
    if not (path / MANIFEST).is_file():
        raise UsageError(missing, path=shown(path), expected=f"a folder with {MANIFEST}", hint=hint)
    texts = {None: read_bytes(path / MANIFEST, InputError)}
    return _records(model, texts, path / MANIFEST, schema_version)[0]


def read_lines(path: Path, model: type[AnyRecord], schema_version: str) -> list[AnyRecord]:
    """The records of a file, in their order; a last line without an end is none.

    Raises:
        InputError: with every line that is damaged or of another schema.
    """
    data = read_bytes(path, InputError)
    lines = dict(enumerate(data[: data.rfind(b"\n") + 1].splitlines(), start=1))
    return _records(model, lines, path, schema_version)


def _line(data: Mapping[str, Any], indent: int | None = None) -> str:
    return json.dumps(data, ensure_ascii=False, indent=indent) + "\n"


def _records(model: type[AnyRecord], texts: Mapping[Any, bytes], path: Path, schema_version: str) -> list[AnyRecord]:
    """Records by their lines; a file that is one record has no line."""
    problems = ProblemList(InputError)
    found = []
    for line, text in texts.items():
        add = partial(problems.add, path=shown(path), line=line)
        found.append(_record(model, text, schema_version, add))
    problems.raise_if_any()
    return [each for each in found if each is not None]


def _record(model: type[AnyRecord], data: bytes, schema_version: str, add: Callable[..., None]) -> AnyRecord | None:
    """A record, or None and its problems."""
    try:
        found = json.loads(data)
        version = str(found["schema_version"])
    except (ValueError, KeyError, TypeError):
        add("not a record of a run", got=shorten(data))
        return None
    if version != schema_version:
        add("another schema version", expected=schema_version, got=shorten(version))
        return None
    try:
        return model.model_validate(found)
    except ValidationError as error:
        for each in error.errors(include_url=False)[:5]:
            add(f"{'.'.join(map(str, each['loc'])) or 'the record'}: {each['msg']}")
        return None


TREE = "tree.json"
"""The file: every changed file and every ignored one with its digest, by which a later state is compared."""
MAX_NAMED = 20
_WHOLE = TypeAdapter(TreeState)


class TreeRecord(ClosedModel):
    """The folder of a repository when a run began, or another call read it."""

    uncommitted: str = ""
    """A sentence: how many files are not as in the commit, and the first of them; empty: none."""
    n_uncommitted: int = 0
    files: tuple[str, ...] = ()
    """The first 20 of them: `modified src/a.py`."""
    digest: str = ""
    """SHA-256 of all that differs from the commit, ignored files and submodules; without git of all files. Empty: the folder
    was not looked at."""
    notes: tuple[str, ...] = ()
    """What else the folder has otherwise than the commit."""

    @classmethod
    def of(cls, snapshot: Snapshot | None) -> Self:
        """The state that a snapshot has, in short; None: there is no repository."""
        tree = None if snapshot is None else snapshot.tree
        if tree is None:
            return cls()
        changed = tree.uncommitted
        return cls(
            uncommitted=tree.sentence,
            n_uncommitted=len(changed),
            files=changed[:MAX_NAMED],
            digest=tree.digest,
            notes=tree.notes,
        )


def tree_files(snapshot: Snapshot | None) -> dict[str, bytes]:
    """The file of the state that a snapshot has, for the folder of a run; nothing without one."""
    if snapshot is None or snapshot.tree is None:
        return {}
    return {TREE: json.dumps(asdict(snapshot.tree), indent=1).encode()}


def left_out_of(folder: Path, repo: Path) -> tuple[Path, ...]:
    """What was not looked at when a run began; nothing where its state cannot be read, which `changed_since` refuses."""
    try:
        before = _WHOLE.validate_json((folder / TREE).read_bytes())
    except (OSError, ValidationError):
        return ()
    return tuple(repo / name for name in before.left_out)


def changed_since(folder: Path, recorded: TreeRecord, now: TreeState | None) -> TreeDifference:
    """How a repository differs from when a run began; nothing where the run did not look at it.

    Args:
        folder: of the run.
        recorded: in its manifest.
        now: the state of the repository.

    Raises:
        InputError: the file of the state is missing, damaged, or not the one that was recorded.
    """
    if now is None or not recorded.digest:
        return TreeDifference()
    path = folder / TREE
    try:
        before = _WHOLE.validate_json(read_bytes(path, InputError))
    except ValidationError as error:
        raise InputError("not the state of a repository", path=shown(path), got=str(error.errors()[0]["msg"])) from None
    if before.digest != recorded.digest:
        raise InputError("not the initial state of the run", path=shown(path), expected=recorded.digest)
    return differences(before, now)


def require_same_tree(
    folder: Path,
    recorded: TreeRecord,
    now: TreeState | None,
    *,
    allow_dirty: bool,
    names_commit: bool = False,
) -> None:
    """Refuse a repository whose folder is not as when a run began.

    Args:
        folder: of the run.
        recorded: in its manifest.
        now: the state of the repository.
        allow_dirty: accept that ignored files differ.
        names_commit: whether the call could name the commit, so that the folder is not read.

    Raises:
        UsageError: with the first files that differ, and how many there are.
        InputError: as `changed_since`.
    """
    found = changed_since(folder, recorded, now)
    if found.source or (found.ignored and not allow_dirty):
        where = f" on commit {now.commit[:12]}" if now is not None and now.commit else ""
        hint = f"restore that state{where}, or start a new run"
        if not found.source:
            hint += "; continue with {allow_dirty} if only ignored files differ"
        if names_commit and now is not None and now.commit:
            hint += f"; {{at={now.commit[:12]}}} reads only the commit"
        n = len(found.source) + len(found.ignored)
        raise UsageError(
            f"the repository has changed since the run began ({n}): {found.text}",
            path=shown(folder),
            hint=hint,
            parameters=("allow_dirty", "at"),
        )
