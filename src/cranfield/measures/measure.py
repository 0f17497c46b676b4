"""A measure as a value: one spelling that parses, prints, hashes, sorts and labels."""

from __future__ import annotations

from dataclasses import dataclass

Parameter = str | int | float


@dataclass(frozen=True, slots=True, order=True)
class Measure:
    """A name of the catalogue with its parameters and cutoff; `str()` is its only spelling.

    Only parameters that differ from their default are held, in the catalogue's order. Build one with
    `cranfield.measures.parse`, which checks every name and bound.

        >>> Measure("nDCG", (("dcg", "exp-log2"),), 10)
        nDCG(dcg='exp-log2')@10
    """

    name: str
    params: tuple[tuple[str, Parameter], ...] = ()
    cutoff: int | None = None

    def __str__(self) -> str:
        text = self.name
        if self.params:
            text += "(" + ", ".join(f"{key}={value!r}" for key, value in self.params) + ")"
        return text if self.cutoff is None else f"{text}@{self.cutoff}"

    __repr__ = __str__

    def param(self, name: str, default: Parameter) -> Parameter:
        """Value of one parameter, or its default."""
        return dict(self.params).get(name, default)
