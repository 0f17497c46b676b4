"""A query of a test set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Negative:
    """Nothing should be found: right when nothing comes back, or nothing the system is sure of."""

    below: float | None = None
    """Results whose score is under it do not count; None: every result counts."""
    field: str = ""
    """Name of a field of the answer (`confidence`) that is compared with `below` instead of the scores."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a user typed, what kind of question it is, and the parameters that go with it."""

    id: str
    text: str = ""
    strata: Mapping[str, str] = field(default_factory=dict)
    """Any key to a value: class, task type, difficulty. Reports break results down by each."""
    params: Mapping[str, Scalar] = field(default_factory=dict)
    """Filled into a system's command as `{params.NAME}`, for example a minimum version."""
    weight: float = 1.0
    """How often it is asked, in any unit: weighted means multiply by it."""
    query_class: str = ""
    """Name in `QUERY_CLASSES`: how such a question is measured; empty: as all are."""
    negative: Negative | None = None
    """Where nothing should be found."""
