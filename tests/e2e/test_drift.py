"""A repository drifts on purpose: two commits of Cranfield's own files, and a test set that expects places in them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import cranfield
from cranfield.formats.sniff import read_testset

PACKAGE = Path(cranfield.__file__).parent
MODULES = {
    "errors.py": "base/errors.py",
    "numbers.py": "base/numbers.py",
    "matching/place.py": "ranking/matching/place.py",
    **{name: name for name in ("model/target.py", "model/query.py", "model/testset.py")},
}
"""File in the repository of the test to the file of the package that it is a copy of."""
SET = """\
cranfield_testset: 1
name: own-code
queries:
  - {{id: same, text: what a query is, entities: ["src/model/query.py::Query"]}}
  - {{id: moved, text: lines that two spans share, spans: ["src/matching/place.py:{moved}"]}}
  - {{id: edited, text: how a difference is printed, entities: ["src/numbers.py::format_delta"]}}
  - {{id: renamed, text: nearest known name, entities: ["src/errors.py::unknown_name"]}}
  - {{id: file, text: rules of matching, entities: ["src/model/testset.py::MatchingRules"]}}
  - {{id: gone, text: a symbol that is expected, entities: ["src/model/target.py::Entity.label"]}}
"""
STATES = {
    "same": "unchanged",
    "moved": "moved",
    "edited": "edited",
    "renamed": "renamed",
    "file": "renamed",
    "gone": "gone",
}


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "change")
    return git(folder, "rev-parse", "HEAD")


def change(path: Path, edit: Callable[[str], str]) -> None:
    before = path.read_text(encoding="utf-8")
    after = edit(before)
    assert after != before, f"the edit of {path} changed nothing"
    path.write_text(after, encoding="utf-8")


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["cranfield", *arguments], cwd=folder, capture_output=True, text=True, check=False)


def lines_of_overlap(folder: Path) -> tuple[int, int]:
    """First and last line of the function `overlap`."""
    lines = (folder / "code/src/matching/place.py").read_text(encoding="utf-8").splitlines()
    first = next(n for n, line in enumerate(lines, 1) if line.startswith("def overlap"))
    return first, next(n for n, line in enumerate(lines, 1) if n > first and line.startswith("    return"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`code/` with a first commit, and `set.yaml` that is tied to it."""
    code = tmp_path / "code"
    for name, source in MODULES.items():
        (code / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (code / "src" / name).write_text((PACKAGE / source).read_text(encoding="utf-8"), encoding="utf-8")
    git(code, "init", "--quiet")
    commit(code)
    first, last = lines_of_overlap(tmp_path)
    (tmp_path / "set.yaml").write_text(SET.format(moved=f"{first}-{last}"))
    done = command(tmp_path, "testset", "rehash", "set.yaml", "--repo", "code")
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.fixture
def drifted(folder: Path) -> Path:
    """The same with a second commit, in which one thing of each kind happened."""
    source = folder / "code/src"
    change(source / "matching/place.py", lambda text: "# One line.\n\n# Another.\n" + text)
    change(source / "numbers.py", lambda text: text.replace("return _signed(value, 4)", "return _signed(value, 3)"))
    change(source / "errors.py", lambda text: text.replace("def unknown_name(", "def name_nobody_knows("))
    git(folder / "code", "mv", "src/model/testset.py", "src/model/laying.py")
    git(folder / "code", "rm", "--quiet", "src/model/target.py")
    change(source / "model/query.py", lambda text: text + "\n\nMORE = 1\n")
    commit(folder / "code")
    return folder


def test_the_set_is_tied_to_the_commit(folder: Path) -> None:
    meta = read_testset(folder / "set.yaml").meta
    assert meta.commit == git(folder / "code", "rev-parse", "HEAD")
    assert len(meta.anchors) == len(meta.source_files) == len(STATES)
    assert meta.counts == {"queries": 6}


def test_an_unrelated_commit_leaves_all_unchanged(folder: Path) -> None:
    (folder / "code/src/other.py").write_text("def unknown_name():\n    return 1\n")
    change(folder / "code/src/errors.py", lambda text: text.replace("SHOWN_PROBLEMS = 20", "SHOWN_PROBLEMS = 30"))
    commit(folder / "code")
    done = command(folder, "testset", "verify", "set.yaml", "--repo", "code", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"]["unchanged"] == len(STATES)


def test_each_of_the_five_states_is_produced_and_reported(drifted: Path) -> None:
    done = command(drifted, "testset", "verify", "set.yaml", "--repo", "code", "--format", "json")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert {query_id: next(iter(counted)) for query_id, counted in told["by_query"].items()} == STATES
    now = {place["queries"][0]: place["now"] for place in told["findings"]}
    first, last = lines_of_overlap(drifted)
    assert now == {
        "same": "",
        "moved": f"src/matching/place.py:{first}-{last}",
        "edited": "",
        "renamed": "src/errors.py::name_nobody_knows",
        "file": "src/model/laying.py::MatchingRules",
        "gone": "",
    }


def test_a_commit_is_verified_without_a_checkout(drifted: Path) -> None:
    before = git(drifted / "code", "rev-parse", "HEAD")
    assert command(drifted, "testset", "verify", "set.yaml", "--repo", "code", "--at", "HEAD~1").returncode == 0
    assert command(drifted, "testset", "verify", "set.yaml", "--repo", "code", "--at", "HEAD").returncode == 1
    assert git(drifted / "code", "rev-parse", "HEAD") == before
    assert git(drifted / "code", "status", "--porcelain") == ""


def evaluated(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command(folder, "evaluate", "set.yaml", "r.run", "-m", "RR", "--format", "json", *arguments)


def test_evaluation_on_a_drifted_set_is_an_error_unless_drift_is_allowed(drifted: Path) -> None:
    first, last = lines_of_overlap(drifted)
    (drifted / "r.run").write_text(
        f"same Q0 src/model/query.py::Query 1 1.0 r\n"
        # The last two lines of the function where it is now: beyond the lines that the set names.
        f"moved Q0 src/matching/place.py:{last - 1}-{last} 1 1.0 r\n"
    )
    refused = evaluated(drifted, "--repo", "code")
    assert refused.returncode == 2
    assert "4 of 6 expected places changed in the folder on commit " in refused.stderr
    assert "1 edited, 2 renamed, 1 gone" in refused.stderr
    assert "--allow-drift" in refused.stderr
    assert refused.stdout == ""
    allowed = evaluated(drifted, "--repo", "code", "--allow-drift")
    assert allowed.returncode == 0, allowed.stderr
    assert f'"src/matching/place.py:{first}-{last}"' not in (drifted / "set.yaml").read_text()


def test_moved_spans_match_through_the_whole_evaluation(folder: Path) -> None:
    change(folder / "code/src/matching/place.py", lambda text: "# A line.\n" * 20 + text)
    _, last = lines_of_overlap(folder)
    (folder / "r.run").write_text(f"moved Q0 src/matching/place.py:{last}-{last} 1 1.0 r\n")
    blind, healed = evaluated(folder), evaluated(folder, "--repo", "code", "--allow-dirty")
    assert (blind.returncode, healed.returncode) == (0, 0), healed.stderr
    # One of six queries is answered; with the lines where they are now, by a relevant result: RR is 1/6.
    assert mean_of_rr(blind) == 0.0
    assert mean_of_rr(healed) == pytest.approx(1 / 6)


def mean_of_rr(done: subprocess.CompletedProcess[str]) -> float:
    told = json.loads(done.stdout)
    return float(told["systems"][0]["measures"]["RR"]["mean"])
