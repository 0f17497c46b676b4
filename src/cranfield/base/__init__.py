"""What every room may import: problems, words and numbers for people, patterns, platforms, processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

LOAD_DISPLAYS: list[Callable[[], Any]] = []
"""Imports the `Displays` of `base.display` when a value is first shown; here because it costs nothing to import."""
