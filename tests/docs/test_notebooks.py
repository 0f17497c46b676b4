"""Every notebook in examples/ runs, and prints and shows what it holds.

CRANFIELD_UPDATE_EXAMPLES=1 writes the outputs into the notebooks. Read the diff before you commit it.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

CHECKOUT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(path.relative_to(CHECKOUT / "examples") for path in (CHECKOUT / "examples").rglob("*.ipynb"))
WITH_FRAMEWORKS = [Path("notebook/checkpoints.ipynb")]
"""They need packages that `make setup` leaves out: tests/frameworks runs them."""
CELL_S = 120
UNREAD = re.compile(r"<(svg|style)\b.*?</\1>", re.DOTALL)
BLANK_LINES = re.compile(r"\n\s*\n")
DURATION = re.compile(r"\d[\d.]* (?:ms|s)\b *")
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def executed(path: Path) -> Any:
    """The notebook with the outputs of this run, and nothing that differs from machine to machine."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=CELL_S, kernel_name="python3", resources={"metadata": {"path": path.parent}}
    ).execute()
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for cell in notebook.cells:
        cell.metadata = {}
    return notebook


def shown(notebook: Any) -> list[list[tuple[str, str]]]:
    """Of each cell, the forms of its outputs; pictures, styles, durations and blank lines are left out."""
    return [
        [
            (kind, _without_noise("".join(text)))
            for output in cell.get("outputs", ())
            for kind, text in sorted(
                ({"stream": output["text"]} if output["output_type"] == "stream" else output["data"]).items()
            )
        ]
        for cell in notebook.cells
    ]


def _without_noise(text: str) -> str:
    return BLANK_LINES.sub("\n", DURATION.sub("", UNREAD.sub(r"<\1>", text)))


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


def test_a_notebook_that_is_run_elsewhere_is_there() -> None:
    assert {*WITH_FRAMEWORKS} <= {*NOTEBOOKS}


@pytest.mark.parametrize("name", [name for name in NOTEBOOKS if name not in WITH_FRAMEWORKS], ids=str)
def test_a_notebook_runs_and_shows_what_it_holds(name: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs_and_shows_what_it_holds(name, tmp_path, monkeypatch)


def runs_and_shows_what_it_holds(name: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a notebook in a copy of the examples, and compare its outputs."""
    for variable in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    source = CHECKOUT / "examples" / name
    shutil.copytree(CHECKOUT / "examples", tmp_path / "examples")
    notebook = executed(tmp_path / "examples" / name)
    stored = nbformat.read(source, as_version=4)
    nbformat.validate(stored)
    if os.environ.get("CRANFIELD_UPDATE_EXAMPLES") and shown(stored) != shown(notebook):
        nbformat.write(notebook, source)
    assert shown(stored) == shown(notebook), "CRANFIELD_UPDATE_EXAMPLES=1 writes the outputs into the notebook"
    assert [cell.get("execution_count") for cell in stored.cells] == [
        cell.get("execution_count") for cell in notebook.cells
    ]
