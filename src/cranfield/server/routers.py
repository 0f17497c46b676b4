"""The table of routers."""

from __future__ import annotations

from fastapi import APIRouter


def routers() -> tuple[APIRouter, ...]:
    """Every router of the application: each route in them declares who may use it."""
    from cranfield.server import adjudicate, books, home, judging, live, people, sign_in

    modules = (sign_in, home, books, adjudicate, judging, live, people)
    return tuple(module.router for module in modules)
