"""Measures as ir_measures spells them in code: `nDCG@10`, `P(rel=2)@5`, values that are called and carry a cutoff.

What a name means is read from the catalogue; a `Measure` here is a spelling that becomes one of its measures when it is
used, and until then may lack its cutoff.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from cranfield.errors import UnknownNameError, unknown_name
from cranfield.measures import CATALOGUE, parse
from cranfield.measures import Measure as Computed
from cranfield.measures.catalogue import ALIASES
from cranfield.measures.measure import MeasureSpec, spell
from cranfield.measures.own import load_plugins

ALPHA = "\N{GREEK SMALL LETTER ALPHA}"
"""Some write alpha_nDCG with it."""
Value = str | int | float | bool | Mapping[int, float]


class Measure:
    """A name of the catalogue with some parameters; two that mean the same are equal."""

    def __init__(self, name: str, params: Mapping[str, Value] | None = None) -> None:
        """Take a name and parameters, the cutoff among them.

        Raises:
            UnknownNameError: the catalogue has no measure of that name.
        """
        name = _catalogued(name)
        if name not in CATALOGUE:
            raise UnknownNameError(unknown_name("measure", name, CATALOGUE, aliases=ALIASES))
        self.NAME = name
        self.params = dict(params or {})

    @classmethod
    def of(cls, measure: Computed) -> Measure:
        """The spelling of a measure of the catalogue."""
        spelled = cls(measure.name, {name: dict(v) if isinstance(v, tuple) else v for name, v in measure.params})
        return spelled if measure.cutoff is None else spelled @ measure.cutoff

    def __call__(self, **params: Value) -> Measure:
        """Set parameters: `P(rel=2)`, `nDCG(cutoff=10)`."""
        return Measure(self.NAME, self.params | params)

    def __matmul__(self, cutoff: float) -> Measure:
        """Set the cutoff: `P @ 5`."""
        return self(**{self.AT_PARAM: cutoff})

    def __getitem__(self, name: str) -> Value | None:
        """A parameter, or its default; None for a cutoff that is not set.

        Raises:
            KeyError: it has no such parameter.
        """
        if name == self.AT_PARAM or name in self.params:
            return self.params.get(name)
        default = next((p.default for p in self._spec.parameters if p.name == name), None)
        if default is None:
            raise KeyError(name)
        return dict(default) if isinstance(default, tuple) else default

    @property
    def AT_PARAM(self) -> str:  # noqa: N802 - the interface is given
        """What `@` sets."""
        return "recall" if self._spec.cutoff_kind == "share" and self._spec.cutoff != "none" else "cutoff"

    @property
    def aggregate(self) -> str:
        """How the values of all queries become one: `mean`, `sum` or `geometric mean`."""
        return self._spec.aggregate

    @cached_property
    def computed(self) -> Computed:
        """The measure of the catalogue that it spells.

        Raises:
            UsageError: a parameter or the cutoff is not one of it, or is missing.
        """
        return parse(self._spelled(", "))

    @property
    def _spec(self) -> MeasureSpec:
        return CATALOGUE[self.NAME]

    def _spelled(self, separator: str) -> str:
        """As text, parameters in the catalogue's order, without those that are as they are anyway."""
        order = {parameter.name: place for place, parameter in enumerate(self._spec.parameters)}
        defaults = {parameter.name: parameter.default for parameter in self._spec.parameters}
        params = {name: _changes(value) for name, value in self.params.items() if name != self.AT_PARAM}
        named = sorted(params, key=lambda name: order.get(name, len(order)))
        shown = [f"{name}={_written(params[name])}" for name in named if params[name] not in (defaults.get(name), {})]
        text = self.NAME + (f"({separator.join(shown)})" if shown else "")
        cutoff = self.params.get(self.AT_PARAM)
        return text if cutoff is None else f"{text}@{_written(cutoff)}"

    def __str__(self) -> str:
        return self._spelled(",")

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measure) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __lt__(self, other: Measure) -> bool:
        return str(self) < str(other)


def is_measure_name(name: str) -> bool:
    """Whether a name is one of a measure, or another name for one."""
    return _catalogued(name) in CATALOGUE


def _catalogued(name: str) -> str:
    """The catalogue's name; an unknown name may be a plugin's."""
    name = name.replace(ALPHA, "alpha")
    if name not in CATALOGUE and name not in ALIASES and not name.startswith("_"):
        load_plugins()
    return ALIASES.get(name, name)


def measure_names() -> list[str]:
    """Every name of a measure, and other names for them, that can stand in an import."""
    return sorted(name for name in (*CATALOGUE, *ALIASES) if name.isidentifier())


def _changes(value: Value) -> Value:
    """Of a map from grade to gain, what it changes."""
    return {grade: gain for grade, gain in value.items() if grade != gain} if isinstance(value, Mapping) else value


def _written(value: Value) -> str:
    return spell(tuple(sorted(value.items())) if isinstance(value, Mapping) else value)
