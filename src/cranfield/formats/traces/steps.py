"""What a span says of a retrieval: its query and its documents, by the conventions of OpenTelemetry, OpenInference and Langfuse.

A retriever is one step. A reranker is two: the documents that it got, and those that it returned. Text of documents is not trusted:
it is stored and shown, and never read for instructions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from cranfield.base.redaction import redact_text
from cranfield.formats.io.delimited import is_id
from cranfield.formats.runs.record import finite
from cranfield.formats.runs.table import hit_of
from cranfield.formats.tools.samples import context_id
from cranfield.formats.traces.spans import KIND, LANGFUSE_INPUT, LANGFUSE_OUTPUT, LANGFUSE_TYPE, Span
from cranfield.model import Hit

StepKind = Literal["retriever", "reranker-input", "reranker"]
STEP_KINDS: tuple[StepKind, ...] = get_args(StepKind)
_OPERATION = "gen_ai.operation.name"
_RETRIEVALS = {"retrieval", "retrieve_documents"}
_INPUT, _OUTPUT = "input.value", "output.value"
_QUERIES = ("gen_ai.retrieval.query.text", _INPUT, LANGFUSE_INPUT)
_RERANKER_QUERIES = ("reranker.query", _INPUT)
_ROOT_QUERIES = (_INPUT, LANGFUSE_INPUT, "gen_ai.input.messages")
_DOCUMENTS = ("retrieval.documents", "gen_ai.retrieval.documents")
_INDEXED = re.compile(r"(?P<list>.+)\.(?P<index>[0-9]{1,9})\.document\.(?P<field>.+)")
_QUERY_KEYS = ("query", "query_str", "query_text", "question", "input", "text", "content", "q")
"""Keys of an input that is JSON, the likeliest first."""
_LISTS = ("documents", "docs", "results", "nodes", "matches", "hits", "output")
_TEXTS = ("content", "page_content", "text")
_IDS = ("id", "doc_id", "_id", "id_", "node_id", "document_id", "chunk_id")
_NOT_KEPT = {"type", "class_name", "embedding", "relationships"}
_TITLE_CHARS = 80
MAX_QUERY_CHARS = 10_000
"""A longer text is no query: the prompt of a model, or a document."""
_NESTED = 6
"""Levels of JSON in which a query is looked for."""
_ERROR_TYPE = re.compile(r"[A-Za-z_][\w.]{0,99}")


@dataclass(frozen=True, slots=True)
class Step:
    """A list of documents for a query, in one span."""

    kind: StepKind
    name: str
    """Name of the span."""
    trace_id: str
    span_id: str
    start_ns: int
    query: str
    """Redacted; empty where the span does not say, or says more than `MAX_QUERY_CHARS`."""
    hits: tuple[Hit, ...] | None
    """None where no documents were recorded; an empty list says that nothing was found."""
    reason: str = ""
    """Why it failed; empty where it did not."""
    source: str = ""
    """Id of the data source."""
    n_unnamed: int = 0
    """Documents without an id and a text: they keep their place."""
    has_gap: bool = False
    """Whether documents are missing from the list: places without attributes, or attributes that the program dropped."""
    redacted: tuple[str, ...] = ()
    """Kinds of what was removed from the query."""


Redaction = Callable[[str], tuple[str, tuple[str, ...]]]
"""From a query, to what may be kept of it and the kinds of what was removed."""


def steps_of(span: Span, redact: Redaction | None = None) -> Iterator[Step]:
    """The steps of a span; none where it is of no retriever and no reranker.

    Args:
        span: the span.
        redact: of its query; None: all that Cranfield has patterns for.
    """
    attributes = span.attributes
    kind = str(attributes.get(KIND, "")).upper()
    is_retriever = (
        kind == "RETRIEVER"
        or (not kind and attributes.get(_OPERATION) in _RETRIEVALS)
        or attributes.get(LANGFUSE_TYPE) == "retriever"
    )
    if not is_retriever and kind != "RERANKER":
        return
    text = _first_text(attributes, _QUERIES if is_retriever else _RERANKER_QUERIES)
    query, removed = (redact or _redacted)(text)
    step = Step(
        "retriever",
        span.name,
        span.trace_id,
        span.span_id,
        span.start_ns,
        query,
        None,
        _reason(span),
        str(attributes.get("gen_ai.data_source.id") or ""),
        redacted=removed,
    )
    if is_retriever:
        yield _with_documents(step, span, _retrieved(attributes))
        return
    yield _with_documents(replace(step, kind="reranker-input"), span, _listed(attributes, "reranker.input_documents"))
    yield _with_documents(replace(step, kind="reranker"), span, _listed(attributes, "reranker.output_documents"))


def as_it_is(text: str) -> tuple[str, tuple[str, ...]]:
    """For `steps_of`, where the caller redacts."""
    return text, ()


def root_query(span: Span) -> str:
    """What the first span of a trace was asked, redacted; empty where it does not say."""
    return _redacted(_first_text(span.attributes, _ROOT_QUERIES))[0]


def _redacted(text: str) -> tuple[str, tuple[str, ...]]:
    if len(text) > MAX_QUERY_CHARS:
        return "", ()
    redacted, found = redact_text(text)
    return redacted, tuple(found.elements())


def _reason(span: Span) -> str:
    if not span.is_failed:
        return ""
    return f"the span failed: {span.error}" if _ERROR_TYPE.fullmatch(span.error) else "the span failed"


def _first_text(attributes: Mapping[str, Any], names: Sequence[str]) -> str:
    """The first query that one of some attributes holds."""
    return next((text for name in names if (text := query_text(attributes.get(name)))), "")


def query_text(value: Any, depth: int = 0) -> str:
    """The query in the input of a span: text, JSON with a key such as `query`, or messages, of which the last of a user counts.

    Example:
        >>> query_text('{"query": "rotate logs"}')
        'rotate logs'
    """
    if depth > _NESTED:
        return ""
    if isinstance(value, str):
        inner = _json(value) if value.lstrip()[:1] in {"{", "[", '"'} else None
        return value.strip() if inner is None else query_text(inner, depth + 1)
    if isinstance(value, list):
        value = _last_message(value)
    if isinstance(value, dict) and isinstance(value.get("parts"), list):
        value = _last_message(value["parts"])
    if not isinstance(value, dict):
        return query_text(value, depth + 1) if isinstance(value, str) else ""
    found = (query_text(value[key], depth + 1) for key in _QUERY_KEYS if value.get(key))
    only = next(iter(value.values())) if len(value) == 1 else None
    return next(filter(None, found), "") or (query_text(only, depth + 1) if isinstance(only, dict | list) else "")


def _last_message(values: list[Any]) -> Any:
    """The last message of a user, or the last message; the only text of a list of one."""
    messages = [each for each in values if isinstance(each, dict)]
    users = [each for each in messages if each.get("role", each.get("type")) in {"user", "human"}]
    if users or len(messages) == len(values):
        found = users or messages
        return found[-1] if found else None
    return values[0] if len(values) == 1 else None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


Listed = tuple[list[Any], bool]
"""Documents, and whether places between them are empty."""


def _retrieved(attributes: Mapping[str, Any]) -> Listed | None:
    """The documents of a retriever; None where none are recorded."""
    for name in _DOCUMENTS:
        if (found := _listed(attributes, name)) is not None:
            return _with_ids(found, attributes)
    for name in (LANGFUSE_OUTPUT, _OUTPUT):
        value = attributes.get(name)
        value = _json(value) if isinstance(value, str) else value
        if isinstance(value, dict):
            value = next((value[key] for key in _LISTS if isinstance(value.get(key), list)), None)
        if isinstance(value, list) and all(isinstance(each, dict) for each in value):
            return value, False
    return None


def _with_ids(found: Listed, attributes: Mapping[str, Any]) -> Listed:
    """Documents with the ids that the output of the span has, where their attributes have none."""
    documents, has_gap = found
    output = attributes.get(_OUTPUT)
    if has_gap or not isinstance(output, str) or all("id" in each for each in documents if isinstance(each, dict)):
        return found
    value = _json(output)
    value = value.get("documents") if isinstance(value, dict) else value
    if not isinstance(value, list) or len(value) != len(documents):
        return found
    ids = [each.get("id") if isinstance(each, dict) else None for each in value]
    return [
        {"id": own, **each} if is_id(own) and isinstance(each, dict) else each
        for own, each in zip(ids, documents, strict=True)
    ], False


def _listed(attributes: Mapping[str, Any], name: str) -> Listed | None:
    """A list of documents: as one attribute, or an attribute for each of their fields (`NAME.0.document.id`)."""
    value = attributes.get(name)
    value = _json(value) if isinstance(value, str) else value
    if isinstance(value, list):
        return [_plain(each) for each in value], False
    by_index: dict[int, dict[str, Any]] = {}
    for key, inner in attributes.items():
        if key.startswith(name) and (found := _INDEXED.fullmatch(key)) and found["list"] == name:
            by_index.setdefault(int(found["index"]), {})[found["field"]] = inner
    if not by_index:
        return None
    return [by_index[index] for index in sorted(by_index)], max(by_index) >= len(by_index)


def _plain(document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    return {str(name).removeprefix("document."): value for name, value in document.items() if value is not None}


def _with_documents(step: Step, span: Span, found: Listed | None) -> Step:
    if found is None:
        return step
    documents, has_gap = found
    hits = [_hit(each) for each in documents]
    n_unnamed = hits.count(None)
    named = tuple(Hit(f"unnamed-{rank}") if hit is None else hit for rank, hit in enumerate(hits, start=1))
    return replace(step, hits=named, n_unnamed=n_unnamed, has_gap=has_gap or span.n_dropped > 0)


def _hit(document: Any) -> Hit | None:
    """A document as a result: by its id or source as everywhere, else by the digest of its text; None without any of these."""
    if is_id(document):
        return Hit(str(document))
    if not isinstance(document, dict):
        return None
    values = dict(document)
    if isinstance(values.get("node"), dict):  # of LlamaIndex
        values = {**values["node"], "score": values.get("score")}
    own = next((values[name] for name in _IDS if is_id(values.get(name)) and str(values[name]).strip()), None)
    text = next((values[name] for name in _TEXTS if isinstance(values.get(name), str) and values[name].strip()), "")
    metadata = values.get("metadata")
    metadata = _json(metadata) if isinstance(metadata, str) else metadata
    metadata = {name: each for name, each in metadata.items() if each is not None} if isinstance(metadata, dict) else {}
    in_metadata = {
        name.removeprefix("metadata."): each for name, each in values.items() if name.startswith("metadata.")
    }
    score = finite(values.get("score"))
    left = {
        name: each
        for name, each in values.items()
        if name not in {*_IDS, *_TEXTS, *_NOT_KEPT, "metadata", "score"} and not name.startswith("metadata.")
    }
    values = {**left, "metadata": {**metadata, **in_metadata}}
    values |= {} if own is None else {"id": own}
    values |= {} if score is None else {"score": score}
    hit = hit_of(values)
    if not isinstance(hit, Hit):
        if not text:
            return None
        hit = Hit(context_id(text), score)
    if not text:
        return hit
    title = hit.title or " ".join(text.split())[:_TITLE_CHARS]
    return replace(hit, title=title, fields={**(hit.fields or {}), "text": text})
