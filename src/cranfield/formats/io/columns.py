"""What columns of tables may be called, whatever the table is: a frame, Parquet, CSV, keys of JSON lines. Light."""

from __future__ import annotations

from collections.abc import Mapping

COLUMN_NAMES: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query_id", "q_id", "qid", "query"),
    "doc_id": ("doc_id", "docno", "docid", "did"),
    "score": ("score",),
    "grade": ("grade", "relevance", "rel", "label"),
    "subtopic": ("subtopic", "subtopic_id"),
    "rank": ("rank",),
}
"""What a column may be called, by what it holds; the first name that is there is taken."""

JUDGMENT_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "query_id": (*COLUMN_NAMES["query_id"][:-1], "query-id", COLUMN_NAMES["query_id"][-1]),
    "doc_id": (*COLUMN_NAMES["doc_id"], "corpus-id"),
    "grade": (*COLUMN_NAMES["grade"], "score"),
    "rater": ("rater",),
    "text": ("query_text", "text", "query"),
}
"""The same of tables of judgments in text; each name is taken but once."""

RUN_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "query_id": (*COLUMN_NAMES["query_id"], "query-id"),
    "doc_id": (*COLUMN_NAMES["doc_id"], "corpus-id", "path", "file"),
    "rank": COLUMN_NAMES["rank"],
    "score": COLUMN_NAMES["score"],
    "start": ("start_line", "start"),
    "end": ("end_line", "end"),
    "span": ("span", "lines"),
    "title": ("title",),
}
"""The same of tables of results in text."""
