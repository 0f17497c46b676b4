"""A terminal of 80 columns and 24 lines: a command ends within one screen, the verdict on it, in colour where that is wanted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
HANDBOOK = HERE / "examples" / "handbook"
WAIT_S = 120
Screen = Callable[..., str]


@pytest.fixture
def screen(tmp_path: Path) -> Screen:
    """Run a command in a terminal of its own; what is on the screen when it has ended."""
    socket = str(tmp_path / "tmux.sock")

    def tmux(*arguments: str) -> str:
        done = subprocess.run(["tmux", "-S", socket, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    def run(command: str, *, folder: Path, colour: bool = False, setting: str = "") -> str:
        ended = tmp_path / "ended"
        ended.unlink(missing_ok=True)
        shell = f"{setting} {command}; echo $? > {ended}; sleep {WAIT_S}"
        tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", str(folder), "sh", "-c", shell)
        try:
            for _ in range(WAIT_S * 10):
                if ended.exists() and ended.read_text():
                    break
                time.sleep(0.1)
            time.sleep(0.2)
            return tmux("capture-pane", "-p", *(["-e"] if colour else []))
        finally:
            tmux("kill-server")

    return run


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(HANDBOOK, folder, dirs_exist_ok=True)
    for path in (HERE / "examples" / "gate").glob("cranfield*"):
        text = path.read_text().replace("../handbook/", "").replace("cwd: ../handbook", "cwd: .")
        (folder / ("gate.yaml" if path.suffix == ".yaml" else path.name)).write_text(text)
    subprocess.run(["cranfield", "run"], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize(
    ("command", "title"),
    [
        ("run", "Is titles better than plain?"),
        ("compare queries.yaml cranfield-out/runs/plain.jsonl cranfield-out/runs/titles.jsonl", "Is titles better"),
        ("gate gate.yaml", "Gate: titles"),
        ("evaluate queries.yaml cranfield-out/runs/plain.jsonl", "plain"),
    ],
)
def test_a_command_ends_within_one_screen(screen: Screen, project: Path, command: str, title: str) -> None:
    lines = screen(f"cranfield {command}", folder=project).splitlines()
    assert any(line.startswith(title) for line in lines), lines
    assert "--full prints everything" in "\n".join(lines)
    if command.split(maxsplit=1)[0] != "evaluate":
        assert any(line.startswith("VERDICT: ") for line in lines)


def test_the_demo_ends_within_one_screen(screen: Screen, demo: Path) -> None:
    shown = screen("cranfield compare testset.yaml runs/plain.jsonl runs/fields.jsonl", folder=demo)
    assert "Is fields better than plain?" in shown
    assert len([line for line in shown.splitlines() if line.strip()]) <= 22


@pytest.mark.parametrize(("setting", "coloured"), [("", True), ("NO_COLOR=1", False), ("TERM=dumb", False)])
def test_colour_is_on_a_terminal_unless_it_is_declined(
    screen: Screen, project: Path, setting: str, coloured: bool
) -> None:
    shown = screen("cranfield gate gate.yaml", folder=project, colour=True, setting=setting)
    (verdict,) = (line for line in shown.splitlines() if "VERDICT: failed" in line)
    assert bool(re.search(r"\x1b\[[0-9;]*31m", verdict)) is coloured


@pytest.mark.parametrize(("setting", "coloured"), [({}, False), ({"FORCE_COLOR": "1"}, True)])
def test_a_pipe_gets_no_colour_unless_it_is_forced(project: Path, setting: dict[str, str], coloured: bool) -> None:
    environment = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "FORCE_COLOR"}} | setting
    done = subprocess.run(
        ["cranfield", "gate", "gate.yaml"], cwd=project, capture_output=True, text=True, env=environment, check=False
    )
    assert ("\x1b[" in done.stdout) is coloured


def test_full_prints_every_section_and_other_forms_are_as_they_were(project: Path) -> None:
    command = [
        "cranfield",
        "compare",
        "queries.yaml",
        "cranfield-out/runs/plain.jsonl",
        "cranfield-out/runs/titles.jsonl",
    ]
    short, full = (
        subprocess.run([*command, *more], cwd=project, capture_output=True, text=True, check=True).stdout
        for more in ((), ("--full",))
    )
    assert len(short.splitlines()) <= 20
    assert "Provenance" in full
    assert len(full.splitlines()) > 100
