"""The job behind `cranfield golden check`: votes on the rows of a set, and the set corrected by them."""

from __future__ import annotations

import difflib
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path

from cranfield.agents.budget import Budget
from cranfield.agents.connect import Connection, connected
from cranfield.agents.kept import Kept, charge
from cranfield.agents.loop import Transcript
from cranfield.agents.protocol import Backend
from cranfield.agents.record_folder import now
from cranfield.agents.settings import ModelSettings
from cranfield.agents.tools.source import SourceTools
from cranfield.concurrency.loop import event_loop
from cranfield.errors import TestSetError
from cranfield.formats.io.files import read_bytes, write_text
from cranfield.golden.folder import Step
from cranfield.golden.models import ByModel
from cranfield.golden.outcomes import TranscriptLine
from cranfield.golden.parsed import ParsedSource
from cranfield.golden.role_prompts import RolePrompts
from cranfield.golden.roles import Role
from cranfield.golden.row_votes import CheckedRows, Checkers, CheckResult, check_rows
from cranfield.golden.rows import (
    CHANGES,
    FOR_PEOPLE,
    CheckedRow,
    Row,
    RowState,
    corrected,
    queries_without_rows,
    rows_of,
)
from cranfield.model import TestSet
from cranfield.project.loading import read_stored
from cranfield.repo.secret_files import find_withheld
from cranfield.repo.source import source_snapshot
from cranfield.reporting import Document
from cranfield.reporting.documents.golden_sets import rows_document
from cranfield.results import to_jsonable
from cranfield.testsets.edit import recorded
from cranfield.testsets.storage import lock_testset, save
from cranfield.words import first_of, n_of

CALLS, RESULTS, QUEUE, CORRECTIONS = "calls.jsonl", "rows.jsonl", "for_people.jsonl", "corrections.diff"
NO_NEWLINE = "\\ No newline at end of file"
"""As `diff` and `patch` have it."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Who votes, and how often."""

    models: tuple[str, ...]
    """`provider:name`; they take turns."""
    votes: int = 3
    base_url: str = ""
    api_key_env: str = ""
    tokens: int | None = None
    """That all votes may use together."""
    concurrency: int = 4
    allow_dirty: bool = False
    """Accept a repository with uncommitted changes."""
    replay: Path | None = None
    source: Backend | None = None
    """Answers in the place of every model, for tests."""
    on_row: Callable[[CheckedRow], None] = lambda _: None
    """Called with each row as it is decided."""


@dataclass(frozen=True)
class RowReport:
    """What the check of a set came to."""

    result: CheckResult
    document: Document
    diff: str
    """Of the file of the set; empty where nothing is corrected."""
    written: tuple[Path, ...]

    @property
    def is_confirmed(self) -> bool:
        """Whether every row is."""
        return all(each.state is RowState.CONFIRMED for each in self.result.checked)


def check_set(
    path: Path,
    repo: Path,
    out: Path,
    options: CheckOptions,
    *,
    at: str | None = None,
    today: date | None = None,
    testset_format: str | None = None,
    apply: bool = False,
) -> RowReport:
    """Check every row of a set, and correct the set by the majorities.

    Args:
        path: of the set.
        repo: folder of the repository that it is about.
        out: folder of answers and results; answers that are there are not asked for again.
        options: of the votes.
        at: commit; None is HEAD.
        testset_format: of the set, where its content does not tell.
        apply: write the corrections into the file of the set.
        today: date of the corrections; None: the present day.

    Raises:
        TestSetError: the set cannot be read, has no rows, or cannot be written in its format.
        UsageError: there is no such repository or commit, or a connection cannot be used.
    """
    with lock_testset(path):
        testset = read_stored(path, testset_format)
        rows = rows_of(testset)
        if not rows:
            raise TestSetError(
                "no row to check", path=str(path), expected="queries that expect spans, entities or files"
            )
        without = (path, out, options.replay)
        source = ParsedSource(source_snapshot(repo, at, allow_dirty=options.allow_dirty, without=without))
        out.mkdir(parents=True, exist_ok=True)
        result = event_loop().run(_votes(rows, source, out, options))
        fixed = corrected(testset, result.checked)
        diff = "" if fixed.targets == testset.targets else _diff(path, fixed, testset_format)
        snapshot = source.snapshot
        written = _write_results(out, result, diff)
        changes = snapshot.uncommitted
        notes = [*filter(None, [changes]), *_notes(testset, source), *snapshot.notes]
        if apply and diff:
            n = sum(each.state in CHANGES for each in result.checked)
            done = ". ".join(filter(None, [changes, _sentence(n, options)]))
            checked = f"When rows were checked: {changes}." if changes else ""
            uncommitted = " ".join(dict.fromkeys(filter(None, [fixed.meta.uncommitted, checked])))
            fixed = replace(fixed, meta=replace(fixed.meta, uncommitted=uncommitted))
            saved = save(recorded(fixed, done, today or _present_day()), path, format=testset_format)
            written += saved.files
            notes += saved.notes
        elif diff:
            notes.append("the corrections are not written; --apply writes them")
        return RowReport(result, rows_document(CheckedRows.of(testset, result, notes)), diff, written)


async def _votes(rows: Sequence[Row], source: ParsedSource, out: Path, options: CheckOptions) -> CheckResult:
    """Put the rows to the vote, and keep every answer; those that are there are taken, and count in the budget."""
    settings = [ModelSettings(model=model, concurrency=options.concurrency) for model in dict.fromkeys(options.models)]
    tools = SourceTools(source.snapshot, withheld=find_withheld(source.snapshot).names)
    prompts, lines = RolePrompts.load(), list[str]()

    def keep(row: Row, number: int, transcript: Transcript) -> None:
        place = {
            "query_id": f"{row.query_id} {row.target.label}",
            "role": Role.CHECKER,
            "vote": number + 1,
            "at": now(),
        }
        lines.append(json.dumps(TranscriptLine.model_validate(place | transcript.record()).model_dump()) + "\n")

    async with AsyncExitStack() as stack:
        stack.push_async_callback(tools.aclose)
        stack.callback(lambda: write_text(out / Step.TRANSCRIPTS, lines))
        if options.replay is not None:
            checkers = Checkers(settings, options.votes, Kept(options.replay), tools, prompts, keep, options.on_row)
            return await check_rows(rows, source, checkers)
        backends: dict[str, Backend] = {}
        kept = Kept(out / CALLS, ByModel(backends))
        stack.callback(kept.close)
        budget = Budget(options.tokens)
        charge(budget, kept.usages())
        for each in settings:
            connection = Connection(each.model, options.base_url, options.api_key_env)
            backends[each.model] = await stack.enter_async_context(connected(connection, budget, options.source))
        checkers = Checkers(settings, options.votes, kept, tools, prompts, keep, options.on_row)
        return await check_rows(rows, source, checkers)


def _write_results(out: Path, result: CheckResult, diff: str) -> tuple[Path, ...]:
    """A line for each row, those that a person decides on in a file of their own, and the corrections."""
    files = {RESULTS: result.checked, QUEUE: [each for each in result.checked if each.state in FOR_PEOPLE]}
    for name, rows in files.items():
        write_text(out / name, (json.dumps(to_jsonable(each.record), ensure_ascii=False) + "\n" for each in rows))
    write_text(out / CORRECTIONS, [diff])
    return tuple(out / name for name in (*files, CORRECTIONS))


def _notes(testset: TestSet, source: ParsedSource) -> Iterator[str]:
    where = f"commit {source.snapshot.commit[:12]}" if source.snapshot.commit else "the folder"
    yield f"checked against {where}"
    if others := queries_without_rows(testset):
        yield f"not checked, because they expect no place: {n_of(len(others), 'queries')} ({first_of(others)})"


def _sentence(n: int, options: CheckOptions) -> str:
    return f"{n_of(n, 'rows')} corrected by {options.votes} votes of {', '.join(options.models)}"


def _present_day() -> date:
    return datetime.now().astimezone().date()


def _diff(path: Path, fixed: TestSet, testset_format: str | None) -> str:
    """What the corrections change in the file, as a unified diff."""
    with tempfile.TemporaryDirectory(prefix="cranfield-") as folder:
        target = Path(folder) / path.name
        save(fixed, path, target, format=testset_format)
        old, new = (read_bytes(each, TestSetError).decode().splitlines(keepends=True) for each in (path, target))
    lines = difflib.unified_diff(old, new, str(path), str(path))
    return "".join(line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}\n" for line in lines)
