"""What did not run is counted and named, and fails the run where nothing may be skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
TESTS = """
import pytest

def test_runs(): pass

def test_needs_a_lake():
    pytest.skip("no lake here")

@pytest.mark.xfail(reason="the sea is salty", strict=True)
def test_sweet_sea():
    assert False
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(CONFTEST, tmp_path / "conftest.py")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_made_up.py").write_text(TESTS)
    (tmp_path / "test_library.py").write_text("import pytest\npytest.importorskip('no_such_library')\n")
    return tmp_path


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "CRANFIELD_NO_SKIPS"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "xdist", "-p", "pytest_randomly", *arguments],
        cwd=folder,
        env=inherited | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environment,
        capture_output=True,
        text=True,
    )


NAMES = (
    "  test_made_up.py::test_needs_a_lake: no lake here\n",
    "  test_made_up.py::test_sweet_sea: expected to fail: the sea is salty\n",
    "  test_library.py: could not import 'no_such_library'",
)


def test_skips_are_counted_and_named(folder: Path) -> None:
    done = run(folder, "-q")
    assert done.returncode == 0, done.stdout
    assert "3 skipped:\n" in done.stdout
    assert [name for name in NAMES if name not in done.stdout] == []


def test_skips_of_several_processes_fail_the_run_where_none_may_be(folder: Path) -> None:
    done = run(folder, "-n", "2", CRANFIELD_NO_SKIPS="1")
    assert done.returncode == 1, done.stdout
    assert "3 skipped: (CRANFIELD_NO_SKIPS is set: this fails the run)\n" in done.stdout
    assert [name for name in NAMES if name not in done.stdout] == []


def test_a_run_without_a_skip_says_so_and_passes(folder: Path) -> None:
    done = run(folder, "-k", "test_runs", "--ignore=test_library.py", CRANFIELD_NO_SKIPS="1")
    assert done.returncode == 0, done.stdout
    assert "0 skipped\n" in done.stdout
    assert "this order again: --randomly-seed=" in done.stdout


def test_sources_are_refused_where_the_wheel_is_asked_for(folder: Path) -> None:
    done = run(folder, CRANFIELD_INSTALLED="1")
    import cranfield

    if "site-packages" in Path(cranfield.__file__).parts:
        assert done.returncode == 0
    else:
        assert done.returncode == pytest.ExitCode.USAGE_ERROR
        assert "CRANFIELD_INSTALLED is set, and cranfield was imported from" in done.stderr
