"""A measure as a value: one spelling that parses, prints, hashes, sorts and labels."""

from __future__ import annotations

from dataclasses import dataclass

Gains = tuple[tuple[int, float], ...]
"""Grade to gain, by grade."""
Parameter = str | int | float | bool | Gains


@dataclass(frozen=True, slots=True)
class Measure:
    """A name of the catalogue with its parameters and cutoff; `str()` is its only spelling.

    Only parameters that differ from their default are stored, in the catalogue's order. Build one with
    `cranfield.measures.parse`, which checks every name and bound.

        >>> Measure("nDCG", (("dcg", "exp-log2"),), 10)
        nDCG(dcg='exp-log2')@10
        >>> Measure("nDCG", (("gains", ((1, 3.0), (2, 9.5))),))
        nDCG(gains={1: 3, 2: 9.5})
    """

    name: str
    params: tuple[tuple[str, Parameter], ...] = ()
    cutoff: int | float | None = None
    """A rank, or a share of the recall where the catalogue says so."""

    def __str__(self) -> str:
        text = self.name
        if self.params:
            text += "(" + ", ".join(f"{key}={spell(value)}" for key, value in self.params) + ")"
        return text if self.cutoff is None else f"{text}@{spell(self.cutoff)}"

    __repr__ = __str__

    def __lt__(self, other: Measure) -> bool:
        return str(self) < str(other)

    @property
    def depth(self) -> int | None:
        """The cutoff, where it is a rank."""
        return self.cutoff if isinstance(self.cutoff, int) else None

    def whole(self, name: str, default: int) -> int:
        """Value of a parameter that is a whole number (`rel`), or its default."""
        value = self.param(name, default)
        return value if isinstance(value, int) else default

    def param(self, name: str, default: Parameter) -> Parameter:
        """Value of one parameter, or its default."""
        return dict(self.params).get(name, default)


def spell(value: Parameter) -> str:
    """A parameter as it is written: whole numbers without a point, text in quotes, gains as a map."""
    if isinstance(value, tuple):
        return "{" + ", ".join(f"{grade}: {spell(gain)}" for grade, gain in value) + "}"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return repr(value)
