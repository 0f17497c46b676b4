"""Tests of generated code: in bubblewrap, or not at all."""

from __future__ import annotations

import os
import shutil

import pytest

from cranfield.base.concurrency.loop import event_loop
from cranfield.benefit.codecheck.python.checker import PythonChecker
from cranfield.benefit.codecheck.python.sandbox import find_python
from cranfield.benefit.codecheck.report import CheckReport, CheckState, CodeCheck, Target

HAS_SANDBOX = bool(shutil.which("bwrap"))
FIND_PYTHON = find_python


def check(code: str, tests: str, *, sandbox: str = "") -> CheckReport:
    target = Target("python", "linux", "3.11")
    return event_loop().run(PythonChecker(sandbox=sandbox).check({"main.py": code}, target, tests))


@pytest.mark.parametrize(
    ("code", "tests", "expected"),
    [
        ("def f(): return 1\n", "from main import f\nassert f() == 1\n", ""),
        (
            "def f(): return 1\n",
            "import unittest, main\nclass T(unittest.TestCase):\n    def test(self): main.f()\nunittest.main()\n",
            "",
        ),
        ("def f(): return 2\n", "from main import f\nassert f() == 1\n", "AssertionError"),
        ("import sys\nsys.exit(0)\n", "from main import f\n", "before its tests"),
        ("import os\nos._exit(0)\n", "from main import f\n", "before its tests"),
        (
            "import os, sys\nprint(chr(10), *sys.orig_argv, open('/proc/self/cmdline').read(), sep=chr(10), flush=True)\nprint(sys.orig_argv[-1], flush=True)\nos._exit(0)\n",
            "import main\n",
            "before its tests",
        ),
        ("while True: print('x' * 1_000_000)\n", "import main\n", "wrote too much"),
    ],
)
def test_tests_decide(code, tests, expected):
    report = check(code, tests)
    reasons = [finding.message for finding in report.findings if finding.check is CodeCheck.TESTS]
    decided = CheckState.FAILED if expected else CheckState.PASSED
    assert report.states[CodeCheck.TESTS] is (decided if HAS_SANDBOX else CheckState.MISSING), report
    assert all(expected in reason for reason in reasons)


HOSTILE = """
import os, socket, subprocess

def outcome(function, *arguments):
    try:
        function(*arguments)
    except (OSError, MemoryError) as error:
        return type(error).__name__
    return "done"

def fork():
    for _ in range(100):
        subprocess.Popen(["sleep", "5"])

found = [
    outcome(socket.create_connection, ("1.1.1.1", 80), 1),
    outcome(open, "/code/new", "w"),
    outcome(open, "/etc/passwd"),
    outcome(bytearray, 4 << 30),
    sorted(os.environ),
]

def fill():
    for number in range(9):
        with open(str(number), "wb") as file:
            file.write(b"x" * (60 << 20))

found.append(outcome(fill))
"""


@pytest.mark.slow  # starts a hundred processes
def test_code_reaches_no_network_no_files_no_variables_and_few_processes():
    tests = "import main\nraise SystemExit(repr(main.found))\n"
    report = check(HOSTILE, tests)
    assert (report.states[CodeCheck.TESTS] is CheckState.FAILED) is HAS_SANDBOX
    message = "".join(row.message for row in report.findings if row.check is CodeCheck.TESTS)
    assert not HAS_SANDBOX or "['OSError', 'OSError', 'FileNotFoundError', 'MemoryError', [" in message
    assert (
        not HAS_SANDBOX
        or "['HOME', 'LANG', 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'PATH', 'PWD'], 'OSError'" in message
    )
    report = check(HOSTILE, "import main, time\nmain.fork()\ntime.sleep(5)\n")
    message = "".join(row.message for row in report.findings if row.check is CodeCheck.TESTS)
    ended = (
        "more than 64 processes" if os.getuid() == 0 else "BlockingIOError"
    )  # root is exempt from the system's limit
    assert not HAS_SANDBOX or ended in message


@pytest.mark.skipif(not HAS_SANDBOX, reason="bubblewrap is not installed")
@pytest.mark.slow  # three times in the sandbox, with type checks of two versions
def test_tests_for_a_later_python_decide_what_this_one_can_run(monkeypatch):
    monkeypatch.setattr("cranfield.benefit.codecheck.python.checker.find_python", lambda version: FIND_PYTHON("3.11"))
    target = Target("python", "linux", "3.15")

    def state(code: str) -> CheckState:
        checked = PythonChecker().check({"main.py": code}, target, "from main import f\nassert f() == 1\n")
        return event_loop().run(checked).states[CodeCheck.TESTS]

    assert state("def f(): return 1\n") is CheckState.PASSED
    assert state("pass\n") is CheckState.FAILED
    assert state("from itertools import no_such\nfrom compression import zstd\n") is CheckState.MISSING


def test_without_a_sandbox_that_works_tests_are_missing(tmp_path):
    refused = tmp_path / "bwrap"
    refused.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    refused.chmod(0o755)
    report = check("x = 1\n", "import main\n", sandbox=str(refused))
    assert report.states[CodeCheck.TESTS] is CheckState.MISSING
    assert "No permissions to create new namespace" in report.notes[0]
    older = Target("python", "linux", "3.10")
    report = event_loop().run(PythonChecker(sandbox=str(refused)).check({"main.py": "x = 1\n"}, older, "import main\n"))
    assert not [note for note in report.notes if "tests ran" in note]
    assert check("x =\n", "import main\n").states[CodeCheck.TESTS] is CheckState.MISSING
