"""A share of what `make fuzz` does: each target of tests/fuzz on a few random inputs, the same ones every time."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "fuzz"
TARGETS = sorted(
    path.stem for path in FOLDER.glob("*.py") if re.search("^from runner import", path.read_text("utf-8"), re.MULTILINE)
)


@pytest.fixture
def target(request, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module(request.param), importlib.import_module("runner").fuzz


@pytest.mark.parametrize("target", TARGETS, indirect=True)
def test_a_few_random_inputs_are_read_or_refused(target):
    module, fuzz = target
    findings = fuzz(module.make, module.check, inputs=15)
    assert findings.found == []
    assert findings.n_inputs == 15


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, indirect=True)
def test_random_inputs_are_read_or_refused(target):
    module, fuzz = target
    assert fuzz(module.make, module.check, inputs=1_000_000, first=1000, seconds=5).found == []


def test_the_runner_reports_an_exception_a_fault_and_a_slow_input(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    runner = importlib.import_module("runner")
    monkeypatch.setattr(runner, "LIMIT_S", 0.01)

    def check(number):
        if number == 1:
            raise KeyError(number)
        while number == 2:
            pass
        return "wrong" if number == 3 else None

    numbers = iter(range(5))
    findings = runner.fuzz(lambda _: next(numbers), check, inputs=5, seed=7)
    assert [found.splitlines()[0] for found in findings.found] == [
        "input 1 of seed 7: Traceback (most recent call last):",
        "input 2 of seed 7: Traceback (most recent call last):",
        "input 3 of seed 7: wrong",
    ]
    assert "KeyError: 1" in findings.found[0]
    assert "TooSlow: more than 0.01 s of CPU time" in findings.found[1]
