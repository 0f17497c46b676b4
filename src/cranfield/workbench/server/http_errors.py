"""Refusals of requests, methods that change nothing, and errors of databases: values alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy.exc import InterfaceError, InternalError, OperationalError

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
SIGN_IN = "sign_in"
"""Code of a refusal that signing in solves."""
NO_ANSWER = (OperationalError, InterfaceError, InternalError)
"""What a database raises that is full, locked, read-only, restarted or gone."""


@dataclass
class RefusedRequestError(Exception):
    """A request that is refused."""

    status: int
    message: str
    hint: str = ""
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


def not_found(what: str = "page") -> RefusedRequestError:
    """There is nothing, or nothing for this account: the answer is the same."""
    return RefusedRequestError(404, f"{what} not found, or you have no access to it", code="not_found")
