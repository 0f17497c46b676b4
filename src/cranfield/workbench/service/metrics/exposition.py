"""Metrics in the text format of Prometheus."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from cranfield.workbench.service.metrics.families import DECIMALS, FAMILIES, Family, MetricSample, Naming
from cranfield.workbench.service.metrics.observed import MetricsSnapshot, Observation

if TYPE_CHECKING:
    from prometheus_client import Metric

SERIES_OF_A_MEAN = sum(family.of_measure for family in FAMILIES.values())
SERIES_OF_A_SUBJECT = 50
"""About so many beside its means: failures by kind, the histogram, times."""


class Exposition:
    """A registry whose metrics are those of a snapshot."""

    def __init__(self, snapshot: MetricsSnapshot, naming: Naming | None = None) -> None:
        self.naming = naming or Naming()
        self.snapshot = limited(snapshot, self.naming)

    def collect(self) -> Iterator[Metric]:
        """The metrics, as `prometheus_client` calls for them."""
        for family in FAMILIES.values():
            yield from self._metrics(family)

    def text(self) -> bytes:
        """In the text format."""
        from prometheus_client import generate_latest

        return generate_latest(self)

    def _metrics(self, family: Family) -> Iterator[Metric]:
        from prometheus_client import Metric

        found: dict[str, Metric] = {}
        for sample in family.samples(self.snapshot):
            labels = self._labels(sample)
            if labels is None or sample.value is None or not math.isfinite(sample.value):
                continue
            name = self.naming.name(family.name, sample.measure)
            if name not in found:
                found[name] = Metric(name, family.help, family.kind)
            found[name].add_sample(name + sample.suffix, labels, round(float(sample.value), DECIMALS))
        yield from found.values()

    def _labels(self, sample: MetricSample) -> dict[str, str] | None:
        """None where the series is not written."""
        labels = {name: value for name, value in sample.labels.items() if value}
        if sample.subject is None:
            return labels
        if not self.naming.is_written(sample.subject, sample.stratum):
            return None
        if sample.measure:
            labels |= self.naming.measure_labels(sample.measure)
            labels |= {"stratum": sample.stratum} if self.naming.has("stratum") else {}
        return labels | self.naming.subject_labels(sample.subject)


def limited(snapshot: MetricsSnapshot, naming: Naming) -> MetricsSnapshot:
    """A snapshot without what has no series; of what is too much, variants and components go first, then the oldest."""
    written = [each for each in snapshot.observations if naming.is_written(each.subject)]
    kept: list[Observation] = []
    left = naming.config.max_series
    for each in sorted(written, key=lambda each: (each.subject.is_whole, each.last.at or 0.0), reverse=True):
        left -= SERIES_OF_A_SUBJECT + SERIES_OF_A_MEAN * (each.valid.n_values() if each.valid else 0)
        if left < 0:
            break
        kept.append(each)
    kept.sort(key=lambda each: each.subject)
    return replace(snapshot, observations=kept, left_out=snapshot.left_out + len(written) - len(kept))
