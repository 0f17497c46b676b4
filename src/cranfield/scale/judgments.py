"""Judgments by document id as columns: what a run that is read in parts is compared with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cranfield.base.errors import Problem, TestSetError
from cranfield.model import Convention, TestSet
from cranfield.model.query import class_of
from cranfield.ranking.matching.expectation import is_plain
from cranfield.ranking.prepared import ExpectedItems, graded_worth

Keys = NDArray[np.uint64]

PERIOD = 4096
"""Bytes this far apart have one weight: a longer text still has another key than most others."""
_WEIGHTS = np.random.default_rng(20260101).integers(0, 2**64, PERIOD, dtype=np.uint64, endpoint=False) | np.uint64(1)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


def text_bytes(texts: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where each text begins, [N + 1], and the bytes of all of them; `texts` is an Arrow array of strings, large or not."""
    if not len(texts):
        return np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint8)
    _, offsets, data = texts.buffers()
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    start = np.frombuffer(offsets, dtype=kind)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    if data is None or start[0] == start[-1]:
        return start - start[0], np.zeros(0, dtype=np.uint8)
    return start - start[0], np.frombuffer(data, dtype=np.uint8)[start[0] : start[-1]]


def text_keys(texts: Any) -> Keys:
    """uint64[N]: a key for each text, none of which is null."""
    keys = np.zeros(len(texts), dtype=np.uint64)
    start, data = text_bytes(texts)
    length = np.diff(start)
    filled = np.flatnonzero(length)
    if len(filled):
        place = np.arange(len(data)) - np.repeat(start[:-1], length)
        weighted = _WEIGHTS[place % PERIOD] * (data.astype(np.uint64) + np.uint64(1))
        keys[filled] = np.add.reduceat(weighted, start[filled])
    return mixed(keys + length.astype(np.uint64))


def mixed(keys: Keys) -> Keys:
    """The same keys spread over all 64 bits."""
    return (keys ^ (keys >> _SHIFT)) * _MIX


def repeated_keys(keys: Keys) -> Keys:
    """The keys that stand more than once, each once, in their order."""
    ordered = np.sort(keys)
    twice: Keys = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    return twice


def is_among(keys: Keys, known: Keys) -> NDArray[np.bool_]:
    """Whether each key is one of the known ones, which stand in order."""
    if not len(known):
        return np.zeros(len(keys), dtype=np.bool_)
    found = np.searchsorted(known, keys)
    found[found == len(known)] = 0
    among: NDArray[np.bool_] = known[found] == keys
    return among


ROW_SCHEMA = pa.schema([("query_id", pa.large_string()), ("doc_id", pa.large_string()), ("grade", pa.float64())])
"""Judgments as rows; a row without a document is a query without a judgment."""


@dataclass(frozen=True, eq=False)
class JudgmentTable:
    """Judgments of Q queries; the documents of a query stand by falling grade."""

    name: str
    digest: str
    query_ids: pa.LargeStringArray  # [Q] all different
    start: NDArray[np.int64]  # [Q + 1] the judgments of query q are start[q] to start[q + 1]
    doc_ids: pa.LargeStringArray  # [J] each once a query
    grade: NDArray[np.float64]  # [J]

    @classmethod
    def of_testset(cls, testset: TestSet) -> JudgmentTable:
        """The judgments of a test set of graded document ids.

        Raises:
            TestSetError: its truth is more than that.
        """
        _check_plain(testset)
        judged = [testset.grades.get(query_id, {}) for query_id in testset.query_ids]
        counts = [len(grades) for grades in judged]
        doc_ids = _texts([doc_id for grades in judged for doc_id in grades], testset)
        grade = np.array([grade for grades in judged for grade in grades.values()], dtype=np.float64)
        query = np.repeat(np.arange(len(judged)), counts)
        return cls._sorted(
            testset.name, testset.digest, _texts(list(testset.query_ids), testset), query, doc_ids, grade
        )

    @classmethod
    def from_rows(cls, query_ids: Any, doc_ids: Any, grades: Any, *, name: str, digest: str) -> JudgmentTable:
        """The same of rows in any order, queries in the order of their first row.

        Args:
            query_ids: [N] Arrow column of text.
            doc_ids: [N] Arrow column of text; null in the row of a query without a judgment.
            grades: [N] numbers.
            name: of the test set.
            digest: of its content.
        """
        query_ids, doc_ids = _one_chunk(query_ids), _one_chunk(doc_ids)
        encoded = query_ids.dictionary_encode()
        judged = doc_ids.is_valid()
        query = np.asarray(encoded.indices.filter(judged)).astype(np.int64)
        grade = np.asarray(grades, dtype=np.float64)[np.asarray(judged)]
        names = encoded.dictionary.cast(pa.large_string())
        return cls._sorted(name, digest, names, query, doc_ids.filter(judged), grade)

    @classmethod
    def _sorted(
        cls,
        name: str,
        digest: str,
        query_ids: pa.LargeStringArray,
        query: NDArray[np.int64],
        doc_ids: pa.LargeStringArray,
        grade: NDArray[np.float64],
    ) -> JudgmentTable:
        order = np.lexsort((-grade, query))
        counts = np.bincount(query, minlength=len(query_ids)) if len(query) else np.zeros(len(query_ids), np.int64)
        start = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        return cls(name, digest, query_ids, start, doc_ids.take(pa.array(order)), grade[order])

    @property
    def n_queries(self) -> int:
        """Q."""
        return len(self.query_ids)

    def __len__(self) -> int:
        """J."""
        return len(self.grade)

    @cached_property
    def query(self) -> NDArray[np.int32]:
        """int32[J]: the query of each judgment."""
        return np.repeat(np.arange(self.n_queries, dtype=np.int32), np.diff(self.start))

    def rows(self) -> pa.Table:
        """The judgments as a table of `ROW_SCHEMA`: a row a judgment, and one for each query without any."""
        bare = np.flatnonzero(np.diff(self.start) == 0)
        query_ids = pa.chunked_array([self.query_ids.take(pa.array(self.query)), self.query_ids.take(pa.array(bare))])
        doc_ids = pa.chunked_array([self.doc_ids, pa.nulls(len(bare), pa.large_string())])
        grade = np.concatenate((self.grade, np.zeros(len(bare))))
        return pa.Table.from_arrays([query_ids, doc_ids, pa.chunked_array([grade])], schema=ROW_SCHEMA)

    def part(self, first: int, last: int) -> JudgmentTable:
        """The judgments of queries first to last, the last one excluded."""
        begin, end = int(self.start[first]), int(self.start[last])
        return JudgmentTable(
            self.name,
            self.digest,
            self.query_ids[first:last],
            self.start[first : last + 1] - begin,
            self.doc_ids[begin:end],
            self.grade[begin:end],
        )

    def expected(self, convention: Convention) -> ExpectedItems:
        """What each query expects, as the measures take it; items have no labels."""
        gain, level = graded_worth(self.grade, convention)
        return ExpectedItems(
            query=self.query,
            gain=gain,
            level=level,
            count=np.ones(len(self), dtype=np.int64),
            start=self.start,
            labels=(),
            closed_world=np.zeros(self.n_queries, dtype=np.bool_),
            groups=None,
        )


def _check_plain(testset: TestSet) -> None:
    if testset.matching.ignore_identical_ids:
        raise TestSetError(
            f"test set {testset.name!r} leaves out results with the id of their query (ignore_identical_ids), but a run that is "
            "read in parts keeps every result",
            hint="leave these rows out of the run files, or evaluate a run that fits into memory",
        )
    classes = sorted({class_of(query) for query in testset.queries} - {""})
    if is_plain(testset) and not classes:
        return
    what = f"has queries of classes ({', '.join(classes)})" if is_plain(testset) else "expects more than document ids"
    raise TestSetError(
        Problem(
            f"test set {testset.name!r} {what}, but a run that is read in parts is compared by document id alone",
            expected="graded document ids",
            hint="evaluate a run that fits into memory: pass one file, without the options for large runs",
        )
    )


def _texts(ids: list[str], testset: TestSet) -> pa.LargeStringArray:
    try:
        return pa.array(ids, type=pa.large_string())
    except UnicodeEncodeError:
        bad = next(text for text in ids if not _is_utf8(text))
        raise TestSetError(
            Problem(f"test set {testset.name!r} has an id that is not UTF-8, which Arrow cannot store", got=repr(bad))
        ) from None


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _one_chunk(column: Any) -> pa.LargeStringArray:
    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    return pc.cast(chunked, pa.large_string()).combine_chunks()


PART_ROWS = 1 << 18
"""Queries and judgments that are written at once."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))
_ESCAPED = np.zeros(256, dtype=np.bool_)
_ESCAPED[:32] = _ESCAPED[[ord('"'), ord("\\")]] = True


def digest_of(
    judgments: JudgmentTable, texts: pa.LargeStringArray | None = None, strata: Mapping[int, Mapping[str, str]] = {}
) -> str:
    """`TestSet.digest` of a test set of these judgments.

    Args:
        judgments: of plain document ids; one may be judged by nothing.
        texts: [Q] of the queries; None: they have none.
        strata: place of a query to its strata, where it has some.
    """
    hasher = sha256(b"cranfield testset 1\n")
    order = np.asarray(pc.sort_indices(judgments.query_ids)).astype(np.int64)
    n_rows = np.cumsum(judgments.start[order + 1] - judgments.start[order] + 1)
    first = 0
    while first < len(order):
        limit = (n_rows[first - 1] if first else 0) + PART_ROWS
        last = max(int(np.searchsorted(n_rows, limit, side="right")), first + 1)
        hasher.update(_lines(judgments, order[first:last], texts, strata))
        first = last
    return "sha256:" + hasher.hexdigest()


def _lines(
    judgments: JudgmentTable,
    queries: NDArray[np.int64],
    texts: pa.LargeStringArray | None,
    strata: Mapping[int, Mapping[str, str]],
) -> Any:
    """The lines of some queries, one after the other."""
    places = pa.array(queries)
    written = pa.array(['""'] * len(queries), pa.large_string()) if texts is None else _json(texts.take(places))
    more = [_ENCODER.encode(strata.get(query) or {}) for query in queries.tolist()] if strata else ["{}"] * len(queries)
    name = _json(judgments.query_ids.take(places))
    heads = _joined("[", name, ",", written, ",", pa.array(more, pa.large_string()), ",{},{")
    own, items = _graded(judgments, queries)
    is_first = np.diff(own, prepend=-1) > 0
    is_last = np.diff(own, append=len(queries)) > 0
    # One text a judgment: the beginning of the query stands before its first, the end behind its last.
    before = pa.concat_arrays([heads, pa.array([","], pa.large_string())])
    behind = pa.array(["", "},[]]\n"], pa.large_string())
    starts = before.take(pa.array(np.where(is_first, own, len(queries))))
    return text_bytes(_joined(starts, items, behind.take(pa.array(is_last.astype(np.int8)))))[1].data


def _graded(judgments: JudgmentTable, queries: NDArray[np.int64]) -> tuple[NDArray[np.int64], pa.LargeStringArray]:
    """The judged documents of each query in the order of their ids, as JSON writes them; one empty text where there are none.

    Returns:
        The query of each, and the texts.
    """
    begin = judgments.start[queries]
    count = judgments.start[queries + 1] - begin
    query = np.repeat(np.arange(len(queries)), count)
    rows = np.arange(len(query)) + np.repeat(begin - (np.cumsum(count) - count), count)
    doc_ids = judgments.doc_ids.take(pa.array(rows))
    by_id = pc.sort_indices(
        pa.table({"query": query, "id": doc_ids}), sort_keys=[("query", "ascending"), ("id", "ascending")]
    )
    grades, code = np.unique(judgments.grade[rows[np.asarray(by_id)]], return_inverse=True)
    numbers = pa.array([repr(grade) for grade in grades.tolist()], pa.large_string()).take(pa.array(code))
    items = _joined(_json(doc_ids.take(by_id)), ":", numbers)
    own = np.repeat(np.arange(len(queries)), np.maximum(count, 1))
    place = np.full(len(own), len(items))
    place[(count > 0)[own]] = np.arange(len(items))
    return own, pa.concat_arrays([items, pa.array([""], pa.large_string())]).take(pa.array(place))


def _json(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Texts as JSON writes them."""
    if _ESCAPED[text_bytes(texts)[1]].any():
        return pa.array(map(_ENCODER.encode, texts.to_pylist()), pa.large_string())
    return _joined('"', texts, '"')


def _joined(*parts: Any) -> pa.LargeStringArray:
    """Columns of text, and texts that are the same in each row, one behind the other."""
    columns = [pa.scalar(part, pa.large_string()) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*columns, pa.scalar("", pa.large_string()))
