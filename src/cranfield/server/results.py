"""What is expensive to make again from the database, kept in memory while it is used: at most a few of each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from cranfield.reporting.query_data import QueryData
from cranfield.reporting.sections.subject import Subject
from cranfield.server.http_errors import not_found

if TYPE_CHECKING:
    from fastapi import Request

    from cranfield.reporting.comparison_page import ComparisonPage
    from cranfield.service.service import Service


class Kept:
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


MOST_REPORTS = 32
"""Reports on books in memory."""
MOST_RESULTS = 4
"""Evaluations or pages of comparisons in memory: an evaluation of 7,000 queries takes some hundred MB, a page 30."""


def service_of(request: Request) -> Service:
    """The service of this server.

    Raises:
        RefusedError: it has none: it serves books alone.
    """
    service = getattr(request.app.state, "service", None)
    if service is None:
        raise not_found()
    return cast("Service", service)


def evaluation_queries(request: Request, evaluation_id: int) -> QueryData:
    """The queries of an evaluation, scored again from its run."""
    service = service_of(request)
    info = service.evaluations.get(evaluation_id)

    def make() -> QueryData:
        return QueryData(Subject.of(service.evaluations.rescore(info.id)))

    if info.book_id is not None:  # its judgments change while people grade
        return make()
    kept: Kept = request.app.state.results
    return cast("QueryData", kept.get(("evaluation", info.id), make))


def comparison_page_of(request: Request, comparison_id: int) -> ComparisonPage:
    """What the page of a comparison shows."""
    comparisons = service_of(request).comparisons
    kept: Kept = request.app.state.results
    return cast("ComparisonPage", kept.get(("comparison", comparison_id), lambda: comparisons.page(comparison_id)))
