"""Measures over preferences and over several judges."""

from __future__ import annotations

from cranfield.measures.spec import MeasureSpec

SPECS: tuple[MeasureSpec, ...] = ()
