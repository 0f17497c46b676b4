"""A connection pool: one connection per call under way."""

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
    """A pool that opens a connection if none is idle."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._idle: list[Connection] = []
        self._lock = Lock()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection for one call; closed if the call fails, else reused."""
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
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


class OrNone(dict[str, object]):
    """Parameters of a statement; a missing one is null."""

    def __missing__(self, name: str) -> None:
        """Null."""
        return
