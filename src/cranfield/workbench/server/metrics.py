"""Metrics for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Request, Response

from cranfield.base.version import __version__
from cranfield.workbench.server.access import Caller, require
from cranfield.workbench.service.metrics.exposition import Exposition
from cranfield.workbench.service.metrics.observed import MetricsSnapshot

if TYPE_CHECKING:
    from cranfield.workbench.service.metrics.scrape import Scraper

router = APIRouter()
TEXT = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/metrics")
def metrics(request: Request, _: Annotated[Caller | None, Depends(require("metrics"))]) -> Response:
    """Write the metrics in the text format of Prometheus."""
    scraper: Scraper | None = request.app.state.scraper
    exposition = Exposition(MetricsSnapshot((), __version__)) if scraper is None else scraper.exposition()
    return Response(exposition.text(), media_type=TEXT)
