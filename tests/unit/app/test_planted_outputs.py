"""Links and pipes in an output folder and in `.cranfield`: found before the first query, and not followed."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cranfield.app.history import append, keep_report, local_folder, read_history
from cranfield.app.run import run_job
from cranfield.base.errors import UsageError
from cranfield.reporting import save_report, save_reports
from cranfield.reporting.document import Document, Table

CONFIG = """\
testset: queries.yaml
measures: [P@1]
systems:
  old: {command: [touch, asked, "{query}"], extract: {regex: a}}
"""
QUERIES = "cranfield_testset: 1\nname: t\nqueries:\n  - {id: q1, text: a, judgments: {a: 1}}\n"
DOCUMENT = Document("t", (), (), lambda: Table((), (), ""), dict)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file of the user in a folder of its own, and a project beside it."""
    (tmp_path / "cranfield.yaml").write_text(CONFIG)
    (tmp_path / "queries.yaml").write_text(QUERIES)
    (tmp_path / "home").mkdir()
    path = tmp_path / "home" / "history.jsonl"
    path.write_text("precious")
    os.utime(path, ns=(10**18, 10**18))
    return path


def unchanged(target: Path) -> bool:
    return (
        list(target.parent.iterdir()) == [target]
        and target.read_text() == "precious"
        and target.stat().st_mtime_ns == 10**18
    )


PLACES = {
    "out/.partial": True,
    "out/runs": True,
    "out/results.json": False,
    "out/report.html": False,
    "out/report.md": False,
    ".cranfield": True,
    ".cranfield/history": True,
    ".cranfield/history.jsonl": False,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_leads_elsewhere_is_found_before_the_first_query(
    tmp_path: Path, target: Path, place: str, kind: str
) -> None:
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(target.parent if PLACES[place] else target)
    got = "symbolic link" if kind == "link" else "pipe"
    with pytest.raises(UsageError, match=f"this is a {got}") as caught:
        run_job(tmp_path / "cranfield.yaml", out=tmp_path / "out")
    assert str(path) in str(caught.value)
    assert not (tmp_path / "asked").exists()
    assert unchanged(target)


def test_the_folder_of_one_of_several_test_sets_is_not_followed(tmp_path: Path, target: Path) -> None:
    several = CONFIG.replace("testset: queries.yaml", "testsets: {one: {path: queries.yaml}}")
    (tmp_path / "cranfield.yaml").write_text(several)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "one").symlink_to(target.parent)
    with pytest.raises(UsageError, match="out/one: this is a symbolic link"):
        run_job(tmp_path / "cranfield.yaml", out=tmp_path / "out")
    assert not (tmp_path / "asked").exists()
    assert unchanged(target)


def test_a_report_is_not_written_through_a_link_in_its_folder(tmp_path: Path, target: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.md").symlink_to(target)
    with pytest.raises(UsageError, match="this is a symbolic link"):
        save_reports(DOCUMENT, tmp_path / "out", ["report.md"])
    assert unchanged(target)
    assert list((tmp_path / "out").iterdir()) == [tmp_path / "out" / "report.md"]


def test_a_file_that_the_user_names_may_be_a_link_and_stays_one(tmp_path: Path, target: Path) -> None:
    link = tmp_path / "report.md"
    link.symlink_to(target)
    save_report(DOCUMENT, link)
    assert link.is_symlink()
    assert target.read_text() != "precious"


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe"])
def test_the_history_is_neither_read_from_another_file_nor_written_to_it(
    tmp_path: Path, target: Path, kind: str
) -> None:
    path = tmp_path / ".cranfield" / "history.jsonl"
    path.parent.mkdir()
    {"link": path.symlink_to, "hard link": path.hardlink_to, "pipe": lambda _: os.mkfifo(path)}[kind](target)
    with pytest.raises(UsageError, match="this is a"):
        append(tmp_path, {"a": 1})
    if kind != "hard link":  # one that is only read changes nothing
        with pytest.raises(UsageError, match="this is a"):
            read_history(tmp_path)
    assert unchanged(target)


def test_kept_reports_and_the_ignore_file_are_not_written_through_links(tmp_path: Path, target: Path) -> None:
    report = tmp_path / "report.html"
    report.write_text("new")
    (tmp_path / ".cranfield" / "history").mkdir(parents=True)
    for name in (".gitignore", "history/2026-11-22-120000.html"):
        (tmp_path / ".cranfield" / name).symlink_to(target)
    local = local_folder(tmp_path)
    assert keep_report(local, report, datetime(2026, 11, 22, 12, tzinfo=UTC)) == "history/2026-11-22-120000-2.html"
    assert unchanged(target)


def test_half_a_line_of_history_is_taken_back_when_the_disk_is_full(tmp_path: Path, file_limit) -> None:
    path = append(tmp_path, {"line": "one"})
    before = path.read_bytes()
    with file_limit(2_000), pytest.raises(UsageError, match="file too large"):
        append(tmp_path, {"line": "x" * 4_000})
    assert path.read_bytes() == before
