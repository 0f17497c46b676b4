"""The error rates of the diagnosis that the page of measurements shows meet what the page promises."""

from __future__ import annotations

from pathlib import Path

import pytest

TARGET = 0.05
LITTLE_SPREAD = {"narrow", "constant"}


@pytest.fixture(scope="module")
def grid(checkout: Path) -> dict[tuple[str, float], list[float]]:
    """Shape and slope to the shares of well-calibrated, of the right words and of insufficient data, each at n = 60, 200 and 500."""
    lines = (checkout / "docs" / "explanation" / "measurements.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {
        (row[0], float(row[1])): [float(cell) for cell in row[2:]] for row in rows if len(row) == 11 and "." in row[2]
    }


def test_a_score_of_another_slope_is_called_well_calibrated_in_at_most_5_percent_of_samples(grid) -> None:
    rows = {kind: shares for kind, shares in grid.items() if kind[1] in {0, 0.25, 0.5, 2}}
    assert len(rows) == 20
    assert {kind: shares[:3] for kind, shares in rows.items() if max(shares[:3]) > TARGET} == {}


def test_a_calibrated_score_is_seldom_blamed_and_called_well_calibrated_where_that_can_be_shown(grid) -> None:
    rows = {shape: shares for (shape, slope), shares in grid.items() if slope == 1}
    assert len(rows) == 6
    for shape, shares in rows.items():
        right, insufficient = shares[3:6], shares[6:9]
        assert all(a + b >= 1 - TARGET for a, b in zip(right, insufficient, strict=True)), shape
    assert all(rows[shape][1] >= 1 - TARGET for shape in ("even", "extreme"))  # n = 200
    assert all(rows[shape][2] >= 1 - TARGET for shape in rows.keys() - LITTLE_SPREAD)  # n = 500
