"""Predicted against expected: a field of the answers against a stratum of the queries, such as the task type."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cranfield.base.errors import UsageError, unknown_name
from cranfield.evaluation.evidence.values import Scored
from cranfield.model import TestSet
from cranfield.model.answer_rule import answers_with_fields, field_of, is_absent
from cranfield.model.query import CLASS, LETTERS, query_strata
from cranfield.model.vocabulary import TASK_TYPE
from cranfield.stats.confusion import wilson_interval

NO_VALUE = "no value"
"""Label of an answer without the field, or with null in it: no prediction, and so not right."""


@dataclass(frozen=True, slots=True)
class ExpectedErrors:
    """How often a classifier picked the wrong task type that the labels of the queries expect it to pick."""

    picked: Mapping[str, tuple[str, str]]
    """Query id to (type that the label expects, type that the classifier picked), of the answers in the table."""
    n_right: int
    """Answers with the task type of the query."""
    level: float = 0.95
    """Confidence level of the interval."""
    n: int = dataclasses.field(init=False, default=0)
    """Answers to queries with such a label."""
    n_as_expected: int = dataclasses.field(init=False, default=0)
    """Answers with the expected wrong type."""
    share: float = dataclasses.field(init=False, default=0.0)
    """Share of the answers with the expected wrong type."""
    interval: tuple[float, float] = dataclasses.field(init=False, default=(0.0, 1.0))
    """Wilson's interval of the share."""

    def __post_init__(self) -> None:
        n = len(self.picked)
        n_as_expected = sum(expected == predicted for expected, predicted in self.picked.values())
        derived = {
            "n": n,
            "n_as_expected": n_as_expected,
            "share": n_as_expected / n,
            "interval": wilson_interval(n_as_expected, n, self.level),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True)
class Confusion:
    """The counts of predicted values for each expected value, of one system."""

    field: str
    """Field of the answers."""
    stratum: str
    """Stratum of the queries; `class` is the class of a query."""
    expected: tuple[str, ...]
    """E labels of the stratum, sorted: the rows."""
    predicted: tuple[str, ...]
    """Labels of the field: the columns. Those of the stratum are first, where any is predicted; `NO_VALUE` is the last."""
    counts: tuple[tuple[int, ...], ...]
    """[E][P] queries."""
    wrong: Mapping[str, tuple[str, str]]
    """Query id to (expected, predicted), of those that differ."""
    n_unanswered: int
    """Queries with the stratum that failed or have no answer: not in the table."""
    level: float = 0.95
    """Confidence level of the interval."""
    expected_errors: ExpectedErrors | None = None
    """Expected errors in task types, where labels of queries expect a classifier to pick another one."""

    n: int = dataclasses.field(init=False, default=0)
    """Answers in the table."""
    is_prediction: bool = dataclasses.field(init=False, default=False)
    """Whether any answer has a value of the stratum: `true` and `false` against task types are counted, and never right."""
    n_right: int = dataclasses.field(init=False, default=0)
    """Answers whose value is the expected one."""
    accuracy: float | None = dataclasses.field(init=False, default=None)
    """Share of the answers that are right; None where the field predicts no value of the stratum."""
    interval: tuple[float, float] | None = dataclasses.field(init=False, default=None)
    """Wilson's interval of the accuracy; None where that is None."""
    commonest: float | None = dataclasses.field(init=False, default=None)
    """Accuracy of always predicting the commonest expected value; None where the accuracy is None."""
    recall: Mapping[str, float | None] = dataclasses.field(init=False, default_factory=dict)
    """Share of the answers of each expected value that are right; None where the accuracy is None."""
    precision: Mapping[str, float | None] = dataclasses.field(init=False, default_factory=dict)
    """Share of the answers with each predicted value of the stratum that are right; None where there is none."""

    def __post_init__(self) -> None:
        n = sum(map(sum, self.counts))
        n_right = n - len(self.wrong)
        known = not set(self.predicted).isdisjoint(self.expected)
        places = {label: place for place, label in enumerate(self.predicted)}
        right = {
            label: row[places[label]] if label in places else 0
            for label, row in zip(self.expected, self.counts, strict=True)
        }
        of_row = dict(zip(self.expected, map(sum, self.counts), strict=True))
        of_column = dict(zip(self.predicted, map(sum, zip(*self.counts, strict=True)), strict=True))
        derived = {
            "n": n,
            "is_prediction": known,
            "n_right": n_right,
            "accuracy": n_right / n if known else None,
            "interval": wilson_interval(n_right, n, self.level) if known else None,
            "commonest": max(of_row.values()) / n if known else None,
            "recall": {label: right[label] / of_row[label] if known else None for label in self.expected},
            "precision": {
                label: right[label] / total if total else None
                for label, total in of_column.items()
                if label in self.expected
            },
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def differs_by_case(self) -> Mapping[str, str]:
        """Predicted values that are none of the stratum, to the one they are in another case: `Help` to `help`."""
        folded = {label.casefold(): label for label in self.expected}
        others = [label for label in self.predicted if label not in self.expected and label != NO_VALUE]
        return {label: folded[label.casefold()] for label in others if label.casefold() in folded}


def confusions_of(system: Scored, pairs: Mapping[str, str] | None) -> tuple[tuple[Confusion, ...], list[str]]:
    """The tables of one system: those of `pairs` (field to stratum), and of each field that has the name of a stratum.

    Returns:
        The tables, and a sentence for each of `pairs` that has none because no answer states the field.

    Raises:
        UsageError: a stratum that the test set does not have.
    """
    known = {key for query in system.testset.queries for key in query_strata(query)}
    wanted = pairs or {}
    problems = [
        unknown_name("stratum", stratum, known, path="confusion") for stratum in wanted.values() if stratum not in known
    ]
    if problems and not known:
        raise UsageError("the test set has no strata", path="confusion", expected="a stratum to compare the field with")
    if problems:
        raise UsageError(problems)
    answers = _answers(system)
    stated = list(dict.fromkeys(name for _, fields in answers for name in fields))
    there = [
        (field, stratum)
        for field, stratum in wanted.items()
        if not all(is_absent(field_of(fields, field)) for _, fields in answers)
    ]
    missing = [
        f"no table of {field} against {stratum}: no answer has the field {field}"
        + (f" (fields: {', '.join(stated)})" if stated else "")
        for field, stratum in wanted.items()
        if (field, stratum) not in there
    ]
    own = [confusion(system, name, name) for name in stated if name in known and wanted.get(name) != name]
    found = [confusion(system, field, stratum) for field, stratum in there]
    return (*found, *(table for table in own if table.is_prediction or table.differs_by_case)), missing


def confusion(system: Scored, field: str, stratum: str) -> Confusion:
    """Count the values of a field against a stratum, over the answers of the queries that have it.

    Args:
        system: an evaluation with its collected run.
        field: of the answers, with dots where it is inside an object.
        stratum: key of a stratum, or `class`.
    """
    by_id = system.testset.by_id
    expected = {
        query_id: query_strata(by_id[query_id])[stratum]
        for query_id in system.query_ids
        if stratum in query_strata(by_id[query_id])
    }
    predicted = {
        query_id: _label(field_of(fields, field), stratum)
        for query_id, fields in _answers(system)
        if query_id in expected
    }
    pairs = Counter((expected[query_id], label) for query_id, label in predicted.items())
    rows = sorted({label for label, _ in pairs})
    labels = {label for _, label in pairs}
    others = sorted(labels - set(rows) - {NO_VALUE})
    columns = [*(rows if labels & set(rows) else ()), *others, *([NO_VALUE] if NO_VALUE in labels else [])]
    return Confusion(
        field,
        stratum,
        tuple(rows),
        tuple(columns),
        tuple(tuple(pairs[row, column] for column in columns) for row in rows),
        {query_id: (expected[query_id], label) for query_id, label in predicted.items() if label != expected[query_id]},
        len(expected) - len(predicted),
        expected_errors=_expected_errors(system.testset, expected, predicted) if stratum == TASK_TYPE else None,
    )


def _expected_errors(
    testset: TestSet, expected: Mapping[str, str], predicted: Mapping[str, str]
) -> ExpectedErrors | None:
    """Predictions against the wrong task types that labels expect; None where no answered query has such a label."""
    picked = {
        query_id: (label.classifier_expectation, predicted[query_id])
        for query_id, label in testset.labels.items()
        if query_id in predicted and label.classifier_expectation not in {"", expected[query_id]}
    }
    if not picked:
        return None
    return ExpectedErrors(picked, sum(expected[query_id] == predicted[query_id] for query_id in picked))


def parse_pairs(written: Sequence[str]) -> dict[str, str]:
    """`FIELD=STRATUM`, as the command line writes them.

    Raises:
        UsageError: one of them is none.
    """
    found = {}
    for text in written:
        field, equals, stratum = (part.strip() for part in text.partition("="))
        if not (field and equals and stratum):
            raise UsageError(f"--confusion is {text!r}", expected="FIELD=STRATUM, such as routed=task_type")
        found[field] = stratum
    return found


def _answers(system: Scored) -> list[tuple[str, Mapping[str, Any]]]:
    if system.run is None:
        return []
    known = set(system.query_ids)
    return [(query_id, answer.fields) for query_id, answer in answers_with_fields(system.run) if query_id in known]


def _label(value: Any, stratum: str) -> str:
    """A value as the text of a stratum: a whole number without a point, `true` and `false`; a class by its name."""
    if is_absent(value) or value is None:
        return NO_VALUE
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return LETTERS.get(text, text) if stratum == CLASS else text
