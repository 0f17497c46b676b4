"""What a report is about: the record of systems on one test set, and of their comparison where there is one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from cranfield.errors import InputError
from cranfield.evaluation.calls import NOT_MADE, CallsResult, calls_of
from cranfield.evaluation.many_values import ManyComparison
from cranfield.evaluation.result import (
    ComparisonResult,
    EvaluationResult,
    ManyResult,
    QueryRecord,
    SystemResult,
    evaluations_of,
    result_from,
    result_of,
)
from cranfield.evaluation.sensitivity import Sensitivity
from cranfield.evaluation.strata import StrataContrast
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.formats.io.files import read_bytes
from cranfield.measures import Measure
from cranfield.options.latency import LatencyRule
from cranfield.reporting.document import CALLS
from cranfield.reporting.sections.labels import lettered
from cranfield.results import from_jsonable

R = TypeVar("R")
Systems = Sequence[tuple[str, SystemResult]]
"""Label and result of each system, in order."""
Preflight = Sequence[tuple[str, str, str]]
"""(system, check, found), for every check that passed before the first query."""


@dataclass(frozen=True)
class Subject:
    """The input of every section. A section that does not apply to a subject returns None."""

    record: EvaluationResult
    read_calls: Callable[[], CallsResult]
    today: date | None = None
    by_query: bool = False
    """Add a row for every query."""
    measure: Measure | None = None
    """The primary measure, where there is no comparison; None is the first."""
    sort: str = "mean"
    """Order of the leaderboard of many systems."""
    show_pairs: bool = False
    """Show all pairs of many systems, however many."""
    own_labels: tuple[str, ...] = ()
    """What the systems are called, if not by their names, and letters where they are compared."""

    @classmethod
    def of(
        cls,
        result: Evaluation | Sequence[Evaluation] | Comparison | ManyComparison,
        contrasts: Sequence[StrataContrast] = (),
        sensitivity: Sensitivity | None = None,
        preflight: Preflight = (),
        **shown: Any,
    ) -> Subject:
        """The subject of a computed result; `shown` are the other fields."""
        compared = result if isinstance(result, Comparison | ManyComparison) else None
        evaluations = compared.evaluations if compared is not None else evaluations_of(result)
        record = result_of(result, contrasts, sensitivity, with_answers=True)
        return cls(record, lambda: calls_of(evaluations, compared, preflight), **shown)

    @classmethod
    def read(cls, path: Path, **shown: Any) -> Subject:
        """The subject of a saved `results.json`, with the calls of the `calls.json` beside it, if any.

        Raises:
            InputError: it is no such file.
        """
        record = _read(path, result_from)
        if record.queries is None:
            hint = "name the results.json of a folder of results: it has the queries with their answers"
            raise InputError("this is printed JSON, without what the systems answered", path=str(path), hint=hint)
        calls = path.with_name(CALLS)
        if calls.exists():
            return cls(record, lambda: _read(calls, partial(from_jsonable, CallsResult)), **shown)
        none = CallsResult(rule=LatencyRule(), systems=dict.fromkeys(record.names, NOT_MADE), impacts={})
        return cls(record, lambda: none, **shown)

    @cached_property
    def calls(self) -> CallsResult:
        """Times and outputs of the calls."""
        return self.read_calls()

    @property
    def systems(self) -> Systems:
        """Label and result of each system, in order."""
        return tuple(zip(self.labels, self.record.systems, strict=True))

    @property
    def queries(self) -> dict[str, QueryRecord]:
        """The queries with the answers of each system."""
        return dict(self.record.queries or {})

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Every measure of any system."""
        return tuple(dict.fromkeys(measure for each in self.record.systems for measure in each.measures))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What the systems are called in this report, in order."""
        names = self.record.names
        return self.own_labels or (names if self.compared is None else tuple(lettered(names)))

    @property
    def pair(self) -> ComparisonResult | None:
        """The comparison of two systems."""
        return self.record if isinstance(self.record, ComparisonResult) else None

    @property
    def many(self) -> ManyResult | None:
        """The comparison of three systems or more."""
        return self.record if isinstance(self.record, ManyResult) else None

    @property
    def compared(self) -> ComparisonResult | ManyResult | None:
        """The comparison; None where systems stand side by side without a verdict."""
        return self.pair or self.many

    @property
    def primary(self) -> Measure | None:
        """The measure that decides; without a comparison the first; None where no measure has a value."""
        if self.compared is not None:
            return self.compared.primary
        return self.measure or next(iter(self.record.systems[0].measures), None)

    @property
    def pilot(self) -> bool:
        """True when any system is not for the record."""
        return any(each.pilot for each in self.record.systems)

    @property
    def is_void(self) -> bool:
        """True when scores of a system do not count."""
        return any(finding.is_void for finding in self.record.evidence)


def _read(path: Path, of_json: Callable[[Any], R]) -> R:
    try:
        return of_json(json.loads(read_bytes(path, InputError)))
    except (ValueError, TypeError, AttributeError) as error:
        first = str(error).partition("\n")[0].rstrip(":")
        expected = "the results.json of an evaluation or a comparison, as this version writes it"
        hint = "run the command that wrote it again"
        raise InputError(first, path=str(path), expected=expected, hint=hint) from error
