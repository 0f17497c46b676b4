"""Requests with spans as Protocol Buffers, as exporters send them over HTTP, and the answers to them."""

from __future__ import annotations

import base64
from typing import Any

from cranfield.base.errors import MissingExtraError


def otlp_request(data: bytes) -> dict[str, Any]:
    """An `ExportTraceServiceRequest` as its JSON has it, ids in hexadecimal digits: a trace has one id, however it is sent.

    Raises:
        MissingExtraError: opentelemetry-proto is not installed.
        ValueError: it is none.
    """
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError:
        raise MissingExtraError.for_extra("reading spans as Protocol Buffers", "traces") from None
    try:
        found: dict[str, Any] = MessageToDict(ExportTraceServiceRequest.FromString(data))
    except (DecodeError, RecursionError):
        raise ValueError("no ExportTraceServiceRequest") from None
    for resource in found.get("resourceSpans", ()):
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                for name in {"traceId", "spanId", "parentSpanId"} & span.keys():
                    span[name] = base64.b64decode(span[name]).hex()
    return found


def otlp_response(n_rejected: int, message: str) -> bytes:
    """An `ExportTraceServiceResponse`, with the number of spans that were not taken, and why; empty where all were."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    answer = ExportTraceServiceResponse()
    if n_rejected:
        answer.partial_success.rejected_spans = n_rejected
        answer.partial_success.error_message = message
    return bytes(answer.SerializeToString())
