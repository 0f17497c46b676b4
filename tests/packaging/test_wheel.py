"""What the installed wheel holds: the package and its data files, the kernel, the commands and entry points."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath
from urllib.request import urlopen

import pytest

import cranfield
from cranfield.cli.main import command_table
from cranfield.ranking import c_reader

DISTRIBUTION = distribution("cranfield")
FILES = {PurePosixPath(path).as_posix() for path in DISTRIBUTION.files or ()}


def sources() -> set[str]:
    """Every committed file of the package, as a path from site-packages."""
    lines = Path(os.environ["CRANFIELD_SOURCES"]).read_text().splitlines()
    return {line.removeprefix("src/") for line in lines if line}


def test_every_module_and_data_file_is_in_the_wheel_and_no_source_of_the_kernel() -> None:
    expected = {path for path in sources() if not path.endswith((".c", ".h"))}
    packaged = {path for path in FILES if path.startswith("cranfield/") and not path.endswith((".pyc", ".so"))}
    assert packaged == expected
    assert "cranfield/py.typed" in packaged


def test_nothing_else_is_installed() -> None:
    tops = {path.split("/")[0] for path in FILES}
    assert {top for top in tops if not top.endswith(".dist-info")} <= {"cranfield", "cranfield.libs", ".."}
    assert {path for path in FILES if path.startswith("..")} == {"../../../bin/cranfield"}


def test_the_kernel_is_there_for_every_later_python() -> None:
    assert c_reader.available(), c_reader.why_not()
    assert [path for path in FILES if path.endswith(".so")] == ["cranfield/ranking/_kernel.abi3.so"]


def test_the_metadata_is_that_of_the_package() -> None:
    metadata = DISTRIBUTION.metadata
    assert metadata["Version"] == cranfield.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert [path for path in FILES if path.endswith("licenses/LICENSE")]
    points = {(point.group, point.name): point.value for point in DISTRIBUTION.entry_points}
    assert points[("console_scripts", "cranfield")] == "cranfield.cli.main:main"
    assert points[("pytest11", "cranfield")] == "cranfield.pytest_plugin"


def test_the_installed_command_starts_and_lists_every_command() -> None:
    command = [Path(sys.executable).parent / "cranfield", "--help"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert [name for name in command_table().modules if f"\n  {name} " not in listed] == []


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """An empty folder in which `uvx` ran the demo from the wheel alone, and what the command said on stderr."""
    folder = tmp_path_factory.mktemp("uvx")
    command = [os.environ["CRANFIELD_UVX"], "--quiet", "--from", os.environ["CRANFIELD_WHEEL"], "cranfield", "demo"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "VERDICT" in done.stdout
    return folder, done.stderr


def test_the_demo_runs_from_the_wheel_alone(demo: tuple[Path, str]) -> None:
    folder, said = demo
    assert [path.name for path in folder.iterdir()] == ["cranfield-demo"]
    assert (folder / "cranfield-demo" / "report.html").stat().st_size > 100_000
    assert "Traceback" not in said


def test_the_next_command_of_the_demo_works_there(demo: tuple[Path, str]) -> None:
    folder, said = demo
    found = re.search(r"^Next, in (\S+): (.+)$", said, re.MULTILINE)
    assert found, said
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = f"{Path(os.environ['CRANFIELD_UVX']).parent}{os.pathsep}{os.environ['PATH']}"
    streams = {
        "env": {**os.environ, "PATH": path},
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
    }
    with subprocess.Popen(
        f"{found[2]} --port {port}", shell=True, cwd=folder / found[1], start_new_session=True, **streams
    ) as server:
        try:
            lines: list[str] = []
            while not (lines and lines[-1].startswith(f"Serving at http://127.0.0.1:{port}/")):
                lines.append(server.stdout.readline())
                assert lines[-1], "".join(lines)
            with urlopen(f"http://127.0.0.1:{port}/healthz", timeout=30) as answer:
                assert answer.status == 200
        finally:
            os.killpg(server.pid, signal.SIGTERM)
