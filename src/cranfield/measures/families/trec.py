"""Measures of trec_eval beyond the core."""

from __future__ import annotations

from cranfield.measures.spec import MeasureSpec

SPECS: tuple[MeasureSpec, ...] = ()
