"""Runs in memory, query by query: a dict of dicts, or a table grouped by query.

Each answer is a dict of document id to score, its entries in the order of the run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import SHOWN_PROBLEMS, ProblemList, RunFormatError, shorten
from cranfield.formats.io.delimited import ID_KINDS, as_number, id_texts, is_id
from cranfield.formats.io.table import Ids, RequestedColumns
from cranfield.ranking.query_ranker import comparable, contradicts, rank_query
from cranfield.ranking.scan import FileOrder, ScanOptions

Scores = dict[str, float]
"""Document id to score, of one query."""
WINDOW_ROWS = 1 << 16
"""Document ids of a table that are text at a time; more where a query has more."""


class MappingRun:
    """A mapping of query id to a mapping of document id to score."""

    def __init__(self, run: Mapping[Any, Mapping[Any, Any]], name: str) -> None:
        self.name = name
        self.problems = ProblemList(RunFormatError)
        self._run = run
        self._keys = self._by_text(run)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._keys

    def given(self, query_id: str) -> dict[Any, Any]:
        """One answer, unchecked."""
        answer: Any = self._run[self._keys[query_id]]
        if isinstance(answer, dict):
            return answer
        if isinstance(answer, Mapping):
            return dict(answer)
        self._note(
            f"the answer to query {query_id!r} is a {type(answer).__name__}", expected="document ids with their scores"
        )
        return {}

    def plain(self, query_id: str) -> Scores:
        """One answer, checked; its problems are recorded, its invalid entries left out."""
        given = self.given(query_id)
        is_plain = {str} >= set(map(type, given)) and {float} >= set(map(type, given.values()))
        if is_plain and all(map(math.isfinite, given.values())):  # most runs, without a call for each entry
            return {doc_id: score + 0.0 for doc_id, score in given.items()}
        plain: Scores = {}
        for doc_id, score in given.items():
            where = f"query {query_id!r}, document {shorten(doc_id)}"
            number = as_number(score)
            if not is_id(doc_id):
                self._note(f"query {query_id!r}: {shorten(doc_id)} is not a document id", expected=ID_KINDS)
            elif number is None:
                self._note(f"{where}: the score is not a finite number", expected="a number", got=shorten(score))
            elif str(doc_id) in plain:
                self._note(f"{where} occurs as text and as a number", expected="each document once per query")
            else:
                plain[str(doc_id)] = number
        return plain

    def _by_text(self, run: Mapping[Any, Any]) -> Mapping[str, Any]:
        """Query id as text to the key it has."""
        try:
            texts = id_texts(list(run))
        except TypeError:
            for key in run:
                if not is_id(key):
                    self._note(f"{shorten(key)} is not a query id", expected=ID_KINDS)
            self.problems.raise_if_any()
            raise
        keys = dict(zip(texts, run, strict=True))
        if len(keys) < len(texts):
            both = next(text for text in texts if texts.count(text) > 1)
            self._note(f"query {both!r} occurs as text and as a number", expected="each query once")
            self.problems.raise_if_any()
        return keys

    def _note(self, message: str, **fields: object) -> None:
        if len(self.problems.problems) < SHOWN_PROBLEMS:
            self.problems.add(message, path=self.name, **fields)


@dataclass(eq=False)
class TableRun:
    """A table with a row per result; the rows of a query may stand anywhere."""

    table: RequestedColumns
    options: ScanOptions
    problems: ProblemList = field(default_factory=lambda: ProblemList(RunFormatError))
    n_duplicates: dict[str, int] = field(default_factory=dict)
    """Duplicates dropped, of the queries read so far that have any."""
    n_tied: dict[str, int] = field(default_factory=dict)
    """Results that tie with the one before them, of the same queries, duplicates included."""
    misranked: set[str] = field(default_factory=set)
    """Queries read so far whose rank column contradicts the order by score."""
    _spans: dict[str, tuple[int, int]] = field(init=False, repr=False)
    _docs: Ids = field(init=False, repr=False)
    _rows: NDArray[np.int64] | None = field(init=False, repr=False, default=None)
    """Original row numbers, when the rows were sorted."""
    _window: tuple[int, list[str]] = field(init=False, repr=False, default=(0, []))
    """First row of a window, and its document ids."""

    def __post_init__(self) -> None:
        ids = self.table.ids["query_id"]
        starts = ids.run_starts()
        names = ids.take(starts).text(0, len(starts))
        lengths = np.diff(np.append(starts, self.table.n_rows))
        self._docs = self.table.ids["doc_id"]
        code = {name: place for place, name in enumerate(dict.fromkeys(names))}
        if len(code) < len(names):
            codes = np.repeat([code[name] for name in names], lengths)
            self._rows = np.argsort(codes, kind="stable")
            self._docs = self._docs.take(self._rows)
            lengths = np.bincount(codes)
        ends = np.cumsum(lengths).tolist()
        self._spans = dict(zip(code, itertools.pairwise([0, *ends]), strict=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._spans

    def given(self, query_id: str) -> dict[Any, Any]:
        """One answer, in row order, or by rank where the rank column orders the run."""
        return self.plain(query_id)

    def plain(self, query_id: str) -> Scores:
        """The same; a repeated document is recorded as a problem, or its best ranked row is kept."""
        start, end = self._spans[query_id]
        rows = np.arange(start, end) if self._rows is None else self._rows[start:end]
        docs, scores = self._doc_ids(start, end), self.table.numbers["score"][rows]
        rank = self.table.numbers.get("rank")
        if rank is not None and self.options.order == "rank":
            order = np.argsort(rank[rows], kind="stable")
            docs, scores, rows = [docs[place] for place in order.tolist()], scores[order], rows[order]
        elif rank is not None and self.options.order == "score" and self._contradicts(scores, rank[rows]):
            self.misranked.add(query_id)
        answer = dict(zip(docs, scores.tolist(), strict=True))
        return answer if len(answer) == len(docs) else self._without_duplicates(query_id, docs, scores, rows)

    def _doc_ids(self, start: int, end: int) -> list[str]:
        """Document ids of some rows; with sequential access the next ones are fetched along."""
        first, texts = self._window
        if start < first or end > first + len(texts):
            ahead = min(2 * len(texts), WINDOW_ROWS) if start == first + len(texts) else 0
            first, texts = start, self._docs.text(start, max(end, min(start + ahead, self.table.n_rows)))
            self._window = (first, texts)
        return texts[start - first : end - first]

    def _without_duplicates(
        self, query_id: str, docs: list[str], scores: NDArray[np.float64], rows: NDArray[np.int64]
    ) -> Scores:
        order: FileOrder = "score" if self.options.order == "score" else "given"  # by rank: they are in that order
        ranked = rank_query(docs, scores.tolist(), replace(self.options, order=order, ties="given"))
        for position, earlier in ranked.repeated:
            if self.options.duplicates == "error" and len(self.problems.problems) < SHOWN_PROBLEMS:
                both = sorted((int(rows[earlier]), int(rows[position])))
                self.problems.add(
                    f"rows {both[0]} and {both[1]}: query {query_id!r} lists document {docs[position]!r} twice",
                    path=self.table.name,
                    expected="each document once per query",
                    hint="duplicates='first' keeps the best-ranked one and continues",
                )
        self.n_duplicates[query_id], self.n_tied[query_id] = len(ranked.repeated), ranked.n_tied
        return {docs[position]: float(scores[position]) for position in sorted(ranked.order)}

    def _contradicts(self, scores: NDArray[np.float64], rank: NDArray[np.float64]) -> bool:
        """Whether the rank column contradicts the scores; a column that holds other numbers does not."""
        if (rank != np.floor(rank)).any():
            return False
        keys = comparable(scores, self.options.width)
        order = np.argsort(-keys, kind="stable")
        return contradicts(keys[order], rank[order])


def answer_digest(scores: Mapping[Any, Any]) -> bytes:
    """SHA-256 of one answer: the ids of its results and their scores, in their order."""
    try:
        text = "\n".join(scores)
    except TypeError:  # whole numbers among them
        text = "\n".join(id_texts(list(scores)))
    if text.count("\n") >= max(len(scores), 1):  # an id that holds the separator
        text = repr(id_texts(list(scores)))
    numbers = np.fromiter(scores.values(), dtype="<f8", count=len(scores))
    return sha256(text.encode("utf-8", "surrogatepass") + numbers.tobytes()).digest()


def digest(run: MappingRun | TableRun, seen: Mapping[str, tuple[int, bytes]]) -> str:
    """SHA-256 over the queries sorted by id, with the number of results and the digest of each answer.

    Args:
        run: of the answers.
        seen: those that were digested while they were ranked.
    """
    hasher = sha256(b"cranfield answers 1\n")
    for query_id in sorted(run):
        found = seen.get(query_id)
        if found is None:
            scores = run.given(query_id)
            found = len(scores), answer_digest(scores)
        hasher.update(f"{query_id!r} {found[0]}\n".encode("utf-8", "surrogatepass") + found[1])
    return "sha256:" + hasher.hexdigest()
