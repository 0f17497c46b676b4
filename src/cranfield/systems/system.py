"""What Cranfield requires of a system under test, whatever it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from cranfield.base.concurrency.loop import CallInterruptedError
from cranfield.model import Answer, CallLog, Order, Query

__all__ = ["AsyncSystem", "CallInterruptedError", "Interruptible", "System"]


class System(Protocol):
    """A system that answers queries. Failures are answers: `search` raises only when it cannot go on at all."""

    @property
    def name(self) -> str:
        """Name in reports, and of the run's file."""
        ...

    @property
    def order(self) -> Order:
        """Whether the order of the list counts, or it is to be sorted by score."""
        ...

    @property
    def concurrency(self) -> int:
        """Calls that may be under way at a time."""
        ...

    @property
    def config_digest(self) -> str:
        """SHA-256 over the configuration as written; secrets included."""
        ...

    def public_config(self) -> Mapping[str, Any]:
        """The configuration as written, without any secret, in JSON values."""
        ...

    def search(self, query: Query, k: int) -> tuple[Answer, CallLog]:
        """Return the first `k` results. Called from several threads where `concurrency` allows."""
        ...


@runtime_checkable
class AsyncSystem(Protocol):
    """A system that is called on the event loop, not in threads; a call is interrupted by cancelling it."""

    async def search_async(self, query: Query, k: int) -> tuple[Answer, CallLog]:
        """As `search`."""
        ...


@runtime_checkable
class Interruptible(Protocol):
    """A system whose calls can be interrupted."""

    def interrupt(self) -> None:
        """End every call under way; each raises `CallInterruptedError` in its own thread."""
        ...
