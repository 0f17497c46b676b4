"""A test set whose moved places are at their new lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from cranfield.matching.place import ENTITY_MARK
from cranfield.model import Span, Target, TestSet
from cranfield.model.meta import Anchor
from cranfield.repo.drift import DriftReport

_ID_WITH_LINES = re.compile(r"(.+?[:#])(L?)(\d{1,9})(-(L?)\d{1,9})?")


def reanchored(testset: TestSet, report: DriftReport) -> TestSet:
    """The test set with every moved span, and every graded id that holds lines which moved, at its new lines.

    An id keeps its form (`a.py#L3-L9`) and the rules' line base. Where two ids become one, the higher grade stays.
    Edited, renamed and gone places stay as they are: a tool cannot know whether they still answer the query. What was
    stored of a file in which something moved, and the commit, are true of the old lines: they are left out.
    """
    if not report.moved:
        return testset
    lines = {finding.label: finding.lines for finding in report.moved}
    spans = {t.label for targets in testset.targets.values() for t in targets if isinstance(t, Span)}
    base = testset.matching.line_base
    touched = {
        finding.anchor.symbol.partition(ENTITY_MARK)[0] for finding in report.moved if finding.anchor is not None
    }
    ids = {label: _id_at(label, *place, 1 if label in spans else base) for label, place in lines.items()}

    def target_at(target: Target) -> Target:
        if not isinstance(target, Span) or target.label not in lines:
            return target
        start, end = lines[target.label]
        return replace(target, start=start, end=end)

    return replace(
        testset,
        grades={query_id: _renamed(judged, ids) for query_id, judged in testset.grades.items()},
        targets={query_id: tuple(map(target_at, targets)) for query_id, targets in testset.targets.items()},
        groups={
            query_id: tuple(replace(item, doc_id=ids.get(item.doc_id, item.doc_id)) for item in judged)
            for query_id, judged in testset.groups.items()
        },
        ratings={
            query_id: tuple(replace(item, doc_id=ids.get(item.doc_id, item.doc_id)) for item in rated)
            for query_id, rated in testset.ratings.items()
        },
        meta=replace(
            testset.meta,
            commit="",
            anchors=_anchors(testset, report, ids),
            source_files={path: digest for path, digest in testset.meta.source_files.items() if path not in touched},
        ),
    )


def _anchors(testset: TestSet, report: DriftReport, ids: Mapping[str, str]) -> dict[str, Anchor]:
    """Anchors under the labels that their places have now."""
    found = {finding.label: finding.anchor for finding in report.moved if finding.anchor is not None}
    return {ids.get(label, label): found.get(label, anchor) for label, anchor in testset.meta.anchors.items()}


def _renamed(judged: Mapping[str, float], ids: Mapping[str, str]) -> dict[str, float]:
    renamed: dict[str, float] = {}
    for doc_id, grade in judged.items():
        now = ids.get(doc_id, doc_id)
        renamed[now] = max(grade, renamed.get(now, grade))
    return renamed


def _id_at(doc_id: str, start: int, end: int, base: int) -> str:
    """An id with other lines, in its own form."""
    found = _ID_WITH_LINES.fullmatch(doc_id)
    if found is None:
        return doc_id
    first, last = start + base - 1, end + base - 1
    return f"{found[1]}{found[2]}{first}" + (f"-{found[5]}{last}" if found[4] else "")
