"""Spans of traces, read one after the other from what other tools write, each with flat attributes.

- OTLP JSON: one `ExportTraceServiceRequest`, or JSON Lines of them, as the file exporter of the OpenTelemetry Collector writes.
- Phoenix: the data frame of spans as JSON Lines, JSON or Parquet (`context.span_id`, `attributes.…`), and spans of its REST API.
- Langfuse: observations as JSON, JSON Lines or Parquet, with the names of its API (`traceId`) or of its exports (`trace_id`).

JSON Lines and Parquet are read in pieces: memory is bounded by the longest line or row group. What a span means is not decided here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cranfield.base.errors import CranfieldError, MissingExtraError, Problem, ProblemList, shorten
from cranfield.formats.io.files import MAX_RECORD_BYTES, bounded_lines, opened, read_bytes, refusal, shown
from cranfield.formats.io.json_text import json_objects
from cranfield.formats.traces.recognised import OTLP, is_observation, is_phoenix

KIND = "openinference.span.kind"
LANGFUSE_TYPE = "langfuse.observation.type"
LANGFUSE_INPUT = "langfuse.observation.input"
LANGFUSE_OUTPUT = "langfuse.observation.output"
_OTHER_SIGNALS = {"resourceLogs", "resource_logs", "resourceMetrics", "resource_metrics", "resourceProfiles"}
"""What the same exporter may write into the same file."""
MAX_DEPTH = 40
"""Deeper values of attributes are left out."""
_MS_AT_MOST = 10**14
"""A whole number of a time up to this one is of milliseconds; above it, of nanoseconds."""
EXPECTED = (
    "spans of OpenTelemetry (OTLP JSON, `resourceSpans`), of Phoenix (`context.span_id`) or of Langfuse "
    "(`traceId` or `trace_id`, `type`)"
)


@dataclass(frozen=True, slots=True)
class Span:
    """One span of a trace."""

    trace_id: str
    span_id: str
    parent_id: str
    """Empty of the first span of a trace."""
    name: str
    start_ns: int
    """Nanoseconds since 1970, UTC; 0 where it is not known."""
    is_failed: bool
    error: str
    """Type of the exception; no message, which may hold what was typed."""
    attributes: Mapping[str, Any]
    """Name with dots to a value; lists may hold mappings."""
    n_dropped: int = 0
    """Attributes that the program left out, because a span may have no more of them."""


def read_spans(path: Path, error: type[CranfieldError], skipped: Counter[str] | None = None) -> Iterator[Span]:
    """The spans of a file, in its order.

    Args:
        path: the file; gzip and Zstandard are recognised, and `-` is standard input.
        error: what to raise.
        skipped: gets how many lines hold logs or metrics, which are left out.

    Raises:
        CranfieldError: of type `error`: it cannot be read; with every line that is no JSON, or holds no span.
        MissingExtraError: a Parquet file, without pyarrow.
    """
    problems = ProblemList(error)
    counts: Counter[str] = Counter() if skipped is None else skipped
    with opened(path, error) as stream:
        begin = stream.read(4)
    records = _parquet_rows(path, error) if begin == b"PAR1" else _json_records(path, problems)
    for line, record in records:
        if _OTHER_SIGNALS & record.keys():
            counts["lines of logs or metrics"] += 1
            continue
        found = spans_of(record)
        if found is None:
            got = shorten(", ".join(map(str, record)))
            problems.add("no span", path=shown(path), line=line, expected=EXPECTED, got=got)
        else:
            yield from found
    problems.raise_if_any()


def spans_of(record: Mapping[str, Any]) -> Iterator[Span] | None:
    """The spans that a record holds; None where it is none of those that are known."""
    for name in OTLP:
        if isinstance(record.get(name), list):
            return otlp_spans(record)
    if is_phoenix(record):
        return iter((_phoenix_span(record),))
    for name in ("observations", "data"):
        if isinstance(record.get(name), list) and any(map(is_observation, record[name])):
            return (_observation_span(each) for each in record[name] if is_observation(each))
    if isinstance(record.get("data"), list) and any(map(_is_span, record["data"])):  # a page of the REST API of Phoenix
        return (_phoenix_span(each) for each in record["data"] if _is_span(each))
    return iter((_observation_span(record),)) if is_observation(record) else None


def _is_span(record: Any) -> bool:
    return isinstance(record, dict) and is_phoenix(record)


def _json_records(path: Path, problems: ProblemList) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    """Line and object of JSON Lines, read line by line; or the objects of one JSON value."""
    with opened(path, problems.error) as stream:
        lines = bounded_lines(stream, path, problems.error, MAX_RECORD_BYTES)
        first = next((line for line in lines if line.strip()), b"")
    if first.lstrip().startswith(b"{") and _is_whole(first):
        with opened(path, problems.error) as stream:
            lines = bounded_lines(stream, path, problems.error, MAX_RECORD_BYTES)
            yield from json_objects(lines, shown(path), problems, expected=EXPECTED)
        return
    data = read_bytes(path, problems.error)
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as cause:
        place = {"line": getattr(cause, "lineno", None), "column": getattr(cause, "colno", None)}
        message = f"not valid JSON: {getattr(cause, 'msg', cause)}"
        problems.add(message, path=shown(path), expected="JSON Lines or JSON", **place)
        return
    for value in values if isinstance(values, list) else [values]:
        if isinstance(value, dict):
            yield None, value
        else:
            problems.add("not an object", path=shown(path), expected=EXPECTED, got=shorten(value))


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _parquet_rows(path: Path, error: type[CranfieldError]) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    """The rows of a Parquet file, some thousand at a time; the events of spans are not read."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError.for_extra("reading a Parquet file", "parquet") from None
    try:
        with path.open("rb") as stream, pq.ParquetFile(stream) as file:
            schema = file.schema_arrow
            names = [name for name in schema.names if name not in {"events", "links"}]
            for batch in file.iter_batches(batch_size=2048, columns=names):
                columns = [
                    column.cast(pa.timestamp("us", column.type.tz), safe=False)
                    if pa.types.is_timestamp(column.type)
                    else column
                    for column in batch.columns
                ]
                for row in pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist():
                    yield None, row
    except (OSError, pa.ArrowException, UnicodeDecodeError) as cause:
        if isinstance(cause, OSError) and cause.errno is not None:
            raise error(refusal(path, cause)) from cause
        message = "this Parquet file is damaged or cut short"
        raise error(Problem(message, path=shown(path), got=shorten(str(cause)))) from cause


def otlp_spans(request: Mapping[str, Any]) -> Iterator[Span]:
    """The spans of an `ExportTraceServiceRequest` in JSON, with names in camel case or with underscores."""
    for resource in _dicts(_get(request, "resourceSpans")):
        scopes = _get(resource, "scopeSpans") or _get(resource, "instrumentationLibrarySpans")
        for scope in _dicts(scopes):
            for span in _dicts(scope.get("spans")):
                yield _otlp_span(span)


def _otlp_span(span: Mapping[str, Any]) -> Span:
    attributes = flat(_key_values(span.get("attributes")))
    status = span.get("status")
    code = status.get("code") if isinstance(status, dict) else None
    error = attributes.get("error.type")
    if error is None:
        events = (_key_values(event.get("attributes")) for event in _dicts(span.get("events")))
        error = next((event["exception.type"] for event in events if "exception.type" in event), "")
    return Span(
        str(_get(span, "traceId") or ""),
        str(_get(span, "spanId") or ""),
        str(_get(span, "parentSpanId") or ""),
        str(span.get("name") or ""),
        time_ns(_get(span, "startTimeUnixNano"), is_ns=True),
        code in {2, "2", "STATUS_CODE_ERROR"},
        str(error),
        attributes,
        _whole(_get(span, "droppedAttributesCount")),
    )


def _phoenix_span(record: Mapping[str, Any]) -> Span:
    given = record.get("attributes")
    prefix = "attributes."
    own = {name[len(prefix) :]: value for name, value in record.items() if name.startswith(prefix)}
    attributes = flat({**(given if isinstance(given, dict) else {}), **own})
    kind = record.get("span_kind")
    if isinstance(kind, str) and kind:
        attributes.setdefault(KIND, kind)
    context = record.get("context")
    context = context if isinstance(context, dict) else {}
    events = (event.get("attributes") for event in _dicts(record.get("events")))
    errors = (event.get("exception.type") for event in events if isinstance(event, dict))
    return Span(
        str(record.get("context.trace_id") or context.get("trace_id") or ""),
        str(record.get("context.span_id") or context.get("span_id") or ""),
        str(record.get("parent_id") or ""),
        str(record.get("name") or ""),
        time_ns(record.get("start_time")),
        str(record.get("status_code") or "").upper() == "ERROR",
        str(attributes.get("error.type") or next(filter(None, errors), "")),
        attributes,
    )


def _observation_span(record: Mapping[str, Any]) -> Span:
    attributes: dict[str, Any] = {LANGFUSE_TYPE: str(record.get("type") or "").lower()}
    for name, key in ((LANGFUSE_INPUT, "input"), (LANGFUSE_OUTPUT, "output")):
        if record.get(key) is not None:
            attributes[name] = record[key]
    return Span(
        str(_get(record, "traceId") or ""),
        str(record.get("id") or ""),
        str(_get(record, "parentObservationId") or ""),
        str(record.get("name") or ""),
        time_ns(_get(record, "startTime")),
        str(record.get("level") or "").upper() == "ERROR",
        "",
        attributes,
    )


def _get(record: Mapping[str, Any], name: str) -> Any:
    """The value under a name in camel case, or under the same with underscores."""
    if name in record:
        return record[name]
    return record.get("".join(f"_{char.lower()}" if char.isupper() else char for char in name))


def _dicts(values: Any) -> Iterator[Mapping[str, Any]]:
    return (value for value in values if isinstance(value, dict)) if isinstance(values, list) else iter(())


def _key_values(values: Any) -> dict[str, Any]:
    """Attributes of OTLP, `{"key": …, "value": {"stringValue": …}}`, by name."""
    return {str(each.get("key")): _any_value(each.get("value"), 0) for each in _dicts(values)}


def _any_value(value: Any, depth: int) -> Any:
    """A value of OTLP; nothing of one that is none."""
    if not isinstance(value, dict) or depth > MAX_DEPTH or not value:
        return None
    key, inner = next(iter(value.items()))
    listed = list(_dicts(inner.get("values"))) if isinstance(inner, dict) else []
    kind = key.replace("_", "").lower()
    if kind == "arrayvalue":
        return [_any_value(each, depth + 1) for each in listed]
    if kind == "kvlistvalue":
        return {str(each.get("key")): _any_value(each.get("value"), depth + 1) for each in listed}
    if kind == "intvalue":
        return _whole(inner)
    return inner if isinstance(inner, str | int | float | bool) else None


def flat(values: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """Mappings in mappings as one, its names with dots; nothing is nothing."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            if depth < MAX_DEPTH:
                found |= flat(value, f"{prefix}{name}.", depth + 1)
        elif value is not None:
            found[f"{prefix}{name}"] = value
    return found


def _whole(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0


def time_ns(value: Any, *, is_ns: bool = False) -> int:
    """A time as nanoseconds since 1970; 0 where it is none.

    Args:
        value: a time as text in ISO 8601 (UTC where it has no zone), or a whole number.
        is_ns: the number is of nanoseconds; else one that would lie before March 1970 so is of milliseconds.

    Example:
        >>> time_ns("1970-01-01T00:00:01Z"), time_ns(1500)
        (1000000000, 1500000000)
    """
    if isinstance(value, str) and not value.isdecimal():
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return 0
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    number = _whole(value)
    return number * 10**6 if not is_ns and 0 < number < _MS_AT_MOST else number
