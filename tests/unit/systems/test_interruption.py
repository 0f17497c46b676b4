"""A real process collects, is killed in the middle, and the same call goes on."""

import json
import os
import random
import signal
import time
from collections import Counter

import pytest

from cranfield.formats.runs.jsonl import read_run

DRIVER = """
import asyncio, os, sys
from pathlib import Path
from cranfield.config import system_config
from cranfield.model import Answer, CallLog, Hit, Outcome, Query, TestSet
from cranfield.evaluation.options.blocks import CollectOptions
from cranfield.systems import CommandSystem, Interrupted, collect_all
from cranfield.systems.collect.collection import collect

here, out, concurrency, names = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
testset = TestSet("t", tuple(Query(f"q{n}", f"text{n}") for n in range(12)))
config = system_config("sut", {
    "command": ["sh", "search.sh", "{query}"],
    "extract": {"regex": r"docs://\\S+"},
    "concurrency": concurrency,
    "timeout_s": 100.0,
})

class Asynchronous:
    name, order, config_digest = "new", "given", "sha256:new"

    def __init__(self):
        self.concurrency = concurrency

    def public_config(self):
        return {}

    async def search_async(self, query, k):
        return await self.answer(query.text), CallLog(1.0)

    async def answer(self, text):
        calls = os.open("calls.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(calls, f"new {text} {os.getpid()}\\n".encode())
        os.close(calls)
        if text == "text7" and os.path.exists("slow"):
            await asyncio.sleep(300)
        if os.path.exists("paced"):
            await asyncio.sleep(0.05)
        return Answer(Outcome.ANSWERED, (Hit("docs://" + text),))

made = {"old": lambda: CommandSystem("old", config, here), "new": Asynchronous}
systems = [made[name]() for name in names.split(",")]
options = CollectOptions(repeats=int(sys.argv[5]))
try:
    if out == "memory":
        collect(testset, systems[0])
    else:
        collect_all(testset, systems, out_dir=here / out, options=options)
except Interrupted as interrupted:
    print(interrupted)
    raise SystemExit(130)
except KeyboardInterrupt:
    raise SystemExit(99)
"""

SEARCH = """
echo "old $1 $$" >> calls.txt
[ "$1" = text7 ] && [ -e slow ] && exec sleep 300
[ -e paced ] && sleep 0.05
echo "docs://$1"
"""

EVERY_QUERY = [(name, f"text{n}") for name in ("old", "new") for n in range(12)]


@pytest.fixture
def start(tmp_path, script, forks):
    """Start the driver as a process of its own."""
    script(SEARCH, "search.sh")
    script(DRIVER, "driver.py")
    started = []

    def _start(out: str = "out", concurrency: int = 1, systems: str = "old,new", repeats: int = 1):
        arguments = str(tmp_path), out, str(concurrency), systems, str(repeats)
        started.append(forks.start(tmp_path / "driver.py", *arguments))
        return started[-1]

    yield _start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def calls(tmp_path):
    """System and query text of every call so far, with the id of the process that answers."""

    def _calls() -> list[tuple[tuple[str, str], int]]:
        path = tmp_path / "calls.txt"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [((name, text), int(pid)) for name, text, pid in (line.split() for line in lines)]

    return _calls


@pytest.fixture
def kept(tmp_path):
    """Systems and query ids in the journals."""

    def _kept() -> list[tuple[str, str]]:
        found = []
        for path in sorted((tmp_path / "out" / ".partial").glob("*.jsonl"), reverse=True):
            found += [(path.stem, json.loads(line)["query_id"]) for line in path.read_bytes().split(b"\n")[1:-1]]
        return found

    return _kept


@pytest.fixture
def stuck(tmp_path, start, calls, wait_for, kept):
    """Start a collection and wait until it hangs on one query, with all it can answer answered."""

    def _stuck(concurrency: int, systems: str = "old,new"):
        (tmp_path / "slow").touch()
        process = start(concurrency=concurrency, systems=systems)
        n_systems = len(systems.split(","))
        # One call at a time: all that comes after the slow one, of either system, waits for it.
        n_kept, n_stuck = (7 * n_systems, 1) if concurrency == 1 else (11 * n_systems, n_systems)

        def hanging() -> dict[tuple[str, str], int]:
            return {call: pid for call, pid in calls() if call[1] == "text7"}

        wait_for(lambda: len(kept()) == n_kept and len(hanging()) == n_stuck)
        (tmp_path / "slow").unlink()
        return process, hanging()

    return _stuck


@pytest.mark.parametrize(
    ("number", "concurrency"),
    [
        pytest.param(signal.SIGINT, 1, marks=pytest.mark.slow),
        (signal.SIGINT, 3),
        pytest.param(signal.SIGTERM, 1, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 3, marks=pytest.mark.slow),
        (signal.SIGKILL, 1),
        pytest.param(signal.SIGKILL, 3, marks=pytest.mark.slow),
    ],
)
def test_a_collection_that_was_killed_goes_on_without_asking_twice(
    tmp_path, start, calls, kept, stuck, gone, number, concurrency
):
    process, slow_calls = stuck(concurrency)
    process.send_signal(number)
    said, errors = process.communicate()
    assert all(gone(pid) for pid in slow_calls.values()), "a call outlived the collection"
    if number is signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        out = tmp_path / "out"
        assert (process.returncode, errors) == (130, "")
        n_kept = len(kept())
        assert said == f"interrupted: {n_kept} of 24 answers are kept in {out}; the same command resumes from there.\n"
    assert not {(name, "q7") for name, _ in slow_calls} & set(kept())
    assert not (tmp_path / "out" / "runs").exists()

    again = start(concurrency=concurrency)
    assert (again.wait(), again.communicate()) == (0, ("", ""))
    # only the calls that were under way are asked once more
    assert Counter(call for call, _ in calls()) == Counter([*EVERY_QUERY, *slow_calls])
    assert not (tmp_path / "out" / ".partial").exists()

    whole = start("whole", concurrency)
    assert whole.wait() == 0
    for name in ("old", "new"):
        pieced = (tmp_path / "out" / "runs" / f"{name}.jsonl").read_bytes()
        assert pieced == (tmp_path / "whole" / "runs" / f"{name}.jsonl").read_bytes()


@pytest.mark.parametrize("repeats", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_killed_again_and_again_at_any_moment_it_still_ends_with_every_answer_once(
    tmp_path, start, calls, wait_for, repeats
):
    (tmp_path / "paced").touch()
    rng = random.Random(5)
    kills = 5
    for _ in range(kills):
        before = len(calls())
        process = start(concurrency=2, repeats=repeats)
        wait_for(lambda before=before: len(calls()) > before)
        time.sleep(0.05 * rng.random())
        process.kill()
        process.wait()
    assert not (tmp_path / "out" / "runs").exists(), "over before the last kill: this showed nothing"
    assert start(concurrency=2, repeats=repeats).wait() == 0
    counts = Counter(call for call, _ in calls())
    assert set(counts) == set(EVERY_QUERY)
    assert min(counts.values()) == repeats
    assert 24 * repeats <= counts.total() <= 24 * repeats + 2 * kills
    for name in ("old", "new"):
        run = read_run(tmp_path / "out" / "runs" / f"{name}.jsonl")
        assert [(key, answer.hits[0].id) for key, answer in run.answers.items()] == [
            (f"q{n}", f"docs://text{n}") for n in range(12)
        ]
        assert {len(log.repeat_ms) for log in run.logs.values()} == {repeats - 1}


def test_a_call_that_died_of_the_signal_that_ends_us_all_is_not_taken_for_a_failure_of_the_system(start, kept, stuck):
    process, slow_calls = stuck(1, "old")
    os.kill(slow_calls["old", "text7"], signal.SIGTERM)
    time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 130
    assert kept() == [("old", f"q{n}") for n in range(7)]


@pytest.mark.parametrize("systems", ["old", "new"])
def test_a_second_interruption_does_no_harm(kept, stuck, gone, systems):
    process, slow_calls = stuck(1, systems)
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    assert process.wait() in {130, 99, 1, -signal.SIGINT}
    assert gone(slow_calls[systems, "text7"])
    assert kept() == [(systems, f"q{n}") for n in range(7)]


def test_without_files_an_interruption_is_a_keyboard_interrupt_and_ends_the_calls(
    tmp_path, start, calls, wait_for, gone
):
    (tmp_path / "slow").touch()
    process = start("memory")
    wait_for(lambda: ("old", "text7") in dict(calls()))
    process.send_signal(signal.SIGINT)
    assert process.wait() == 99
    assert gone(dict(calls())["old", "text7"])
