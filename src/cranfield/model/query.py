"""A query of a test set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Scalar = str | int | float | bool


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
