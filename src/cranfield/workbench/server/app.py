"""The application: routers, the guard in front of them, the answers to errors."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.body_limit import RequestBodyLimitMiddleware

from cranfield.base.errors import UsageError
from cranfield.plugins import part, products
from cranfield.workbench.server.access import STATIC, check_routes, declared_access
from cranfield.workbench.server.connections import Room, most_requests
from cranfield.workbench.server.error_handlers import add_handlers
from cranfield.workbench.server.guard import Guard
from cranfield.workbench.server.health import Probes, Readiness
from cranfield.workbench.server.logs import RequestLog
from cranfield.workbench.server.pages import FOLDER
from cranfield.workbench.server.results import MAX_REPORTS, MAX_RESULTS, RecentValues

if TYPE_CHECKING:
    from cranfield.books.store.store import Store
    from cranfield.judging.documents.texts import DocumentTexts
    from cranfield.workbench.server.options import ServerOptions
    from cranfield.workbench.service.service import Service


LARGEST_BODY = 2_000_000
"""Bytes of a request: a batch of judgments, or a long guideline."""


def create_app(
    store: Store, options: ServerOptions, *, texts: DocumentTexts | None = None, service: Service | None = None
) -> FastAPI:
    """Make the application.

    Args:
        store: the books.
        options: address, accounts, proxies.
        texts: reads documents; None: their fields alone.
        service: jobs, test sets and results; None where the server has books alone.

    Raises:
        UsageError: the operator's file gives two metrics one name; a page of an installed product is open to all.
        InternalError: a route does not declare who may use it.
    """
    from cranfield.judging.documents.texts import DocumentTexts
    from cranfield.workbench.service.metrics.scrape import Scraper

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.state.store = store
    app.state.options = options
    app.state.texts = texts or DocumentTexts()
    app.state.stopping = asyncio.Event()
    app.state.reports = RecentValues(MAX_REPORTS)
    app.state.streams, app.state.uploads = Counter[int](), Counter[int]()
    app.state.service = service
    app.state.results = RecentValues(MAX_RESULTS)
    app.state.rates = {}
    app.state.scraper = None if service is None else Scraper(service)
    app.state.open_metrics = service is not None and service.workbench.metrics.anonymous
    limits = (None, None) if service is None else (service.workbench.limits.upload_mb, service.workbench.traces.body_mb)
    for router in routers(*limits):
        app.include_router(router)
    of_reports: list[str | tuple[str, str]] = [("cranfield.reporting", "static")]
    app.mount("/static", StaticFiles(directory=FOLDER / "static", packages=of_reports), name=STATIC)
    check_routes(app.routes)
    add_handlers(app)
    # The innermost one: the guard words its refusal, and the log has it.
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=LARGEST_BODY)
    most = most_requests(options.connections)
    app.state.most_streams = max(1, most // 2)
    app.add_middleware(Room, most=most)
    app.add_middleware(Guard, options=options)
    app.state.readiness = Readiness(app)
    app.add_middleware(Probes, readiness=app.state.readiness)
    app.add_middleware(RequestLog)
    return app


def routers(upload_mb: float | None = None, spans_mb: float | None = None) -> tuple[APIRouter, ...]:
    """Every router of the application: each route in them declares who may use it.

    Args:
        upload_mb: size of the largest upload, in megabytes; None: the default of the operator's file.
        spans_mb: the same of a request with spans.
    """
    from cranfield.workbench.server import (
        adjudicate,
        books,
        comparisons,
        evaluations,
        grade_hole,
        guide,
        home,
        jobs,
        judging,
        live,
        live_measures,
        metrics,
        new_evaluation,
        people,
        queries,
        review,
        server_settings,
        sign_in,
        systems,
        testsets,
    )
    from cranfield.workbench.server.v1 import openapi
    from cranfield.workbench.server.v1.routers import LARGEST_SPANS, LARGEST_UPLOAD, ROOM, api

    of_books = (books, adjudicate, judging, review, live, people)
    of_results = (testsets, evaluations, comparisons, queries, jobs, server_settings, guide, metrics)
    of_teams = (new_evaluation, live_measures, grade_hole, systems)
    modules = (sign_in, home, *of_books, *of_results, *of_teams, openapi)
    largest = LARGEST_UPLOAD if upload_mb is None else round(upload_mb * 1e6)
    spans = LARGEST_SPANS if spans_mb is None else round(spans_mb * 1e6)
    uploads = APIRouter()
    uploads.include_router(testsets.uploads, max_body_size=largest + ROOM)
    of_products = [_router_of(product.name, part(place)) for product in products() for place in product.pages]
    return uploads, *(module.router for module in modules), api(largest, spans), *of_products


def _router_of(product: str, pages: APIRouter | Callable[[], APIRouter]) -> APIRouter:
    router = pages if isinstance(pages, APIRouter) else pages()
    open_to_all = [
        f"{method} {path}" for (method, path), access in declared_access(router.routes).items() if not access
    ]
    if open_to_all:
        hint = 'each route depends on `require("results")`, or on another kind of `access.require`, once'
        message = f"pages of the product {product} do not declare who may use them: {', '.join(open_to_all)}"
        raise UsageError(message, hint=hint)
    return router
