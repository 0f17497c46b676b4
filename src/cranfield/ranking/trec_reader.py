"""Reads a TREC run file in one pass and ranks it: the pure-Python reader.

Holds one query's lines at a time. A file whose queries are interleaved is read again, holding all of it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from cranfield.errors import SHOWN_PROBLEMS, ProblemList, RunFormatError, shorten
from cranfield.formats.files import opened
from cranfield.model import Convention, Hit, Outcome, TestSet
from cranfield.ranking.door import Missing, RankingBuilder, no_common_query
from cranfield.ranking.scan import REPORTED_HITS, Duplicates
from cranfield.ranking.value import Ranking

BLOCK_BYTES = 8 * 1024 * 1024
"""A file's digest is the SHA-256 of the SHA-256 digests of its blocks of this size."""
RUN_COLUMNS = 6
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class RankedFile:
    """A ranked run file, with what its reader noticed."""

    ranking: Ranking
    digest: str
    name: str
    """The tag of its first line, or the file's stem."""
    n_lines: int
    extra_queries: tuple[str, ...]
    """Query ids in the run and not in the test set: ignored."""
    misranked: tuple[str, ...]
    """Queries whose rank column disagrees with the order by score."""
    n_tied: int
    """Results that share their score with the one before them."""


@dataclass
class _Block:
    """The lines of one query."""

    query_id: bytes
    doc_ids: list[bytes] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    ranks: list[bytes] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


class _InterleavedError(Exception):
    """A query came back after another had begun."""


def rank_file(
    testset: TestSet,
    path: Path,
    convention: Convention,
    *,
    missing: Missing = "zero",
    duplicates: Duplicates = "error",
    keep: int = REPORTED_HITS,
) -> RankedFile:
    """Read, order and join a TREC run file.

    Args:
        testset: the judged queries; a query of the file that is not among them is ignored and named.
        path: six columns a line (query, Q0, document, rank, score, tag), white space between; gzip is recognised.
        convention: `file_order` says whether score or position orders a query; ties fall to the larger id in bytes.
        missing: a judged query the file does not answer counts as 0, or is left out.
        duplicates: a document twice in one query is an error naming both lines, or the first by rank is kept.
        keep: hits per query kept for reports.

    Raises:
        RunFormatError: with every bad line found.
        NoCommonQueryError: the file answers no judged query.
    """
    try:
        return _FileRanker(testset, path, convention, missing, duplicates, keep).rank(interleaved=False)
    except _InterleavedError:
        return _FileRanker(testset, path, convention, missing, duplicates, keep).rank(interleaved=True)


@dataclass
class _FileRanker:
    testset: TestSet
    path: Path
    convention: Convention
    missing: Missing
    duplicates: Duplicates
    keep: int

    def __post_init__(self) -> None:
        self.builder = RankingBuilder(self.testset, self.convention, self.keep)
        self.problems = ProblemList(RunFormatError)
        self.judged = {query_id.encode("utf-8", "surrogateescape") for query_id in self.testset.query_ids}
        self.extra: dict[str, None] = {}
        self.misranked: list[str] = []
        self.n_tied = 0
        self.n_lines = 0
        self.tag: str | None = None
        self.digest = ""

    def rank(self, *, interleaved: bool) -> RankedFile:
        blocks = self._whole_blocks() if interleaved else self._blocks()
        for block in blocks:
            self._take(block)
            if len(self.problems.problems) >= SHOWN_PROBLEMS:
                break
        self.problems.raise_if_any()
        if not self.n_lines:
            raise RunFormatError(
                "no line in this run", path=str(self.path), expected="lines `query Q0 document rank score tag`"
            )
        if not any(query_id in self.builder for query_id in self.testset.query_ids):
            raise no_common_query(self.testset, self.extra)
        return RankedFile(
            self.builder.build(self.missing),
            self.digest,
            self.tag or self.path.stem,
            self.n_lines,
            tuple(self.extra),
            tuple(self.misranked),
            self.n_tied,
        )

    def _blocks(self) -> Iterator[_Block]:
        """Consecutive lines of one query; raises when a query comes back."""
        seen: set[bytes] = set()
        block: _Block | None = None
        for row in self._rows():
            if block is None or row[0] != block.query_id:
                if block is not None:
                    yield block
                if row[0] in seen:
                    raise _InterleavedError
                seen.add(row[0])
                block = _Block(row[0])
            _append(block, row)
        if block is not None:
            yield block

    def _whole_blocks(self) -> Iterator[_Block]:
        blocks: dict[bytes, _Block] = {}
        for row in self._rows():
            _append(blocks.setdefault(row[0], _Block(row[0])), row)
        yield from blocks.values()

    def _rows(self) -> Iterator[tuple[bytes, bytes, bytes, float, int]]:
        """(query, document, rank, score, line) of every good line; bad ones become problems."""
        for number, raw in enumerate(self._lines(), start=1):
            line = raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw
            fields = line.split(None, RUN_COLUMNS - 1)
            if not fields or line.startswith(b"#"):
                continue
            if len(fields) < RUN_COLUMNS:
                self._bad(number, f"{len(fields)} columns", line, "6: query Q0 document rank score tag")
                continue
            if b"\r" in fields[5].rstrip():  # else all but the first of these lines would pass for its tag
                self._bad(number, "lines end in a lone carriage return", line, "a line feed at the end of each line")
                continue
            try:
                score = math.nan if b"_" in fields[4] else float(fields[4])  # Python alone reads 1_0 as a number
            except ValueError:
                score = math.nan
            if not math.isfinite(score):
                self._bad(number, "the score is not a finite number", fields[4], "a number in column 5")
                continue
            if self.tag is None:
                self.tag = fields[5].strip().decode("utf-8", "replace")
            self.n_lines += 1
            yield fields[0], fields[2], fields[3], score, number

    def _lines(self) -> Iterator[bytes]:
        hasher, carry = sha256(), b""
        with opened(self.path, RunFormatError) as stream:
            while block := stream.read(BLOCK_BYTES):
                hasher.update(sha256(block).digest())
                lines = (carry + block).split(b"\n")
                carry = lines.pop()
                yield from lines
        if carry:
            yield carry
        self.digest = "sha256:" + hasher.hexdigest()

    def _bad(self, line: int, message: str, got: bytes, expected: str) -> None:
        if len(self.problems.problems) < SHOWN_PROBLEMS:
            text = shorten(got.decode("utf-8", "replace").strip())
            self.problems.add(message, path=str(self.path), line=line, expected=expected, got=text)

    def _take(self, block: _Block) -> None:
        query_id = block.query_id.decode("utf-8", "surrogateescape")
        if block.query_id not in self.judged:
            self.extra[query_id] = None
            return
        order = list(range(len(block.doc_ids)))
        if self.convention.file_order == "score":
            order.sort(key=lambda i: (block.scores[i], block.doc_ids[i]), reverse=True)
            self.n_tied += sum(block.scores[a] == block.scores[b] for a, b in itertools.pairwise(order))
            if _disagrees([block.ranks[i] for i in order]):
                self.misranked.append(query_id)
        first: dict[bytes, int] = {}
        for i in order:
            earlier = first.setdefault(block.doc_ids[i], i)
            if earlier != i and self.duplicates == "error":
                lines = sorted((block.lines[earlier], block.lines[i]))
                self.problems.add(
                    f"query {query_id!r} lists document {block.doc_ids[i].decode('utf-8', 'replace')!r} twice",
                    path=str(self.path),
                    line=lines[1],
                    expected="each document once a query",
                    got=f"it also on line {lines[0]}",
                    hint="--duplicates first keeps the best-ranked one and goes on",
                )
        hits = [Hit(doc.decode("utf-8", "surrogateescape"), block.scores[i]) for doc, i in first.items()]
        self.builder.add(query_id, hits, Outcome.ANSWERED, len(order) - len(hits), None)


def _append(block: _Block, row: tuple[bytes, bytes, bytes, float, int]) -> None:
    block.doc_ids.append(row[1])
    block.ranks.append(row[2])
    block.scores.append(row[3])
    block.lines.append(row[4])


def _disagrees(ranks: list[bytes]) -> bool:
    """True when the rank column, in score order, ever goes down; a column without numbers says nothing."""
    try:
        numbers = [int(rank) for rank in ranks]
    except ValueError:
        return False
    return any(a > b for a, b in itertools.pairwise(numbers))
