"""How many calls a system had answered before each of ours: in the log of a run, and after an interruption from the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from cranfield.evaluation.options.blocks import CollectOptions
from cranfield.formats.runs.jsonl import log_path, read_run, write_run
from cranfield.model import Answer, CallLog, Hit, Outcome, Query, Run, TestSet
from cranfield.systems import collect_all
from cranfield.systems.collect.collection import collect
from cranfield.systems.collect.collector import this_machine

SET = TestSet("set", tuple(Query(f"q{n}", f"text {n}") for n in range(1, 5)), {"q1": {"d1": 1}})


class Counted:
    """A system that answers everything, and can break at a call."""

    order = "given"
    concurrency = 1
    config_digest = "sha256:counted"

    def __init__(self, name: str = "sut", breaks_at: int | None = None) -> None:
        self.name, self._breaks_at, self.seen = name, breaks_at, 0

    def public_config(self) -> dict[str, str]:
        return {}

    def search(self, query: Query, k: int) -> tuple[Answer, CallLog]:
        self.seen += 1
        if self.seen == self._breaks_at:
            raise ZeroDivisionError
        return Answer(Outcome.ANSWERED, (Hit("d1"),)), CallLog(10.0)


def before(run: Run) -> list[int | None]:
    return [log.calls_before for log in run.logs.values()]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (CollectOptions(), [0, 1, 2, 3]),
        (CollectOptions(warm_up=2), [2, 3, 4, 5]),
        (CollectOptions(warm_up=9), [4, 5, 6, 7]),  # there are four queries to warm up with
        (CollectOptions(repeats=3), [0, 1, 2, 3]),
    ],
)
def test_calls_are_numbered_for_each_system(options: CollectOptions, expected: list[int]) -> None:
    system = Counted()
    assert before(collect(SET, system, options=options)) == expected
    assert system.seen == 4 * options.repeats + min(options.warm_up, 4), "no query is sent for the sake of a warm-up"


def test_after_an_interruption_the_system_is_cold_again(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        collect_all(SET, [Counted(breaks_at=3)], out_dir=tmp_path)
    run = collect_all(SET, [Counted()], out_dir=tmp_path)["sut"]
    assert before(run) == [0, 1, 0, 1]


def test_number_and_machine_are_in_the_log_and_not_in_the_run(tmp_path: Path) -> None:
    run = collect_all(SET, [Counted()], out_dir=tmp_path)["sut"]
    path = tmp_path / "runs" / "sut.jsonl"
    read = read_run(path)
    assert (before(read), read.machine) == ([0, 1, 2, 3], this_machine())
    assert run.machine == this_machine()
    for word in ("calls_before", "machine"):
        assert word in log_path(path).read_text(encoding="utf-8")
        assert word not in path.read_text(encoding="utf-8")


def test_a_log_may_have_neither(tmp_path: Path) -> None:
    write_run(Run("old", {"q1": Answer(Outcome.EMPTY)}, logs={"q1": CallLog(1.0)}), tmp_path / "old.jsonl")
    read = read_run(tmp_path / "old.jsonl")
    assert (before(read), read.machine) == ([None], None)


def test_a_machine_is_known_by_a_digest() -> None:
    assert this_machine() == this_machine()
    assert len(this_machine()) == 12
    assert int(this_machine(), 16) >= 0
