"""`cranfield golden` as a program, over a server that stands in for models: killed anywhere, it goes on with the same set."""

from __future__ import annotations

import json
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

LOAD = Callable[[Path], ModuleType]
TIMES = {"created_at", "reviewed_at", "at", "cost"}
STEPS = (
    "00_candidates",
    "01_oracle_answers",
    "02_adversary_reports",
    "02_agreements",
    "03_validation_failures",
    "04_human_review_queue",
    "05_rejected",
)
N_KILLS = 8


@pytest.fixture(scope="module")
def models(load_script: LOAD, checkout: Path) -> ModuleType:
    return load_script(checkout / "examples" / "golden" / "models.py")


@pytest.fixture
def place(models: Any, tmp_path: Path) -> Path:
    models.make_repository(tmp_path / "repo")
    return tmp_path


@pytest.fixture
def served(models: Any, model_server: Any) -> Iterator[Any]:
    """The server, and the models behind it."""
    asked = models.Models()
    with model_server.ModelServer(asked.script(model_server.Reply)) as server:
        yield server, asked


def write_plan(place: Path, models: Any, url: str, **changes: Any) -> Path:
    path = place / "plan.json"
    path.write_text(json.dumps(models.plan_of(url, **changes)))
    return path


def contents(run: Path) -> dict[str, Any]:
    """The records of a run by step, without times."""
    found = {}
    for step in STEPS:
        lines = (run / f"{step}.jsonl").read_text().splitlines()
        records = [{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in lines]
        found[step] = sorted(records, key=lambda each: (each["query_id"], each["attempt"]))
    return found


SMALL = {
    "total": 2,
    "cells": [
        {"task_type": "review", "difficulty": "easy", "n": 1},
        {"task_type": "explain", "difficulty": "medium", "n": 1},
    ],
}


@pytest.mark.slow  # the libraries that call models take seconds to import
def test_a_run_from_its_plan_to_its_states(place: Path, models: Any, served: Any, call: Any) -> None:
    server, asked = served
    plan = write_plan(place, models, server.url, **SMALL)
    options = ("--repo", place / "repo", "--out", place / "runs")
    dry = call("golden", "run", plan, *options, "--dry-run")
    assert (dry.returncode, asked.n_requests) == (0, 0), dry.stderr
    assert "Estimated cost" in dry.stdout
    assert not (place / "runs").exists()
    run = call("golden", "run", plan, *options)
    assert run.returncode == 0, run.stderr
    (folder,) = (place / "runs").iterdir()
    assert f"run folder: {folder}" in run.stderr
    assert "own-review-easy-01 passed" in run.stderr
    n_requests = asked.n_requests
    status = call("golden", "status", folder, "--format", "json")
    states = {each["query_id"]: each["state"] for each in json.loads(status.stdout)["records"]}
    assert states == {
        **{f"own-{cell}-01": "passed" for cell in ("review-easy", "explain-medium")},
        **{f"own-{cell}-02": "reserve" for cell in ("review-easy", "explain-medium")},
    }
    again = call("golden", "run", "--resume", folder, "--repo", place / "repo")
    assert (again.returncode, asked.n_requests) == (0, n_requests), again.stderr
    assert {body["model"] for body in server.requests} == {"author", "oracle", "adversary", "judge"}


def test_what_cannot_run_is_refused_before_anything_is_sent(place: Path, models: Any, served: Any, call: Any) -> None:
    server, asked = served
    plan = write_plan(place, models, server.url, total=3, scope=["src/nowhere"])
    wrong = call("golden", "run", plan, "--repo", place / "repo", "--out", place / "runs")
    assert wrong.returncode == 2
    assert "do not sum" in wrong.stderr
    assert "src/nowhere" in wrong.stderr
    assert call("golden", "run").returncode == 2
    assert call("golden", "run", plan, "--until", "nowhere").returncode == 2
    assert call("golden", "status", place).returncode == 2
    assert (asked.n_requests, (place / "runs").exists()) == (0, False)


@pytest.mark.slow  # as above
def test_records_wait_where_a_model_has_no_answer(place: Path, models: Any, served: Any, call: Any) -> None:
    server, _ = served
    plan = write_plan(place, models, server.url, **SMALL, budget={"tokens": 9_000})
    run = call("golden", "run", plan, "--repo", place / "repo", "--out", place / "runs")
    assert run.returncode == 3
    assert "without an answer: budget (" in run.stderr
    (folder,) = (place / "runs").iterdir()
    assert f"--resume {folder}" in run.stderr
    write_plan(place, models, server.url, **SMALL)
    assert call("golden", "run", plan, "--resume", folder, "--repo", place / "repo").returncode == 0


def start(arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as stream:
        return subprocess.Popen(
            [sys.executable, "-m", "cranfield", *arguments], stdout=subprocess.DEVNULL, stderr=stream
        )


@pytest.mark.slow  # starts the program ten times
def test_killed_eight_times_it_gives_the_same_set_and_asks_nothing_twice(
    place: Path, models: Any, served: Any, model_server: Any
) -> None:
    server, asked = served
    asked.wait_s = 0.02
    plan, log = write_plan(place, models, server.url), place / "log.txt"
    common = ["golden", "run", str(plan), "--repo", str(place / "repo")]
    assert start([*common, "--out", str(place / "straight")], log).wait(300) == 0, log.read_text()
    (straight,) = (place / "straight").iterdir()
    n_straight = asked.n_requests
    asked.n_requests, asked.limited = 0, set()
    chosen, n_kills = random.Random(16), 0
    arguments = [*common, "--out", str(place / "killed")]
    while True:
        before, process = asked.n_requests, start(arguments, log)
        wanted = chosen.randint(1, n_straight // (N_KILLS + 4))
        while process.poll() is None and (n_kills == N_KILLS or asked.n_requests < before + wanted):
            time.sleep(0.005)
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL if n_kills % 3 else signal.SIGINT)
        process.wait(60)
        n_kills += 1
        (run,) = (place / "killed").iterdir()
        arguments = ["golden", "run", "--resume", str(run), "--repo", str(place / "repo")]
        time.sleep(0.1)  # requests under way reach the server
    assert process.returncode == 0, log.read_text()
    assert n_kills == N_KILLS
    assert contents(run) == contents(straight)
    # An answer that was requested again would be kept again. What a kill loses was under way.
    kept, straight_kept = (digests(each / "calls.jsonl") for each in (run, straight))
    assert kept == straight_kept
    most_under_way = 4 * 4  # of four roles
    assert 0 <= asked.n_requests - n_straight <= N_KILLS * most_under_way


def digests(calls: Path) -> list[str]:
    """Of the requests whose answers are kept."""
    return sorted(json.loads(line)["digest"] for line in calls.read_text().splitlines())


@pytest.mark.slow  # the program is started five times
def test_the_commands_of_the_example_run(checkout: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    example, plan = checkout / "examples" / "golden", tmp_path / "plan.yaml"
    plan.write_text((example / "plan.yaml").read_text().replace("8765", port))
    found = re.search(r"```sh\n(.*?)```", (example / "README.md").read_text(), re.DOTALL)
    assert found
    commands = found[1].replace("examples/golden/plan.yaml", str(plan)).replace("8765", port)
    commands = commands.replace("examples/", f"{checkout}/examples/")
    commands = commands.replace("cranfield golden", f"{sys.executable} -m cranfield golden")
    commands = re.sub(r"^python ", f"{sys.executable} ", commands, flags=re.MULTILINE)
    ran = subprocess.run(["bash", "-ec", commands], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert "24 in, 24 ended, 0 under way" in ran.stdout
    assert re.search(r"^passed +6 ", ran.stdout, re.MULTILINE), ran.stdout
