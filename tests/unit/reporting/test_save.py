from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.evaluation.result import result_of
from cranfield.evaluation.values import Comparison
from cranfield.model.results import to_json
from cranfield.reporting import RENDERERS, comparison_document, render, save_report


@pytest.mark.parametrize("form", sorted(name for name, form in RENDERERS.items() if form.suffix))
def test_the_suffix_says_what_is_written(form: str, comparison: Comparison, tmp_path: Path) -> None:
    path = tmp_path / f"report{RENDERERS[form].suffix}"
    document = comparison_document(comparison)
    save_report(document, path)
    if form == "json":
        assert path.read_bytes() == to_json(result_of(comparison, with_answers=True)).encode()
    elif form == "xlsx":
        assert path.read_bytes().startswith(b"PK")
    else:
        assert path.read_bytes() == render(document, form).encode()
    assert list(tmp_path.iterdir()) == [path]


def test_a_saved_json_holds_the_hits_and_a_printed_one_does_not(comparison: Comparison, tmp_path: Path) -> None:
    document = comparison_document(comparison)
    save_report(document, tmp_path / "results.json")
    saved = json.loads((tmp_path / "results.json").read_text())
    printed = json.loads(render(document, "json"))
    systems = [system | {"headroom": None} for system in saved["systems"]]
    assert saved | {"queries": None, "systems": systems, "causes": saved["causes"] | {"queries": {}}} == printed
    assert saved["queries"]["q1"]["sides"][0]["hits"]


def test_an_upper_case_suffix_is_the_same(comparison: Comparison, tmp_path: Path) -> None:
    save_report(comparison_document(comparison), str(tmp_path / "R.MD"))
    assert (tmp_path / "R.MD").read_text().startswith("# ")


def test_a_report_is_an_ordinary_file_and_replaces_the_old_one(comparison: Comparison, tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")
    mask = os.umask(0o022)
    try:
        save_report(comparison_document(comparison), path)
    finally:
        os.umask(mask)
    assert path.read_text().startswith("Is weighted better than plain?")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@pytest.mark.parametrize("name", ["report.pdf", "report"])
def test_a_suffix_nobody_writes_is_refused(name: str, comparison: Comparison, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        save_report(comparison_document(comparison), tmp_path / name)
    assert caught.value.problems[0].expected == "one of .txt, .json, .csv, .md, .tex, .html, .xlsx"


def test_a_folder_that_is_not_there_is_named(comparison: Comparison, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder") as caught:
        save_report(comparison_document(comparison), tmp_path / "none" / "report.md")
    assert caught.value.problems[0].path == str(tmp_path / "none" / "report.md")


def test_nothing_is_left_behind_when_a_file_cannot_be_replaced(comparison: Comparison, tmp_path: Path) -> None:
    (tmp_path / "report.md").mkdir()
    with pytest.raises(UsageError, match="cannot be written"):
        save_report(comparison_document(comparison), tmp_path / "report.md")
    assert list(tmp_path.iterdir()) == [tmp_path / "report.md"]


def test_an_unknown_form_names_the_nearest(comparison: Comparison) -> None:
    with pytest.raises(UnknownNameError) as caught:
        render(comparison_document(comparison), "markdwon")
    assert caught.value.problems[0].hint == "did you mean markdown?"
