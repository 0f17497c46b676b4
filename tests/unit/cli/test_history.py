"""`cranfield history` as people and scripts use it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from cranfield.app.history import append
from cranfield.cli.main import command_line

START = datetime(2026, 11, 1, 9, tzinfo=UTC)
GIT = ("git", "-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")


def record(hour, mean, *, digest="a", commit=None, **others):
    return {
        "cranfield_history": 1,
        "time": (START + timedelta(hours=hour)).isoformat(),
        "commit": commit,
        "dirty": False,
        "testset": "shop",
        "version": "",
        "digest": f"sha256:{digest * 64}",
        "system": "bm25",
        "convention": "trec",
        "primary": "AP",
        "measures": {"AP": {"mean": mean, "n": 50, "ci_low": mean - 0.05, "ci_high": mean + 0.05}},
        "n_queries": 50,
        "n_failed": 0,
        "pilot": False,
        **others,
    }


@pytest.fixture
def cranfield(tmp_path, monkeypatch):
    """Run the command in an empty folder; returns exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*args):
        done = CliRunner().invoke(command_line("history", "measures"), ["history", *args], prog_name="cranfield")
        return done.exit_code, done.stdout, done.stderr

    return run


@pytest.fixture
def commits(tmp_path):
    """Four commits in the folder."""
    subprocess.run([*GIT, "init", "--quiet", "."], cwd=tmp_path, check=True)
    made = []
    for words in ("Index", "Faster", "Shorter", "Wrong"):
        (tmp_path / "code.py").write_text(words)
        subprocess.run([*GIT, "add", "code.py"], cwd=tmp_path, check=True)
        subprocess.run([*GIT, "commit", "--quiet", "--message", words], cwd=tmp_path, check=True)
        head = subprocess.run([*GIT, "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True)
        made.append(head.stdout.strip())
    return made


def test_the_table_has_the_latest_first_and_says_where_the_set_changed(cranfield, tmp_path):
    append(tmp_path, record(0, 0.5), record(1, 0.6, digest="b"), record(2, 0.7, digest="b", pilot=True))
    code, out, _ = cranfield()
    assert code == 0
    rows = [line for line in out.splitlines() if line.startswith("2026-")]
    assert [row[:16] for row in rows] == ["2026-11-01 10:00", "2026-11-01 09:00"]
    assert "new test set" in rows[0]
    assert "new test set sha256:bbbb" in " ".join(out.split())  # it folds into the next line
    assert "The line breaks where the test set" in out
    assert "1 pilot left out" in out


def test_one_evaluation_alone_is_a_row_and_no_picture(cranfield, tmp_path):
    append(tmp_path, record(0, 0.5))
    assert cranfield("--html", "history.html")[0] == 0
    assert "<svg" not in (tmp_path / "history.html").read_text()
    out = cranfield("--first-bad")[1]
    assert "The only run on sha256:aaaaaaaaaaaa is not bad" in out
    assert "0.5000  0.4500 to 0.5500" in out


def test_the_drawn_line_is_never_joined_over_a_change_of_the_set(cranfield, tmp_path):
    append(tmp_path, *(record(hour, 0.5 + hour / 100, digest="aabba"[hour]) for hour in range(5)))
    payload = json.loads(cranfield("--format", "json")[1])
    (line,) = payload["lines"]
    assert [len(stretch) for stretch in line["stretches"]] == [2, 2, 1]
    assert cranfield("--html", "history.html")[0] == 0
    page = (tmp_path / "history.html").read_text()
    assert page.count("<svg") == 2  # one for a page, one for a phone
    assert page.count("stroke-dasharray") == 4  # two changes in each


def test_the_first_bad_run_is_named_with_the_commits_before_it(cranfield, tmp_path, commits):
    means = (0.5, 0.52, 0.3)
    append(
        tmp_path,
        *(record(n, mean, commit=commits[at]) for n, (mean, at) in enumerate(zip(means, (0, 1, 3), strict=True))),
    )
    code, out, _ = cranfield("--first-bad", "--drop", "0.1")
    assert code == 0
    assert f"first bad: 2026-11-01 11:00 at {commits[3][:8]}, 0.3000" in out
    assert f"last good before it: 2026-11-01 10:00 at {commits[1][:8]}, 0.5200" in out
    listed = out.partition("Commits from")[2]
    assert "Wrong" in listed
    assert "Shorter" in listed
    assert "Faster" not in listed
    (line,) = json.loads(cranfield("--drop", "0.1", "--format", "json")[1])["lines"]
    found = line["first_bad"]
    assert (found["bad"]["commit"], found["good"]["commit"]) == (commits[3], commits[1])
    assert [line.split()[1] for line in found["commits"]] == ["Wrong", "Shorter"]


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ((None, None), "outside of a repository"),
        (("a" * 40, "a" * 40), "Both were made at one commit"),
        (("a" * 40, "b" * 40), "git cannot find both commits"),
        (("--output=x", "b" * 40), "git cannot find both commits"),
    ],
)
def test_without_commits_between_the_two_it_says_why(cranfield, tmp_path, commits, ids, words):
    append(
        tmp_path,
        *(record(n, mean, commit=commit) for n, (mean, commit) in enumerate(zip((0.5, 0.3), ids, strict=True))),
    )
    assert words in cranfield("--drop", "0.1")[1]
    assert commits
    assert not (tmp_path / "x").exists()


def test_no_bad_run_is_said(cranfield, tmp_path):
    append(tmp_path, record(0, 0.5), record(1, 0.5))
    assert "None of the 2 runs" in cranfield("--below", "0.4")[1]


def test_damaged_lines_are_said_with_their_numbers(cranfield, tmp_path):
    path = append(tmp_path, record(0, 0.5))
    path.write_text(path.read_text() + '{"half\n' + path.read_text())
    assert "1 line of the history cannot be read and is left out: 2 (not JSON)" in cranfield()[1]


def test_csv_has_a_row_for_each_point_with_its_stretch(cranfield, tmp_path):
    append(tmp_path, record(0, 0.5), record(1, 0.6, digest="b"))
    rows = list(csv.DictReader(io.StringIO(cranfield("--format", "csv")[1])))
    assert [(row["stretch"], row["mean"]) for row in rows] == [("1", "0.5"), ("2", "0.6")]


def test_a_day_leaves_out_what_was_before(cranfield, tmp_path):
    append(tmp_path, record(0, 0.5), record(24, 0.6))
    payload = json.loads(cranfield("--since", "2026-11-02", "--format", "json")[1])
    assert [point["measures"]["AP"]["mean"] for point in payload["lines"][0]["stretches"][0]] == [0.6]


def test_the_config_or_its_folder_says_whose_history_it_is(cranfield, tmp_path):
    append(tmp_path, record(0, 0.5))
    assert cranfield(str(tmp_path))[0] == 0
    assert cranfield(str(tmp_path / "other.yaml"))[0] == 0


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            ["--below", "0.5", "--drop", "0.1"],
            "--below and --drop exclude each other.\nHint: each option defines when a run is bad",
        ),
        (["--since", "yesterday"], "--since is 'yesterday'"),
        (["--system", "bm"], "unknown system 'bm'"),
        (["nowhere/cranfield.yaml"], "no history in this folder"),
    ],
)
def test_what_cannot_be_is_refused(cranfield, tmp_path, args, words):
    append(tmp_path, record(0, 0.5))
    code, out, err = cranfield(*args)
    assert (code, out) == (2, "")
    assert words in err


def test_text_from_the_file_cannot_repaint_the_terminal(cranfield, tmp_path):
    evil = record(0, 0.5, system="\x1b[31mbm25", commit="\x1b[2J" + "a" * 40)
    append(tmp_path, evil)
    assert "\x1b" not in cranfield()[1]
    assert "\x1b" not in cranfield("--html", "h.html")[2]
    assert "\x1b" not in (tmp_path / "h.html").read_text()


def test_runs_of_other_branches_are_left_out_unless_requested(cranfield, tmp_path, commits):
    """Three runs: at the first commit, on another branch (.9), and at the head."""
    subprocess.run([*GIT, "checkout", "--quiet", "-b", "other", commits[1]], cwd=tmp_path, check=True)
    (tmp_path / "code.py").write_text("Elsewhere")
    subprocess.run([*GIT, "commit", "--quiet", "-a", "--message", "Elsewhere"], cwd=tmp_path, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True)
    subprocess.run([*GIT, "checkout", "--quiet", "-"], cwd=tmp_path, check=True)
    points = (0, 0.5, commits[0]), (1, 0.9, head.stdout.strip()), (2, 0.6, commits[-1])
    append(tmp_path, *(record(hour, mean, commit=commit) for hour, mean, commit in points))
    code, out, err = cranfield("--format", "csv")
    assert code == 0, err
    assert ("0.9" in out, "0.6" in out, "0.5" in out) == (False, True, True)
    assert "note: 1 run at commits of other branches left out; --all-branches includes them" in err
    assert "0.9" in cranfield("--format", "csv", "--all-branches")[1]
