"""The digest of judgments in columns: that of the test set which they are, made without its values.

What is hashed is what `TestSet.digest` hashes, a line a query. Lines are put together as columns of text, for some
thousand queries at a time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cranfield.scale.judgments import JudgmentTable
from cranfield.scale.text_keys import text_bytes

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
