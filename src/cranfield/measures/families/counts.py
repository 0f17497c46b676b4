"""Sums, counts and shares without a discount, and what reading costs."""

from __future__ import annotations

from cranfield.measures.spec import MeasureSpec

SPECS: tuple[MeasureSpec, ...] = ()
