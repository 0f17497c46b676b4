"""Spans of applications, by OTLP over HTTP: JSON, or Protocol Buffers where these are installed, plain or packed by gzip."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from cranfield.base.errors import MissingExtraError
from cranfield.base.words import count_noun
from cranfield.formats.traces.protobuf import otlp_request, otlp_response
from cranfield.formats.traces.spans import otlp_spans
from cranfield.workbench.server.access import Access
from cranfield.workbench.server.http_errors import RefusedRequestError
from cranfield.workbench.server.v1.common import JSON, RESULTS, RETRY_S, ApiRequire, Route, service_of
from cranfield.workbench.service.intake.traces import REJECTED, BusyError, SpanFate
from cranfield.workbench.service.responses import ResponseBody, TraceIntake

PROTOBUF = "application/x-protobuf"
_TYPES = {"type": "object", "description": "`ExportTraceServiceRequest` of OTLP."}
_OPENAPI = {
    "requestBody": {
        "required": True,
        "content": {JSON: {"schema": _TYPES}, PROTOBUF: {"schema": {"type": "string", "format": "binary"}}},
    }
}
router = APIRouter(route_class=Route)
uploads = APIRouter(route_class=Route)
Sending = Depends(ApiRequire(Access.EVALUATE, (JSON, PROTOBUF), checks_texts=False))


class PartialSuccess(ResponseBody):
    """What was not taken."""

    rejectedSpans: str  # noqa: N815  the name of the protocol
    """Number of spans, as text: their queries are too long, too old, or nothing but what is redacted."""
    errorMessage: str  # noqa: N815
    """Why, in words."""


class TraceExportResponse(ResponseBody):
    """`ExportTraceServiceResponse` of OTLP."""

    partialSuccess: Annotated[PartialSuccess | None, Field(default=None)]  # noqa: N815
    """Missing where everything was taken."""


@uploads.post(
    "/traces",
    dependencies=[Sending],
    openapi_extra=_OPENAPI,
    responses={200: {"content": {PROTOBUF: {"schema": {"type": "string", "format": "binary"}}}}},
    response_model=TraceExportResponse,
    response_model_exclude_none=True,
)
async def receive_spans(request: Request) -> Response:
    """Take in spans (OTLP over HTTP): queries of retrievers are redacted and counted, documents may go into a book.

    Spans of other kinds are accepted and ignored. The same span counts once.
    """
    service = service_of(request)
    body = await request.body()
    is_json = _content_type(request) == JSON
    if not body:
        raise RefusedRequestError(400, "there is no body", "send an ExportTraceServiceRequest")
    limit = round(service.workbench.traces.body_mb * 1e6)
    encoding = request.headers.get("content-encoding", "")

    def take() -> Mapping[SpanFate, int]:
        data = unpacked(body, encoding, limit)
        found = _from_json(data) if is_json else _from_protobuf(data)
        return service.traces.take(otlp_spans(found))

    try:
        with service.traces.slot():
            fates = await run_in_threadpool(take)
    except BusyError:
        hint = f"send it again in {RETRY_S} s, as exporters do"
        raise RefusedRequestError(
            503, "too many requests with spans at a time", hint, "busy", {"Retry-After": str(RETRY_S)}
        ) from None
    n_rejected = sum(n for fate, n in fates.items() if fate in REJECTED)
    message = (
        f"{count_noun(n_rejected, 'spans')} with queries that are too long, too old or only redacted"
        if n_rejected
        else ""
    )
    return (
        _json_response(n_rejected, message)
        if is_json
        else Response(otlp_response(n_rejected, message), media_type=PROTOBUF)
    )


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """A body without its packing.

    Raises:
        RefusedError: 415, packed in another way; 400, damaged; 413, larger than the limit when it is unpacked.
    """
    if encoding.strip().lower() in {"gzip", "x-gzip"}:
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            body = unpacking.decompress(body, limit + 1)
        except zlib.error:
            raise RefusedRequestError(400, "the gzip data are damaged") from None
        if len(body) <= limit and not unpacking.eof:
            raise RefusedRequestError(400, "the gzip data are cut short")
    elif encoding.strip().lower() not in {"", "identity"}:
        raise RefusedRequestError(415, "the body is packed in an unknown way", "send gzip, or no Content-Encoding")
    if len(body) > limit:
        hint = "send fewer spans at a time; the limit is traces.body_mb of the server"
        raise RefusedRequestError(413, f"the spans are larger than {limit} bytes", hint)
    return body


def _from_json(data: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise RefusedRequestError(400, "the body is not valid JSON", "send an ExportTraceServiceRequest") from None
    if not isinstance(found, dict):
        raise RefusedRequestError(400, "the body is not an object", "send an ExportTraceServiceRequest")
    return found


def _from_protobuf(data: bytes) -> Mapping[str, Any]:
    try:
        return otlp_request(data)
    except MissingExtraError as error:
        hint = f"{error.problems[0].hint} on the server, or let the exporter send JSON (OTEL_EXPORTER_OTLP_PROTOCOL=http/json)"
        raise RefusedRequestError(415, "this server does not read Protocol Buffers", hint, "content_type") from None
    except ValueError:
        raise RefusedRequestError(400, "the body is no ExportTraceServiceRequest") from None


def _json_response(n_rejected: int, message: str) -> Response:
    partial = PartialSuccess(rejectedSpans=str(n_rejected), errorMessage=message) if n_rejected else None
    found = TraceExportResponse(partialSuccess=partial)
    return Response(found.model_dump_json(exclude_none=True), media_type=JSON)


@router.get("/traces", dependencies=[RESULTS])
def trace_intake(request: Request) -> TraceIntake:
    """Give the numbers of spans that came since the server was started, by what became of them."""
    service = service_of(request)
    counts = service.traces.counts
    return TraceIntake(
        source=service.workbench.traces.source,
        book=service.workbench.traces.book,
        sample=service.workbench.traces.sample,
        requests=counts.requests,
        spans={fate.value: counts.spans[fate] for fate in SpanFate},
        documents_added=counts.documents_added,
        documents_dropped=dict(counts.documents_dropped),
    )
