"""Redaction of production queries: what may identify a person is replaced by its kind before a query is stored."""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from cranfield.base.redaction import redact_text
from cranfield.systems.calls.regex_process import SearchError, find
from cranfield.workbench.config import Intake

SEARCH_S = 0.5
"""Longest search of a custom pattern in one query."""
BATCH_SEARCH_S = 10.0
"""Longest time of custom patterns that found no end, in one batch."""
MAX_FOUND = 20_000
"""More than a query has characters."""


class PatternTimeoutError(Exception):
    """A custom pattern found no end in a query: what it would remove is not known."""


@dataclass
class QueryRedactor:
    """Redacts queries. One is used for one batch: the time that custom patterns may take is that of the batch.

    Attributes:
        config: what is removed.
        found: kind to the number of places that were redacted.
    """

    config: Intake
    found: Counter[str] = field(default_factory=Counter)
    _lost_s: float = 0.0

    def redact(self, text: str) -> str:
        """A query as `redact_text` gives it, by what the config says.

        Raises:
            PatternTimeoutError: a custom pattern found no end.
        """
        custom = {name: partial(self._custom, name, pattern) for name, pattern in self.config.patterns.items()}
        redacted, found = redact_text(text, self.config.redact, self.config.min_digits, custom)
        self.found += found
        return redacted

    def _custom(self, name: str, pattern: str, text: str) -> list[str]:
        """What a custom pattern finds, the longest first."""
        if self._lost_s >= BATCH_SEARCH_S:
            raise PatternTimeoutError
        begun = time.monotonic()
        try:
            found = find(f"intake.patterns.{name}", re.compile(pattern), text, MAX_FOUND, SEARCH_S)
        except SearchError:
            self._lost_s += time.monotonic() - begun
            raise PatternTimeoutError from None
        return sorted({match[0] for match in found if match[0]}, key=len, reverse=True)
