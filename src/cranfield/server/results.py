"""What is expensive to make again from the database, kept in memory while it is used: at most a few of each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from cranfield.reporting.query_data import QueryData
from cranfield.server.refusal import not_found

if TYPE_CHECKING:
    from fastapi import Request

    from cranfield.evaluation.values import Comparison, Evaluation
    from cranfield.service.service import Service

Made = TypeVar("Made")


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


MOST_RESULTS = 4
"""Evaluations or comparisons in memory: one of 7,000 queries takes some hundred MB."""
MOST_PAGES = 64
"""Rendered parts of pages."""


def service_of(request: Request) -> Service:
    """The service of this server.

    Raises:
        RefusedError: it has none: it serves books alone.
    """
    service = getattr(request.app.state, "service", None)
    if service is None:
        raise not_found()
    return cast("Service", service)


@dataclass(frozen=True)
class Result(Generic[Made]):
    """An evaluation or a comparison with its rankings, and the data of its queries."""

    made: Made
    queries: QueryData


def evaluation_of(request: Request, evaluation_id: int) -> Result[Evaluation]:
    """An evaluation, scored again from its run."""
    service = service_of(request)
    info = service.evaluations.get(evaluation_id)

    def make() -> Result[Evaluation]:
        made = service.evaluations.rescore(info.id)
        return Result(made, QueryData(made))

    if info.book_id is not None:  # its judgments change while people grade
        return make()
    kept: Kept = request.app.state.results
    return cast("Result[Evaluation]", kept.get(("evaluation", info.id), make))


def comparison_of(request: Request, comparison_id: int) -> Result[Comparison]:
    """A comparison, made again from its runs."""
    service = service_of(request)

    def make() -> Result[Comparison]:
        made = service.comparisons.rebuild(comparison_id)
        return Result(made, QueryData(made))

    kept: Kept = request.app.state.results
    return cast("Result[Comparison]", kept.get(("comparison", comparison_id), make))
