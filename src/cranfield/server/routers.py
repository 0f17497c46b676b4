"""The table of routers."""

from __future__ import annotations

from fastapi import APIRouter


def routers() -> tuple[APIRouter, ...]:
    """Every router of the application: each route in them declares who may use it."""
    from cranfield.server import home, judging, sign_in

    return (sign_in.router, home.router, judging.router)
