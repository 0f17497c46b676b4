"""`cranfield benefit run` as a program that is killed anywhere: no cell is lost, doubled or charged twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

N_KILLS = 5
AT_ONCE = 4


def start(arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as stream:
        command = [sys.executable, "-m", "cranfield", "benefit", "run", *arguments]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stream, start_new_session=True)


def cells(run: Path) -> list[str]:
    """Cells without times, in one order."""
    found = []
    for line in (run / "cells.jsonl").read_text().splitlines():
        cell = json.loads(line)
        used = {name: value for name, value in cell["usage"].items() if name not in {"wall_s", "model_s"}}
        found.append(json.dumps([cell["key"], cell["attempt"], cell["end"], cell["answer"], used], sort_keys=True))
    return sorted(found)


@pytest.mark.slow  # starts the program seven times
def test_killed_five_times_it_has_the_same_cells_and_charges_nothing_twice(example: Any) -> None:
    asked, log = example.asked, example.place / "log.txt"
    plan = str(example.plan())
    assert start([plan, "--out", str(example.place / "straight")], log).wait(300) == 0, log.read_text()
    (straight,) = (example.place / "straight").iterdir()
    n_straight, tokens = asked.n_requests, dict(asked.tokens)
    asked.n_requests, asked.wait_s = 0, 0.02
    asked.tokens.clear()
    chosen, n_kills = random.Random(17), 0
    arguments = [plan, "--out", str(example.place / "killed")]
    while True:
        before, process = asked.n_requests, start(arguments, log)
        wanted = chosen.randint(1, n_straight // (N_KILLS + 4))
        while process.poll() is None and (n_kills == N_KILLS or asked.n_requests < before + wanted):
            time.sleep(0.005)
        if process.poll() is not None:
            break
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)
        n_kills += 1
        (run,) = (example.place / "killed").iterdir()
        arguments = ["--resume", str(run)]
        time.sleep(0.1)  # requests under way reach the server
    assert process.returncode == 0, log.read_text()
    assert n_kills == N_KILLS
    assert cells(run) == cells(straight)
    assert len(cells(run)) == len(set(cells(run))) == 216
    assert asked.tokens == tokens  # the same requests, and no other
    assert 0 <= asked.n_requests - n_straight <= N_KILLS * AT_ONCE  # those under way at a kill


@pytest.mark.slow  # starts the program twice
def test_an_interruption_ends_it_and_it_goes_on(example: Any) -> None:
    log = example.place / "log.txt"
    example.asked.wait_s = 0.05
    process = start([str(example.plan()), "--out", str(example.place / "runs")], log)
    while example.asked.n_requests < 40 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130, log.read_text()
    (run,) = (example.place / "runs").iterdir()
    assert str(run) in log.read_text()
    example.asked.wait_s = 0.0
    assert start(["--resume", str(run)], log).wait(120) == 0, log.read_text()
    assert len(cells(run)) == 216
