"""The rules of a gate applied to the points of a history, by the values that were kept of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cranfield.config import Config, load_config
from cranfield.config.gate import GateConfig, Rule
from cranfield.errors import ConfigError, UsageError
from cranfield.evaluation.history import HistoryPoint
from cranfield.formats.io.files import shown
from cranfield.gate.decimals import exact
from cranfield.gate.gate_input import GateInput, Values
from cranfield.gate.rules import RULES, measure_of, rules_of
from cranfield.measures import parse
from cranfield.project.experiment import load_configured
from cranfield.project.gate_plan import EXAMPLE
from cranfield.project.history_files import KeptValues

if TYPE_CHECKING:
    from cranfield.evaluation.values import Evaluation
    from cranfield.model import TestSet

VALUED = frozenset({"floor", "drop", "ratchet"})
"""Rules on the values of a measure: the others are about the answers, which a history does not keep."""


@dataclass(frozen=True)
class _Recorded:
    """The part of an evaluation that rules on values read."""

    testset: TestSet
    query_ids: tuple[str, ...]


@dataclass(frozen=True)
class _KeptInput(GateInput):
    """The input of the rules for a point, and for the one it is compared with."""

    kept: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    kept_before: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def values(self, measure: str) -> Values:
        """The kept values."""
        return _exact(self.kept.get(str(parse(measure)), {}))

    def before(self, measure: str) -> Values:
        """The kept values of the last good point."""
        return _exact(self.kept_before.get(str(parse(measure)), {}))

    def lost(self, measure: str, queries: Iterable[str]) -> tuple[str, ...]:
        """Queries without a value that have one at the last good point."""
        now, before = self.values(measure), self.before(measure)
        return tuple(query for query in queries if query not in now and query in before)

    @property
    def unanswered(self) -> Mapping[str, str]:
        """Not recorded; what failed has the value 0."""
        return {}


def _exact(values: Mapping[str, float]) -> Values:
    return {query_id: exact(value) for query_id, value in values.items()}


class GateJudge:
    """Applies the rules of a config's gate that are on one measure."""

    def __init__(self, config_path: Path, measure: str, values: KeptValues) -> None:
        """Read the rules.

        Args:
            config_path: cranfield.yaml.
            measure: the measure of the history.
            values: the kept values.

        Raises:
            ConfigError: the config has problems, or no gate.
            UsageError: the gate has no rule on the measure.
        """
        self._config: Config = load_config(config_path)
        if self._config.gate is None:
            raise ConfigError("the config has no gate", path=shown(config_path), hint=EXAMPLE)
        self._gate: GateConfig = self._config.gate
        self._values = values
        self._measure = str(parse(measure))
        self._testsets = {testset.digest: (name, testset) for name, testset in self._load()}
        spelled = {str(parse(of)) for rule in self._gate.rules if rule.kind in VALUED and (of := measure_of(rule))}
        if self._measure not in spelled:
            known = ", ".join(sorted(spelled)) or "none"
            raise UsageError(
                f"the gate has no rule on {self._measure}",
                expected=f"{{measure}} with a measure of its rules: {known}",
                parameters=("measure",),
            )

    def _load(self) -> Iterable[tuple[str, TestSet]]:
        for name in self._config.sets:
            yield name, load_configured(self._config, name, allow_drift=True)

    def __call__(self, point: HistoryPoint, before: HistoryPoint | None) -> str | None:
        """The sentence of the first rule that a point breaks; empty where it breaks none.

        None where it cannot be applied: no values are kept, or the test set of the config is another version of it.
        """
        if point.digest not in self._testsets:
            return None
        name, testset = self._testsets[point.digest]
        kept = self._values.all_of(point)
        if kept is None:
            return None
        kept_before = None if before is None else self._values.all_of(before)
        recorded = cast("Evaluation", _Recorded(testset, tuple(kept.get(self._measure, {}))))
        declared = self._config.comparing()
        alpha, test, draws = declared.alpha, declared.test, declared.draws
        sides = (kept, kept_before or {})
        given = _KeptInput(recorded, None, test, alpha, n_draws=draws, kept=sides[0], kept_before=sides[1])
        for rule in self._rules(name, compares=kept_before is not None):
            result = RULES[rule.kind].judge(rule.terms, given)
            if result.status == "failed":
                return result.sentence
        return ""

    def _rules(self, name: str, *, compares: bool) -> Iterable[Rule]:
        for _, rule in rules_of(self._gate, name):
            of = measure_of(rule)
            if rule.kind in VALUED and of and str(parse(of)) == self._measure and (compares or not rule.needs_baseline):
                yield rule
