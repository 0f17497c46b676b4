"""Names and labels of series, as the operator's file wants them; used where metrics are written and where they are queried."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache

from cranfield.base.errors import CranfieldError
from cranfield.workbench.config import SUBJECT_LABELS, MetricsConfig, spelled
from cranfield.workbench.service.metrics.observed import MeasuredSubject

ALL = "all"
"""Value of the label `stratum` over all queries."""
MEASURE = "measure"
"""Part of the name of a family of measures in whose place a measure has its own name."""
Conditions = Mapping[str, str]
"""Label to operator and value: `{"system": '="fusion"'}`."""


class Naming:
    """Gives families and measures their names."""

    def __init__(self, config: MetricsConfig | None = None) -> None:
        self.config = config or MetricsConfig()
        self._own = {_spelled(measure): name for measure, name in self.config.measures.items()}

    def name(self, family: str, measure: str = "") -> str:
        """Name of the metric of a family, or of one of its measures."""
        own = self._own_name(measure) if measure else None
        return self.config.prefix + (family if own is None else family.replace(MEASURE, own, 1))

    def measure_labels(self, measure: str) -> dict[str, str]:
        """`measure` and `k` of a measure; only `k` where it has a metric of its own."""
        spelling = _spelled(measure)
        whole, _, cutoff = spelling.partition("@")
        return ({"k": cutoff} if cutoff else {}) | ({} if self._own_name(spelling) else {MEASURE: whole})

    def is_written(self, subject: MeasuredSubject, stratum: str = ALL) -> bool:
        """Whether a series of a subject is written: with the labels that are left out, it could not be identified."""
        config = self.config
        if config.systems is not None and subject.system not in config.systems:
            return False
        if config.testsets is not None and subject.testset not in config.testsets:
            return False
        plain = {"variant": not subject.variant, "components": not subject.components, "stratum": stratum == ALL}
        return all(is_plain or self.has(label) for label, is_plain in plain.items())

    def subject_labels(self, subject: MeasuredSubject) -> dict[str, str]:
        """Labels of a subject, those that are not empty."""
        return {label: value for label, value in asdict(subject).items() if value and self.has(label)}

    def has(self, label: str) -> bool:
        """Whether a label of subjects is written."""
        return label in self.config.labels

    def select(self, family: str, conditions: Conditions, measure: str = "", *, suffix: str = "") -> str:
        """A selector in PromQL; conditions on labels that are not written are left out.

        Args:
            family: a name of the table of families.
            conditions: label to operator and value.
            measure: of one measure; empty: of all of them.
            suffix: of a histogram.
        """
        kept = {label: text for label, text in conditions.items() if label not in SUBJECT_LABELS or self.has(label)}
        if measure:
            kept = {label: f"={quoted(value)}" for label, value in self.measure_labels(measure).items()} | kept
        name = self.name(family, measure) + suffix
        if not measure and family.startswith(MEASURE) and self._own:
            pattern = "|".join(dict.fromkeys(self.name(family, each) for each in ("", *self._own)))
            name, kept = "", {"__name__": f"=~{quoted(pattern)}"} | kept
        inner = ",".join(f"{label}{text}" for label, text in kept.items())
        return f"{name}{{{inner}}}" if inner else name

    def _own_name(self, measure: str) -> str | None:
        spelling = _spelled(measure)
        return self._own.get(spelling, self._own.get(spelling.partition("@")[0]))


@cache
def _spelled(measure: str) -> str:
    """A measure as results spell it: `R@10` for `Recall@10`."""
    try:
        return spelled(measure)
    except CranfieldError:  # of a plugin that is not installed here, in a stored result
        return measure


def quoted(value: str) -> str:
    r"""A string of PromQL.

    Example:
        >>> quoted('a"b')
        '"a\\"b"'
    """
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def escaped(value: str) -> str:
    """A value as a regular expression of RE2."""
    return re.sub(r"([.\\+*?()|\[\]{}^$])", r"\\\1", value)
