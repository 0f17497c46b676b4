"""Rows of the table of formats: test sets of code search and of IR collections, and runs in tables.

Light: readers and writers are named, not imported. Tables are detected by the names of their columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from cranfield.formats.io.columns import COLUMN_NAMES, JUDGMENT_COLUMNS, RUN_COLUMNS
from cranfield.formats.io.delimited import separator_of
from cranfield.formats.registry import Format, Head

_RESULT = re.compile(r"result\d*")
_KEY = rb"""(^|[{,\[\n\r])[ \t]*(-[ \t]+)?["']?%s["']?[ \t\r\n]*:"""
_OWN = re.compile(_KEY % b"cranfield_testset")
_QUERY_ID = re.compile(_KEY % b"query_id")
_GRADED = re.compile(_KEY % b"relevant_docs")
_GOLDEN = re.compile(_KEY % b"expected_(entities|files|line_ranges)")

QUERY = {*RUN_COLUMNS["query_id"]}
DOCUMENT = {*JUDGMENT_COLUMNS["doc_id"]}
PLACE = {*RUN_COLUMNS["doc_id"]}
GRADE = {*COLUMN_NAMES["grade"]}
ORDER = {*RUN_COLUMNS["rank"], *RUN_COLUMNS["score"]}


def _header(head: Head) -> set[str]:
    """Names of columns, where the first line is a header row."""
    line = head.first_line
    return set(head.columns(separator_of(line))) if line[:1] not in {b"{", b"["} else set()


def _keys(head: Head) -> Mapping[str, object]:
    """The object of the first line, its keys in lower case; empty where it is none."""
    line = head.first_line
    if not line.startswith(b"{"):
        return {}
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return {str(key).lower(): value for key, value in record.items()} if isinstance(record, dict) else {}


def _is_records(head: Head, key: re.Pattern[bytes], word: bytes) -> bool:
    """Whether these are records of queries that have a key, and no Cranfield test set."""
    if word not in head.data or b"query_id" not in head.data:  # a plain search is far faster than a pattern
        return False
    return bool(key.search(head.data) and _QUERY_ID.search(head.data)) and not _OWN.search(head.data)


def _is_graded(head: Head) -> bool:
    return _is_records(head, _GRADED, b"relevant_docs")


def _is_golden(head: Head) -> bool:
    return _is_records(head, _GOLDEN, b"expected_")


def _is_spans(head: Head) -> bool:
    names = _header(head)
    return bool(names & {"query", "query_text"}) and any(map(_RESULT.fullmatch, names))


def _is_patterns(head: Head) -> bool:
    names = _header(head)
    return bool(names & {"query", "query_text"} and names & {"pattern", "regex"})


def _is_beir(head: Head) -> bool:
    if not head.data and head.path.is_dir():
        there = any((head.path / f"queries.jsonl{packed}").is_file() for packed in ("", ".gz", ".zst"))
        return there and any(entry.name.startswith("qrels") for entry in head.path.iterdir())
    return {"query-id", "corpus-id", "score"} <= _header(head)


def _is_table(head: Head) -> bool:
    names = _keys(head).keys() or _header(head)
    return "cranfield_run" not in names and bool(names & QUERY and names & DOCUMENT and names & GRADE)


def _is_run_table(head: Head) -> bool:
    names = _header(head)
    return bool(names & QUERY and names & PLACE and names & ORDER) and not names & GRADE and not _is_beir(head)


_BY_ID = frozenset({"grades", "fractions", "unjudged", "zeros", "levels", "texts", "strata"})
_LEVELS = frozenset({"fractions", "unjudged", "zeros", "levels"})

ENTRIES: tuple[Format, ...] = (
    Format(
        "graded-yaml",
        "testset",
        "records with `query_id`, `query_text` and `relevant_docs` in YAML or JSON",
        _is_graded,
        "cranfield.formats.testsets.graded_yaml:read_graded_yaml",
        "cranfield.formats.testsets.graded_yaml:write_graded_yaml",
        _BY_ID | {"barren", "name", "version", "description"},
        source="Medical_KG_rev, openspec change add-retrieval-ranking-evaluation",
        needs=frozenset({"texts"}),
    ),
    Format(
        "golden-json",
        "testset",
        "a JSON list of records with `query_id` and `expected_entities`, `expected_files` or `expected_line_ranges`",
        _is_golden,
        "cranfield.formats.testsets.golden_json:read_golden_json",
        "cranfield.formats.testsets.golden_json:write_golden_json",
        _LEVELS
        | {"entities", "spans", "file targets", "files", "barren", "texts", "strata"}
        | {"matching", "name", "version", "description", "meta"},
        source="KnowCode, tests/eval/golden",
        needs=frozenset({"texts"}),
    ),
    Format(
        "spans-csv",
        "testset",
        "a CSV table of a query and its spans (header `query,result1,…`, cells `path:start-end:grade`)",
        _is_spans,
        "cranfield.formats.testsets.span_csv:read_span_csv",
        "cranfield.formats.testsets.span_csv:write_span_csv",
        _LEVELS | {"spans", "texts", "strata"},
        source="octocode, benchmark/code.csv",
        needs=frozenset({"texts"}),
    ),
    Format(
        "patterns",
        "testset",
        "a TSV or CSV table of queries and patterns (header `query` and `pattern`)",
        _is_patterns,
        "cranfield.formats.testsets.pattern_list:read_pattern_list",
        "cranfield.formats.testsets.pattern_list:write_pattern_list",
        _LEVELS | {"patterns", "credit", "negative", "texts", "strata", "classes"},
        source="cupertino, the queries of its search-quality audits",
        needs=frozenset({"texts"}),
    ),
    Format(
        "beir",
        "testset",
        "a BEIR folder (`queries.jsonl`, `qrels/test.tsv`), or its qrels (header `query-id corpus-id score`)",
        _is_beir,
        "cranfield.formats.testsets.beir:read_beir",
        "cranfield.formats.testsets.beir:write_beir",
        _BY_ID,
        source="BEIR, GenericDataLoader",
        is_folder=True,
    ),
    Format(
        "table",
        "testset",
        "a table of judgments in TSV, CSV or JSONL (columns `query_id`, `doc_id`, `grade`)",
        _is_table,
        "cranfield.formats.testsets.judgment_table:read_judgment_table",
        "cranfield.formats.testsets.judgment_table:write_judgment_table",
        _BY_ID | {"ratings"},
        source="Cranfield's own; columns go by the names that data frames' do",
    ),
    Format(
        "run-table",
        "run",
        "a TSV or CSV table of results (columns `query_id`, `doc_id` or `path`, `rank` or `score`)",
        _is_run_table,
        "cranfield.formats.runs.table:read_run_table",
        source="Cranfield's own; columns go by the names that data frames' do",
    ),
)
