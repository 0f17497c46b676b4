"""Rows of the table of formats. Light: readers and writers are named, not imported."""

from __future__ import annotations

from cranfield.formats.registry import Format

ENTRIES: tuple[Format, ...] = ()
