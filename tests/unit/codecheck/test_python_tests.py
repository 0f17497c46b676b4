"""Tests of generated code: in bubblewrap, or not at all."""

from __future__ import annotations

import os
import shutil

import pytest

from cranfield.codecheck.python.checker import PythonChecker
from cranfield.codecheck.report import Check, CheckReport, CheckState, Target
from cranfield.concurrency.loop import event_loop

HAS_SANDBOX = bool(shutil.which("bwrap"))


def check(code: str, tests: str, *, sandbox: str = "", **packages: str) -> CheckReport:
    target = Target("python", "linux", "3.11", packages)
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
    ],
)
def test_tests_decide(code, tests, expected):
    report = check(code, tests)
    reasons = [finding.message for finding in report.findings if finding.check is Check.TESTS]
    decided = CheckState.FAILED if expected else CheckState.PASSED
    assert report.states[Check.TESTS] is (decided if HAS_SANDBOX else CheckState.MISSING), report
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
    outcome(fork),
    sorted(os.environ),
]
"""


@pytest.mark.slow  # starts a hundred processes
def test_code_reaches_no_network_no_files_no_variables_and_few_processes():
    tests = "import main\nraise SystemExit(repr(main.found))\n"
    report = check(HOSTILE, tests)
    assert (report.states[Check.TESTS] is CheckState.FAILED) is HAS_SANDBOX
    message = "".join(row.message for row in report.findings if row.check is Check.TESTS)
    forked = "done" if os.getuid() == 0 else "BlockingIOError"  # root is exempt from the limit of processes
    assert not HAS_SANDBOX or f"['OSError', 'OSError', 'FileNotFoundError', 'MemoryError', '{forked}'" in message
    assert not HAS_SANDBOX or "['HOME', 'LANG', 'PATH', 'PWD']" in message


def test_without_a_sandbox_that_works_tests_are_missing(tmp_path):
    refused = tmp_path / "bwrap"
    refused.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    refused.chmod(0o755)
    report = check("x = 1\n", "import main\n", sandbox=str(refused))
    assert report.states[Check.TESTS] is CheckState.MISSING
    assert "No permissions to create new namespace" in report.notes[0]
    assert (
        check("x = 1\n", "import main\n", sandbox=str(refused), requests="2").states[Check.TESTS] is CheckState.MISSING
    )
    assert check("x =\n", "import main\n").states[Check.TESTS] is CheckState.MISSING
