"""A run folder: append-only files of JSON Lines, one a step, with one writer at a time.

A last line without an end, of a process that was killed, is no line: it is removed when the folder is opened for writing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from pydantic import BaseModel, ValidationError

from cranfield.agents.recording import open_whole_lines
from cranfield.errors import InputError, ProblemList, UsageError, shorten
from cranfield.formats.io.files import path_lock, read_bytes, shown, write_text
from cranfield.golden.outcomes import RunManifest
from cranfield.golden.records import SCHEMA_VERSION


class Step(StrEnum):
    """A file of the folder, by its name."""

    CANDIDATES = "00_candidates.jsonl"
    ANSWERS = "01_oracle_answers.jsonl"
    REPORTS = "02_adversary_reports.jsonl"
    AGREEMENTS = "02_agreements.jsonl"
    GATE_FAILURES = "03_validation_failures.jsonl"
    REVIEW_QUEUE = "04_human_review_queue.jsonl"
    REJECTED = "05_rejected.jsonl"
    REVIEW_SAMPLES = "review_samples.jsonl"
    HUMAN_REVIEWS = "human_reviews.jsonl"
    TRANSCRIPTS = "transcripts.jsonl"


MANIFEST = "run.json"
PLAN = "plan.yaml"
FEEDBACK = "feedback.jsonl"
"""Failures that people found in an earlier batch, where there are some."""
CALLS = "calls.jsonl"
"""Answers of models, by their requests: see `agents.kept`."""
AnyRecord = TypeVar("AnyRecord", bound=BaseModel)


def now() -> str:
    """The time in UTC: `2026-11-23T14:05:09Z`."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


class RunFolder:
    """The files of a run. `open` reads; `create` and `writing` may append too, and hold the lock."""

    def __init__(self, path: Path, manifest: RunManifest, files: dict[Step, BinaryIO] | None = None) -> None:
        self.path = path
        self.manifest = manifest
        self._files = files
        """Those that are open for appending; None: the folder is open for reading."""

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """For reading, also while another process writes.

        Raises:
            UsageError: there is no run in this folder.
            InputError: its manifest is damaged, or of another schema.
        """
        if not (path / MANIFEST).is_file():
            hint = "name the folder that `cranfield golden run` printed"
            raise UsageError(
                "no run of a golden set", path=shown(path), expected=f"a folder with {MANIFEST}", hint=hint
            )
        (manifest,) = _records(RunManifest, {None: read_bytes(path / MANIFEST, InputError)}, path / MANIFEST)
        return cls(path, manifest)

    @classmethod
    @contextmanager
    def writing(cls, path: Path) -> Iterator[RunFolder]:
        """For appending; cut last lines are removed.

        Raises:
            UsageError: another process writes in this folder, or there is no run in it.
            InputError: as `open`.
        """
        manifest = cls.open(path).manifest
        files: dict[Step, BinaryIO] = {}
        with ExitStack() as stack:
            try:
                stack.enter_context(path_lock(path, wait=False))
            except BlockingIOError:
                raise UsageError("another process writes in this run folder", path=shown(path)) from None
            try:
                files.update((step, open_whole_lines(path / step)) for step in Step if (path / step).is_file())
                yield cls(path, manifest, files)
            finally:
                for file in files.values():
                    file.close()

    @classmethod
    def create(cls, runs: Path, manifest: RunManifest, plan: str = "") -> Path:
        """Make the folder of a new run: its time and its name.

        Args:
            runs: folder of all runs; made where it is missing.
            manifest: of the run.
            plan: text of the plan, which is copied.

        Returns:
            The folder, to be opened with `writing`.

        Raises:
            UsageError: the name cannot be part of a file name.
        """
        if not re.fullmatch(r"[\w.-]{1,80}", manifest.name):
            expected = "letters, digits, dots, hyphens and underscores, at most 80"
            raise UsageError("the name of a run is part of its folder's", got=shorten(manifest.name), expected=expected)
        stamp = manifest.created_at.replace(":", "-")
        for number in range(1, 1000):
            path = runs / (f"{stamp}-{manifest.name}" + (f"-{number}" if number > 1 else ""))
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            if plan:
                write_text(path / PLAN, [plan])
            # Not `mode="json"`, which loses bytes of names that are no Unicode: those files would not be withheld.
            write_text(path / MANIFEST, [_line(manifest.model_dump(), indent=2)], errors="backslashreplace")
            return path
        raise UsageError("too many runs of this name in one second", path=shown(runs))

    def append(self, step: Step, record: BaseModel | Mapping[str, Any]) -> None:
        """Add a record. When this returns, a kill does not lose it."""
        if self._files is None:
            raise UsageError("this run folder is open for reading", path=shown(self.path))
        if step not in self._files:
            self._files[step] = open_whole_lines(self.path / step)
        data = record.model_dump(mode="json") if isinstance(record, BaseModel) else dict(record)
        # Half a character that a model wrote becomes its escape, which JSON reads back.
        self._files[step].write(_line(data).encode("utf-8", "backslashreplace"))
        self._files[step].flush()

    def read(self, step: Step, model: type[AnyRecord]) -> list[AnyRecord]:
        """All records of a step, in their order; none where its file is missing.

        Raises:
            InputError: with every line that is damaged or of another schema.
        """
        path = self.path / step
        return read_lines(path, model) if path.is_file() else []


def read_lines(path: Path, model: type[AnyRecord]) -> list[AnyRecord]:
    """The records of a file, in their order; a last line without an end is none.

    Raises:
        InputError: with every line that is damaged or of another schema.
    """
    data = read_bytes(path, InputError)
    return _records(model, dict(enumerate(data[: data.rfind(b"\n") + 1].splitlines(), start=1)), path)


def _line(data: Mapping[str, Any], indent: int | None = None) -> str:
    return json.dumps(data, ensure_ascii=False, indent=indent) + "\n"


def _records(model: type[AnyRecord], texts: Mapping[Any, bytes], path: Path) -> list[AnyRecord]:
    """Records by their lines; a file that is one record has no line."""
    problems = ProblemList(InputError)
    found = [_record(model, text, problems, path, line) for line, text in texts.items()]
    problems.raise_if_any()
    return [each for each in found if each is not None]


def _record(
    model: type[AnyRecord], data: bytes, problems: ProblemList, path: Path, line: int | None
) -> AnyRecord | None:
    """A record, or None and its problems."""

    def add(text: str, **fields: str) -> None:
        problems.add(text, path=shown(path), line=line, **fields)

    try:
        found = json.loads(data)
        version = str(found["schema_version"])
    except (ValueError, KeyError, TypeError):
        add("not a record of a run", got=shorten(data))
        return None
    major = SCHEMA_VERSION.partition(".")[0]
    if version.partition(".")[0] != major:
        add("another schema version", expected=f"{major}.x", got=shorten(version))
        return None
    try:
        return model.model_validate(found)
    except ValidationError as error:
        for each in error.errors(include_url=False)[:5]:
            add(f"{'.'.join(map(str, each['loc'])) or 'the record'}: {each['msg']}")
        return None
