"""Recognising files of spans, and their rows in the table of formats."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cranfield.base.errors import CranfieldError
from cranfield.formats.io.files import opened, split_part
from cranfield.formats.registry import HEAD_BYTES, Format, Head, top_keys

OTLP = ("resourceSpans", "resource_spans")
"""Keys of a request of OTLP."""
_TRACE_IDS = ("traceId", "trace_id")
_OBSERVATION_TYPES = {
    "SPAN", "EVENT", "GENERATION", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL",
}  # fmt: skip
_WORDS = (b"esource", b"trace_id", b"traceId")
"""One of them is in every file of spans."""
_TRACES = (
    "OpenTelemetry, github.com/open-telemetry/semantic-conventions-genai: docs/gen-ai/retrieval.md; OpenInference, "
    "github.com/Arize-ai/openinference: spec/semantic_conventions.md; Phoenix; Langfuse"
)


def is_traces(head: Head) -> bool:
    """Whether a file begins with spans; of `FILE#choice`, whether the file does."""
    if not head.data:
        path, choice = split_part(head.path)
        if not choice or not path.is_file():
            return False
        with opened(path, CranfieldError) as stream:
            return is_traces(Head(stream.read(HEAD_BYTES), path))
    if head.data.startswith(b"PAR1"):
        return _is_parquet_of_spans(split_part(head.path)[0])
    # A plain search is far faster than to read the record.
    return any(word in head.data for word in _WORDS) and _is_record_of_spans(_first_object(head.data))


def _first_object(data: bytes) -> Mapping[str, Any]:
    """The first record of the beginning of a file, as far as it goes."""
    text = data.decode("utf-8", "replace").lstrip("\ufeff \t\r\n[")
    try:
        record, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):  # it goes on behind the beginning
        keys = top_keys(text.encode())
        cut = dict.fromkeys(keys, [{}] if keys & {"observations", *OTLP} else "")
        return {**cut, "type": "SPAN"} if "type" in keys else cut
    if isinstance(record, dict) and isinstance(record.get("data"), list) and record["data"]:
        record = record["data"][0]
    return record if isinstance(record, dict) else {}


def _is_record_of_spans(record: Mapping[str, Any]) -> bool:
    return bool(
        any(isinstance(record.get(name), list) for name in OTLP)
        or is_phoenix(record)
        or is_observation(record)
        or (isinstance(record.get("observations"), list) and any(map(is_observation, record["observations"])))
    )


def is_phoenix(record: Mapping[str, Any]) -> bool:
    """Whether a record is a span of Phoenix: of its data frame, or of its REST API."""
    context = record.get("context")
    return "context.span_id" in record or (isinstance(context, dict) and "span_id" in context and "name" in record)


def is_observation(record: Any) -> bool:
    """Whether a record is an observation of Langfuse."""
    return (
        isinstance(record, dict)
        and "id" in record
        and any(name in record for name in _TRACE_IDS)
        and str(record.get("type", "")).upper() in _OBSERVATION_TYPES
    )


def _is_parquet_of_spans(path: Path) -> bool:
    """Whether the columns of a Parquet file are those of spans; False where it cannot be read: its own reader says why."""
    try:
        import pyarrow.parquet as pq

        names = {*pq.read_schema(path).names}
    except Exception:  # noqa: BLE001 - pyarrow raises many, or is not there
        return False
    return "context.span_id" in names or ({"id", "type"} <= names and bool(names & {*_TRACE_IDS}))


TRACES = (
    Format(
        "traces",
        "run",
        "spans of retrievers and rerankers (OTLP JSON of OpenTelemetry, exports of Phoenix and Langfuse)",
        is_traces,
        "cranfield.formats.traces.runs:read_trace_run",
        source=_TRACES,
    ),
    Format(
        "trace-queries",
        "testset",
        "the queries in spans of retrievers and rerankers, redacted, with what was retrieved as documents to judge",
        is_traces,
        "cranfield.formats.traces.runs:read_trace_queries",
        holds=frozenset({"texts", "unjudged", "weights", "barren"}),
        source=_TRACES,
        by_text=True,
    ),
)
"""Traces, as a run and as queries."""
