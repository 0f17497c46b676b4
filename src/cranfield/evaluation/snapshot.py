"""A snapshot: the first results of every query as text for people to read and for git to keep, and what changed since one.

    # Snapshot of results: the first 2 of each query; * marks an expected one. Written by Cranfield.
    # test set: shop
    # system: plain
    # written anew by: cranfield snapshot --system plain -k 2 --accept

    q1  red shoes
      1 * a  Leather shoes
      2   b  Canvas shoes
      expected at rank 7: g
      expected, not found: z

A block for each query, apart by blank lines. Where queries forbid results, `!` marks one that must not be found; the parameters of a
query follow its text. Columns are apart by two blanks, which no id and no text has. Nothing in it
depends on the day, on the machine or on how long a system took.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from cranfield.base.errors import InputError
from cranfield.base.words import printable, shown_id
from cranfield.evaluation.evaluate import ExpectedItemsByQuery
from cranfield.evaluation.values import Evaluation
from cranfield.model import Hit, Outcome, Scalar
from cranfield.model.query import negative_of, params_text
from cranfield.model.results import Record
from cranfield.ranking.matching.place import place_name

DEPTH = 5
"""Results of each query, by default."""
FIRST_LINE = "# Snapshot of results:"
GAP = "  "
"""Between columns."""
NOTHING_EXPECTED = "nothing is expected"
NOT_JUDGED = "not judged"
NO_RESULTS = "no results"
NO_ANSWER = "no answer in the run"
FAILED = "failed"
_HEADER = re.compile(rf"{FIRST_LINE} the first (\d{{1,9}}) of each query(, with scores)?;.*")
_MARKED = re.compile(r" *\d+ ([*!]) (.*?)(?:  .*)?")
"""A line of a result that is expected, or must not be found; its mark and its place are the groups."""


class SnapshotAction(StrEnum):
    """What is done with the file of a snapshot."""

    WRITE = "write"
    """It is written where there is none, and compared where there is one."""
    CHECK = "check"
    """It is compared."""
    ACCEPT = "accept"
    """It is replaced."""


class SnapshotStatus(StrEnum):
    """What a snapshot came to."""

    WRITTEN = "written"
    """There was no file."""
    SAME = "unchanged"
    DIFFERENT = "changed"
    """The file is as it was."""
    ACCEPTED = "accepted"
    """It differed, and was replaced."""


@dataclass(frozen=True, slots=True)
class ShownResult:
    """A result among the first."""

    rank: int
    doc: str
    title: str | None
    score: float | None
    expected: bool
    forbidden: bool = False
    """Whether it must not be found."""


@dataclass(frozen=True, slots=True)
class ExpectedBelow:
    """An expected item that is not among the first results."""

    item: str
    rank: int | None
    """None: not found."""


@dataclass(frozen=True, slots=True)
class QuerySnapshot:
    """A query with its first results."""

    query: str
    text: str
    notes: tuple[str, ...]
    """That nothing is expected, that there are no results, why the query failed."""
    results: tuple[ShownResult, ...]
    below: tuple[ExpectedBelow, ...]
    params: Mapping[str, Scalar] = field(default_factory=dict)
    """Its own parameters for the system."""


@dataclass(frozen=True, slots=True)
class SnapshotChanges:
    """How a snapshot differs from one that was kept; queries by their headings."""

    changed: tuple[str, ...]
    added: tuple[str, ...]
    """Queries that the kept snapshot does not have."""
    removed: tuple[str, ...]
    lost: tuple[tuple[str, str], ...]
    """Query and result: expected ones that are no longer among the first results of a query that both have."""
    won: tuple[tuple[str, str], ...]
    forbidden: tuple[tuple[str, str], ...]
    """Query and result: those that must not be found, and are now among the first results."""
    reordered: bool
    """The same queries, in another order."""
    diff: str
    """Unified diff; a hunk is a query."""

    @property
    def is_same(self) -> bool:
        """Whether nothing changed."""
        return not (self.changed or self.added or self.removed or self.reordered)


@dataclass(frozen=True, slots=True)
class SnapshotResult:
    """One system on one test set, and its file."""

    testset: str
    system: str
    path: str
    """As it was given."""
    k: int
    status: SnapshotStatus
    n_failed: int
    """Queries that failed."""
    changes: SnapshotChanges | None
    """Since the file; None: there was none."""
    queries: tuple[QuerySnapshot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSet(Record):
    """The snapshots of a call."""

    kind: Literal["snapshot"] = "snapshot"
    snapshots: tuple[SnapshotResult, ...]

    @property
    def differs(self) -> bool:
        """Whether a file is not what would be written, and was not replaced."""
        return any(each.status is SnapshotStatus.DIFFERENT for each in self.snapshots)


def query_snapshots(evaluation: Evaluation, k: int) -> tuple[QuerySnapshot, ...]:
    """The first results of each query of a test set, in its order.

    Args:
        evaluation: of a run; which results are expected is what its ranking says. It keeps k results or more.
        k: results of each query.
    """
    testset, ranking, expected = evaluation.testset, evaluation.ranking, ExpectedItemsByQuery(evaluation)
    is_judged = any(map(testset.is_judged, testset.query_ids))
    found = []
    for query in testset.queries:
        items = expected.get(query.id, ())
        names = {item.name for item in items}
        hits = itertools.islice(ranking.top.get(query.id, ()), k)
        place = evaluation.index[query.id]
        results = tuple(
            ShownResult(
                hit.rank,
                place_name(Hit(hit.id, span=hit.span)),
                hit.title,
                hit.score,
                expected=hit.item in names,
                forbidden=hit.forbidden,
            )
            for hit in hits
        )
        outcome, notes = ranking.outcomes[place], []
        if negative_of(query) is not None:
            notes.append(NOTHING_EXPECTED)
        elif is_judged and not testset.is_judged(query.id):
            notes.append(NOT_JUDGED)
        if outcome.is_failure:
            notes.append(f"{FAILED}: {outcome.value}: {ranking.reasons.get(query.id) or 'no reason'}")
        elif not results:
            notes.append(NO_ANSWER if outcome is Outcome.MISSING else NO_RESULTS)
        below = tuple(ExpectedBelow(item.name, item.rank) for item in items if item.rank is None or item.rank > k)
        in_order = sorted(below, key=lambda each: (each.rank is None, each.rank))
        found.append(QuerySnapshot(query.id, query.text, tuple(notes), results, tuple(in_order), query.params))
    return tuple(found)


def snapshot_text(
    queries: Sequence[QuerySnapshot],
    *,
    testset: str,
    system: str,
    k: int,
    command: str,
    scores: bool = False,
    forbids: bool = False,
) -> str:
    """A snapshot as text.

    Args:
        queries: in order.
        testset: its name.
        system: its name.
        k: results of each query.
        command: that writes it anew.
        scores: with the score of each result.
        forbids: whether a query of the test set forbids results.
    """
    marks = "* marks an expected one" + (", ! one that must not be found" if forbids else "")
    head = [
        f"{FIRST_LINE} the first {k} of each query{', with scores' if scores else ''}; {marks}. Written by Cranfield.",
        f"# test set: {printable(testset)}",
        f"# system: {printable(system)}",
        f"# written anew by: {printable(command)}",
    ]
    return "\n\n".join("\n".join(lines) for lines in (head, *(_block(each, k, scores) for each in queries))) + "\n"


def _block(each: QuerySnapshot, k: int, scores: bool) -> list[str]:  # noqa: FBT001 - two callers, both here
    """The lines of a query."""
    text = _column(printable(each.text))
    heading = (_id(each.query), "" if each.text == each.query else text, _column(printable(params_text(each.params))))
    lines = [GAP.join(filter(None, heading))]
    lines += [f"{GAP}{printable(note)}" for note in each.notes]
    room = len(str(k))
    for result in each.results:
        cells = [_id(result.doc)]
        cells += [f"{result.score:.6g}"] if scores and result.score is not None else []
        cells += [_column(printable(result.title))] if result.title else []
        lines.append(f"{GAP}{result.rank:>{room}} {_mark(result)} {GAP.join(cells)}".rstrip())
    lines += [f"{GAP}expected at rank {item.rank}: {_id(item.item)}" for item in each.below if item.rank is not None]
    lines += [f"{GAP}expected, not found: {_id(item.item)}" for item in each.below if item.rank is None]
    return lines


def _mark(result: ShownResult) -> str:
    return "!" if result.forbidden else "*" if result.expected else " "


def _id(text: str) -> str:
    """An id, escaped where another one looks the same, without two blanks in a row."""
    return re.sub("(?<= ) ", r"\\x20", shown_id(text, quoted=False))


def _column(text: str) -> str:
    """A text without two blanks in a row."""
    return " ".join(text.split())


def form_of(text: str, path: str) -> tuple[int, bool]:
    """Number of results of each query in a snapshot, and whether it has scores.

    Args:
        text: of the file.
        path: for the error.

    Raises:
        InputError: it is no snapshot.
    """
    found = _HEADER.fullmatch(text.partition("\n")[0].removesuffix("\r"))
    if found is None or int(found[1]) < 1:
        expected = f"a first line such as `{FIRST_LINE} the first {DEPTH} of each query; …`"
        raise InputError("this is no snapshot of results", path=path, expected=expected)
    return int(found[1]), found[2] is not None


def _blocks_of(text: str) -> tuple[int, dict[str, list[str]]]:
    """Number of the line of the first query of a snapshot, and heading of each query to the lines of its block."""
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    parts = [list(group) for is_text, group in itertools.groupby(lines, key=bool) if is_text]
    return len(parts[0]) + 2, {part[0]: part for part in parts[1:]}


def snapshot_changes(kept: str, now: str, *, path: str) -> SnapshotChanges:
    """What changed from one snapshot to another; their headers are not compared.

    Args:
        kept: text of the file, a snapshot.
        now: text of what would be written.
        path: of the file, for the diff.
    """
    line, old = _blocks_of(kept)
    _, new = _blocks_of(now)
    shared = [heading for heading in new if heading in old]
    changed = tuple(heading for heading in shared if old[heading] != new[heading])
    added, removed = tuple(each for each in new if each not in old), tuple(each for each in old if each not in new)
    marked = {heading: (_marked(old[heading], "*"), _marked(new[heading], "*")) for heading in changed}
    avoided = {heading: (_marked(old[heading], "!"), _marked(new[heading], "!")) for heading in changed}
    reordered = not added and not removed and list(old) != list(new)
    return SnapshotChanges(
        changed,
        added,
        removed,
        lost=tuple((query, doc) for query, (was, is_) in marked.items() for doc in was if doc not in is_),
        won=tuple((query, doc) for query, (was, is_) in marked.items() for doc in is_ if doc not in was),
        forbidden=tuple((query, doc) for query, (was, is_) in avoided.items() for doc in is_ if doc not in was),
        reordered=reordered,
        diff="\n".join(_diff(old, new, {*changed, *added, *removed}, line, path)),
    )


def _marked(block: Sequence[str], mark: str) -> dict[str, None]:
    """The results of a block that have a mark."""
    found = (_MARKED.fullmatch(line) for line in block[1:])
    return dict.fromkeys(match[2] for match in found if match is not None and match[1] == mark)


def _diff(
    old: Mapping[str, list[str]], new: Mapping[str, list[str]], differ: set[str], line: int, path: str
) -> Iterator[str]:
    """Hunks of the queries that differ: those of the new snapshot in its order, then those that it does not have."""
    if not differ:
        return
    yield from (f"--- {path}", f"+++ {path}")
    starts: list[dict[str, int]] = []
    for blocks in (old, new):
        sizes = [len(block) + 1 for block in blocks.values()]
        starts.append(dict(zip(blocks, itertools.accumulate(sizes, initial=line), strict=False)))
    for heading in [each for each in (*new, *(each for each in old if each not in new)) if each in differ]:
        was, is_ = old.get(heading, []), new.get(heading, [])
        places = [f"{starts[side].get(heading, 0)},{len(lines)}" for side, lines in enumerate((was, is_))]
        yield f"@@ -{places[0]} +{places[1]} @@ {heading}"
        for mark, i1, i2, j1, j2 in difflib.SequenceMatcher(None, was, is_, autojunk=False).get_opcodes():
            if mark == "equal":
                yield from (f" {each}" for each in was[i1:i2])
            else:
                yield from (f"-{each}" for each in was[i1:i2])
                yield from (f"+{each}" for each in is_[j1:j2])
