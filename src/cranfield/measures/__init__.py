"""Measures: values with one spelling, one catalogue, and kernels over a Ranking."""

from cranfield.measures.catalogue import ALIASES, CATALOGUE, DEFAULT_MEASURES, compute, register
from cranfield.measures.measure import Measure, MeasureSpec, Parameter, ParameterSpec
from cranfield.measures.parse import USUAL_K, as_typed, deepest_cutoff, parse, parse_all, parse_typed

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
