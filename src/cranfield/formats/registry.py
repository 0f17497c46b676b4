"""The table of formats: how each is recognised, read and written, and what it holds.

Code search, IR collections, files of other tools, runs in tables. Readers and writers are named, not imported. Tables are recognised
by the names of their columns, JSON by its top-level keys, so that a test set that contains such a word is not taken for the file of
another tool.
"""

from __future__ import annotations

import importlib
import itertools
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from cranfield.formats.io.delimited import COLUMN_NAMES, JUDGMENT_COLUMNS, RUN_COLUMNS, separator_of
from cranfield.model import Grouping, Run, TestSet

HEAD_BYTES = 1 << 20
"""How much of a file is looked at to tell its format."""

FIRST_LINES = 10
"""How many lines are looked at for columns."""

_LINE = re.compile(rb"[^\r\n]+")
Kind = Literal["testset", "run", "queries"]

ANY_ID = r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]+( [^\s\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]+)*"
"""Any text: words with single blanks between."""
COLUMN_ID = r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff#][^\s\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]*"
"""A word: no white space, no `#` first."""
NO_SUBGROUP = "0"
"""The subgroup of preferences that have none, in lines that ask for one."""
ANY_GRADE = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a file, or a folder."""

    data: bytes
    """Without a byte order mark; nothing of a folder."""
    path: Path = Path()
    """Where it is; for a folder, to look for the files in it."""

    @property
    def first_line(self) -> bytes:
        """The first line that is not blank and no `#` comment; empty when there is none."""
        lines = (found[0].strip() for found in _LINE.finditer(self.data))
        return next((line for line in lines if line and not line.startswith(b"#")), b"")

    @property
    def rows(self) -> list[list[bytes]]:
        """The first lines that are not blank and no comments, cut at white space: one of them may be a bad one."""
        lines = itertools.islice(
            (line for line in self.data.split(b"\n", FIRST_LINES * 2) if line.strip()), FIRST_LINES
        )
        return [line.split() for line in lines if not line.startswith(b"#")]

    def columns(self, separator: str) -> list[str]:
        """The first line that is no comment, cut at `separator`, as lower-case names without quotes: a header row."""
        line = self.first_line.decode("utf-8", "replace")
        return [name.strip().strip('"').lower() for name in line.split(separator)]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of test sets, runs or queries, and how it is detected."""

    name: str
    """The name of the format."""
    kind: Kind
    sentence: str
    """What a file of it is, to go on from "expected"."""
    fits: Callable[[Head], bool]
    reader: str = ""
    """`module:function` of `read(path: Path) -> TestSet | Run`; empty where reading and ranking are one pass, in `ranking`.
    Queries come as a test set without judgments."""
    writer: str = ""
    """`module:function` of `write(testset: TestSet, path: Path) -> None`, of a run for a format of runs; empty where it is
    not written. `convert` hands it what the format holds and no more."""
    holds: frozenset[str] = frozenset()
    """Names in `features.FEATURES` of what a file of it can hold; what else a test set has is reported when it is written."""
    suffix: str = ""
    """How its file names usually end (`.yaml`): `convert` takes the format of a new file from it where none is named."""
    source: str = ""
    """Whose format it is, and where that is written down."""
    needs: frozenset[str] = frozenset()
    """Names in `features.FEATURES` of what every query must have to be written: `texts`."""
    strata: frozenset[str] | None = None
    """Names of the strata that it has room for, where it holds `strata`; None: any."""
    ids: str = ANY_ID
    """Regular expression of the ids of queries and documents that it can hold, in full: tests make ids from it."""
    texts: str = ANY_ID
    """The same of texts of queries."""
    grades: tuple[float, float] = ANY_GRADE
    """Lowest and highest grade that it can hold; judgments with others are left out and reported."""
    grouping: Grouping | None = None
    """What the groups of its judgments are, where each of its lines is of one."""
    by_text: bool = False
    """True where a query goes by its text: its id is lost, and is the text when it is read."""
    is_folder: bool = False
    """True where it is a folder of files: its writer makes the folder."""
    layout: Literal["", "tree", "table", "columns"] = ""
    """What its text is, so that a change is made in it and the rest stays: values in values (JSON, YAML), a header and rows of
    cells, or lines of words. Empty: a changed file is written as a whole. JSON and JSON Lines are recognised."""

    @property
    def read(self) -> Callable[[Path], TestSet | Run] | None:
        """Its reader, imported on use."""
        return _named(self.reader)

    @property
    def write(self) -> Callable[..., None] | None:
        """Its writer, imported on use."""
        return _named(self.writer)


def _named(place: str) -> Callable[..., Any] | None:
    if not place:
        return None
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def never(_: Head) -> bool:
    """For formats that look like another one: they have to be named."""
    return False


def is_number(text: bytes) -> bool:
    """Whether a column is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


_RESULT = re.compile(r"result\d*")
_SPAN_CELL = re.compile(rb":\d+-\d+")
_KEY = rb"""(^|[{,\[\n\r])[ \t]*(-[ \t]+)?["']?%s["']?[ \t\r\n]*:"""
_OWN = re.compile(_KEY % b"cranfield_testset")
_QUERY_ID = re.compile(_KEY % b"query_id")
_GRADED = re.compile(_KEY % b"relevant_docs")
_GOLDEN = re.compile(_KEY % b"expected_(entities|files|line_ranges)")

_BY_ID = frozenset({"grades", "fractions", "unjudged", "zeros", "levels", "texts", "strata"})
_LEVELS = frozenset({"fractions", "unjudged", "zeros", "levels"})

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"(\s*:)?|[][{}]', re.DOTALL)
_LTR = re.compile(rb"\s*\S+\s+qid:\S+(\s+\d+:\S+)*\s*#\s*\S+")
_STRING = rb'"(?:[^"\\]|\\.)*"'
_NUMBER = rb"-?\d[\d.eE+-]*"
_NOTHING = _STRING + rb"\s*:\s*(?:\{\s*\}|\[\s*\])\s*,\s*"
_SCORES = rb"\{\s*" + _STRING + rb"\s*:\s*" + _NUMBER + rb"\s*[,}]"
_LIST = (
    rb"\[\s*(?:"
    + _STRING
    + rb"|"
    + _NUMBER
    + rb"|\[\s*(?:"
    + _STRING
    + rb"|"
    + _NUMBER
    + rb")\s*,\s*"
    + _NUMBER
    + rb"\s*\])\s*[,\]]"
)
_ID_MAPPING = re.compile(
    rb"\A\s*\{\s*(?:" + _NOTHING + rb")*(?P<key>" + _STRING + rb")\s*:\s*(?:" + _SCORES + rb"|" + _LIST + rb")",
    re.DOTALL,
)
"""A JSON object of query id to document ids with numbers, or to a list of ids or pairs."""
_TEXTS_BY_ID = re.compile(
    rb'\A\s*\{\s*"queries"\s*:\s*\{\s*(?:\}|' + _STRING + rb"\s*:\s*" + _STRING + rb")", re.DOTALL
)
_OWN_LISTS = {b'"queries"', b'"requests"', b'"topics"', b'"query_groups"'}
_SAMPLE_TEXTS = {"user_input", "question", "input", "query"}
_SAMPLE_CONTEXTS = {
    "reference_contexts", "reference_context_ids", "retrieved_contexts", "retrieval_context", "retrievalcontext",
    "retrieved_context_ids", "ground_truth_contexts", "contexts",
}  # fmt: skip
_REFERENCES = {
    "reference_contexts", "reference_context_ids", "ground_truth_contexts", "context", "expected_context",
}  # fmt: skip
_RUN_QUERIES = {
    "query_id", "qid", "q_id", "_id", "id", "query", "question", "query_text", "user_input", "input", "text",
}  # fmt: skip
_RESULT_LISTS = {
    "results", "documents", "docs", "hits", "source_documents", "retrieved_documents", "retrieved_docs",
    "retrieved_ids",
}  # fmt: skip
_OF_DOCUMENT = {"page_content", "content", "metadata", "meta"}
_SHARED = frozenset({"grades", "levels", "zeros", "texts", "barren"})
"""What every format of another tool can say."""
_GAINS = (0.0, float("inf"))
CATALOGUE = "ir_datasets:"
"""What a path begins with that is a name of that catalogue and no file."""
HUB = "hf:"
"""What a path begins with that is a data set in the layout of Hugging Face's hub: a name, or a folder."""
HUB_FOLDERS = ("corpus", "queries", "qrels")
SAVED = ("dataset_dict.json", "state.json")
"""Files of a folder that `datasets` saved."""
_CARD = re.compile(r"""config_name:\s*["']?[\w-]*queries""")

QUERY = {*RUN_COLUMNS["query_id"]}
DOCUMENT = {*JUDGMENT_COLUMNS["doc_id"]}
PLACE = {*RUN_COLUMNS["doc_id"]}
GRADE = {*COLUMN_NAMES["grade"]}
RATER = {*JUDGMENT_COLUMNS["rater"]}
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
    return b"query_text" in head.data and _is_records(head, _GRADED, b"relevant_docs")


def _is_golden(head: Head) -> bool:
    return b"query_text" in head.data and _is_records(head, _GOLDEN, b"expected_")


def _is_spans(head: Head) -> bool:
    names = _header(head)
    if not (names & {"query", "query_text"} and any(map(_RESULT.fullmatch, names))):
        return False
    return "result1" in names or bool(_SPAN_CELL.search(head.data))


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
    if head.data.lstrip().startswith(b"["):
        names = _first_record(head.data).keys()
    graded = names & GRADE or (names & RATER and "rating" in names)  # ratings without a rater are those of Quepid
    return "cranfield_run" not in names and bool(names & QUERY and names & DOCUMENT and graded)


def _is_run_table(head: Head) -> bool:
    names = _header(head)
    return bool(names & QUERY and names & PLACE and names & ORDER) and not names & GRADE and not _is_beir(head)


@lru_cache(maxsize=1)
def top_keys(data: bytes) -> frozenset[str]:
    """Keys of the JSON object that the bytes begin with, as far as they go; none where they begin with something else."""
    keys: set[str] = set()
    depth = 0
    if not data.lstrip().startswith(b"{"):
        return frozenset()
    for found in _TOKEN.finditer(data):
        token = found.group()
        if token in b"{[":
            depth += 1
        elif token in b"}]":
            depth -= 1
        elif depth == 1 and found.group(1):
            keys.add(token.rstrip(b": \t\r\n")[1:-1].decode("utf-8", "replace"))
    return frozenset(keys)


def _json(*wanted: str, inside: str) -> Callable[[Head], bool]:
    """Whether one of the keys is at the top, and another word anywhere."""
    word = f'"{inside}"'.encode()

    def fits(head: Head) -> bool:
        return word in head.data and bool(top_keys(head.data) & set(wanted))

    return fits


def _csv(*headers: tuple[str, ...]) -> Callable[[Head], bool]:
    """Whether the header row begins with these names; with exactly these, where there are three."""

    def fits(head: Head) -> bool:
        columns = tuple(head.columns(separator_of(head.first_line)))
        return any(columns == names or (len(names) > 3 and columns[: len(names)] == names) for names in headers)

    return fits


def _is_catalogue(head: Head) -> bool:
    return not head.data and str(head.path).startswith(CATALOGUE)


def _is_hub(head: Head) -> bool:
    """Whether a path is a name of the hub, or a folder of queries and judgments as it has them."""
    folder = head.path
    if head.data or str(folder).startswith(HUB):
        return not head.data
    if not folder.is_dir() or next(folder.glob("qrels/*.tsv*"), None) is not None:
        return False
    queries = [sub for sub in folder.glob("*queries*") if sub.is_dir()]
    if any((sub / name).is_file() for sub in queries for name in SAVED) or any(
        next(sub.glob("*.parquet"), None) for sub in queries
    ):
        return True
    card = folder / "README.md"
    return card.is_file() and _CARD.search(card.read_text("utf-8", "replace")) is not None


def _is_ltr(head: Head) -> bool:
    lines = [line for line in head.data.split(b"\n", 20) if line.strip()][:10]
    return any(_LTR.match(line) and is_number(line.split()[0]) for line in lines)


@lru_cache(maxsize=1)
def _first_record(data: bytes) -> Mapping[str, object]:
    """The first object of JSON Lines, of a JSON list or of a JSON file, its keys in lower case; empty where it is none."""
    text = data.decode("utf-8", "replace").lstrip().removeprefix("[").lstrip()
    try:
        record, _ = json.JSONDecoder().raw_decode(text) if text.startswith("{") else ({}, 0)
    except (ValueError, RecursionError):
        return {}
    return {str(key).lower(): value for key, value in record.items()}


def _of_annotators(*keys: str) -> Callable[[Head], bool]:
    """Whether the first record has all of some keys."""

    def fits(head: Head) -> bool:
        return all(key.encode() in head.data for key in keys) and _first_record(head.data).keys() >= {*keys}

    return fits


def _is_samples(head: Head) -> bool:
    if b"context" not in head.data:  # a plain search is far faster
        return False
    names = _first_record(head.data).keys()
    return bool(names & _SAMPLE_TEXTS and names & _SAMPLE_CONTEXTS)


def lacks_references(head: Head) -> bool:
    """Whether samples say what was retrieved, name documents that are expected, and have no reference contexts."""
    from cranfield.formats.testsets.names import EXPECTED, PLACES, plain

    record = _first_record(head.data)
    names = {plain(name) for name in record if record[name]}
    return not record.keys() & _REFERENCES and bool(names & {*EXPECTED, *PLACES})


def _is_documents(head: Head) -> bool:
    """Whether these are queries with lists of results, by name; or queries to lists of documents with metadata."""
    if head.data.lstrip()[:1] not in {b"{", b"["} or b'"cranfield_' in head.data:
        return False
    record = _first_record(head.data)
    if record.keys() & _RUN_QUERIES and any(isinstance(record.get(name), list) for name in _RESULT_LISTS):
        return True
    first = next(iter(record.values()), None)
    item = first[0] if isinstance(first, list) and first else None
    item = item[0] if isinstance(item, list) and item else item
    return isinstance(item, dict) and bool(item.keys() & _OF_DOCUMENT) and not record.keys() & {"queries", "requests"}


def _is_id_mapping(head: Head) -> bool:
    found = None if b'"cranfield_' in head.data else _ID_MAPPING.match(head.data)
    return found is not None and found["key"] not in _OWN_LISTS and not _is_documents(head) and not _is_samples(head)


def _is_llama_index(head: Head) -> bool:
    return bool(_TEXTS_BY_ID.match(head.data)) or {"queries", "relevant_docs", "corpus"} <= top_keys(head.data)


def _is_msmarco(head: Head) -> bool:
    """Whether most lines are a query, a document and a rank; where a line has tabs, two of them."""
    lines = [line for line in head.data.split(b"\n", FIRST_LINES * 2)[:FIRST_LINES] if line.strip()]
    rows = [line.strip().split(b"\t") if b"\t" in line else line.split() for line in lines]
    right = [len(row) == 3 and row[2].strip().isdigit() for row in rows]
    return 2 * sum(right) > len(rows) and right[0]  # a header row is of another format


CODE_SETS: tuple[Format, ...] = (
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
        layout="tree",
    ),
    Format(
        "golden-json",
        "testset",
        "a JSON list of records with `query_id` and `expected_entities`, `expected_files` or `expected_line_ranges`",
        _is_golden,
        "cranfield.formats.testsets.golden_json:read_golden_json",
        "cranfield.formats.testsets.golden_json:write_golden_json",
        _LEVELS
        | {"entities", "entity lines", "spans", "file targets", "files", "barren", "texts", "strata", "labels"}
        | {"matching", "name", "version", "description", "meta"},
        source="KnowCode, tests/eval/golden",
        needs=frozenset({"texts"}),
        layout="tree",
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
        layout="table",
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
        layout="table",
    ),
    Format(
        "huggingface",
        "testset",
        "a data set as BEIR and MTEB have on Hugging Face's hub: its name (`hf:mteb/scifact`), or its folder",
        _is_hub,
        "cranfield.formats.tools.huggingface:read_hub_dataset",
        holds=_SHARED - {"barren"} | {"unjudged", "fractions", "name"},
        source="MTEB and BEIR: the configurations corpus, queries and qrels of their data sets",
        is_folder=True,
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
        layout="table",
    ),
    Format(
        "table",
        "testset",
        "a table of judgments in TSV, CSV or JSONL (columns `query_id`, `doc_id`, `grade`)",
        _is_table,
        "cranfield.formats.testsets.judgment_table:read_judgment_table",
        "cranfield.formats.testsets.judgment_table:write_judgment_table",
        _BY_ID | {"ratings", "adjudicated", "reasons", "times", "classes", "negative"},
        source="Cranfield's own; columns have the same names as in data frames",
        layout="table",
    ),
    Format(
        "run-table",
        "run",
        "a TSV or CSV table of results (columns `query_id`, `doc_id` or `path`, `rank` or `score`)",
        _is_run_table,
        "cranfield.formats.runs.table:read_run_table",
        "cranfield.formats.runs.table:write_run_table",
        suffix=".csv",
        source="Cranfield's own; columns have the same names as in data frames",
    ),
)
"""Test sets of code search and of IR collections, and runs in tables."""

OTHER_TOOLS: tuple[Format, ...] = (
    Format(
        "quepid-csv",
        "testset",
        "ratings of a Quepid case (CSV with `query,docid,rating`, or its detailed export)",
        _csv(
            ("query", "docid", "rating"),
            ("query", "doc_id", "rating"),
            ("team name", "case name", "case id", "query text", "doc id", "doc position", "title", "rating"),
        ),
        "cranfield.formats.tools.quepid:read_quepid_csv",
        "cranfield.formats.tools.quepid:write_quepid_csv",
        _SHARED | {"fractions"},
        source="Quepid, github.com/o19s/quepid: app/controllers/api/v1/export/ratings_controller.rb, "
        "app/assets/javascripts/services/caseCSVSvc.js",
        needs=frozenset({"texts"}),
        by_text=True,
        grades=_GAINS,
        layout="table",
    ),
    Format(
        "quepid-ltr",
        "testset",
        "ratings for learning to rank, of a Quepid case, RankLib or LETOR (lines `rating qid:ID [features] # document`)",
        _is_ltr,
        "cranfield.formats.tools.quepid:read_quepid_ltr",
        "cranfield.formats.tools.quepid:write_quepid_ltr",
        _SHARED - {"barren"} | {"fractions"},
        source="Quepid, github.com/o19s/quepid: app/views/api/v1/export/ratings/show_ltr.txt.erb; RankLib and LETOR have features",
        ids=COLUMN_ID,
        grades=_GAINS,
        layout="columns",
    ),
    Format(
        "quepid-book",
        "testset",
        "a book of judgements of Quepid (JSON with `query_doc_pairs`)",
        _json("query_doc_pairs", inside="query_doc_pairs"),
        "cranfield.formats.tools.quepid:read_quepid_book",
        "cranfield.formats.tools.quepid:write_quepid_book",
        (_SHARED - {"barren"}) | {"ratings", "reasons", "name", "need", "notes"},
        source="Quepid, github.com/o19s/quepid: app/views/api/v1/export/books, app/services/book_importer.rb",
        needs=frozenset({"texts"}),
        by_text=True,
        grades=_GAINS,
        layout="tree",
    ),
    Format(
        "quepid-book-csv",
        "testset",
        "a book of judgements of Quepid (CSV with `query,docid` and a column per rater)",
        never,
        "cranfield.formats.tools.quepid:read_quepid_book_csv",
        holds=frozenset({"ratings", "texts"}),
        source="Quepid, github.com/o19s/quepid: app/controllers/api/v1/judgements_controller.rb",
        by_text=True,
    ),
    Format(
        "searchtweak",
        "testset",
        "an export of a SearchTweak evaluation (CSV with `grade,keyword,doc`)",
        _csv(("grade", "keyword", "doc")),
        "cranfield.formats.tools.searchtweak:read_searchtweak_csv",
        "cranfield.formats.tools.searchtweak:write_searchtweak_csv",
        _SHARED - {"barren"} | {"fractions"},
        source="SearchTweak, github.com/afedukov/searchtweak: app/Actions/Evaluations/ExportSearchEvaluation.php",
        needs=frozenset({"texts"}),
        by_text=True,
        grades=_GAINS,
        layout="table",
    ),
    Format(
        "opensearch",
        "testset",
        "a judgment list of OpenSearch (JSON with `judgmentRatings`)",
        _json("judgmentRatings", "hits", inside="judgmentRatings"),
        "cranfield.formats.tools.opensearch:read_opensearch_judgments",
        "cranfield.formats.tools.opensearch:write_opensearch_judgments",
        _SHARED | {"fractions", "name", "description"},
        source="OpenSearch, github.com/opensearch-project/search-relevance: "
        "src/main/java/org/opensearch/searchrelevance/judgments/ImportJudgmentsProcessor.java",
        needs=frozenset({"texts"}),
        by_text=True,
        grades=_GAINS,
        layout="tree",
    ),
    Format(
        "rank-eval",
        "testset",
        "a request to `_rank_eval` of Elasticsearch or OpenSearch (JSON with `requests` and their `ratings`)",
        _json("requests", inside="ratings"),
        "cranfield.formats.tools.rank_eval:read_rank_eval",
        "cranfield.formats.tools.rank_eval:write_rank_eval",
        _SHARED | {"params", "name"},
        source="Elasticsearch, github.com/elastic/elasticsearch: "
        "modules/rank-eval/src/main/java/org/elasticsearch/index/rankeval/RatedRequest.java",
        needs=frozenset({"texts"}),
        grades=_GAINS,
        layout="tree",
    ),
    Format(
        "rre",
        "testset",
        "ratings of the Rated Ranking Evaluator (JSON with `queries` that have `placeholders`)",
        _json("topics", "query_groups", "queries", inside="placeholders"),
        "cranfield.formats.tools.rre:read_rre",
        "cranfield.formats.tools.rre:write_rre",
        _SHARED | {"fractions", "params", "strata", "name"},
        source="Rated Ranking Evaluator, github.com/SeaseLtd/rated-ranking-evaluator: "
        "rre-core/src/main/java/io/sease/rre/core/Engine.java",
        needs=frozenset({"texts"}),
        by_text=True,
        strata=frozenset({"topic", "query_group"}),
        grades=_GAINS,
        layout="tree",
    ),
    Format(
        "label-studio",
        "testset",
        "tasks of Label Studio (JSON with `data` and `annotations`)",
        _of_annotators("data", "annotations"),
        "cranfield.formats.tools.annotations:read_label_studio",
        holds=frozenset({"ratings", "reasons", "texts"}),
        source="Label Studio, github.com/HumanSignal/label-studio: docs/source/guide/export.md",
    ),
    Format(
        "argilla",
        "testset",
        "records of Argilla (JSON or JSONL with `fields` and `responses`)",
        _of_annotators("fields", "responses"),
        "cranfield.formats.tools.annotations:read_argilla",
        holds=frozenset({"ratings", "texts"}),
        source="Argilla, github.com/argilla-io/argilla: argilla/src/argilla/records/_dataset_records.py",
    ),
    Format(
        "llama-index",
        "testset",
        "a QA dataset of LlamaIndex (JSON with `queries`, `corpus` and `relevant_docs`)",
        _is_llama_index,
        "cranfield.formats.tools.samples:read_llama_index",
        holds=frozenset({"grades", "texts", "barren"}),
        source="LlamaIndex, github.com/run-llama/llama_index: "
        "llama-index-core/llama_index/core/llama_dataset/legacy/embedding.py",
    ),
    Format(
        "samples",
        "testset",
        "samples of Ragas or DeepEval (JSON or JSONL with `user_input` and `reference_contexts`, or `input` and `context`)",
        _is_samples,
        "cranfield.formats.tools.samples:read_samples",
        holds=frozenset({"grades", "texts", "barren"}),
        source="Ragas, github.com/explodinggradients/ragas: src/ragas/dataset_schema.py; "
        "DeepEval, github.com/confident-ai/deepeval: deepeval/test_case/llm_test_case.py",
        by_text=True,
    ),
    Format(
        "samples-run",
        "run",
        "samples of Ragas or DeepEval with `retrieved_contexts` or `retrieval_context`",
        _is_samples,
        "cranfield.formats.tools.samples:read_samples_run",
        source="Ragas, github.com/explodinggradients/ragas: src/ragas/dataset_schema.py; "
        "DeepEval, github.com/confident-ai/deepeval: deepeval/test_case/llm_test_case.py",
    ),
    Format(
        "documents",
        "run",
        "queries with their documents (JSON or JSONL, as Haystack and LangChain write them: `metadata` or `meta` with a `source`)",
        _is_documents,
        "cranfield.formats.runs.table:read_document_run",
        source="LangChain, github.com/langchain-ai/langchain: libs/core/langchain_core/documents/base.py; "
        "Haystack, github.com/deepset-ai/haystack: haystack/dataclasses/document.py",
    ),
    Format(
        "json",
        "testset",
        "a JSON object of query id to document ids with their grades, or to a list of relevant ids",
        _is_id_mapping,
        "cranfield.formats.testsets.judgments:read_qrels_json",
        "cranfield.formats.testsets.judgments:write_qrels_json",
        _SHARED - {"texts"} | {"fractions", "unjudged"},
        source="pytrec_eval, github.com/cvangysel/pytrec_eval; BEIR; ranx, github.com/AmenRa/ranx: ranx/data_structures/qrels.py",
        layout="tree",
    ),
    Format(
        "json-run",
        "run",
        "a JSON object of query id to document ids with their scores, or to a list of ids in order",
        _is_id_mapping,
        "cranfield.formats.runs.table:read_id_mapping",
        source="pytrec_eval, github.com/cvangysel/pytrec_eval; BEIR; ranx, github.com/AmenRa/ranx: ranx/data_structures/run.py",
    ),
    Format(
        "msmarco",
        "run",
        "lines `query document rank` without a header, as in MS MARCO",
        _is_msmarco,
        "cranfield.formats.runs.table:read_msmarco_run",
        source="MS MARCO, github.com/microsoft/MSMARCO-Passage-Ranking: ms_marco_eval.py",
    ),
    Format(
        "ir_datasets",
        "testset",
        "a name in the catalogue of ir_datasets (`ir_datasets:cranfield`)",
        _is_catalogue,
        "cranfield.formats.tools.ir_datasets:read_dataset",
        holds=_SHARED - {"barren"} | {"unjudged", "fractions", "groups", "name"},
        source="ir_datasets, github.com/allenai/ir_datasets: ir_datasets/datasets/base.py",
    ),
)
"""Files of other evaluation tools."""
