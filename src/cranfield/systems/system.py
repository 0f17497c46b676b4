"""What Cranfield asks of a system under test, whatever it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from cranfield.model import Answer, CallLog, Order, Query


class System(Protocol):
    """Something that answers queries. Failures are answers too: `search` raises only when it cannot go on at all."""

    @property
    def name(self) -> str:
        """Name in reports, and of the run's file."""
        ...

    @property
    def order(self) -> Order:
        """Whether the list stands as given or is to be sorted by score."""
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
        """Ask for the first `k` results. Called from several threads where `concurrency` allows."""
        ...


class CallInterruptedError(Exception):
    """A call was cut short by `interrupt`: it has no outcome, and is asked again another time."""


@runtime_checkable
class Interruptible(Protocol):
    """A system whose calls under way can be cut short."""

    def interrupt(self) -> None:
        """End every call under way; each raises `CallInterruptedError` in its own thread."""
        ...
