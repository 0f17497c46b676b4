"""The order of equal scores by measure: ir_measures computes each measure with one of several libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from cranfield.measures.measure import Measure
from cranfield.model import Convention


@dataclass(frozen=True, slots=True)
class ProviderOrder:
    """One library, and how it orders a run."""

    name: str
    ties: Literal["descending", "ascending", "given"]
    """Equal scores: by document id, or as the run has them."""
    score_width: Literal[64, 32]
    computes: Callable[[Measure], bool]
    """Whether ir_measures asks it for a measure."""
    scores_absent: bool = True
    """Whether a judged query that the run does not answer has the value 0; else it is left out."""


_CWL = frozenset(("RBP", "BPM", "SDCG", "INST", "INSQ", "NERR8", "NERR9", "NERR10", "NERR11"))


def _is_gdeval(measure: Measure) -> bool:
    is_exponential = measure.name == "nDCG" and measure.param("dcg", "log2") == "exp-log2"
    return (measure.name == "ERR" or is_exponential) and measure.cutoff is not None


PROVIDERS: tuple[ProviderOrder, ...] = (
    ProviderOrder("cwl_eval", "given", 64, lambda measure: measure.name in _CWL),
    ProviderOrder("accuracy", "given", 64, lambda measure: measure.name == "Accuracy", scores_absent=False),
    ProviderOrder("compat", "ascending", 64, lambda measure: measure.name == "Compat"),
    ProviderOrder("judged", "ascending", 64, lambda measure: measure.name == "Judged"),
    ProviderOrder("msmarco", "ascending", 64, lambda measure: measure.name == "RR" and measure.cutoff is not None),
    ProviderOrder("gdeval", "descending", 64, _is_gdeval),
    ProviderOrder("pytrec_eval", "descending", 32, lambda _: True),
)
"""In the order they are looked through; the last computes all others."""


def provider_of(measure: Measure) -> ProviderOrder:
    """The library that computes a measure in ir_measures."""
    return next(provider for provider in PROVIDERS if provider.computes(measure))


def convention_for(measure: Measure, convention: Convention) -> Convention:
    """The convention with the order of a run that it has for this measure."""
    if convention.orders == "one":
        return convention
    provider = provider_of(measure)
    return replace(convention, ties=provider.ties, score_width=provider.score_width)


def by_convention(measures: Iterable[Measure], convention: Convention) -> Mapping[Convention, list[Measure]]:
    """Measures that share the order of a run."""
    found: dict[Convention, list[Measure]] = {}
    for measure in measures:
        found.setdefault(convention_for(measure, convention), []).append(measure)
    return found
