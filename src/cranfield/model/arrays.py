"""Results as arrays: a row per query, a column per rank, as vector indexes return them.

What has `__array__` or DLPack will do: arrays of numpy, torch, jax, and what FAISS, hnswlib and usearch return.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import ProblemList, UsageError, shorten

PADDING = -1
"""The id that a vector index returns where it has no further result."""
BLOCK_CELLS = 1 << 19
"""Ids that are converted at a time, so that a conversion takes little memory beside the arrays."""


@dataclass(frozen=True, eq=False)
class DocumentIds:
    """The ids of an index by position, looked through once for any number of evaluations.

    Example:
        >>> from cranfield import DocumentIds, evaluate
        >>> documents = DocumentIds.of(["a", "b", "c"])
        >>> evaluate({"1": {"b": 1}}, ids=[[2, 1]], doc_ids=documents, measures=["RR"]).mean("RR")
        0.5
    """

    ids: NDArray[np.integer[Any]] | Sequence[str]
    """D, whole numbers or text; an id that stands several times is one document: parts of it."""

    @classmethod
    def of(cls, ids: Any) -> DocumentIds:
        """Take a list or an array of texts or whole numbers.

        Raises:
            UsageError: something among them is neither.
        """
        if isinstance(ids, DocumentIds):
            return ids
        found = ProblemList(UsageError)
        made = _documents(ids, found)
        found.raise_if_any()
        return cls(made if made is not None else [])

    @cached_property
    def place(self) -> Mapping[str, int]:
        """Text ids to their first position."""
        return dict(zip(reversed(self.ids), reversed(range(len(self.ids))), strict=True))

    @cached_property
    def first(self) -> NDArray[np.int64] | None:
        """int64[D]: the first position of each text id; None where each stands once."""
        if len(self.place) == len(self.ids):
            return None
        return np.array([self.place[doc_id] for doc_id in self.ids], dtype=np.int64)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the ids in their order."""
        if isinstance(self.ids, np.ndarray):
            return sha256(np.ascontiguousarray(self.ids, dtype="<i8").data).hexdigest()
        return sha256("\0".join(self.ids).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, eq=False)
class ResultArrays:
    """The results of one system. Axes: N queries, K results, D documents."""

    ids: NDArray[np.integer[Any]]
    """int[N, K], best first: positions in `documents`, or document ids where that is None; -1 is padding, at the end of a row."""
    scores: NDArray[np.floating[Any]] | None
    """float[N, K], larger is better; None: the order of the columns is all that is known."""
    query_ids: tuple[str, ...] | None
    """N; None: the queries of the test set, in its order."""
    documents: DocumentIds | None
    name: str = "run"

    @classmethod
    def of(
        cls, ids: Any, scores: Any = None, *, query_ids: Any = None, doc_ids: Any = None, name: str = "run"
    ) -> ResultArrays:
        """Take arrays of any library.

        Args:
            ids: int[N, K], as in `ids` above; or text, with empty text or None for padding.
            scores: float[N, K], or None.
            query_ids: N texts or whole numbers, or None.
            doc_ids: D texts or whole numbers, or `DocumentIds`: the document of each position that `ids` holds; None: `ids` holds
                the ids.
            name: of the run, in messages and reports.

        Raises:
            UsageError: with every array that is of another type or shape than this.
        """
        found = ProblemList(UsageError)
        table = _array(ids, "ids", found)
        if table is not None and table.ndim != 2:
            advice = {1: "one query is a row: ids[None, :]", 3: "`evaluate_checkpoints` takes several systems at once"}
            shape = "x".join(map(str, table.shape))
            found.add(
                "ids has not two dimensions", expected="queries x results", got=shape, hint=advice.get(table.ndim)
            )
            table = None
        if table is not None and table.dtype.kind in "UOST":
            if doc_ids is not None:
                found.add("ids is text and doc_ids is given", expected="positions in doc_ids, or no doc_ids")
            table, doc_ids = _coded(table, found)
        if table is not None and table.dtype.kind not in "iu":
            message, hint = f"ids is an array of {table.dtype}", "ids.astype(int), with -1 for padding"
            found.add(message, expected="whole numbers or text", hint=hint)
        values = _scores(scores, table, found)
        queries = _query_ids(query_ids, table, found)
        documents = doc_ids if doc_ids is None or isinstance(doc_ids, DocumentIds) else _documents(doc_ids, found)
        found.raise_if_any()
        if documents is not None and not isinstance(documents, DocumentIds):
            documents = DocumentIds(documents)
        if table is None:  # a problem was found then
            raise UsageError("ids is no array")
        return cls(table, values, queries, documents, name)

    def rows(self) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.floating[Any]] | None]]:
        """Blocks of rows: the first row of each, ids as int64[B, K] and scores as float32 or float64[B, K], both contiguous."""
        step = max(1, BLOCK_CELLS // max(1, self.ids.shape[1]))
        for first in range(0, len(self.ids), step):
            part = slice(first, first + step)
            ids = np.ascontiguousarray(self.ids[part], dtype=np.int64)
            if self.scores is None:
                yield first, ids, None
                continue
            scores = self.scores[part]
            width = np.float32 if scores.dtype in (np.float32, np.float16) else np.float64
            yield first, ids, np.ascontiguousarray(scores, dtype=width)

    def answers(self, query_ids: Sequence[str]) -> Iterator[tuple[str, list[str], list[float] | None]]:
        """The ids of each query and their scores, best first, without padding.

        Args:
            query_ids: of the rows, where the arrays do not name them.
        """
        names = iter(self.query_ids or query_ids)
        for _, ids, scores in self.rows():
            for row in range(len(ids)):
                kept = ids[row] >= 0
                yield next(names), self.named(ids[row][kept]), None if scores is None else scores[row][kept].tolist()

    def named(self, positions: NDArray[np.int64]) -> list[str]:
        """The document ids of what `ids` holds.

        Args:
            positions: int64[H], none of them padding.
        """
        if self.documents is None:
            return list(map(str, positions.tolist()))
        ids = self.documents.ids
        if isinstance(ids, np.ndarray):
            return list(map(str, ids[positions].tolist()))
        return [ids[position] for position in positions.tolist()]


def _array(value: Any, what: str, found: ProblemList) -> NDArray[Any] | None:
    """A value as an array, without a copy where it has one; None where it is none, which is added to the problems."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        reason = str(error).strip().partition("\n")[0]
    try:
        return np.from_dlpack(value)
    except (AttributeError, TypeError, ValueError, RuntimeError, BufferError):
        hint = "of a torch tensor: .detach().cpu(), and .float() of bfloat16; rows of one length are padded with -1"
        found.add(
            f"{what} cannot be read as an array: {reason}", expected="an array in the memory of this machine", hint=hint
        )
        return None


def _scores(scores: Any, table: NDArray[Any] | None, found: ProblemList) -> NDArray[Any] | None:
    """Scores of the shape of `table`; what they are not is added to the problems."""
    values = None if scores is None else _array(scores, "scores", found)
    if values is not None and values.dtype.kind not in "iuf":
        found.add(f"scores is an array of {values.dtype}", expected="numbers", hint="scores.float() of a torch tensor")
    elif values is not None and table is not None and values.shape != table.shape:
        shapes = ["x".join(map(str, each.shape)) for each in (table, values)]
        found.add("scores and ids differ in shape", expected=f"{shapes[0]}, as ids", got=shapes[1])
    return values


def _query_ids(query_ids: Any, table: NDArray[Any] | None, found: ProblemList) -> tuple[str, ...] | None:
    """A query id for each row of `table`; what they are not is added to the problems."""
    queries = None if query_ids is None else _ids(query_ids, "query_ids", found)
    if queries is None:
        return None
    if table is not None and len(queries) != len(table):
        found.add("query_ids and ids differ in length", expected=f"{len(table)}, as ids", got=str(len(queries)))
    if len(set(queries)) < len(queries):
        twice = next(query_id for place, query_id in enumerate(queries) if query_id in queries[:place])
        found.add(f"query {shorten(twice)} stands twice in query_ids", expected="each query once")
    return tuple(queries)


def _coded(table: NDArray[Any], found: ProblemList) -> tuple[NDArray[np.int64] | None, list[str]]:
    """Text as positions in a list of its values; empty text and None are padding."""
    values = table.tolist()
    place: dict[str, int] = {}
    codes = np.full(table.shape, PADDING, dtype=np.int64)
    for row, cells in enumerate(values):
        for column, cell in enumerate(cells):
            if cell is None or cell == "":
                continue
            if not isinstance(cell, str | int) or isinstance(cell, bool):
                found.add(f"ids has {shorten(cell)} in row {row}, column {column}", expected="text or a whole number")
                return None, []
            codes[row, column] = place.setdefault(str(cell), len(place))
    return codes, list(place)


def _ids(values: Any, what: str, found: ProblemList) -> list[str] | None:
    """Ids as text; whole numbers stand for their decimal digits."""
    given = list(values.tolist() if hasattr(values, "tolist") else values)
    kinds = set(map(type, given))
    if kinds <= {str}:
        return given
    wrong = [kind for kind in kinds if not issubclass(kind, str | int | np.integer) or kind is bool]
    if wrong:
        example = next(each for each in given if type(each) in wrong)
        found.add(f"{what} has {shorten(example)}", expected="text or whole numbers")
        return None
    return list(map(str, given))


def _documents(values: Any, found: ProblemList) -> NDArray[np.integer[Any]] | Sequence[str] | None:
    """The ids of all documents; those of a list of text are looked at when they are used."""
    array = values if isinstance(values, np.ndarray) else np.asarray(values) if hasattr(values, "__array__") else None
    if array is not None and array.dtype.kind in "iu":
        return array
    return _ids(values, "doc_ids", found)
