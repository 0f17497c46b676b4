"""The description of the API, made from its routes and models."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from fastapi import APIRouter, Response
from fastapi.openapi.utils import get_openapi

from cranfield.workbench.server.v1.common import ANYONE, JSON, Route

router = APIRouter(route_class=Route)
ABOUT = """Evaluate search systems of the operator's config, or stored runs, on stored test sets; compare; read what was stored.

Every request needs a token, `Authorization: Bearer TOKEN`. Every failure has the shape `ErrorResponse`. Lists come in pages:
`next`, and the header `Link`, hold the address of the next one. Times are milliseconds since 1970 (UTC)."""


@router.get("/openapi.json", include_in_schema=False, dependencies=[ANYONE])
def openapi() -> Response:
    """Give the description of the API."""
    return Response(json.dumps(description()), media_type=JSON)


@cache
def description() -> dict[str, Any]:
    """The OpenAPI document."""
    from cranfield.base.version import __version__
    from cranfield.workbench.server.v1.routers import api

    made = get_openapi(title="Cranfield", version=__version__, description=ABOUT, routes=api().routes)
    made.setdefault("components", {})["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    made["security"] = [{"token": []}]
    for operations in made["paths"].values():
        for method, operation in operations.items():
            if method == "get" and "text/event-stream" not in operation["responses"]["200"]["content"]:
                operation["responses"]["304"] = {
                    "description": "Not modified: the entity tag in `If-None-Match` is current."
                }
            for status, response in operation["responses"].items():
                if status >= "4":  # errors are JSON, also of routes whose result is something else
                    response["content"] = {JSON: next(iter(response["content"].values()))}
    return made
