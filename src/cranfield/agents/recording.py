"""Recordings: requests with their answers as JSON Lines, and a backend that replays them without a network."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Generic, Protocol, Self, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from cranfield.agents.budget import TYPICAL_BYTES, Budget, Spent, estimate
from cranfield.agents.protocol import (
    TRANSIENT,
    Backend,
    Failure,
    FailureKind,
    ModelAnswer,
    Request,
    Usage,
    read_answer,
    read_failure,
    with_output,
)
from cranfield.base.errors import InputError, ProblemList, UsageError, shorten
from cranfield.formats.io.files import path_lock, read_bytes, shown, write_text
from cranfield.formats.io.validation import ClosedModel
from cranfield.repo.snapshot import Snapshot
from cranfield.repo.tree_state import TreeDifference, TreeState, differences

VERSION = 1
_OF_THE_CONTENT = frozenset({400, 413, 422})
"""Statuses of HTTP that reject what a request says: another time it is rejected again."""
NOT_AN_ANSWER = TRANSIENT | {FailureKind.BUDGET, FailureKind.NOT_RECORDED}
"""Not recorded: another time the answer would be another."""


class Recording:
    """A backend whose answers are appended to a file as they come."""

    def __init__(self, backend: Backend, path: Path) -> None:
        self.backend = backend
        self._file = open_whole_lines(path)

    async def ask(self, request: Request) -> ModelAnswer:
        """Ask, and record the answer."""
        answer = await self.backend.ask(request)
        if is_lasting(answer):
            line = {
                "cranfield_recording": VERSION,
                "digest": request.digest,
                "request": request.record(),
                "answer": answer.record(),
            }
            self._file.write(json.dumps(line, ensure_ascii=True).encode() + b"\n")
            self._file.flush()
        return answer

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def is_lasting(answer: ModelAnswer) -> bool:
    """Whether the same request would get it again: no failure of a server, of the budget, or of the key and the address."""
    failure = answer.failure
    if failure is None:
        return True
    if failure.kind is FailureKind.REJECTED:
        return failure.status in _OF_THE_CONTENT
    return failure.kind not in NOT_AN_ANSWER


def open_whole_lines(path: Path) -> BinaryIO:
    """For appending; a last line without an end, of a process that was killed, is removed."""
    path.touch()
    file = path.open("r+b")
    file.truncate(file.read().rfind(b"\n") + 1)
    file.seek(0, 2)
    return file


class Replaying:
    """A backend that answers from a recording, and refuses every other request."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[str, list[Mapping[str, Any]]] = {}
        problems = ProblemList(InputError)
        for number, text in enumerate(_lines(path), start=1):
            try:
                line = _checked(json.loads(text))
                self._lines.setdefault(line["digest"], []).append(line)
            except (ValueError, KeyError, TypeError):
                problems.add("not a valid line of a recording", path=str(path), line=number, got=shorten(text))
        problems.raise_if_any()

    async def ask(self, request: Request) -> ModelAnswer:
        """The recorded answer; of several to one request the first, then the second, and the last for ever."""
        lines = self._lines.get(request.digest)
        if not lines:
            failure = Failure(FailureKind.NOT_RECORDED, self._why_not(request))
            return ModelAnswer(failure=failure, usage=Usage(requests=0, input=0, output=0))
        line = lines.pop(0) if len(lines) > 1 else lines[0]
        try:
            return read_answer(line["answer"], request)
        except (KeyError, TypeError, ValueError):
            raise InputError(
                "an answer of the recording is damaged", path=str(self.path), got=shorten(line["digest"])
            ) from None

    def _why_not(self, request: Request) -> str:
        wanted = request.record()
        for recorded in (lines[0]["request"] for lines in self._lines.values()):
            differing = [name for name in wanted if recorded.get(name) != wanted[name]]
            if recorded.get("messages") == wanted["messages"]:
                return f"{self.path} contains this request with a different value of: {', '.join(differing)}"
        return (
            f"{self.path} does not contain this request (digest {request.digest}); {len(self._lines)} requests "
            "are recorded"
        )


def _checked(line: Mapping[str, Any]) -> Mapping[str, Any]:
    if line["cranfield_recording"] != VERSION:
        raise ValueError
    return line


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the recording cannot be read: {error}", path=str(path)) from None


class Scripted:
    """Answers by a function of the request: with text, or with a whole answer."""

    def __init__(self, script: Callable[[Request], str | ModelAnswer]) -> None:
        self.script = script
        self.requests: list[Request] = []

    async def ask(self, request: Request) -> ModelAnswer:
        """The answer of the script; text is validated by the schema as that of a model."""
        self.requests.append(request)
        answer = self.script(request)
        if isinstance(answer, ModelAnswer):
            return answer
        tokens = estimate(request, TYPICAL_BYTES)
        usage = Usage(input=tokens.input, cache_read=0, output=max(1, len(answer) // TYPICAL_BYTES))
        return with_output(ModelAnswer(text=answer, usage=usage, model=request.model), request)


KEPT_VERSION = 1


class Kept:
    """A backend that takes an answer of its file, and asks only for what the file does not have.

    A line holds the digest of the request and the answer: the requests of an agent repeat the whole conversation, which
    stands in its transcript. The same request sent twice has two answers.
    """

    def __init__(self, path: Path, backend: Backend | None = None, *, keeps_rejections: bool = True) -> None:
        """Open the file.

        Args:
            path: of the answers; made where it is missing and there is a backend.
            backend: None: no request is sent, and nothing is written.
            keeps_rejections: whether a rejection that the same request would get again is an answer; False: such requests
                are sent again. A reply that cannot be read is always one: the conversation went on after it.

        Raises:
            InputError: lines of the file are not of this kind.
        """
        self.path = path
        self.backend = backend
        self.n_kept = 0
        """Answers that came from the file."""
        self._file = None if backend is None else open_whole_lines(path)
        self._keeps_rejections = keeps_rejections
        self._answers: dict[str, list[Mapping[str, Any]]] = {}
        self._failed: list[Mapping[str, Any]] = []
        for line in _read(path):
            if self._is_answer(line["answer"]["failure"]):
                self._answers.setdefault(line["digest"], []).append(line)
            else:
                self._failed.append(line)

    def usages(self) -> list[tuple[str, Usage]]:
        """Model and usage of every line of the file that was not taken yet; what was not reported is what was reserved for it."""
        found = (line for lines in (*self._answers.values(), self._failed) for line in lines)
        return [(str(line["model"]), _counted(line)) for line in found]

    def salted(self, salt: str) -> Backend:
        """A backend over the same file whose answers no other salt gets, also where the requests are the same."""
        return _Salted(self, salt)

    async def ask(self, request: Request, salt: str = "") -> ModelAnswer:
        """The next answer of the file to this request; or ask, and keep the answer."""
        digest = request.digest if not salt else "sha256:" + sha256(f"{salt}\0{request.digest}".encode()).hexdigest()
        if lines := self._answers.get(digest):
            self.n_kept += 1
            return replace(self._answer(lines.pop(0), request), is_kept=True)
        if self.backend is None or self._file is None:
            message = f"{self.path} does not contain this request (digest {digest})"
            failure = Failure(FailureKind.NOT_RECORDED, message)
            return ModelAnswer(failure=failure, usage=Usage(requests=0, input=0, output=0))
        # A replay keeps the answers of salts apart as well.
        backend = self.backend.salted(salt) if salt and isinstance(self.backend, Kept) else self.backend
        answer = await backend.ask(request)
        usage = answer.usage
        if is_lasting(answer) or usage.unmeasured or usage.total:
            line: dict[str, Any] = {
                "cranfield_calls": KEPT_VERSION,
                "digest": digest,
                "model": request.model,
                "answer": answer.record(),
            }
            if usage.unmeasured or usage.total is None:
                line["reserved"] = asdict(estimate(request))
            self._file.write(json.dumps(line, ensure_ascii=True).encode() + b"\n")
            self._file.flush()
        return answer

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _is_answer(self, failure: Mapping[str, Any] | None) -> bool:
        found = read_failure(failure)
        if found is not None and found.kind is FailureKind.REJECTED and not self._keeps_rejections:
            return False
        return is_lasting(ModelAnswer(failure=found))

    def _answer(self, line: Mapping[str, Any], request: Request) -> ModelAnswer:
        try:
            return read_answer(line["answer"], request)
        except (KeyError, TypeError, ValueError):
            got = shorten(line["digest"])
            raise InputError("an answer is damaged", path=str(self.path), got=got) from None


def charge(budget: Budget, usages: Sequence[tuple[str, Usage]]) -> None:
    """Count what kept answers took."""
    for model, usage in usages:
        budget.spent.add(Spent.of(budget.prices, model, usage))


class _Salted:
    def __init__(self, kept: Kept, salt: str) -> None:
        self._kept = kept
        self._salt = salt

    async def ask(self, request: Request) -> ModelAnswer:
        return await self._kept.ask(request, self._salt)


def _counted(line: Mapping[str, Any]) -> Usage:
    """The usage of a line, as the budget counted it when it was sent: a request that reported none as what was reserved."""
    usage = Usage(**line["answer"]["usage"])
    if not usage.unmeasured and usage.total is not None:
        return usage
    reserved = line["reserved"]
    n = usage.unmeasured or 1
    parts = {part: (getattr(usage, part) or 0) + n * int(reserved[part]) for part in ("input", "output")}
    return replace(usage, **parts)


def _read(path: Path) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    problems = ProblemList(InputError)
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"the answers cannot be read: {error.strerror}", path=str(path)) from None
    for number, text in enumerate(lines, start=1):
        try:
            found.append(_checked_line(json.loads(text)))
        except (ValueError, KeyError, TypeError):
            problems.add("not a valid line of a file of stored answers", path=str(path), line=number, got=shorten(text))
    problems.raise_if_any()
    return found


def _checked_line(line: Mapping[str, Any]) -> Mapping[str, Any]:
    if line["cranfield_calls"] != KEPT_VERSION:
        raise ValueError
    _counted(line)
    read_failure(line["answer"]["failure"])
    hash(line["digest"])
    return line


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
