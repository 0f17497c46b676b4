"""The hook for pre-commit, run by pre-commit in a repository of a user; the environment is that of the tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("pre_commit")
CHECKOUT = Path(__file__).parents[3]
MANIFEST = CHECKOUT / ".pre-commit-hooks.yaml"
GOOD = "cranfield_testset: 1\nname: {name}\nqueries:\n  - {{id: q1, text: red shoes, judgments: {{a: 1}}}}\n"

pytestmark = pytest.mark.skipif(not MANIFEST.exists(), reason="no checkout: the hooks are part of the repository")


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    cache = {"PRE_COMMIT_HOME": str(folder / ".cache"), "GIT_CONFIG_GLOBAL": os.devnull}
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return subprocess.run(
        command, cwd=folder, env={**environment, **cache, "PATH": path}, capture_output=True, text=True
    )


def hook() -> dict[str, Any]:
    (found,) = yaml.safe_load(MANIFEST.read_text())
    return dict(found)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    local = {**hook(), "language": "system"}
    config = {"repos": [{"repo": "local", "hooks": [local]}]}
    (tmp_path / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "testsets").mkdir()
    for name in ("shop", "help"):
        (tmp_path / "testsets" / f"{name}.yaml").write_text(GOOD.format(name=name))
    (tmp_path / "other.yaml").write_text("no: test set\n")
    assert run(tmp_path, "git", "init", "-q").returncode == 0
    assert run(tmp_path, "git", "add", "-A").returncode == 0
    return tmp_path


def test_the_manifest_is_valid(tmp_path: Path) -> None:
    done = run(tmp_path, "pre-commit", "validate-manifest", str(MANIFEST))
    assert done.returncode == 0, done.stdout


def test_good_sets_pass_and_other_files_are_not_read(repository: Path) -> None:
    done = run(repository, "pre-commit", "run", "--all-files")
    assert done.returncode == 0, done.stdout
    assert "Passed" in done.stdout


def test_a_broken_set_fails_with_its_line_and_the_others_are_checked(repository: Path) -> None:
    broken = repository / "testsets" / "shop.yaml"
    broken.write_text(broken.read_text().replace("judgments", "judgmnts"))
    run(repository, "git", "add", "-A")
    done = run(repository, "pre-commit", "run", "--all-files")
    assert done.returncode == 1
    assert "testsets/shop.yaml:4:31: unknown key 'judgmnts'" in done.stdout
    assert "help: 1 query" in done.stdout


def test_the_pattern_takes_what_test_sets_are_called() -> None:
    pattern = re.compile(hook()["files"])
    suffixes = ("yaml", "yml", "json", "jsonl", "csv", "tsv", "qrels")
    assert [suffix for suffix in suffixes if not pattern.search(f"testset/a.{suffix}")] == []
    assert pattern.search("docs/testsets/deep/a.yml")
    assert not pattern.search("mytestset/a.yaml")
