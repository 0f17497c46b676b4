"""The shape of files that `cranfield init` is given: their columns and their values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from cranfield.config.strict import REQUEST_PLACEHOLDERS, is_placeholder, placeholders
from cranfield.formats.traces.survey import TraceSurvey
from cranfield.model import Query, Scalar
from cranfield.ranking.matching.criteria import FIELD_NAMES
from cranfield.systems.calls.extract import load_json

Settings = Mapping[str, Any]
"""The keys of a system, as they stand in cranfield.yaml."""
FIRST_QUERIES = 3
"""Queries of the test set that a system is tried with, at most."""
MAX_ID = 500
"""Characters of a value that patterns are tried on."""
UNLIKELY = "qzxv7f3a91"
"""A word that no document holds."""
QUERY_NAMES = (
    "query", "q", "text", "question", "search", "search_query", "query_text", "queryText", "searchTerm", "term",
    "terms", "keyword", "keywords", "kw", "phrase", "input", "prompt", "s", "wt_query", "search_text",
)  # fmt: skip
"""What the parameter of a query is called, the likeliest first."""
K_NAMES = (
    "k", "limit", "size", "n", "top_k", "topk", "topK", "top_n", "top", "rows", "num", "count", "hits",
    "max_results", "maxResults", "num_results", "n_results", "numResults", "per_page", "perPage", "page_size",
    "pageSize", "result_count", "max", "nb_results",
)  # fmt: skip
"""What the parameter of the number of results is called."""


class Ask(Protocol):
    """Asks a person what could not be found out."""

    def __call__(self, question: str, default: str, choices: Sequence[str] = ()) -> str:
        """The answer; one of `choices`, where there are any."""
        ...


def take_default(question: str, default: str, choices: Sequence[str] = ()) -> str:  # noqa: ARG001 - the signature of `Ask`
    """The default, without a question."""
    return default


@dataclass(frozen=True, slots=True)
class TrialTarget:
    """One argument: a file or folder, an address, a command, or a function of Python."""

    given: str
    """As the user wrote it, without the name."""
    kind: Literal["path", "url", "command", "function"]
    name: str = ""
    """The name of the system, from `NAME=TARGET`."""
    argv: tuple[str, ...] = ()
    """Program and arguments of a command."""
    is_certain: bool = True
    """Whether the command has a `{query}`, and so is a search; if not, it may be an MCP server."""

    @property
    def path(self) -> Path:
        """Path of a file or folder."""
        return Path(self.given)


@dataclass(frozen=True, slots=True)
class FoundSystem:
    """A system under test."""

    given: str
    name: str
    """A proposal; made unique later."""
    settings: Settings
    what: str
    """What it is, in a sentence."""
    ids: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Text of a query that was tried to the ids of its results."""
    notes: tuple[str, ...] = ()
    """What stays open, a sentence each."""
    run: Path | None = None
    """Path of a run file."""
    checks: Sequence[Settings] = ()
    """Preflight checks of config files beside its program, which are offered."""
    traces: TraceSurvey | None = None
    """What the file of traces holds that it is a step of."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the test set expects: it tells the field of the id from other fields."""

    ids: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()
    fields: tuple[str, ...] = ()
    """Fields of results that it expects something of."""

    def __bool__(self) -> bool:
        """Whether anything is expected."""
        return bool(self.ids or self.patterns)

    def count(self, values: Iterable[str]) -> int:
        """How many of some values are expected by a query."""
        return sum(value in self.ids or any(p.search(value[:MAX_ID]) for p in self.patterns) for value in values)


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial needs to know besides the target."""

    folder: Path
    """Folder of the config."""
    queries: tuple[Query, ...] = ()
    """First queries of the test set that have a text."""
    known: Known = field(default_factory=Known)
    ask: Ask = take_default
    k: int = 10
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request over HTTP; secrets as `{env.NAME}`."""
    served: Settings = field(default_factory=dict)
    """Settings of a system whose program has to run: `serve`, and `cwd` where that is not the folder of the config."""

    @property
    def params(self) -> Mapping[str, Scalar]:
        """Parameters of the first query that has some."""
        return next((query.params for query in self.queries if query.params), {})

    def texts(self, *first: str) -> tuple[str, ...]:
        """Queries to try, those given first."""
        found = dict.fromkeys([*first, *(query.text for query in self.queries)])
        return tuple(found)[: FIRST_QUERIES + len(first)]


@dataclass(frozen=True, slots=True)
class Shape:
    """How results are read."""

    extract: Mapping[str, Any]
    what: str
    """What was found, in words: ``JSON, results in `hits.hits`, ids in `_id` ``."""
    n_known: int = 0
    """Results that the test set expects."""
    other_ids: tuple[str, ...] = ()
    """Other paths that could be the id, where nothing tells which."""
    rank: tuple[float, ...] = field(default=(), compare=False)


def literal(text: str) -> str:
    """A text of the user with what would be read as an unknown placeholder in double braces."""
    for name in dict.fromkeys(placeholders(text)):
        if not is_placeholder(name, REQUEST_PLACEHOLDERS):
            text = text.replace(f"{{{name}}}", f"{{{{{name}}}}}")
    return text


LOOKED_AT = 200_000
"""Characters of an output."""
LEAST_SHARE = 0.6
"""Smallest share of the lines that are not blank, for a form with one result per line."""
_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"


@dataclass(frozen=True, slots=True)
class OutputForm:
    """A row of the table."""

    regex: str
    what: str
    is_line: bool = True
    """Whether each line is a result."""


FORMS = (
    OutputForm(
        rf"(?m)^\S+[ \t]+Q0[ \t]+(?P<id>\S+)[ \t]+\d+[ \t]+(?P<score>{_NUMBER})(?=[ \t])", "lines of a TREC run"
    ),
    OutputForm(rf"(?m)^(?P<id>[^\t\r\n]+)\t(?P<score>{_NUMBER})(?=[\t\r]|$)", "lines of an id, a tab and a score"),
    OutputForm(rf"(?m)^(?P<score>{_NUMBER})\t(?P<id>[^\t\r\n]+)", "lines of a score, a tab and an id"),
    OutputForm(r"(?m)^(?P<id>[^\s:]+):(?P<span>\d+(?:-\d+)?)(?=:|$)", "lines `path:line`, as grep prints them"),
    OutputForm(r"(?P<id>[A-Za-z][A-Za-z0-9+.\-]*://[^\s<>\"'`)\]}|]+)", "addresses in the text", is_line=False),
    OutputForm(r"(?m)^[ \t]*\[?\d+[.):\]]\s+(?P<id>\S+)", "a numbered list"),
    OutputForm(r"(?m)^(?P<id>[^\t\r\n]+)\t", "lines whose first column is an id"),
    OutputForm(r"(?m)^(?P<id>\S+)[ \t]*\r?$", "lines of an id each"),
    OutputForm(r"(?m)^(?P<id>\S+)(?=\s)", "lines whose first word is an id"),
)
"""In the order in which they are tried; those whose ids the test set expects go first."""


def text_shape(outputs: Sequence[str], known: Known) -> Shape | None:
    """How results are read from texts; None where no form fits."""
    outputs = [output[:LOOKED_AT] for output in outputs]
    best: tuple[int, OutputForm] | None = None
    for form in FORMS:
        pattern = re.compile(form.regex)
        matches = [list(pattern.finditer(output)) for output in outputs]
        n_lines = sum(bool(line.strip()) for output in outputs for line in output.splitlines())
        n_found = sum(map(len, matches))
        if not n_found or (form.is_line and n_found < LEAST_SHARE * n_lines):
            continue
        n_known = known.count(match["id"] for found in matches for match in found)
        if best is None or n_known > best[0]:
            best = n_known, form
    if best is None:
        return None
    n_known, form = best
    extract: Mapping[str, Any] = {"regex": form.regex}
    return Shape(extract, form.what, n_known)


Steps = tuple[str, ...]
"""Keys that lead from an object to a value in it."""
LIST_NAMES = (
    "hits", "results", "result", "items", "docs", "documents", "matches", "entries", "records", "data", "points",
    "search_results", "searchResults", "organic_results", "children", "rows", "articles", "pages", "output",
)  # fmt: skip
ID_NAMES = (
    "_id", "id", "doc_id", "docid", "docno", "document_id", "documentId", "uri", "url", "link", "href", "path",
    "file_path", "filePath", "file", "filename", "uuid", "key", "slug", "chunk_id", "chunkId", "passage_id", "node_id",
    "article_id", "page_id", "item_id", "product_id", "sku", "number", "name", "title",
)  # fmt: skip
LINE_NAMES = (
    ("start_line", "end_line"), ("startLine", "endLine"), ("line_start", "line_end"), ("lineStart", "lineEnd"),
    ("start", "end"), ("from_line", "to_line"), ("begin", "end"), ("line", "end_line"), ("line", "line"),
)  # fmt: skip
"""What the first and the last line of a result are called."""
WEAK_IDS = frozenset({"number", "name", "title"})
"""Names that are an id where nothing else is."""
SCORE_NAMES = ("_score", "score", "relevance", "relevance_score", "similarity", "rank_score", "_rankingScore", "weight")
TITLE_NAMES = ("title", "name", "headline", "heading", "label", "subject")
TEXT_NAMES = ("text", "snippet", "body", "content", "abstract", "description", "excerpt", "summary")
MAX_TEXT = 4000
"""Characters of a text that goes into the run, for raters to read."""
INSIDE = ("_source", "document", "doc", "payload", "metadata", "fields", "attributes", "source", "item", "resource")
"""Objects in a result that are the document; others may be its author or its collection."""
MAX_DEPTH = 5
"""Most objects around the list of results."""
_LIKE_A_PATH = re.compile(r"/|\\|\.[A-Za-z]\w{0,9}$")
"""A file, by its separators or its ending."""
_PLAIN_STEP = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def shape_of(outputs: Sequence[str], known: Known) -> Shape | None:
    """How the results of some answers are read; None where no results are found.

    Args:
        outputs: what the system answered, one text a query.
        known: what the test set expects.
    """
    written = [output for output in outputs if output.strip()]
    if not written:
        return None
    documents = _documents(written)
    if documents is not None:
        if any(isinstance(document, list) for document in documents):  # an answer of one result may be no list
            documents = [[document] if isinstance(document, dict) else document for document in documents]
        shapes = [shape for steps in _list_places(documents) if (shape := _list_shape(documents, steps, known))]
        return max(shapes, key=lambda shape: shape.rank, default=None)
    lines = _json_lines(written)
    if lines is not None:
        results = _result_shape(lines, known)
        if results is None:
            return None
        return Shape(
            {"jsonl": True, **results.extract}, f"lines of JSON, {results.what}", results.n_known, results.other_ids
        )
    return text_shape(written, known)


def _documents(outputs: Sequence[str]) -> list[Any] | None:
    try:
        return [load_json(output) for output in outputs]
    except (ValueError, RecursionError):
        return None


def _json_lines(outputs: Sequence[str]) -> list[list[Any]] | None:
    try:
        return [[load_json(line) for line in output.split("\n") if line.strip()] for output in outputs]
    except (ValueError, RecursionError):
        return None


def _list_places(documents: Sequence[Any]) -> Iterator[Steps]:
    """Where there are lists in the documents, through objects only."""
    seen: dict[Steps, None] = {}
    for document in documents:
        level: list[tuple[Steps, Any]] = [((), document)]
        for _ in range(MAX_DEPTH + 1):
            seen |= {steps: None for steps, value in level if isinstance(value, list)}
            level = [
                ((*steps, str(key)), inner)
                for steps, value in level
                if isinstance(value, dict)
                for key, inner in value.items()
            ]
    yield from seen


def _at(value: Any, steps: Steps) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _list_shape(documents: Sequence[Any], steps: Steps, known: Known) -> Shape | None:
    found = [_at(document, steps) for document in documents]
    lists = [value for value in found if isinstance(value, list)]
    if any(value is not None and not isinstance(value, list) for value in found) or not any(lists):
        return None
    results = _result_shape(lists, known)
    if results is None:
        return None
    place = json_path(steps) or "@"
    is_named = bool(steps) and steps[-1] in LIST_NAMES
    if not is_named and results.extract.get("id") is None and results.n_known == 0 and steps:
        return None  # a list of texts somewhere: suggestions, facets, words
    extract = {"json": place if len(lists) == len(found) else f"{place} || `[]`", **results.extract}
    named = len(LIST_NAMES) - LIST_NAMES.index(steps[-1]) if is_named else 0
    rank = (results.n_known, *results.rank, named, sum(map(len, lists)), -len(steps))
    where = f"results in `{place}`" if steps else "a list of results"
    return Shape(extract, f"JSON, {where}, {results.what}", results.n_known, results.other_ids, rank)


def _result_shape(lists: Sequence[Sequence[Any]], known: Known) -> Shape | None:
    """How a result is read: the paths of its id, score and title."""
    results = [result for found in lists for result in found]
    if all(_is_id(result) for result in results):
        count = known.count(str(result) for result in results)
        return Shape({}, "ids as they are", count, rank=(0, 0))
    if not all(isinstance(result, dict) for result in results):
        return None
    ids = sorted(_id_paths(lists, known), key=lambda found: found[1], reverse=True)
    if not ids:
        return _without_ids(results, known)
    (path, (n_known, *_)), others = ids[0], ids[1:]
    place, path = path, _chunk_path(results, ids, known) or path
    extract: dict[str, Any] = {"id": json_path(path)}
    if span := _span_path(results, path):
        extract["span"] = span
    for key, names, fits in (("score", SCORE_NAMES, _is_score), ("title", TITLE_NAMES, _is_text)):
        inner = _field(results, names, fits)
        if inner is not None and inner != path:
            extract[key] = json_path(inner)
    if (text := _field(results, TEXT_NAMES, _is_short)) is not None and text != path:
        extract["result_fields"] = {"text": json_path(text)}  # for lists, and for those who judge
    fields = {
        name: json_path(at) for name in known.fields if (at := _expected_field(results, name, extract)) is not None
    }
    fields |= {} if place == path else _file_field(results, place)
    if fields:
        extract["result_fields"] = {**extract.get("result_fields", {}), **fields}
    what = f"ids in `{extract['id']}`"
    is_open = n_known == 0 and path[-1] not in ID_NAMES[:6]
    other_ids = tuple(json_path(other) for other, _ in others) if is_open else ()
    return Shape(extract, what, int(n_known), other_ids, rank=(1, "score" in extract))


def _chunk_path(
    results: Sequence[Mapping[str, Any]], ids: Sequence[tuple[Steps, tuple[float, ...]]], known: Known
) -> Steps | None:
    """The path of the ids of chunks, where conditions are met by the file of a chunk, which several results of a list have."""
    (path, (n_known, is_unique, *_)), others = ids[0], ids[1:]
    if not n_known or is_unique or not known.ids.isdisjoint(str(_at(result, path)) for result in results):
        return None
    return next((other for other, (_, is_other_unique, *_) in others if is_other_unique), None)


def _file_field(results: Sequence[Mapping[str, Any]], place: Steps) -> dict[str, str]:
    """The field for the file of a chunk, with its JMESPath: `path`, or `url` where all are addresses."""
    is_address = all("://" in str(_at(result, place)) for result in results)
    return {"url" if is_address else "path": json_path(place)}


def _without_ids(results: Sequence[Mapping[str, Any]], known: Known) -> Shape | None:
    """Results without an id that have the fields that are expected: these together are the id."""
    places = {name: at for name in known.fields if (at := _expected_field(results, name, {})) is not None}
    if not places:
        return None
    parts = ", ".join(f"to_string({json_path(at)})" for at in places.values())
    fields = {name: json_path(at) for name, at in places.items()}
    extract = {"id": f"join(' / ', [{parts}])", "result_fields": fields}
    return Shape(extract, f"without ids: distinguished by {', '.join(places)}", rank=(0, 0))


def _id_paths(lists: Sequence[Sequence[Mapping[str, Any]]], known: Known) -> Iterator[tuple[Steps, tuple[float, ...]]]:
    """Each path that is an id in every result, with how well it fits."""
    results = [result for found in lists for result in found]
    for path in _paths(results):
        columns = [[_at(result, path) for result in found] for found in lists]
        values = [value for column in columns for value in column]
        if not all(_is_id(value) for value in values):
            continue
        n_known = known.count(map(str, values))
        is_unique = bool(_span_path(results, path)) or all(len(set(column)) == len(column) for column in columns)
        is_named = path[-1] in ID_NAMES
        if n_known or (is_unique and is_named):
            place = len(ID_NAMES) - ID_NAMES.index(path[-1]) if is_named else 0
            is_near = len(path) == 1 or path[0] in INSIDE
            yield path, (n_known, is_unique, path[-1] not in WEAK_IDS, is_near, place, -len(path))


def _span_path(results: Sequence[Mapping[str, Any]], id_path: Steps) -> str:
    """The JMESPath of the lines of a result: `join('-', [to_string(start_line), to_string(end_line)])`; empty without."""
    if not any(_LIKE_A_PATH.search(str(_at(result, id_path))) for result in results):
        return ""
    paths = {path[-1]: path for path in reversed(list(_paths(results)))}
    for first, last in LINE_NAMES:
        if all(
            name in paths and all(_is_line(_at(result, paths[name])) for result in results) for name in (first, last)
        ):
            ends = [json_path(paths[name]) for name in (first, last)]
            return (
                f"join('-', [to_string({ends[0]}), to_string({ends[1]})])" if first != last else f"to_string({ends[0]})"
            )
    return ""


def _is_line(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _paths(results: Sequence[Mapping[str, Any]]) -> Iterator[Steps]:
    """Fields of the first result, then fields of the objects in it."""
    yield from ((key,) for key in results[0])
    for key, value in results[0].items():
        if isinstance(value, dict):
            yield from ((key, inner) for inner in value)


def _field(results: Sequence[Mapping[str, Any]], names: Sequence[str], fits: Any) -> Steps | None:
    """The first field of some names that fits in every result."""
    paths = list(_paths(results))
    for name in names:
        for path in paths:
            if path[-1] == name and all(fits(_at(result, path)) for result in results):
                return path
    return None


def _expected_field(results: Sequence[Mapping[str, Any]], name: str, extract: Mapping[str, Any]) -> Steps | None:
    """Where results have a field that is expected, and that is not read already."""
    names = (name, *FIELD_NAMES.get(name, ()))
    if name in extract:
        return None
    found = (path for each in names for path in _paths(results) if path[-1] == each)
    return next(found, None)


def _is_id(value: object) -> bool:
    return (isinstance(value, str) and bool(value.strip())) or (isinstance(value, int) and not isinstance(value, bool))


def _is_score(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_short(value: object) -> bool:
    return value is None or (isinstance(value, str) and len(value) <= MAX_TEXT)


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def json_path(steps: Steps) -> str:
    """A JMESPath through the keys of objects."""
    return ".".join(step if _PLAIN_STEP.fullmatch(step) else json.dumps(step) for step in steps)
