"""A real process collects, is killed in the middle, and the same call goes on."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from cranfield.formats.run_jsonl import read_run

DRIVER = """
import sys
from pathlib import Path
from cranfield.config import SystemConfig
from cranfield.model import Query, TestSet
from cranfield.systems import CommandSystem, Interrupted, collect, collect_all

here, out, concurrency = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
testset = TestSet("t", tuple(Query(f"q{n}", f"text{n}") for n in range(20)))
config = SystemConfig.model_validate({
    "command": ["{python}", "-I", "-S", "search.py", "{query}"],
    "extract": {"regex": r"docs://\\S+"},
    "concurrency": concurrency,
    "timeout_s": 100.0,
})
systems = [CommandSystem(name, config, here) for name in ("old", "new")]
try:
    if out == "memory":
        collect(testset, systems[0])
    else:
        collect_all(testset, systems, out_dir=here / out)
except Interrupted as interrupted:
    print(interrupted)
    raise SystemExit(130)
except KeyboardInterrupt:
    raise SystemExit(99)
"""

SEARCH = """
import os, sys, time
calls = os.open("calls.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(calls, f"{sys.argv[1]} {os.getpid()}\\n".encode())
if sys.argv[1] == "text7" and os.path.exists("slow"):
    time.sleep(300)
if os.path.exists("paced"):
    time.sleep(0.05)
print("docs://" + sys.argv[1])
"""


@pytest.fixture
def start(tmp_path, script):
    """Start the driver as a process of its own."""
    script(SEARCH)
    script(DRIVER, "driver.py")
    started = []

    def _start(out: str = "out", concurrency: int = 1):
        command = [sys.executable, "driver.py", str(tmp_path), out, str(concurrency)]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield _start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def calls(tmp_path):
    """Query text and process id of every call so far."""

    def _calls() -> list[tuple[str, int]]:
        path = tmp_path / "calls.txt"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [(text, int(pid)) for text, pid in (line.split() for line in lines)]

    return _calls


@pytest.fixture
def kept(tmp_path):
    """Query ids in the journal of the first system."""

    def _kept(out: str = "out") -> list[str]:
        path = tmp_path / out / ".partial" / "old.jsonl"
        lines = path.read_bytes().split(b"\n")[1:-1] if path.exists() else []
        return [json.loads(line)["query_id"] for line in lines]

    return _kept


@pytest.fixture
def stuck(tmp_path, start, calls, wait_for, kept):
    """Start a collection and wait until it hangs on one query, with all it can answer answered."""

    def _stuck(concurrency: int):
        (tmp_path / "slow").touch()
        process = start(concurrency=concurrency)
        # One at a time, the queries after the slow one wait for it.
        n_kept = 7 if concurrency == 1 else 19
        wait_for(lambda: len(kept()) == n_kept and "text7" in dict(calls()))
        (tmp_path / "slow").unlink()
        return process, dict(calls())["text7"]

    return _stuck


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_collection_that_was_killed_goes_on_without_asking_twice(
    tmp_path, start, calls, kept, stuck, gone, number, concurrency
):
    process, slow_call = stuck(concurrency)
    process.send_signal(number)
    said, errors = process.communicate(timeout=20)
    assert gone(slow_call), "a call outlived the collection"
    if number is signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        out = tmp_path / "out"
        assert (process.returncode, errors) == (130, "")
        n_kept = len(kept())
        assert said == f"interrupted: {n_kept} of 40 answers are kept in {out}; the same command goes on from there.\n"
    assert "q7" not in kept()
    assert not (tmp_path / "out" / "runs").exists()

    again = start(concurrency=concurrency)
    assert (again.wait(60), again.communicate()) == (0, ("", ""))
    counts = Counter(text for text, _ in calls())
    # two systems; only the call that was under way is asked once more
    assert counts == {f"text{n}": 3 if n == 7 else 2 for n in range(20)}
    assert not (tmp_path / "out" / ".partial").exists()

    whole = start("whole", concurrency)
    assert whole.wait(60) == 0
    for name in ("old", "new"):
        pieced = (tmp_path / "out" / "runs" / f"{name}.jsonl").read_bytes()
        assert pieced == (tmp_path / "whole" / "runs" / f"{name}.jsonl").read_bytes()


def test_killed_again_and_again_at_any_moment_it_still_ends_with_every_answer_once(tmp_path, start, calls, wait_for):
    (tmp_path / "paced").touch()
    rng = random.Random(5)
    kills = 8
    for _ in range(kills):
        before = len(calls())
        process = start(concurrency=2)
        wait_for(lambda before=before: len(calls()) > before)
        time.sleep(0.05 * rng.random())
        process.kill()
        process.wait()
    assert not (tmp_path / "out" / "runs").exists(), "over before the last kill: this showed nothing"
    assert start(concurrency=2).wait(60) == 0
    assert 40 <= len(calls()) <= 40 + 2 * kills
    for name in ("old", "new"):
        run = read_run(tmp_path / "out" / "runs" / f"{name}.jsonl")
        assert [(key, answer.hits[0].id) for key, answer in run.answers.items()] == [
            (f"q{n}", f"docs://text{n}") for n in range(20)
        ]


def test_a_call_that_died_of_the_signal_that_ends_us_all_is_not_taken_for_a_failure_of_the_system(start, kept, stuck):
    process, slow_call = stuck(1)
    os.kill(slow_call, signal.SIGTERM)
    time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 130
    assert kept() == [f"q{n}" for n in range(7)]


def test_a_second_interruption_does_no_harm(tmp_path, start, kept, stuck, gone):
    process, slow_call = stuck(1)
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    assert process.wait(20) in {130, 99, 1, -signal.SIGINT}
    assert gone(slow_call)
    assert kept() == [f"q{n}" for n in range(7)]


def test_without_files_an_interruption_is_a_keyboard_interrupt_and_ends_the_calls(
    tmp_path, start, calls, wait_for, gone
):
    (tmp_path / "slow").touch()
    process = start("memory")
    wait_for(lambda: "text7" in dict(calls()))
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 99
    assert gone(dict(calls())["text7"])
