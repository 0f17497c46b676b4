"""What a file says of its queries beside what its format has a place for: kept as strata where it groups them, else
counted. Used by the readers of formats to which people add keys and columns of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cranfield.formats.io.located import source_text
from cranfield.model import Note
from cranfield.model.note import info, not_carried
from cranfield.words import n_of


@dataclass
class UnknownFields:
    """Keys that a format does not know, gathered query by query."""

    values: dict[str, dict[str, str]] = field(default_factory=dict)
    """Key to query id to the value, where it is text, a number or true/false."""
    others: Counter[str] = field(default_factory=Counter)
    """Key to how many lists and mappings stand under it."""

    def take(self, query_id: str, values_by_query: Mapping[str, Any] | None) -> None:
        """Take what one query says; nothing and empty text say nothing."""
        for key, value in (values_by_query or {}).items():
            text = source_text(value)
            if isinstance(text, str):
                if text:
                    self.values.setdefault(key, {})[query_id] = text
            elif value:
                self.others[key] += 1

    def strata(self, query_id: str) -> dict[str, str]:
        """What became strata of one query."""
        return {
            key: values_by_query[query_id]
            for key, values_by_query in self._grouping().items()
            if query_id in values_by_query
        }

    def _grouping(self) -> dict[str, dict[str, str]]:
        """Keys by which queries group: two of them say the same."""
        return {
            key: values_by_query
            for key, values_by_query in self.values.items()
            if len(set(values_by_query.values())) < len(values_by_query)
        }

    def notes(self) -> tuple[Note, ...]:
        """What was done with each, in sentences."""
        kept = self._grouping()
        alone = {key: len(values_by_query) for key, values_by_query in self.values.items() if key not in kept}
        lost = [f"{n_of(n, 'values')} of {key!r}, no two of them the same" for key, n in alone.items()]
        lost += [f"{n_of(n, 'values')} of {key!r}: lists or keys" for key, n in self.others.items()]
        return (
            *info(
                *(
                    f"kept as stratum {key!r}: {n_of(len(values_by_query), 'values')}"
                    for key, values_by_query in kept.items()
                )
            ),
            *not_carried(lost),
        )
