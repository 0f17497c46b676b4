"""The table of routers of the API."""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter

from cranfield.workbench.server.v1.common import ERRORS

LARGEST_UPLOAD = 64_000_000
"""Bytes of a body with files, where the operator's file says nothing."""
LARGEST_SPANS = 16_000_000
"""Bytes of a request with spans, where the operator's file says nothing."""
ROOM = 100_000
"""Bytes of a form beside its files."""


@cache
def api(largest_upload: int = LARGEST_UPLOAD, largest_spans: int = LARGEST_SPANS) -> APIRouter:
    """Every route under /v1: each declares who may use it.

    Args:
        largest_upload: bytes of an uploaded file.
        largest_spans: bytes of a request with spans of applications.
    """
    from cranfield.workbench.server.v1 import books, catalogue, evaluate, evaluations, jobs, queries, testsets, traces

    made = APIRouter(prefix="/v1", responses=ERRORS, generate_unique_id_function=lambda route: route.name)
    for module in (evaluate, testsets):
        made.include_router(module.uploads, max_body_size=largest_upload + ROOM)
    made.include_router(traces.uploads, max_body_size=largest_spans)
    for module in (evaluate, jobs, testsets, evaluations, books, catalogue, queries, traces):
        made.include_router(module.router)
    return made
