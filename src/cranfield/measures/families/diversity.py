"""Measures over subtopics."""

from __future__ import annotations

from cranfield.measures.spec import MeasureSpec

SPECS: tuple[MeasureSpec, ...] = ()
