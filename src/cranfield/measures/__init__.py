"""Measures: values with one spelling, one catalogue, and kernels over a Ranking."""

from cranfield.measures.catalogue import (
    ALIASES,
    CATALOGUE,
    DEFAULT_MEASURES,
    compute,
    register,
)
from cranfield.measures.measure import Measure, MeasureSpec, Parameter, ParameterSpec
from cranfield.measures.parse import USUAL_K, deepest_cutoff, parse, parse_all

__all__ = [
    "ALIASES",
    "CATALOGUE",
    "DEFAULT_MEASURES",
    "USUAL_K",
    "Measure",
    "MeasureSpec",
    "Parameter",
    "ParameterSpec",
    "compute",
    "deepest_cutoff",
    "parse",
    "parse_all",
    "register",
]
