"""Measures: values with one spelling, one catalogue, and kernels over a Ranking."""

from cranfield.measures.catalogue import (
    ALIASES,
    CATALOGUE,
    DEFAULT_MEASURES,
    USUAL_K,
    as_typed,
    compute,
    deepest_cutoff,
    parse,
    parse_all,
    parse_typed,
    register,
)
from cranfield.measures.measure import Measure, MeasureSpec, Parameter, ParameterSpec

__all__ = [
    "ALIASES",
    "CATALOGUE",
    "DEFAULT_MEASURES",
    "USUAL_K",
    "Measure",
    "MeasureSpec",
    "Parameter",
    "ParameterSpec",
    "as_typed",
    "compute",
    "deepest_cutoff",
    "parse",
    "parse_all",
    "parse_typed",
    "register",
]
