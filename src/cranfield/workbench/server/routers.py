"""The table of routers."""

from __future__ import annotations

from fastapi import APIRouter

from cranfield.plugins import part, products


def routers(upload_mb: float | None = None) -> tuple[APIRouter, ...]:
    """Every router of the application: each route in them declares who may use it.

    Args:
        upload_mb: size of the largest upload, in megabytes; None: the default of the operator's file.
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
    from cranfield.workbench.server.v1.routers import LARGEST_UPLOAD, ROOM, api

    of_books = (books, adjudicate, judging, review, live, people)
    of_results = (testsets, evaluations, comparisons, queries, jobs, server_settings, guide, metrics)
    of_teams = (new_evaluation, live_measures, grade_hole, systems)
    modules = (sign_in, home, *of_books, *of_results, *of_teams, openapi)
    largest = LARGEST_UPLOAD if upload_mb is None else round(upload_mb * 1e6)
    uploads = APIRouter()
    uploads.include_router(testsets.uploads, max_body_size=largest + ROOM)
    of_products = [part(place) for product in products() for place in product.pages]
    of_products = [each if isinstance(each, APIRouter) else each() for each in of_products]
    return uploads, *(module.router for module in modules), api(largest), *of_products
