"""A mapping for a file of queries, proposed from its data: the names that people use, and the values that stand there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from cranfield.base.errors import CranfieldError, TestSetError
from cranfield.base.words import join_first
from cranfield.formats.io.delimited import JUDGMENT_COLUMNS
from cranfield.formats.io.files import shown, suffix_of
from cranfield.formats.testsets.mapping import EXPECTED_VALUE, FieldMapping, FileValues, file_values, mapped_testset
from cranfield.model import TestSet
from cranfield.model.kinds import PARAM_NAME

LISTS = (
    "queries", "tests", "test_cases", "testcases", "cases", "entries", "examples", "questions", "items", "samples", "goldens",
    "golden", "golden_set", "evals", "records", "rows", "data", "dataset", "benchmark", "scenarios", "topics", "requests",
)  # fmt: skip
"""Keys of a file under which its queries stand, the likeliest first."""
TEXTS = (
    "query", "q", "question", "query_text", "search_query", "user_input", "user_query", "prompt", "input", "text", "keyword",
    "keywords", "search", "search_term", "term", "terms", "phrase", "request", "user_message", "message", "task", "utterance", "intent_text",
)  # fmt: skip
IDS = (
    "id",
    "query_id",
    "qid",
    "q_id",
    "_id",
    "uid",
    "uuid",
    "case_id",
    "test_id",
    "question_id",
    "example_id",
    "slug",
    "key",
    "name",
)
EXPECTED = (
    "expected_ids", "expected_doc_ids", "expected_docs", "expected_documents", "expected_sources", "expected_files", "expected_paths",
    "expected_urls", "expected_passages", "expected_chunks", "expected_chunk_ids", "expected_results", "expected_items", "expected_hits",
    "expected_titles", "expected_pages", "expected_top", "expected_tool", "expected_tools", "expected_route", "relevant", "relevant_ids",
    "relevant_doc_ids", "relevant_docs", "relevant_documents", "relevant_chunks", "relevant_chunk_ids", "relevant_files", "relevant_urls",
    "relevant_passages", "relevant_items", "gold", "gold_ids", "gold_doc_ids", "gold_docs", "gold_chunks", "gold_chunk_ids", "gold_passages",
    "gold_sources", "golden", "golden_ids", "ground_truth_ids", "ground_truth_docs", "ground_truth_doc_ids", "qrels", "relevance",
    "relevance_judgments", "judgments", "judgements", "ratings", "grades", "must_find", "must_include", "must_return", "must_contain",
    "should_find", "should_include", "should_return", "should_contain", "want", "wants", "wanted", "target", "targets", "target_ids",
    "target_doc_ids", "target_files", "matches", "correct", "correct_ids", "positives", "positive_ids", "pos", "expected", "expect",
    "expects", "answer_ids", "answer_docs", "supporting_docs", "supporting_ids", "supporting_facts", "evidence", "source_docs", "doc_ids",
    "document_ids", "chunk_ids", "ids", "doc_id", "document_id", "urls", "url", "sources", "files", "paths",
    "ground_truth", "answers", "answer", "ideal", "reference", "references", "expected_output", "expected_answer", "expected_substring",
    "expected_substrings", "expected_text", "expected_keywords",
)  # fmt: skip
FORBIDDEN = (
    "must_not", "must_not_find", "must_not_include", "must_not_return", "must_not_contain", "should_not", "should_not_find",
    "should_not_include", "should_not_return", "should_not_contain", "never", "forbidden", "forbidden_ids", "forbidden_docs", "not_expected",
    "unexpected", "unexpected_ids", "excluded", "exclude", "excludes", "disallowed", "banned", "avoid", "not", "reject", "unwanted",
)  # fmt: skip
NOT_RELEVANT = (
    "irrelevant", "irrelevant_ids", "not_relevant", "non_relevant", "nonrelevant", "negatives", "hard_negatives", "negative_ids",
    "distractors", "negative_docs",
)  # fmt: skip
EXHAUSTIVE = ("exhaustive", "complete", "is_exhaustive", "is_complete", "closed", "all_listed")
NEGATIVE = (
    "negative", "is_negative", "expect_empty", "expect_none", "expect_nothing", "expect_no_results", "expects_no_results", "no_results",
    "no_answer", "should_be_empty", "unanswerable", "out_of_scope", "expected_empty",
)  # fmt: skip
STRATA = (
    "category", "categories", "difficulty", "type", "query_type", "question_type", "intent", "language", "lang", "locale", "topic", "domain",
    "level", "kind", "group", "tier", "severity", "tag", "tags", "segment", "complexity", "area", "section", "task_type", "class", "cluster",
    "persona", "stratum", "label", "labels", "suite",
)  # fmt: skip
PARAMS = (
    "library", "collection", "mode", "search_mode", "namespace", "index", "index_name", "tenant", "tenant_id", "project", "repo",
    "repository", "corpus", "scope", "filter", "k", "top_k", "topk", "limit", "n_results", "db", "database", "search_type", "strategy",
    "alpha", "package", "user", "user_id", "workspace", "source_id", "kb", "book", "site", "threshold", "min_score",
)  # fmt: skip
FILTERS = ("filters", "filter", "params", "parameters", "options", "context", "args", "arguments")
"""Keys under which parameters for the system stand together."""
FLOORS = {
    "min_precision": "P@{k}", "precision_floor": "P@{k}", "min_precision_at_k": "P@{k}", "min_recall": "R@{k}",
    "min_recall_at_k": "R@{k}", "recall_floor": "R@{k}", "min_mrr": "RR", "min_rr": "RR", "min_reciprocal_rank": "RR",
    "min_ndcg": "nDCG@{k}", "min_ndcg_at_k": "nDCG@{k}", "min_hit_rate": "Success@{k}", "min_ap": "AP", "min_map": "AP",
}  # fmt: skip
TOPS = (
    "max_rank", "rank_at_most", "must_be_in_top", "in_top", "within", "within_top", "top", "top_n", "expected_rank", "max_position",
    "at_most_rank", "rank_within",
)  # fmt: skip
WEIGHTS = ("weight", "frequency", "freq", "traffic", "impressions")
NOTES = ("note", "notes", "comment", "comments", "description", "desc", "rationale", "reason", "why", "explanation")
NEEDS = ("need", "information_need", "user_goal", "goal")
OF_DOCUMENT = ("doc_id", "docid", "document_id", "id", "_id", "chunk_id", "docno", "key", "sku", "item_id", "product_id", "doc", "document",
               "article_id", "page_id", "entity_id", "passage_id", "node_id")  # fmt: skip
OF_GRADE = (
    "grade",
    "gain",
    "relevance",
    "rel",
    "score",
    "rating",
    "weight",
    "level",
    "label",
    "relevance_score",
    "importance",
    "tier",
)
OF_FIELD = {
    "path": "path ends", "file": "path ends", "file_path": "path ends", "filepath": "path ends", "filename": "path ends",
    "source": "path ends", "path_suffix": "path ends", "path_ends_with": "path ends", "path_endswith": "path ends",
    "path_contains": "path contains", "file_contains": "path contains", "path_includes": "path contains", "source_contains": "path contains",
    "path_glob": "path glob", "glob": "path glob", "file_glob": "path glob", "url": "url", "uri": "url", "link": "url", "href": "url",
    "url_contains": "url contains", "url_suffix": "url ends", "title": "title", "heading": "title", "title_contains": "title contains",
    "passage_substring": "text contains", "substring": "text contains", "text_contains": "text contains", "contains": "text contains",
    "content_contains": "text contains", "quote": "text contains", "snippet": "text contains", "passage": "text contains",
    "text": "text contains", "excerpt": "text contains", "must_contain": "text contains", "content": "text contains",
}  # fmt: skip
"""Key of an expected object to the condition that it is."""
DESCRIBES = frozenset(
    [
        "title",
        "name",
        "heading",
        "url",
        "uri",
        "link",
        "description",
        "desc",
        "note",
        "notes",
        "reason",
        "why",
        "comment",
        "comments",
        "rationale",
        "explanation",
        "rank",
        "position",
        "order",
        "text",
        "content",
        "snippet",
        "start",
        "end",
        "start_line",
        "end_line",
        "line",
        "lines",
    ]
)
"""Keys of an expected object that describe a document whose id is there; alone they may be conditions."""
NEVER_CONDITIONS = frozenset(
    [
        "description",
        "desc",
        "note",
        "notes",
        "reason",
        "why",
        "comment",
        "comments",
        "rationale",
        "explanation",
        "rank",
        "position",
        "order",
        "start",
        "end",
        "start_line",
        "end_line",
        "line",
        "lines",
    ]
)
LISTS_OF_RESULTS = re.compile(r"retrieved|returned|actual|result|response|output|context|hits|^docs$|documents$")
NO_EXPECTATION = re.compile(
    r"^(tags?|labels?|keywords?|synonyms?|categories|filters?|notes|aliases|history|messages|steps)$"
)
"""Lists of an item that expect nothing."""
GRADE_WORDS: tuple[Mapping[str, float], ...] = (
    {"high": 2, "partial": 1},
    {"high": 3, "medium": 2, "low": 1, "none": 0},
    {"perfect": 3, "exact": 3, "excellent": 3, "highly relevant": 3, "highly_relevant": 3, "good": 2, "relevant": 2, "fair": 1,
     "partial": 1, "partially relevant": 1, "partially_relevant": 1, "somewhat": 1, "marginal": 1, "poor": 0, "bad": 0, "irrelevant": 0,
     "not relevant": 0, "not_relevant": 0},
    {"primary": 2, "main": 2, "required": 2, "must": 2, "essential": 2, "secondary": 1, "supporting": 1, "optional": 1, "nice": 1,
     "should": 1},
    {"critical": 3, "important": 2, "minor": 1},
    {"yes": 1, "true": 1, "no": 0, "false": 0},
)  # fmt: skip
"""Words for grades; the first table that has all words of a file is taken."""
KNOWN_SHAPES: Mapping[str, tuple[frozenset[str], Mapping[str, Any]]] = {
    "promptfoo": (
        frozenset({"vars", "assert"}),
        {
            "text": "vars.query || vars.question || vars.prompt || vars.input || vars.q",
            "expected": "assert[?type == 'contains' || type == 'icontains' || type == 'contains-any' || type == 'contains-all' "
            "|| type == 'context-recall' || type == 'equals'].value[]",
            "forbidden": "assert[?type == 'not-contains' || type == 'not-icontains' || type == 'not-contains-any'].value[]",
            "where": {"text contains": "@"},
            "notes": "description",
        },
    ),
    "LangSmith": (
        frozenset({"inputs", "outputs"}),
        {
            "id": "id",
            "text": "inputs.query || inputs.question || inputs.input || inputs.user_input || inputs.text",
            "expected": "outputs.expected_ids || outputs.relevant_ids || outputs.doc_ids || outputs.documents || outputs.sources || "
            "outputs.expected || outputs.answer || outputs.output",
        },
    ),
    "OpenAI evals": (
        frozenset({"input", "ideal"}),
        {"text": "input[?role == 'user'] | [-1].content", "expected": "ideal", "where": {"text contains": "@"}},
    ),
    "DeepEval": (
        frozenset({"input", "expected_output"}),
        {
            "text": "input",
            "expected": "context || retrieval_context || expected_output",
            "where": {"text contains": "@"},
        },
    ),
    "Ragas": (
        frozenset({"user_input", "reference"}),
        {
            "text": "user_input",
            "expected": "reference_context_ids || reference_contexts || reference",
            "where": {"text contains": "@"},
        },
    ),
}
"""Name of a tool to the keys that its records have, and where they say what: the shapes of datasets that others write."""
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_FILE = re.compile(r"[^\s:]*[^\s:/.][^\s:/]*\.[A-Za-z][A-Za-z0-9]{0,4}|[^\s:]+/[^\s:]+")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_SAMPLED = 200
"""Items that a proposal looks at."""
PROSE_WORDS = 4
MAX_FILE_BYTES = 64 << 20


def read_golden_file(path: Path | str) -> TestSet:
    """Read any file of queries by the mapping that its data suggest, which a note states.

    Raises:
        TestSetError: as `propose`; or with everything that cannot be mapped, each at its place.
    """
    source = file_values(Path(path))
    return mapped_testset(source, propose(source), proposed=True)


def propose(source: FileValues, known: Collection[str] = ()) -> FieldMapping:
    """The mapping that a file's own names and values suggest.

    Args:
        source: the data.
        known: ids that a system returned: a key whose values are among them says what is expected.

    Raises:
        TestSetError: no list of queries, no text or id of a query, or nothing that is expected; with the keys that are there.
    """
    if (by_query := _by_query(source.values)) is not None:
        return by_query
    found = _items_of(source.values)
    if found is None:
        keys = join_first(source.values) if isinstance(source.values, Mapping) else ""
        raise _not_found(
            source, "no list of queries", f"a list, or one under a key such as {join_first(LISTS[:5])}", keys
        )
    path, items = found
    mapping = _Proposal(path, items[:MAX_SAMPLED], known, is_table=source.is_table).mapping()
    if (
        mapping.text is None
        and mapping.id is None
        and not (isinstance(source.values, Mapping) and path in {"@", *LISTS})
    ):
        expected = f"a key such as {join_first(TEXTS[:5])}"
        raise _not_found(source, "no field with the text of a query", expected, join_first(items[0], 12))
    if not (mapping.expected or mapping.negative or mapping.forbidden):
        expected = f"a key such as {join_first((*EXPECTED[:1], 'relevant', 'qrels', 'must_find'))}"
        raise _not_found(source, "no field with what is expected", expected, join_first(items[0], 12))
    return mapping


def _at_path(values: Any, path: str) -> Any:
    import jmespath

    return jmespath.search(path, values)


def _not_found(source: FileValues, message: str, expected: str, got: str) -> TestSetError:
    hint = (
        "a mapping names the fields: `testset: {file: FILE, text: …, expected: …}` in cranfield.yaml, or {map=KEY=PATH}"
    )
    return TestSetError(
        message, path=shown(source.path), expected=expected, got=got or None, hint=hint, parameters=("map",)
    )


def is_mappable(path: Path) -> bool:
    """Whether a mapping can be proposed for a file."""
    try:
        stat = path.stat()
    except OSError:
        return False
    if not path.is_file() or stat.st_size > MAX_FILE_BYTES:
        return False
    return _is_mappable(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=8)
def _is_mappable(path: Path, _modified: int, _size: int) -> bool:
    if _is_table_of_judgments(path) or suffix_of(path) not in {
        ".json",
        ".jsonl",
        ".ndjson",
        ".yaml",
        ".yml",
        ".toml",
        ".csv",
        ".tsv",
        ".xlsx",
        ".parquet",
        ".txt",
        "",
    }:
        return False
    try:
        source = file_values(path)
        mapping = propose(source)
    except (CranfieldError, OSError, ImportError):
        return False
    return not (source.is_table and mapping.text is None)


def _is_table_of_judgments(path: Path) -> bool:
    """Whether a Parquet file has a column of documents beside one of queries."""
    with path.open("rb") as stream:
        if stream.read(4) != b"PAR1":
            return False
    from pyarrow import parquet

    try:
        names = {name.lower() for name in parquet.read_schema(path).names}
    except (OSError, ValueError):
        return False
    return bool(names & {*JUDGMENT_COLUMNS["query_id"]} and names & {*JUDGMENT_COLUMNS["doc_id"]})


def _plain(name: object) -> str:
    """A name as it is compared: `expectedIds`, `Expected IDs` and `expected-ids` are `expected_ids`."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name).strip())
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _quoted(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


Items = tuple[str, Sequence[Mapping[str, Any]]]
"""JMESPath and items of a list of queries."""


def _items_of(values: Any, path: str = "") -> Items | None:
    """The list of queries in the data; None where there is none."""
    if isinstance(values, dict):
        return _items_inside(values, path)
    if not isinstance(values, list) or not values or not all(isinstance(value, dict) for value in values):
        return None
    nested = _nested(values)
    return (path or "@", values) if nested is None else (f"{path}[].{_quoted(nested[0])}[]", nested[1])


def _items_inside(values: dict[str, Any], path: str) -> Items | None:
    """The list of queries under a key, the likeliest first; a mapping of ids to queries, or a single query."""
    if any(_plain(name) in TEXTS and isinstance(value, str) for name, value in values.items()):
        return path or "@", [values]
    names = sorted(values, key=lambda name: LISTS.index(_plain(name)) if _plain(name) in LISTS else len(LISTS))
    lists = [name for name in names if isinstance(values[name], list)]
    mappings = [name for name in names if isinstance(values[name], dict) and _plain(name) in LISTS]
    for name in (*lists, *mappings):
        if (found := _items_of(values[name], f"{path}.{_quoted(name)}" if path else _quoted(name))) is not None:
            return found
    is_by_id = bool(values) and all(isinstance(value, dict) and not _is_graded(value) for value in values.values())
    return (path or "@", list(values.values())) if is_by_id else None


def _by_query(values: Any, path: str = "@") -> FieldMapping | None:
    """The mapping of a file that maps queries to what is expected: `{red shoes: [a, b]}`; None of any other."""
    if not isinstance(values, dict) or not values:
        return None
    for name, value in values.items():
        if _plain(name) in LISTS and (found := _by_query(value, _quoted(str(name)))) is not None:
            return found
    answers = [value for value in values.values() if isinstance(value, list | dict)]
    is_flat = all(
        _is_graded(value) if isinstance(value, dict) else all(isinstance(each, str | int) for each in value)
        for value in answers
    )
    is_answered = len(answers) == len(values) or (
        path != "@" and all(isinstance(v, str | list) for v in values.values())
    )
    return FieldMapping(items=path, expected=EXPECTED_VALUE) if is_flat and is_answered else None


def _nested(records: Sequence[Mapping[str, Any]]) -> Items | None:
    """Key and items of lists of queries within records that have no query themselves: suites of tests."""
    if any(_plain(name) in TEXTS for name in records[0]):
        return None
    for name, value in records[0].items():
        is_list = isinstance(value, list) and value and all(isinstance(inner, dict) for inner in value)
        if is_list and _plain(name) in LISTS:
            return name, [item for record in records for item in record.get(name) or () if isinstance(item, dict)]
    return None


class _Proposal:
    """Finds the fields of items by name, and where names say nothing by value."""

    def __init__(
        self, path: str, items: Sequence[Mapping[str, Any]], known: Collection[str], *, is_table: bool
    ) -> None:
        self.path = path
        self.items = items
        self.known = {*known}
        self.is_table = is_table
        self.fields: dict[str, tuple[str, list[Any]]] = {}
        """Path of a field to its name as it is compared, and its values, item by item."""
        paths = dict.fromkeys(path for item in items for path in _fields_of(item))
        for keys in paths:
            values = [_at(item, keys) for item in items]
            self.fields[".".join(map(_quoted, keys))] = (_plain(keys[-1]), values)
        self.used: set[str] = set()

    def mapping(self) -> FieldMapping:
        if (shape := self._known_shape()) is not None:
            return shape
        text = self._take(TEXTS, lambda values: all(isinstance(value, str) for value in values))
        id_path = self._take(IDS[:6], _are_scalars) or self._take(IDS[6:], self._are_ids)
        forbidden = self._take(FORBIDDEN, _are_values)
        not_relevant = self._take(NOT_RELEVANT, _are_values)
        exhaustive = self._take(EXHAUSTIVE, _are_flags)
        negative = self._take(NEGATIVE, _are_flags)
        floors, top = self._floors(), self._take(TOPS, _are_numbers)
        expected = self._expected()
        found = self._values(expected)
        where, urls = self._where(expected, found)
        grade, grades = self._grade(found)
        params = self._params()
        strata = self._strata()
        return FieldMapping(
            items=self.path,
            id=id_path,
            text=text,
            expected=expected,
            where=where,
            grade=grade,
            grades=grades,
            split=self._split(expected),
            not_relevant=not_relevant,
            forbidden=forbidden,
            exhaustive=exhaustive,
            negative=negative,
            strata=strata,
            params=params,
            floors=floors,
            top=top,
            need=self._take(NEEDS, _are_texts),
            notes=self._take(NOTES, _are_texts),
            weight=self._take(WEIGHTS, _are_numbers),
            urls=urls,
        )

    def _known_shape(self) -> FieldMapping | None:
        keys = {_plain(name) for item in self.items for name in item}
        for required, shape in KNOWN_SHAPES.values():
            if keys >= required and not keys & {*EXPECTED[:80]} - required:
                chat = all(isinstance(item.get("input"), list) for item in self.items)
                if "ideal" in required and not chat:
                    continue
                there = {key: self._there(path) if isinstance(path, str) else path for key, path in shape.items()}
                self.used |= {each for path in there.values() if isinstance(path, str) for each in path.split(" || ")}
                known: dict[str, Any] = {key: path for key, path in there.items() if path}
                return FieldMapping(items=self.path, strata=self._strata(), **known)
        return None

    def _there(self, path: str) -> str:
        """The alternatives of a path that items have: `vars.query || vars.question`; empty where none has a value."""
        import jmespath

        parts = path.split(" || ") if "?" not in path else [path]
        n_found = {part: sum(jmespath.search(part, item) is not None for item in self.items) for part in parts}
        if path == "id" and n_found[path] < len(self.items):
            return ""
        return " || ".join(part for part in parts if n_found[part])

    def _present(self, path: str) -> list[Any]:
        return [value for value in self.fields[path][1] if value is not None and value != ""]

    def _take(self, names: Sequence[str], fits: Callable[[list[Any]], bool]) -> str | None:
        """The path of the first name that a field has whose values fit; the shallowest, where several have it."""
        for name in names:
            for path in sorted(self.fields, key=lambda each: each.count(".")):
                if self.fields[path][0] != name or path in self.used:
                    continue
                values = self._present(path)
                if values and fits(values):
                    self.used.add(path)
                    return path
        return None

    def _are_ids(self, values: list[Any]) -> bool:
        """Whether every item has one, and each is another: a name or a key may also be none."""
        return _are_scalars(values) and len(values) == len(self.items) == len({*map(str, values)})

    def _floors(self) -> dict[str, str]:
        depths = Counter(
            int(value)
            for path, (name, _) in self.fields.items()
            if name in {"k", "top_k", "topk", "limit"}
            for value in self._present(path)
            if str(value).isdigit() and int(value) > 0
        )
        k = depths.most_common(1)[0][0] if depths else 5
        found: dict[str, str] = {}
        for name, measure in FLOORS.items():
            if (path := self._take((name,), _are_numbers)) is not None:
                found.setdefault(measure.format(k=k), path)
        return found

    def _expected(self) -> str | None:
        if self.known:
            for path in self.fields:
                texts = {text for value in self._present(path) for text in _leaves(value)}
                if path not in self.used and texts & self.known:
                    self.used.add(path)
                    return path
        for name in EXPECTED:
            is_id = "id" in name.split("_") or "ids" in name.split("_")
            fits = _are_values if is_id else lambda values: _are_values(values) and not _are_grades(values)
            if (taken := self._take((name,), fits)) is not None:
                return taken
        lists = [
            path
            for path, (name, values) in self.fields.items()
            if path not in self.used
            and any(isinstance(value, list) and value for value in values)
            and all(value is None or isinstance(value, list) for value in values)
            and not NO_EXPECTATION.match(name)
            and not LISTS_OF_RESULTS.search(name)
        ]
        if len(lists) == 1 and any(self.fields[path][0] in TEXTS for path in self.used):
            self.used.add(lists[0])
            return lists[0]
        return None

    def _split(self, expected: str | None) -> str | None:
        """What separates values in the cells of a table."""
        if expected is None or not self.is_table:
            return None
        cells = [value for value in self._present(expected) if isinstance(value, str) and value[:1] not in {"[", "{"}]
        for separator in ("|", ";", "\n", ","):
            if any(separator in cell for cell in cells) and not any(
                " " in part.strip() for cell in cells for part in cell.split(separator)
            ):
                return separator
        return None

    def _values(self, expected: str | None) -> list[Any]:
        """Single expected values."""
        if expected is None:
            return []
        split = self._split(expected)
        found: list[Any] = []
        for value in self._present(expected):
            cells = value.split(split) if split and isinstance(value, str) else [value]
            found += [single for cell in cells for single in _singles(cell)]
        return found

    def _where(
        self, expected: str | None, found: Sequence[Any]
    ) -> tuple[dict[str, str], tuple[Literal["fragment", "slash"], ...]]:
        """The conditions of expected values, and what of their addresses does not count."""
        objects = [value for value in found if isinstance(value, Mapping)]
        texts = [str(value) for value in found if not isinstance(value, Mapping)]
        where: dict[str, str] = {}
        if objects:
            where |= _object_conditions(objects)
        if texts or not where:
            where |= {self._text_condition(self.fields[expected][0] if expected else "", texts): "@"}
        addresses = [
            str(value.get(name))
            for value in objects
            for name in value
            if _plain(name) in {"url", "uri", "link", "href"}
        ]
        has_urls = any(_URL.fullmatch(text) for text in (*texts, *addresses))
        return where, ("fragment", "slash") if has_urls else ()

    def _text_condition(self, name: str, texts: Sequence[str]) -> str:  # noqa: PLR0911 - a table of names and values
        """What a plain value is: an id, the end of a path, an address, a title, or words of the text."""
        words = {*name.split("_")}
        is_prose = bool(texts) and sum(len(text.split()) >= PROSE_WORDS for text in texts) * 2 > len(texts)
        if words & {
            "contains",
            "contain",
            "substring",
            "substrings",
            "quote",
            "quotes",
            "passage",
            "passages",
            "snippets",
            "keywords",
            "phrases",
        }:
            return "id" if words & {"id", "ids"} else "text contains"
        if texts and all(_URL.fullmatch(text) for text in texts):
            return "url"
        if words & {"title", "titles"}:
            return "title"
        if words & {"id", "ids"}:
            return "id"
        if self.known and {*texts} & self.known:
            return "id"
        if is_prose or (words & {"ideal", "answer", "answers", "text"} and any(" " in text for text in texts)):
            return "text contains"
        is_files = bool(texts) and all(_FILE.fullmatch(text) for text in texts)
        return "path ends" if is_files or words & {"file", "files", "path", "paths"} else "id"

    def _grade(self, found: Sequence[Any]) -> tuple[str | None, Mapping[str, float]]:
        objects = [value for value in found if isinstance(value, Mapping)]
        for name in OF_GRADE:
            key = next((key for value in objects for key in value if _plain(key) == name), None)
            values = [value[key] for value in objects if key in value and value[key] is not None]
            if not values:
                continue
            words = {value for value in values if isinstance(value, str)}
            if not words:
                return (
                    (_quoted(str(key)), {}) if all(isinstance(value, int | float) for value in values) else (None, {})
                )
            table = next((table for table in GRADE_WORDS if {word.lower() for word in words} <= {*table}), None)
            if table is not None:
                return _quoted(str(key)), {
                    word: table[word.lower()] for word in sorted(words, key=lambda w: -table[w.lower()])
                }
            if all(word.replace(".", "", 1).isdigit() for word in words):
                return _quoted(str(key)), {word: float(word) for word in sorted(words)}
        return None, {}

    def _params(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for path, (name, values) in self.fields.items():
            keys = path.split(".")
            inside = len(keys) > 1 and _plain(keys[-2]) in FILTERS
            is_scalar = all(value is None or isinstance(value, str | int | float) for value in values)
            if path in self.used or not is_scalar or not (name in PARAMS or inside):
                continue
            parameter = re.sub(r"\W+", "_", keys[-1].strip('"'))
            if PARAM_NAME.fullmatch(parameter) and parameter not in found:
                found[parameter] = path
                self.used.add(path)
        return found

    def _strata(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for path, (name, _) in self.fields.items():
            present = self._present(path)
            if path in self.used or not present:
                continue
            is_text = all(isinstance(value, str | int | bool) for value in present)
            is_tags = name in {"tags", "labels", "categories"} and all(
                isinstance(value, list) and all(isinstance(tag, str) for tag in value) for value in present
            )
            groups = (
                is_text and len({*map(str, present)}) < len(present) and all(len(str(value)) <= 40 for value in present)
            )
            if is_tags or (is_text and (name in STRATA or groups)):
                key = path.rsplit(".", 1)[-1].strip('"')
                if key not in found:
                    found[key] = path
                    self.used.add(path)
        return found


def _fields_of(item: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Paths of the fields of an item, and of those of its mappings."""
    for name, value in item.items():
        if isinstance(value, dict) and not _is_graded(value):
            yield from (
                (str(name), str(inner))
                for inner in value
                if not isinstance(value[inner], dict) or _is_graded(value[inner])
            )
        else:
            yield (str(name),)


def _is_graded(value: Mapping[str, Any]) -> bool:
    """Whether a mapping is one of ids to grades."""
    is_number = bool(value) and all(
        isinstance(grade, int | float) and not isinstance(grade, bool) for grade in value.values()
    )
    return is_number and not all(_plain(name) in {*PARAMS, *FLOORS, *TOPS} for name in value)


def _at(item: Mapping[str, Any], keys: Sequence[str]) -> Any:
    value: Any = item
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _singles(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for inner in value:
            yield from _singles(inner)
    elif isinstance(value, Mapping) and _is_graded(value):
        yield from value
    elif value is not None:
        yield value


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, Mapping):
        yield from map(str, value)
        for inner in value.values():
            yield from _leaves(inner)
    elif value is not None:
        yield str(value)


def _are_scalars(values: list[Any]) -> bool:
    return all(isinstance(value, str | int) and not isinstance(value, bool) for value in values)


def _are_values(values: list[Any]) -> bool:
    """Whether they may be what is expected: texts, numbers, lists, objects."""
    return all(isinstance(value, str | int | float | list | dict) and not isinstance(value, bool) for value in values)


def _are_grades(values: list[Any]) -> bool:
    """Whether they look like grades and not like what is expected: small numbers alone."""
    return all(
        isinstance(value, int | float | str) and re.fullmatch(r"-?\d{1,2}(\.\d+)?", str(value)) for value in values
    )


def _are_flags(values: list[Any]) -> bool:
    return all(isinstance(value, bool) or str(value).lower() in {"true", "false", "yes", "no"} for value in values)


def _are_numbers(values: list[Any]) -> bool:
    try:
        [float(value) for value in values if not isinstance(value, bool)]
    except (TypeError, ValueError):
        return False
    return not any(isinstance(value, bool) for value in values)


def _are_texts(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _object_conditions(objects: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The conditions that the keys of expected objects say."""
    keys = list(dict.fromkeys(str(key) for value in objects for key in value))
    ids = [key for name in OF_DOCUMENT for key in keys if _plain(key) == name]
    grades = {_plain(key) for key in keys} & {*OF_GRADE}
    where: dict[str, str] = {"id": _quoted(ids[0])} if ids else {}
    for key in keys:
        name = _plain(key)
        is_scalar = all(not isinstance(value.get(key), list | dict) for value in objects)
        if key in ids or name in grades or name in NEVER_CONDITIONS or not is_scalar or (ids and name in DESCRIBES):
            continue
        condition = OF_FIELD.get(name)
        if condition is None:
            field, _, test = key.rpartition("_")
            condition = f"{field} contains" if test == "contains" and field else key
            if ids:  # what else an object with an id says of its document is no condition
                continue
        if condition not in where:
            where[condition] = _quoted(key)
    return where
