"""Carry files that name queries by another rule of ids over to the ids of a test set: all of them, or none.

Runs and their logs, journals, baselines, histories and the metadata beside a set. A file that has the ids of the set is left
as it is, so that the job can be repeated. Each file is read and rewritten in `rewritten_ids`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from cranfield.errors import CranfieldError, InputError, Problem, UsageError
from cranfield.formats.io.files import STDIN, read_bytes, refusal, shown, write_bytes
from cranfield.model import IdRule
from cranfield.project.id_renaming import Renaming
from cranfield.project.rewritten_ids import Kind, Rewritten, kind_of, rewrite
from cranfield.words import first_of, n_of

State = Literal["carried over", "unchanged"]
Write = Callable[[Path, Iterable[bytes]], None]


class Carried(NamedTuple):
    """What was done with one file."""

    path: Path
    kind: Kind
    state: State
    rule: IdRule | Literal[""]
    """Rule that it followed; empty where it has the ids of the set already."""
    n_queries: int
    """Ids that were replaced."""
    gone: tuple[str, ...]
    """New ids of queries that the set does not have any more."""

    @property
    def sentence(self) -> str:
        """`run old.jsonl: 50 queries carried over from the rule row`."""
        if self.state == "unchanged":
            return f"{self.kind} {self.path}: has the ids of the set, unchanged"
        what = "lines of the test set" if self.kind == "history" else n_of(self.n_queries, "queries")
        text = f"{self.kind} {self.path}: {what} carried over from the rule {self.rule}"
        return f"{text}; {len(self.gone)} not in the set: {first_of(self.gone)}" if self.gone else text


def migrate_ids(plan: Renaming, paths: Sequence[Path], *, dry_run: bool = False) -> tuple[Carried, ...]:
    """Give files the ids of a set.

    Args:
        plan: from `renaming`.
        paths: files; and folders, in which the files that Cranfield writes are found, runs of TREC too.
        dry_run: write nothing.

    Returns:
        A row for each file.

    Raises:
        InputError: with every file that cannot be carried over; none is written.
        UsageError: a file cannot be written; those that were are as before.
    """
    found: list[tuple[Path, bytes, Rewritten]] = []
    problems: list[Problem] = []
    for path, is_named in _files(paths):
        try:
            data = read_bytes(path, InputError)
            kind = kind_of(path, data)
            if kind is None and is_named:
                expected = "a run, its log, a journal, a baseline, a history or the metadata of a set"
                raise InputError("no file that names queries by id", path=shown(path), expected=expected)
            if kind is not None:
                found.append((path, data, rewrite(path, kind, data, plan)))
        except CranfieldError as error:
            problems += [_placed(problem, path) for problem in error.problems]
    if problems:
        raise InputError(problems)
    if not dry_run:
        _write_all([(path, data, new.data) for path, data, new in found if new.rule is not None])
    return tuple(_row(path, new, plan) for path, _, new in found)


def _placed(problem: Problem, path: Path) -> Problem:
    return problem if problem.path else replace(problem, path=shown(path))


def _row(path: Path, new: Rewritten, plan: Renaming) -> Carried:
    gone = tuple(name for name in new.ids if name not in plan.known) if new.rule is not None else ()
    state: State = "unchanged" if new.rule is None else "carried over"
    return Carried(path, new.kind, state, new.rule or "", len(new.ids) if new.rule is not None else 0, gone)


def _files(paths: Sequence[Path]) -> Iterable[tuple[Path, bool]]:
    """Each file once, with whether it was named itself."""
    seen: set[Path] = set()
    for path in paths:
        if str(path) == STDIN or not path.exists():
            raise UsageError("no such file", path=str(path), expected="a file or a folder")
        inside = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in inside:
            if file.resolve() not in seen:
                seen.add(file.resolve())
                yield file, file == path


def _write_all(files: Sequence[tuple[Path, bytes, bytes]], write: Write = write_bytes) -> None:
    """Write every file; where one cannot be, those before it get their old content again."""
    done: list[tuple[Path, bytes]] = []
    try:
        for path, old, new in files:
            write(path, [new])
            done.append((path, old))
    except OSError as error:
        for written, old in done:
            with suppress(OSError):
                write_bytes(written, [old])
        raise UsageError(refusal(path, error)) from error
