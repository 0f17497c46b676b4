"""What is expensive to make again from the database, kept in memory while it is used: at most a few of each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from cranfield.reporting.query_data import QueryData
from cranfield.workbench.server.http_errors import not_found

if TYPE_CHECKING:
    from fastapi import Request

    from cranfield.workbench.service.results import Comparisons, Evaluations
    from cranfield.workbench.service.service import Service


class RecentValues:
    """Values by key, the least recently used one dropped first. A value is made once, however many requests wait for it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._turns: dict[Hashable, Lock] = {}
        self._lock = Lock()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value of a key, made if it is not there."""
        with self._lock:
            turn = self._turns.setdefault(key, Lock())
        with turn:
            with self._lock:
                if key in self._values:
                    self._values.move_to_end(key)
                    return self._values[key]
            made = make()
            with self._lock:
                self._values[key] = made
                while len(self._values) > self.most:
                    self._turns.pop(self._values.popitem(last=False)[0], None)
            return made


MAX_REPORTS = 32
"""Reports on books in memory."""
MAX_RESULTS = 4
"""Evaluations or comparisons in memory: of 7,000 queries, one takes some hundred MB."""


def service_of(request: Request) -> Service:
    """The service of this server.

    Raises:
        RefusedError: it has none: it serves books alone.
    """
    service = getattr(request.app.state, "service", None)
    if service is None:
        raise not_found()
    return cast("Service", service)


def evaluation_queries(request: Request, number: int) -> QueryData:
    """The queries of an evaluation; where it is judged in a book, scored again by the grades of the book as they are now."""
    evaluations = service_of(request).evaluations
    if evaluations.get(number).book_id is not None:
        return QueryData(evaluations.subject(number))
    return _kept_queries(request, evaluations, number)


def comparison_queries(request: Request, number: int) -> QueryData:
    """The queries of a comparison."""
    return _kept_queries(request, service_of(request).comparisons, number)


def is_comparison_kept(request: Request, number: int) -> bool:
    """Whether the queries of a comparison are in memory."""
    return (type(service_of(request).comparisons), number) in request.app.state.results


def _kept_queries(request: Request, stored: Evaluations | Comparisons, number: int) -> QueryData:
    kept: RecentValues = request.app.state.results
    return cast("QueryData", kept.get((type(stored), number), lambda: QueryData(stored.subject(number))))
