"""The application: routers, the guard in front of them, the answers to errors."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from cranfield.server.access import STATIC, check_routes
from cranfield.server.guard import Guard
from cranfield.server.pages import FOLDER
from cranfield.server.refusal import add_handlers

if TYPE_CHECKING:
    from cranfield.judging.documents.texts import DocumentTexts
    from cranfield.judging.store.store import Store
    from cranfield.server.options import ServerOptions

LARGEST_BODY = 2_000_000
"""Bytes of a request: a batch of judgments, or a long guideline."""


def create_app(store: Store, options: ServerOptions, *, texts: DocumentTexts | None = None) -> FastAPI:
    """Make the application.

    Args:
        store: the books.
        options: address, accounts, proxies.
        texts: reads documents; None: their fields alone.

    Raises:
        InternalError: a route does not declare who may use it.
    """
    from cranfield.judging.documents.texts import DocumentTexts
    from cranfield.server.routers import routers

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, max_body_size=LARGEST_BODY)
    app.state.store = store
    app.state.options = options
    app.state.texts = texts or DocumentTexts()
    app.state.stopping = asyncio.Event()
    app.state.reports = {}
    app.state.streams = Counter[int]()
    for router in routers():
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=FOLDER / "static"), name=STATIC)
    check_routes(app.routes)
    add_handlers(app)
    app.add_middleware(Guard, options=options)
    return app
