"""Connections that are kept open between calls: one a call under way, and closed together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """A connection."""

    def close(self) -> object:
        """Close it."""
        ...


Connection = TypeVar("Connection", bound=Closable)


class Connections(Generic[Connection]):
    """Opens a connection where none is idle."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._idle: list[Connection] = []
        self._lock = Lock()

    @contextmanager
    def one(self) -> Iterator[Connection]:
        """A connection for one call; closed where the call failed, else kept for the next."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)

    def close(self) -> None:
        """Close those that are idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


class OrNone(dict[str, object]):
    """Parameters of a statement; one that a query does not have is null."""

    def __missing__(self, name: str) -> None:
        """Null, whatever the name."""
        return
