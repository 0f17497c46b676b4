"""Measures that model a user going down the list: ERR, RBP, C/W/L, INST, compatibility."""

from __future__ import annotations

from cranfield.measures.spec import MeasureSpec

SPECS: tuple[MeasureSpec, ...] = ()
