"""Production queries: what programs send is redacted and counted; no answer, message or log holds a text that was sent."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request
from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from cranfield.workbench.config import SOURCE_PATTERN
from cranfield.workbench.server.access import Access, Caller
from cranfield.workbench.server.v1.common import RESULTS, ApiRequire, Route, service_of
from cranfield.workbench.service.intake.intake import Taking
from cranfield.workbench.service.intake.reading import MAX_TIMES, DropReason, LoggedQuery
from cranfield.workbench.service.responses import IntakeResponse, QuerySources

router = APIRouter(route_class=Route)
Sending = Annotated[Caller, Depends(ApiRequire(Access.EVALUATE, checks_texts=False))]
MAX_QUERIES = 10_000
"""Most queries of one batch."""


def _as_text(value: object) -> object:
    """A date is written as text; a number is none."""
    if not isinstance(value, str | date):
        raise ValueError("not a date")  # noqa: TRY004 - what the library reports to the caller
    return value


def _readable(value: object) -> object:
    """A text; None for one with halves of surrogate pairs, which is a record to drop and no reason to refuse the others."""
    if not isinstance(value, str):
        raise ValueError("not a text")  # noqa: TRY004 - as above
    return value if value.isascii() or value == value.encode("utf-8", "replace").decode() else None


class SubmittedQuery(BaseModel):
    """A query of a user. Unknown keys are ignored, because an error message would contain them."""

    text: Annotated[str | None, BeforeValidator(_readable), WithJsonSchema({"type": "string"})]
    """As it was typed: it is redacted before it is stored."""
    n: Annotated[int, Field(strict=True, ge=1, le=MAX_TIMES)] = 1
    """How often it came."""
    day: Annotated[date, BeforeValidator(_as_text)] | None = None
    """Day (UTC); default: today."""


class QueryBatch(BaseModel):
    """Queries of one source."""

    source: Annotated[str, Field(pattern=SOURCE_PATTERN)]
    """Name of where they are from."""
    queries: Annotated[list[SubmittedQuery], Field(min_length=1, max_length=MAX_QUERIES)]


KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        description="A batch with the same source and key is counted once, even if it is sent again.",
    ),
]


@router.post("/queries")
def take_in(request: Request, caller: Sending, batch: QueryBatch, key: KeyHeader = None) -> IntakeResponse:
    """Store production queries: redacted by the patterns of the operator's file, counted by day and source."""
    service = service_of(request)
    taking = Taking(service.queries, service.workbench.intake, batch.source, service.clock)
    records = [
        DropReason.UNREADABLE if entry.text is None else LoggedQuery(entry.text, entry.n, entry.day)
        for entry in batch.queries
    ]
    counts = taking.batch(records, f"{caller.account.id} {key}" if key else "")
    return IntakeResponse.model_validate(counts)


@router.get("/queries", dependencies=[RESULTS])
def sources(request: Request) -> QuerySources:
    """List the sources of production queries with their numbers and days."""
    return QuerySources(sources=list(service_of(request).queries.counts()))
