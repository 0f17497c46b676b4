"""The Dockerfile, as far as a machine without Docker can check it: its instructions, and that what it copies and starts is there."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cranfield.cli.main import command_table
from cranfield.workbench.commands.serve import VARIABLE


@pytest.fixture
def instructions(checkout: Path) -> list[tuple[str, str]]:
    """Instruction and its text; continued lines are joined."""
    text = re.sub(r"\\\n\s*", "", (checkout / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def of(instructions: list[tuple[str, str]], name: str) -> list[str]:
    return [rest for each, rest in instructions if each == name]


def test_the_last_stage_runs_as_a_numbered_user_that_is_not_root(instructions: list[tuple[str, str]]) -> None:
    last = max(place for place, (name, _) in enumerate(instructions) if name == "FROM")
    assert [rest for name, rest in instructions[last:] if name == "USER"] == ["10001"]
    assert not [rest for name, rest in instructions[last:] if name == "RUN" and "apt-get" in rest]


def test_what_it_copies_is_in_the_sources_and_not_ignored(instructions: list[tuple[str, str]], checkout: Path) -> None:
    kept = {line[1:] for line in (checkout / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [name for rest in of(instructions, "COPY") if not rest.startswith("--") for name in rest.split()[:-1]]
    assert all((checkout / name).exists() for name in copied)
    assert set(copied) == kept


@pytest.mark.slow
def test_its_steps_make_a_server(instructions: list[tuple[str, str]], checkout: Path, tmp_path: Path) -> None:
    """Its COPY and RUN in folders of this machine, with the pinned and hashed packages of uv's cache; then its HEALTHCHECK."""
    build = instructions[: next(n for n, (name, _) in enumerate(instructions) if name == "FROM" and n)]
    places = {"/source": str(tmp_path / "source"), "/opt/cranfield": str(tmp_path / "opt")}

    def here(text: str) -> str:
        return re.sub("|".join(places), lambda found: places[found[0]], text)

    uv = f"{checkout}/.venv/bin/uv pip install --quiet --python {places['/opt/cranfield']}/bin/python"
    for name, rest in build:
        if name == "COPY":
            *sources, target = here(rest).split()
            for each in sources:
                into = Path(target) / (Path(each).name if target.endswith("/") else "")
                into.parent.mkdir(parents=True, exist_ok=True)
                copy = shutil.copytree if (checkout / each).is_dir() else shutil.copy
                copy(checkout / each, into)
        elif name == "RUN" and "apt-get" not in rest:
            command = re.sub(r"\S+/pip install --no-cache-dir", uv, here(rest))
            subprocess.run(["sh", "-ec", command], check=True, env={**os.environ, "PYTHONPATH": ""})
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    environment = {"PATH": "/usr/bin:/bin", "XDG_DATA_HOME": str(tmp_path), "CRANFIELD_SERVE_PORT": port}
    command = [f"{places['/opt/cranfield']}/bin/cranfield", "serve"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout.readline().startswith("Serving at ")
            words = json.loads(of(instructions, "HEALTHCHECK")[0].partition("CMD ")[2])
            asked = {**os.environ, "CRANFIELD_SERVE_PORT": port}
            assert subprocess.run([sys.executable, *words[1:]], env=asked, check=False).returncode == 0
        finally:
            server.terminate()
            server.wait(60)


def test_it_serves_with_accounts_and_asks_the_probe(instructions: list[tuple[str, str]]) -> None:
    (environment,) = of(instructions, "ENV")
    names = {name for name in re.findall(r"(\w+)=", environment) if name.startswith(VARIABLE)}
    assert names == {f"{VARIABLE}HOST", f"{VARIABLE}ACCOUNTS", f"{VARIABLE}LOG"}
    assert "/healthz" in of(instructions, "HEALTHCHECK")[0]
    assert (of(instructions, "ENTRYPOINT"), of(instructions, "CMD")) == (['["cranfield"]'], ['["serve"]'])
    assert "serve" in command_table().modules
