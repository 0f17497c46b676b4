"""Values that must not be seen: replaced in whatever of a system's own words is kept or shown."""

from __future__ import annotations

from collections.abc import Mapping

SHORTEST_SECRET = 4
"""Values shorter than this (`C`, `1`, `yes`) keep no secret, and hiding them would garble every output."""


class Mask:
    """Hides values of the environment; each is replaced by its variable's name, `${TOKEN}`."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        hidden = {value: f"${{{name}}}" for name, value in secrets.items() if len(value) >= SHORTEST_SECRET}
        # The longest first, for one value may hold another.
        self._hidden = sorted(hidden.items(), key=lambda item: (-len(item[0]), item[0]))

    def hide(self, text: str) -> str:
        """`text` without any of the values."""
        for value, name in self._hidden:
            text = text.replace(value, name)
        return text
