"""What every room may import: problems, words and numbers for people, patterns, platforms, processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.base.display import Displays

LOAD_DISPLAYS: list[Callable[[], Displays]] = []
"""Imports what renders values when one is first shown; here because it costs nothing to import."""
