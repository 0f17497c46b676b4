"""Names that people give to the keys of golden files: of queries, of what is expected and forbidden, of floors, and of results.

Names are compared as `plain` writes them. Where several fit, the first one is taken.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

LISTS = (
    "queries", "tests", "test_cases", "testcases", "cases", "entries", "examples", "questions", "items", "samples", "goldens",
    "golden", "golden_set", "evals", "records", "rows", "data", "dataset", "benchmark", "scenarios", "topics", "requests",
    "suites", "groups", "sections", "categories",
)  # fmt: skip
"""Keys of a file under which its queries stand, the likeliest first."""
QUERY_LISTS = frozenset({*LISTS[:13], "scenarios"}) - {"items", "samples", "entries"}
"""Keys under which even texts mapped to texts are queries and what they expect."""
TEXTS = (
    "query", "q", "question", "query_text", "search_query", "user_input", "user_query", "user_question", "prompt", "ask", "search", "keyword",
    "search_term", "utterance", "intent_text", "user_message", "frage", "suchanfrage", "anfrage", "suchbegriff", "requete", "recherche",
    "consulta", "pregunta", "pergunta", "domanda", "vraag", "pytanie", "zapytanie", "问题", "查询", "質問", "検索語", "запрос", "вопрос",
)  # fmt: skip
WEAK_TEXTS = ("input", "text", "keywords", "term", "terms", "phrase", "request", "message", "task")
"""They are texts of queries where another key surely says what is expected."""
LAST_OF_TEXT = frozenset({"query", "question", "prompt"})
"""Last words of other names of texts: `original_question`."""
VARIANTS = ("queries", "questions", "query_variants", "variants", "paraphrases", "phrasings")
"""Lists of texts that ask the same."""
MESSAGES = ("messages", "conversation", "turns", "dialog", "dialogue", "chat", "history")
"""Lists of messages, of which the last one of the user is the query."""
IDS = ("id", "query_id", "qid", "q_id", "_id", "uid")
MAYBE_IDS = ("uuid", "case_id", "test_id", "question_id", "example_id", "slug", "key", "name")
"""They are ids where each query has another one."""
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
    "expects", "answer_ids", "answer_docs", "supporting_docs", "supporting_ids", "supporting_facts", "evidence", "source_docs",
    "any_of", "all_of", "contains", "includes",
)  # fmt: skip
EXPECTED_WORDS = frozenset(
    [
        "expected",
        "relevant",
        "gold",
        "golden",
        "correct",
        "wanted",
        "desired",
        "target",
        "truth",
        "erwartet",
        "erwartete",
        "treffer",
        "relevante",
        "attendu",
        "attendus",
        "attendue",
        "pertinents",
        "esperado",
        "esperados",
        "esperada",
        "esperadas",
        "relevantes",
        "atteso",
        "attesi",
        "oczekiwane",
        "期望",
        "期待",
        "预期",
        "正解",
        "相关文档",
        "ожидаемые",
    ]
)
"""Words of other names of what is expected: `expected_sku`."""
NO_EXPECTED_WORDS = frozenset(
    [
        "behavior",
        "behaviour",
        "count",
        "number",
        "min",
        "max",
        "least",
        "latency",
        "time",
        "type",
        "category",
        "intent",
        "language",
        "lang",
        "status",
        "error",
        "total",
        "confidence",
        "score",
        "response",
        "n",
        "rank",
        "position",
        "level",
        "keywords",
        "answer",
        "output",
        "substring",
        "substrings",
        "text",
        "not",
        "no",
        "un",
    ]
)
"""Words of names that say something else of what is expected."""
PLACES = (
    "doc_ids", "document_ids", "chunk_ids", "ids", "doc_id", "document_id", "chunk_id", "item_id", "product_id", "sku", "urls", "url",
    "sources", "source", "source_file", "source_doc", "source_document", "files", "file", "file_path", "paths", "path", "docs",
    "documents", "document", "doc", "passages", "chunks",
)  # fmt: skip
"""Names of documents: what is expected of a query, where the file surely has queries."""
PLACES_ALONE = frozenset({"source", "source_file", "source_doc", "source_document", "file", "file_path", "path", "url"})
"""Those of one document, which has to look like a path or an address."""
ANSWERS = (
    "ground_truth", "ground_truths", "answers", "answer", "ideal", "reference", "references", "expected_output", "expected_answer",
    "expected_substring", "expected_substrings", "expected_text", "expected_keywords", "expected_phrases", "expected_contents",
)  # fmt: skip
"""Names of what the text of a result has to say: taken where no document is named."""
TIERS = (
    ("perfect", "excellent", "good", "fair"),
    ("highly_relevant", "relevant", "partially_relevant", "somewhat_relevant", "marginally_relevant"),
    ("relevant", "partial", "partially_relevant", "acceptable"),
    ("primary", "secondary", "tertiary"),
    ("required", "optional"),
    ("must", "should", "could", "nice_to"),
    ("essential", "important", "helpful"),
    ("best", "good", "acceptable", "ok"),
    ("expected", "acceptable", "also_acceptable", "alternatives", "partial", "optional"),
    ("exact", "partial"),
    ("high", "medium", "low"),
    ("gold", "silver", "bronze"),
)
"""Names of grades as keys of their own, the best first, without words such as `ids` and `docs`."""
_OF_TIER = frozenset(
    [
        "ids",
        "id",
        "docs",
        "doc",
        "documents",
        "document",
        "files",
        "file",
        "sources",
        "results",
        "urls",
        "chunks",
        "find",
        "include",
        "return",
        "contain",
        "have",
        "match",
        "matches",
    ]
)
FORBIDDEN = (
    "must_not", "must_not_find", "must_not_include", "must_not_return", "must_not_contain", "should_not", "should_not_find",
    "should_not_include", "should_not_return", "should_not_contain", "never", "forbidden", "forbidden_ids", "forbidden_docs", "not_expected",
    "unexpected", "unexpected_ids", "excluded", "exclude", "excludes", "disallowed", "banned", "avoid", "not", "reject", "unwanted",
    "none_of", "not_contains", "not_present", "absent",
)  # fmt: skip
FORBIDDEN_NAME = re.compile(
    r"(must|should|do|does|can|may|is|expected)_?not_\w+|(must|should)_(exclude|avoid|omit)\w*|not_\w+|\w+_not_expected|"
    r"(.+_)?(forbidden|unexpected|unwanted|disallowed|banned|excluded|prohibited|verboten|interdits?|prohibidos?)(_.+)?"
)
"""Other names of what is forbidden."""
NOT_RELEVANT = (
    "irrelevant", "irrelevant_ids", "irrelevant_docs", "not_relevant", "non_relevant", "nonrelevant", "negatives", "hard_negatives",
    "negative_ids", "distractors", "negative_docs", "negative_passages", "neg", "neg_ids",
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
TOPS = (
    "max_rank", "rank_at_most", "must_be_in_top", "in_top", "within", "within_top", "top", "top_n", "expected_rank", "max_position",
    "at_most_rank", "rank_within", "hit_at", "expected_in_top", "within_rank", "expected_position", "max",
)  # fmt: skip
WEIGHTS = ("weight", "frequency", "freq", "traffic", "impressions")
NOTES = ("note", "notes", "comment", "comments", "description", "desc", "rationale", "reason", "why", "explanation")
NEEDS = ("need", "information_need", "user_goal", "goal")
OF_DOCUMENT = (
    "doc_id", "docid", "document_id", "id", "_id", "chunk_id", "docno", "key", "sku", "item_id", "product_id", "doc", "document",
    "article_id", "page_id", "entity_id", "passage_id", "node_id",
)  # fmt: skip
OF_GRADE = (
    "grade", "gain", "relevance", "rel", "score", "rating", "weight", "level", "label", "relevance_score", "importance", "tier",
    "relevant", "is_relevant", "judgment", "judgement", "should_match", "should_return",
    "should_find", "is_match",
)  # fmt: skip
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
OF_LINES = (
    ("start_line", "end_line"), ("line_start", "line_end"), ("first_line", "last_line"), ("from_line", "to_line"),
    ("begin_line", "end_line"), ("start", "end"), ("lines",), ("line_range",), ("range",), ("line",),
)  # fmt: skip
"""Keys of the first and the last line of a place of a file, or of both."""
LINE_PAIRS = 5
"""Those of them that surely are lines, and no characters."""
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
        "type",
    ]
) | {*TOPS}
DESCRIBES = NEVER_CONDITIONS | frozenset(
    ["title", "name", "heading", "url", "uri", "link", "text", "content", "snippet"]
)
"""Keys of an expected object that describe a document whose id is there; alone they may be conditions."""
RESULT_LISTS = (
    "results", "retrieved", "retrieved_ids", "retrieved_docs", "retrieved_documents", "retrieved_doc_ids", "retrieved_chunks",
    "retrieved_chunk_ids", "retrieved_sources", "retrieved_contexts", "retrieved_context_ids", "returned", "returned_ids", "ranked",
    "ranked_ids", "ranked_docs", "ranked_list", "ranking", "result_ids", "search_results", "top_results", "hits", "documents", "docs",
    "source_documents", "predictions", "predicted", "predicted_ids", "actual", "actual_ids", "actual_results", "found", "found_ids",
    "candidates", "contexts", "chunks", "sources",
)  # fmt: skip
"""Keys of the results of a query, the likeliest first."""
RESULTS = re.compile(
    r"retrieved|returned|actual|result|response|output|context|hits|predict|found|ranked|^docs$|documents$"
)
"""Names of what a system answered."""
NO_EXPECTATION = re.compile(
    r"^(tags?|labels?|keywords?|synonyms?|categories|filters?|notes|aliases|history|messages|steps|queries|variants|paraphrases)$"
)
"""Lists of an item that expect nothing."""
ASSERTIONS = ("assertions", "asserts", "assert", "checks", "expectations")
"""Lists of objects with a `type`, each of which requires something."""
GRADE_WORDS: tuple[Mapping[str, float], ...] = (
    {"high": 2, "partial": 1},
    {"high": 3, "medium": 2, "low": 1, "none": 0},
    {"perfect": 3, "exact": 3, "excellent": 3, "highly relevant": 3, "highly_relevant": 3, "good": 2, "relevant": 2, "fair": 1,
     "partial": 1, "partially relevant": 1, "partially_relevant": 1, "somewhat": 1, "marginal": 1, "poor": 0, "bad": 0, "irrelevant": 0,
     "not relevant": 0, "not_relevant": 0},
    {"primary": 2, "main": 2, "required": 2, "must": 2, "essential": 2, "secondary": 1, "supporting": 1, "optional": 1, "nice": 1,
     "should": 1},
    {"critical": 3, "important": 2, "minor": 1},
    {"yes": 1, "true": 1, "no": 0, "false": 0, "y": 1, "n": 0},
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
_MEASURES = {
    "precision": "P@{k}", "p": "P@{k}", "recall": "R@{k}", "r": "R@{k}", "mrr": "RR", "rr": "RR", "reciprocal_rank": "RR", "ndcg": "nDCG@{k}",
    "hit_rate": "Success@{k}", "hit": "Success@{k}", "success": "Success@{k}", "ap": "AP", "map": "AP",
}  # fmt: skip
_MEASURE = re.compile(
    rf"(?P<min>min_|minimum_|least_)?(?P<name>{'|'.join(sorted(_MEASURES, key=len, reverse=True))})(?:_?(?:at_?)?(?P<k>\d+)|_at_k|_k)?"
    r"(?P<floor>_(?:floor|min|minimum|threshold|at_least))?"
)


def plain(name: object) -> str:
    """A name as it is compared: `expectedIds`, `Expected IDs` and `expected-ids` are `expected_ids`, `Requête` is `requete`."""
    return _plain(str(name))


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted(name: str) -> str:
    """A key as JMESPath has it."""
    return name if _IDENTIFIER.fullmatch(name) else json.dumps(name, ensure_ascii=False)


@lru_cache(maxsize=1024)
def _plain(name: str) -> str:
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip()).casefold()
    letters = (letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    return re.sub(r"[\W_]+", "_", "".join(letters)).strip("_")


def floor_of(name: str, k: int, *, is_inside: bool) -> str | None:
    """The measure whose least value a key says: `min_recall` is `R@5`, `mrr_floor` is `RR`; None of any other key.

    Args:
        name: as `plain` writes it.
        k: cutoff of a name without one.
        is_inside: whether it stands under a key such as `expect`, so that `recall_at_5` is no measured value.
    """
    found = _MEASURE.fullmatch(name)
    if found is None or not (found["min"] or found["floor"] or is_inside):
        return None
    spelled = _MEASURES[found["name"]]
    if len(found["name"]) == 1 and not found["k"]:
        return None
    if "{k}" not in spelled:
        return f"{spelled}@{found['k']}" if found["k"] else spelled
    return spelled.format(k=found["k"] or k)


def tier_name(name: str) -> str:
    """A name without the words that say what its values are: `secondary_docs` is `secondary`, `expected_ids` is `expected`."""
    words = [word for word in name.split("_") if word not in _OF_TIER]
    return "_".join(words[1:] if words[:1] == ["expected"] and len(words) > 1 else words)


def expected_names() -> Iterator[str]:
    """Names of keys whose values surely say what is expected, or what is not."""
    yield from (*EXPECTED, *FORBIDDEN, *NOT_RELEVANT)


def is_graded(value: Mapping[str, Any]) -> bool:
    """Whether a mapping is one of ids to grades."""
    is_number = bool(value) and all(
        isinstance(grade, int | float) and not isinstance(grade, bool) for grade in value.values()
    )
    known = {*PARAMS, *TOPS}
    return is_number and not all(plain(name) in known or floor_of(plain(name), 1, is_inside=True) for name in value)
