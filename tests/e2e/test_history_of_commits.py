"""A history over the commits of a repository, of a real search program: what is drawn, tested, kept and found."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cranfield.app import history as history_files
from cranfield.app.history import read_history

SEARCH = """\
SHIFT=0
found=
for place in 0 1 2 3 4; do found="$found, \\"d$(((${1#q} + SHIFT + place + 12) % 12))\\""; done
echo "[${found#, }]"
"""
CONFIG = """\
testset: queries.yaml
primary: RR
measures: [RR, R@5]
systems:
  search: {command: [sh, search.sh, "{query}"], extract: {json: "@"}}
gate:
  rules:
    - floor: {measure: RR, at_least: 0.1}
    - drop: {measure: RR, at_most: 0.3, where: {part: one}}
    - failures: {at_most: 0}
"""
GIT = ("git", "-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")


class Repository:
    """A repository with a search program, a test set of 12 queries and a config."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commits: dict[str, str] = {}

    def begin(self) -> None:
        """Write everything, and commit nothing."""
        folder = self.folder
        self.git("init", "--quiet", ".")
        (folder / ".gitignore").write_text("cranfield-out/\n")
        (folder / "search.sh").write_text(SEARCH)
        (folder / "cranfield.yaml").write_text(CONFIG)
        (folder / "queries.yaml").write_text(
            "cranfield_testset: 1\nname: shop\nqueries:\n"
            + "".join(
                f"  - {{id: q{n}, text: q{n}, strata: {{part: {'one' if n < 6 else 'two'}}}, judgments: {{d{n}: 1}}}}\n"
                for n in range(12)
            )
        )

    def git(self, *arguments: str) -> str:
        done = subprocess.run([*GIT, *arguments], cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def change(self, file: str, old: str, new: str) -> None:
        text = (self.folder / file).read_text()
        assert old in text
        (self.folder / file).write_text(text.replace(old, new))

    def commit(self, subject: str) -> None:
        """Commit everything, and evaluate it."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        self.commits[subject] = self.git("rev-parse", "HEAD")
        self.cranfield("run")

    def cranfield(self, *arguments: str, code: int = 0) -> str:
        environment = {**os.environ, "COLUMNS": "120"}
        done = subprocess.run(
            ["cranfield", *arguments], cwd=self.folder, capture_output=True, text=True, timeout=120, env=environment
        )
        assert done.returncode == code, done.stderr
        return done.stdout

    def line(self, *arguments: str) -> dict:
        (line,) = json.loads(self.cranfield("history", "--format", "json", *arguments))["lines"]
        return line


def make_seven_commits(folder: Path) -> None:
    """Three commits with the same answers, a fall, the same answers, the fix, another config."""
    made = Repository(folder)
    made.begin()
    made.commit("Search")
    made.change("search.sh", "found=\n", "found=  # a comment\n")
    made.commit("Comment")
    made.commit("Empty")
    made.change("search.sh", "SHIFT=0", "SHIFT=-3")
    made.commit("Shorter")
    made.commit("Notes")
    made.change("search.sh", "SHIFT=-3", "SHIFT=0")
    made.commit("Fix")
    made.change("cranfield.yaml", "extract:", "timeout_s: 20, extract:")
    made.commit("Timeout")


@pytest.fixture
def repository(make_once: Callable[[str, Callable[[Path], object]], Path], tmp_path: Path) -> Repository:
    """A copy of the repository with seven commits."""
    made = Repository(tmp_path / "copy")
    shutil.copytree(make_once("seven commits", make_seven_commits), made.folder)
    made.commits = dict(line.split()[::-1] for line in made.git("log", "--format=%H %s").splitlines())
    return made


def test_commits_with_unchanged_answers_are_recorded_and_draw_no_point(repository: Repository) -> None:
    assert len(read_history(repository.folder).points) == 7
    first, second = repository.line()["stretches"]
    named = {commit: subject for subject, commit in repository.commits.items()}
    assert [named[point["commit"]] for point in first] == ["Search", "Shorter", "Fix"]
    assert [[named[later["commit"]] for later in point["unchanged"]] for point in first] == [
        ["Comment", "Empty"],
        ["Notes"],
        [],
    ]
    assert [named[point["commit"]] for point in second] == ["Timeout"], "another config begins a line"
    shown = repository.cranfield("history", "--html", "history.html")
    assert f"same answers in 2 later runs: {repository.commits['Comment'][:8]}" in " ".join(shown.split())
    assert "config of the system changed" in " ".join(shown.split())
    assert (repository.folder / "history.html").read_text().count("stroke-dasharray") == 2  # wide and narrow
    assert "Show data" not in (repository.folder / "history.html").read_text(), "the table follows the picture"


def test_neighbours_are_tested_pairwise_also_across_a_change_of_config(repository: Repository) -> None:
    first, second = repository.line()["stretches"]
    assert first[0]["change"] is None
    verdicts = [point["change"]["verdict"] for point in [*first[1:], *second]]
    assert verdicts == ["worse", "better", "not_significant"]
    change = first[1]["change"]
    assert (change["test"], change["n"], change["n_differ"]) == ("permutation", 12, 12)
    assert change["delta"] == pytest.approx(-0.75)  # from rank 1 to rank 4
    assert change["p"] == pytest.approx(2 / 2**12)


def test_the_report_of_each_point_is_kept_and_can_be_opened(repository: Repository) -> None:
    repository.cranfield("history", "--html", "pages/history.html", code=2)
    (repository.folder / "pages").mkdir()
    repository.cranfield("history", "--html", "pages/history.html")
    page = (repository.folder / "pages" / "history.html").read_text()
    points = [point for stretch in repository.line()["stretches"] for point in stretch]
    reports = [repository.folder / ".cranfield" / point["report"] for point in points]
    assert len(set(reports)) == 4
    for point, report in zip(points, reports, strict=True):
        assert f'href="../.cranfield/{point["report"]}"' in page
        assert f"{point['measures']['RR']['mean']:.4f}" in report.read_text()
    assert len(list((repository.folder / ".cranfield" / "history").glob("*.html"))) == 4, "unchanged answers keep none"
    reports[0].unlink()
    assert f'href="../.cranfield/{points[0]["report"]}"' in page
    repository.cranfield("history", "--html", "pages/history.html")
    assert (
        f'href="../.cranfield/{points[0]["report"]}"' not in (repository.folder / "pages" / "history.html").read_text()
    )


def test_the_first_bad_commit_is_found_by_the_paired_test(repository: Repository) -> None:
    shown = " ".join(repository.cranfield("history", "--first-bad").split())
    assert f"at {repository.commits['Shorter'][:8]}, 0.2500" in shown.partition("first bad: ")[2][:60]
    assert "significantly worse than the best before it (paired test, alpha 0.05, p adjusted" in shown
    assert "difference to the best: −0.7500, p .0015 (paired permutation test, n = 12, 12 differ)" in shown
    assert "Shorter" in shown.partition("Commits from")[2]
    assert "Notes" not in shown.partition("Commits from")[2].partition("search on shop")[0]


def test_the_first_bad_commit_by_the_rules_of_the_gate(repository: Repository) -> None:
    found = repository.line("--gate")["first_bad"]
    assert found["bad"]["commit"] == repository.commits["Shorter"]
    assert found["reason"].startswith("RR was 1.0000 and is 0.2500 of part: one")
    assert (found["latest_is_bad"], found["n_untested"]) == (False, 0)
    repository.change("cranfield.yaml", "drop: {measure: RR, at_most: 0.3,", "drop: {measure: RR, at_most: 0.9,")
    found = repository.line("--gate")["first_bad"]
    assert found["bad"] is None
    refused = subprocess.run(
        ["cranfield", "history", "--gate", "-m", "R@5"],
        cwd=repository.folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert refused.returncode == 2
    assert "the gate has no rule on R@5; expected --measure with a measure of its rules: RR" in refused.stderr


def test_a_change_of_the_test_set_is_marked_and_nothing_is_compared_across_it(repository: Repository) -> None:
    repository.change("queries.yaml", "judgments: {d0: 1}", "judgments: {d1: 1}")
    repository.commit("Judgments")
    stretches = repository.line()["stretches"]
    assert len(stretches) == 3
    assert stretches[2][0]["change"] is None
    shown = " ".join(repository.cranfield("history", "--first-bad").split())
    assert "The only run on" in shown
    assert "7 runs on earlier versions of the test set" in shown
    assert "new test set" in shown


def test_the_oldest_files_are_removed_and_the_lines_stay(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_files, "MAX_REPORTS", 3)
    folder = repository.folder / ".cranfield"
    for place, path in enumerate(sorted((folder / "history").glob("*.html"))):
        os.utime(path, (place, place))
    from datetime import UTC, datetime

    kept = history_files.keep_report(
        folder, repository.folder / "cranfield-out" / "report.html", datetime(2027, 1, 1, tzinfo=UTC)
    )
    left = sorted(path.name for path in (folder / "history").glob("*.html"))
    assert len(left) == 3
    assert kept == f"history/{left[-1]}"
    assert len(read_history(repository.folder).points) == 7


def test_a_name_in_the_history_that_leads_out_of_its_folder_is_not_followed(repository: Repository) -> None:
    (repository.folder / "secret.html").write_text("secret")
    for name in ("../secret.html", "history/../../secret.html", str(repository.folder / "secret.html")):
        assert history_files.inside(repository.folder / ".cranfield", name) is None
