"""`cranfield view`: which report it opens, in a program that stands in for the browser, and what it lists."""

from __future__ import annotations

import importlib
import os
import subprocess
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cranfield import Query, TestSet, compare, evaluate
from cranfield.reporting import comparison_document, save_report

Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[str]]]:
    """The addresses that were opened; a program that writes them into a file is the browser."""
    program, addresses = tmp_path / "browser.sh", tmp_path / "opened.txt"
    program.write_text(f'#!/bin/sh\necho "$1" >> {addresses}\n')
    program.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{program} %s")
    importlib.reload(webbrowser)  # it reads BROWSER once
    yield lambda: addresses.read_text().split() if addresses.exists() else []
    monkeypatch.undo()
    importlib.reload(webbrowser)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Reports of two commands, the newest of which is that of the gate, and pages that are none."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    for hour, (name, title) in enumerate(
        [
            ("cranfield-out/a/report.html", "set a &amp; more"),
            ("cranfield-out/report.html", "summary"),
            ("cranfield-out/b/report.html", "set b"),
            ("cranfield-gate/gate.html", "gate"),
            ("cranfield-gate/.kept/old.html", "kept"),
            ("elsewhere/report.html", "of another folder"),
        ]
    ):
        page = work / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f'<!doctype html>\n<html lang="en" class="report">\n<title>{title}</title>')
        os.utime(page, (1_800_000_000 + hour * 3600,) * 2)
    (work / "cranfield-out" / "results.json").write_text("{}")
    (work / "cranfield-out" / "other.html").write_text("<html><title>not ours</title>")
    return work


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "cranfield-gate/gate.html"),
        (("cranfield-out",), "cranfield-out/report.html"),
        (("cranfield-out/results.json",), "cranfield-out/report.html"),
        (("cranfield-out/a",), "cranfield-out/a/report.html"),
        (("cranfield-out/b/report.html",), "cranfield-out/b/report.html"),
        ((".",), "elsewhere/report.html"),
    ],
)
def test_the_report_of_a_path_is_opened_else_the_newest(
    call: Call, folder: Path, opened: Callable[[], list[str]], arguments: tuple[str, ...], expected: str
) -> None:
    done = call("view", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{expected}\n", "")
    assert opened() == [(folder / expected).as_uri()]


def test_the_list_has_date_path_and_title_newest_first(
    call: Call, folder: Path, opened: Callable[[], list[str]]
) -> None:
    lines = call("view", "--list").stdout.splitlines()
    assert [line[18:] for line in lines] == [
        "cranfield-gate/gate.html  gate",
        "cranfield-out/b/report.html  set b",
        "cranfield-out/report.html  summary",
        "cranfield-out/a/report.html  set a & more",
    ]
    assert lines[0].startswith("2027-01-15 ")
    assert call("view", "--list", "cranfield-out/a").stdout.splitlines() == lines[-1:]
    assert opened() == []


def test_without_a_browser_the_path_is_printed_and_that_is_said(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _address: False)
    done = call("view")
    assert (done.returncode, done.stdout) == (0, "cranfield-gate/gate.html\n")
    assert done.stderr == f"no browser was found: open {(folder / 'cranfield-gate/gate.html').as_uri()}\n"


def test_no_browser_opens_none(call: Call, folder: Path, opened: Callable[[], list[str]]) -> None:
    done = call("view", "--no-browser")
    assert (done.stdout, done.stderr, opened()) == ("cranfield-gate/gate.html\n", "", [])


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("missing", "missing: no report."),
        ("empty", "empty: no report."),
        ("empty/results.json", "report.html: no report."),
        ("cranfield-out/other.html", "other.html: this is not a report"),
        ("cranfield-out", ""),
    ],
)
def test_where_there_is_no_report_the_error_says_what_makes_one(
    call: Call, folder: Path, path: str, expected: str
) -> None:
    (folder / "empty").mkdir()
    done = call("view", "--no-browser", path)
    assert done.returncode == (2 if expected else 0)
    assert expected in done.stderr
    assert ("`cranfield run` writes a report" in done.stderr) == expected.endswith("no report.")


def test_without_a_path_and_without_reports_it_is_an_error(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("view")
    assert done.returncode == 2
    assert "cranfield-*: no report." in done.stderr


def test_a_report_that_is_written_is_found_with_its_title(
    call: Call, tmp_path: Path, opened: Callable[[], list[str]]
) -> None:
    testset = TestSet("set", (Query("q1"),), {"q1": {"d1": 1}})
    sides = [evaluate(testset, {"q1": ["d1"]}, measures=["RR"], name=name) for name in ("old", "new")]
    page = tmp_path / "my out" / "report.html"
    page.parent.mkdir()
    save_report(comparison_document(compare(*sides)), page)
    (line,) = call("view", "--list", page.parent).stdout.splitlines()
    assert line[18:].startswith(f"{page}  Is new better than old?")
    assert call("view", page).returncode == 0
    assert opened() == [page.as_uri()]
