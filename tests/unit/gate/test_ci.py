"""The summary page of a step, and which forge a job is of."""

from __future__ import annotations

from pathlib import Path

import pytest

from cranfield.base.errors import UsageError
from cranfield.gate.use_cases.ci import SUMMARY_BYTES, append_step_summary, forge_of


def folded(n_bytes: int) -> str:
    return "<details>\n<summary>all</summary>\n\n" + "é" * (n_bytes // 2) + "\n</details>\n"


def test_a_report_is_appended_to_what_the_step_said_before(tmp_path: Path) -> None:
    page = tmp_path / "summary.md"
    assert append_step_summary("# One\n", {"GITHUB_STEP_SUMMARY": str(page)}) == "wrote the step summary"
    append_step_summary("# Two, for @everyone\n", {"GITHUB_STEP_SUMMARY": str(page)})
    assert page.read_text() == "# One\n\n\n# Two, for @everyone\n"


@pytest.mark.parametrize("before", [0, 100_000])
def test_a_report_that_the_page_has_no_room_for_is_cut_by_bytes(tmp_path: Path, before: int) -> None:
    page = tmp_path / "summary.md"
    page.write_text("x" * before)
    said = append_step_summary(f"# Verdict\n\n{folded(SUMMARY_BYTES)}", {"GITHUB_STEP_SUMMARY": str(page)})
    assert said == "wrote the step summary, cut to its limit of 1 MiB"
    assert page.stat().st_size <= SUMMARY_BYTES
    assert "# Verdict" in page.read_text()
    assert "1 of its 1 collapsed sections are omitted" in page.read_text()


def test_a_page_that_is_full_is_left_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "summary.md"
    page.write_text("x" * (SUMMARY_BYTES - 10))
    with pytest.raises(UsageError, match="is full"):
        append_step_summary("# A report\n", {"GITHUB_STEP_SUMMARY": str(page)})
    assert page.stat().st_size == SUMMARY_BYTES - 10


@pytest.mark.parametrize(
    ("named", "expected"), [("", "is not set"), ("gone/page.md", "no such file"), (".", "a folder")]
)
def test_a_page_that_is_not_there_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=expected):
        append_step_summary("# A report\n", {"GITHUB_STEP_SUMMARY": named})


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"GITHUB_ACTIONS": "true"}, "github"),
        ({"GITLAB_CI": "true"}, "gitlab"),
        ({"GITLAB_CI": "true", "GITHUB_TOKEN": "x"}, "gitlab"),
        ({"GITHUB_TOKEN": "x"}, "github"),
        ({"GITLAB_TOKEN": "x"}, "gitlab"),
        ({"GITHUB_TOKEN": "x", "GITLAB_TOKEN": "x"}, None),
        ({}, None),
    ],
)
def test_the_forge_is_that_of_the_job(environ: dict[str, str], expected: str | None) -> None:
    if expected is None:
        with pytest.raises(UsageError, match="no forge given"):
            forge_of(environ)
    else:
        assert forge_of(environ) == expected
