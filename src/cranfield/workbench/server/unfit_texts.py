"""Texts of a request that no database and no answer can hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from cranfield.base.words import printable

Place = tuple[str | int, ...]
"""Part of a request, then names and positions in it: `("body", "entries", 0, "key")`."""
_UNFIT = re.compile("[\x00\ud800-\udfff]")
"""What neither PostgreSQL, nor the name of a file, nor UTF-8 can hold."""


def unfit_texts(texts: Iterable[tuple[Place, object]]) -> Iterator[dict[str, Any]]:
    """The texts that no database and no answer can hold, as the framework reports what is wrong with a request.

    Args:
        texts: place in the request to its value, as JSON has it.
    """
    waiting = [*texts]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict):
            waiting += (((*place, name), inner) for name, inner in value.items())
            waiting += (((*place, name), name) for name in value)
        elif isinstance(value, list):
            waiting += (((*place, number), inner) for number, inner in enumerate(value))
        elif isinstance(value, str) and _UNFIT.search(value):
            shown = tuple(printable(each) if isinstance(each, str) else each for each in place)
            hint = "leave U+0000 and halves of surrogate pairs out"
            yield {
                "type": "text",
                "loc": shown,
                "msg": "the text is no Unicode that can be stored",
                "ctx": {"hint": hint},
            }
