"""The block `tunable:` of workbench.yaml: parameters of systems that users of the pages may set, and to what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from cranfield.config.strict import Finding, Strict, checked
from cranfield.errors import Problem
from cranfield.model.kinds import PlainScalar, Text

Number = int | float


class Range(Strict):
    """Numbers from `min` to `max`."""

    min: Number
    """Smallest value that may be set."""
    max: Number
    """Largest value that may be set."""
    step: Annotated[Number, Field(gt=0)] | None = None
    """Distance of the values from each other, from `min` on. Default: whole numbers where `min` and `max` are whole as
    written, else any number."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """A range without numbers."""
        if self.max <= self.min:
            yield (
                ("max",),
                Problem("the range ends before it begins", expected=f"more than {self.min:g}", got=f"{self.max:g}"),
            )

    @property
    def distance(self) -> Number | None:
        """Distance of the values; None: any number."""
        is_whole = isinstance(self.min, int) and isinstance(self.max, int)
        return self.step if self.step is not None else 1 if is_whole else None


def _kind(value: Any) -> str:
    return "range" if isinstance(value, Mapping | Strict) else "list"


def _check_places(places: Mapping[str, Any]) -> Iterator[Finding]:
    for place in places:
        if place.partition(".")[0] == "env":
            hint = "open params instead"
            yield (place,), Problem("env holds secrets, and what is set on a page is shown to all", hint=hint)


Allowed = Annotated[
    Annotated[Range, Tag("range")] | Annotated[list[PlainScalar], Field(min_length=1), Tag("list")],
    Discriminator(_kind),
]
Tunable = dict[Text, Annotated[dict[Text, Allowed], Field(min_length=1), checked(_check_places)]]
"""System to place in it, with dots as in `grid:` (`params.boost`, `fusion.weights.bm25`), to a range or a list of values."""
