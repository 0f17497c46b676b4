"""JSON text as plain values at the speed of the standard library; without their places, which `json_tree` finds.

Anything that is not plainly right is left to `json_tree`, which says what is wrong and where.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from cranfield.formats.io.tree import MAX_DEPTH, MAX_NUMBER_CHARS, SourceFloat, SourceInt, real_number, whole_number


def json_values(text: str) -> Any:
    """What `tree.sourced(parse_json(text))` gives; None where the text is no JSON, or goes beyond the limits of a tree."""
    try:
        values = json.loads(
            text, object_pairs_hook=_once, parse_int=_whole, parse_float=_real, parse_constant=_no_constant
        )
    except (ValueError, RecursionError):
        return None
    return values if _is_flat_enough(values) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key stands twice")
    return values


@lru_cache(maxsize=4096)
def _whole(text: str) -> SourceInt:
    if len(text) > MAX_NUMBER_CHARS:
        raise ValueError("a long number")
    return whole_number(text)


@lru_cache(maxsize=4096)
def _real(text: str) -> SourceFloat:
    if len(text) > MAX_NUMBER_CHARS:
        raise ValueError("a long number")
    return real_number(text)


def _no_constant(text: str) -> Any:
    raise ValueError(text)


def _is_flat_enough(values: Any) -> bool:
    """Whether lists and mappings are nested no deeper than a tree may be."""
    level = [values]
    for _ in range(MAX_DEPTH + 1):
        inner = [node.values() if isinstance(node, dict) else node for node in level if isinstance(node, dict | list)]
        if not inner:
            return True
        level = [value for part in inner for value in part if isinstance(value, dict | list)]
    return False
