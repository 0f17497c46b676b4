"""Ids of queries over the life of a project: by row, then by content, then with a row more."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

SEARCH = """
import json, sys
print(json.dumps([{"id": {"red": "a.rs", "blue": "b.rs"}.get(sys.argv[1].split()[0], "c.rs"), "span": "1-40"}]))
"""
TRUTH = "query,result1\nred boots,a.rs:1-20:2\nblue boots,b.rs:30-44:1\ngreen hat,c.rs:1-5:1\n"
CONFIG = """\
testset: truth.csv
IDS
k: 5
measures: [RR@5]
systems:
  words:
    command: ["{python}", -I, -S, search.py, "{query}"]
    extract: {json: "@", id: id, span: span}
gate:
  system: words
  rules:
    - ratchet: {measure: RR@5, queries: ["1", "2"]}
"""


def cranfield(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["cranfield", *arguments], cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.fixture
def by_row(tmp_path: Path) -> Path:
    """A project with a baseline, a run and a history under the rule `row`."""
    (tmp_path / "search.py").write_text(SEARCH)
    (tmp_path / "truth.csv").write_text(TRUTH)
    (tmp_path / "cranfield.yaml").write_text(CONFIG.replace("IDS", "ids: row"))
    assert cranfield(tmp_path, "baseline", "accept").returncode == 0
    assert cranfield(tmp_path, "run", "--out", "old").returncode == 0
    (tmp_path / "cranfield.yaml").write_text(CONFIG.replace("IDS\n", ""))
    return tmp_path


def notes(folder: Path) -> str:
    done = cranfield(folder, "gate", "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    return " ".join(str(json.loads(done.stdout)).split())


def test_a_ratchet_by_row_holds_under_ids_by_content(by_row: Path) -> None:
    found = notes(by_row)
    assert "the baseline names queries by the rule `row`" in found
    assert "rules name queries by another rule of ids than the test set: 1 is red-boots-" in found


def test_a_row_more_needs_the_files_carried_over_and_then_changes_nothing_else(by_row: Path) -> None:
    (by_row / "before.csv").write_text(TRUTH)
    (by_row / "truth.csv").write_text(TRUTH.replace("red", "new thing,c.rs:1-4:1\nred", 1))
    assert "the baseline is of another test set" in cranfield(by_row, "gate").stderr
    refused = cranfield(by_row, "evaluate", "truth.csv", "old/runs/words.jsonl", "-m", "RR@5")
    assert refused.returncode == 2
    assert "its rows may be other queries" in refused.stderr
    done = cranfield(by_row, "testset", "migrate-ids", "truth.csv", ".", "--old", "before.csv")
    assert done.returncode == 0, done.stderr
    assert "carried over from the rule row" in done.stderr
    shifted = cranfield(by_row, "gate")
    assert shifted.returncode == 2
    assert "rules name queries by row, and 1 query was added since the baseline was accepted" in shifted.stderr
    change = (by_row / "cranfield.yaml").read_text().replace('["1", "2"]', '["red boots", "blue boots"]')
    (by_row / "cranfield.yaml").write_text(change)
    assert "1 query added since the baseline was accepted" in notes(by_row)
    scored = cranfield(by_row, "evaluate", "truth.csv", "old/runs/words.jsonl", "-m", "RR@5", "--format", "json")
    values = json.loads(scored.stdout)["systems"][0]
    assert values["measures"]["RR@5"]["mean"] == 0.75  # 1, 1 and 1 of those that were asked; 0 of the new one
    again = cranfield(by_row, "testset", "migrate-ids", "truth.csv", ".", "--dry-run")
    assert "would write 0 of" in again.stderr


def test_the_history_is_one_line(by_row: Path) -> None:
    assert cranfield(by_row, "run", "--out", "new").returncode == 0
    shown = cranfield(by_row, "history").stdout
    assert "RR@5 of words on truth" in shown
    assert "new test set" not in shown
