"""Who has graded enough of a book."""

from __future__ import annotations

from cranfield.books.store.schema import RaterKind
from cranfield.books.store.values import Coverage
from cranfield.judging.quality import Quality, RaterLine


def test_a_person_with_all_calibration_items_is_calibrated_and_a_model_needs_none() -> None:
    rows = [("ann", RaterKind.PERSON, 3), ("bob", RaterKind.PERSON, 2), ("m", RaterKind.MODEL, 0)]
    lines = tuple(RaterLine(name, kind, 9, None, None, 0, 0, None, 0, n, n, 0, 0, None, None) for name, kind, n in rows)
    coverage = Coverage(9, {}, 0, 9, 0, {1: 9}, 9, 9, 0, 0, 0, 0, 0, 0, {}, ())
    quality = Quality(coverage, None, lines, (), (), n_calibration=3)
    assert quality.uncalibrated == ("bob",)
