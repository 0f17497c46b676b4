"""Rows of the table of formats. Light: readers and writers are named, not imported.

The files of other evaluation tools. JSON is detected by its top-level keys, so that a test set that happens to hold such a
word is not taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from cranfield.formats.registry import COLUMN_ID, Format, Head, is_number, never

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"(\s*:)?|[][{}]', re.DOTALL)
_LTR = re.compile(rb"\s*\S+\s+qid:\S+\s+#\s*\S+")
_SHARED = frozenset({"grades", "levels", "zeros", "texts", "barren"})
"""What every one of these formats can say."""
_GAINS = (0.0, float("inf"))
CATALOGUE = "ir_datasets:"
"""What a path begins with that is a name of that catalogue and no file."""


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
        columns = tuple(head.columns(","))
        return any(columns == names or (len(names) > 3 and columns[: len(names)] == names) for names in headers)

    return fits


def _is_catalogue(head: Head) -> bool:
    return not head.data and str(head.path).startswith(CATALOGUE)


def _is_ltr(head: Head) -> bool:
    lines = [line for line in head.data.split(b"\n", 20) if line.strip()][:10]
    return any(_LTR.match(line) and is_number(line.split()[0]) for line in lines)


ENTRIES: tuple[Format, ...] = (
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
    ),
    Format(
        "quepid-ltr",
        "testset",
        "ratings of a Quepid case for learning to rank (lines `rating qid:ID # document text`)",
        _is_ltr,
        "cranfield.formats.tools.quepid:read_quepid_ltr",
        "cranfield.formats.tools.quepid:write_quepid_ltr",
        _SHARED - {"barren"} | {"fractions"},
        source="Quepid, github.com/o19s/quepid: app/views/api/v1/export/ratings/show_ltr.txt.erb",
        ids=COLUMN_ID,
        grades=_GAINS,
    ),
    Format(
        "quepid-book",
        "testset",
        "a book of judgements of Quepid (JSON with `query_doc_pairs`)",
        _json("query_doc_pairs", inside="query_doc_pairs"),
        "cranfield.formats.tools.quepid_book:read_quepid_book",
        "cranfield.formats.tools.quepid_book:write_quepid_book",
        (_SHARED - {"barren"}) | {"ratings", "name"},
        source="Quepid, github.com/o19s/quepid: app/views/api/v1/export/books, app/services/book_importer.rb",
        needs=frozenset({"texts"}),
        by_text=True,
        grades=_GAINS,
    ),
    Format(
        "quepid-book-csv",
        "testset",
        "a book of judgements of Quepid (CSV with `query,docid` and a column per rater)",
        never,
        "cranfield.formats.tools.quepid_book:read_quepid_book_csv",
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
    ),
    Format(
        "ir_datasets",
        "testset",
        "a name of ir_datasets' catalogue (`ir_datasets:cranfield`)",
        _is_catalogue,
        "cranfield.formats.tools.ir_datasets:read_dataset",
        holds=_SHARED - {"barren"} | {"unjudged", "fractions", "groups", "name"},
        source="ir_datasets, github.com/allenai/ir_datasets: ir_datasets/datasets/base.py",
    ),
)
