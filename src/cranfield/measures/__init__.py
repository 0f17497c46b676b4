"""Measures: values with one spelling, one catalogue, and kernels over a Ranking."""

from cranfield.measures.catalogue import (
    ALIASES,
    CATALOGUE,
    DEFAULT_MEASURES,
    compute,
    register,
)
from cranfield.measures.measure import Measure, MeasureSpec, Parameter, ParameterSpec
from cranfield.measures.parse import as_typed, parse, parse_all, parse_typed

__all__ = [
    "ALIASES",
    "CATALOGUE",
    "DEFAULT_MEASURES",
    "Measure",
    "MeasureSpec",
    "Parameter",
    "ParameterSpec",
    "as_typed",
    "compute",
    "parse",
    "parse_all",
    "parse_typed",
    "register",
]
