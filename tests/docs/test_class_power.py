"""The simulated power of a verdict by class, on the page on verdicts, is what the script prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_figures_of_the_page_are_those_of_the_script(checkout: Path) -> None:
    script = [sys.executable, str(checkout / "bench" / "class_power.py"), "10000"]
    printed = subprocess.run(script, check=True, capture_output=True, text=True).stdout
    page = (checkout / "docs" / "explanation" / "verdict.md").read_text(encoding="utf-8")
    gains, _, falls = (part.splitlines()[2:] for part in printed.strip().split("\n\n"))
    rows: dict[str, list[str]] = {}
    for line in gains:
        n, _, pooled, better, *_ = line.split()
        rows.setdefault(n, [pooled]).append(better)
    assert len(rows) == 5
    assert [n for n, row in rows.items() if f"| {n} | {' | '.join(map(short, row))} |" not in page] == []
    cells: dict[str, list[str]] = {}
    for line in falls:
        n, _, pooled, better, _, mixed = line.split()
        cells.setdefault(n, []).append(" / ".join(map(short, (pooled, better, mixed))))
    assert [n for n, row in cells.items() if n != "30" and f"| {n} | {' | '.join(row)} |" not in page] == []


def short(share: str) -> str:
    """`.345` for `0.345`."""
    return share.removeprefix("0")
