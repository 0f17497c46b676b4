"""The table of routers of the API."""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter

from cranfield.workbench.server.v1.common import ERRORS

LARGEST_UPLOAD = 64_000_000
"""Bytes of a body with files, where the operator's file says nothing."""
ROOM = 100_000
"""Bytes of a form beside its files."""


@cache
def api(largest_upload: int = LARGEST_UPLOAD) -> APIRouter:
    """Every route under /v1: each declares who may use it.

    Args:
        largest_upload: bytes of an uploaded file.
    """
    from cranfield.workbench.server.v1 import books, catalogue, evaluate, evaluations, jobs, queries, testsets

    made = APIRouter(prefix="/v1", responses=ERRORS, generate_unique_id_function=lambda route: route.name)
    for module in (evaluate, testsets):
        made.include_router(module.uploads, max_body_size=largest_upload + ROOM)
    for module in (evaluate, jobs, testsets, evaluations, books, catalogue, queries):
        made.include_router(module.router)
    return made
