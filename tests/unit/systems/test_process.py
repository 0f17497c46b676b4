import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from cranfield.systems.calls.process import End, run_process

PARENT = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", {child!r}])
print(os.getpid(), child.pid, flush=True)
{then}
"""
SLEEP = "import time; time.sleep(300)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)"


def run(source, tmp_path, *, timeout_s=20.0, interrupted=None, **options):
    argv = [sys.executable, "-I", "-S", "-c", textwrap.dedent(source)]
    event = interrupted or threading.Event()
    return run_process(argv, cwd=tmp_path, env=os.environ, timeout_s=timeout_s, interrupted=event, **options)


def pids(finished):
    return [int(word) for word in finished.stdout.split()]


@pytest.mark.parametrize("child", [SLEEP, STUBBORN])
def test_a_timeout_kills_grandchildren_too(tmp_path, gone, child):
    began = time.monotonic()
    finished = run(PARENT.format(child=child, then="time.sleep(300)"), tmp_path, timeout_s=0.7)
    assert finished.end is End.TIMEOUT
    assert time.monotonic() - began < 4
    assert all(gone(pid) for pid in pids(finished))
    assert len(pids(finished)) == 2


def test_a_parent_that_ignores_the_polite_signal_is_killed(tmp_path, gone):
    source = (
        "import signal, os, time; signal.signal(15, signal.SIG_IGN); print(os.getpid(), flush=True); time.sleep(300)"
    )
    finished = run(source, tmp_path, timeout_s=0.5)
    assert finished.end is End.TIMEOUT
    assert gone(pids(finished)[0])


def test_what_a_program_leaves_behind_is_ended_with_it_and_not_waited_for(tmp_path, gone):
    began = time.monotonic()
    finished = run(PARENT.format(child=SLEEP, then=""), tmp_path)
    assert (finished.end, finished.status) == (End.EXIT, 0)
    assert time.monotonic() - began < 6
    assert gone(pids(finished)[1])


def test_too_much_output_ends_the_program(tmp_path, gone):
    source = "import os\nprint(os.getpid(), flush=True)\nwhile True: print('x' * 1000)"
    finished = run(source, tmp_path, max_output_bytes=100_000)
    assert finished.end is End.TOO_MUCH_OUTPUT
    assert 100_000 < len(finished.stdout) < 300_000
    assert gone(int(finished.stdout.split()[0]))


def test_output_up_to_the_limit_is_kept_whole(tmp_path):
    finished = run("print('x' * 99_999)", tmp_path, max_output_bytes=100_000)
    assert (finished.end, len(finished.stdout)) == (End.EXIT, 100_000)


def test_a_flood_on_stderr_holds_nothing_up(tmp_path):
    finished = run("import sys; sys.stderr.write('e' * 5_000_000); print('done')", tmp_path)
    assert (finished.end, finished.stdout) == (End.EXIT, b"done\n")


def test_an_interruption_ends_the_program_and_its_children(tmp_path, gone):
    interrupted = threading.Event()
    threading.Timer(0.5, interrupted.set).start()
    finished = run(PARENT.format(child=SLEEP, then="time.sleep(300)"), tmp_path, interrupted=interrupted)
    assert finished.end is End.INTERRUPTED
    assert len(pids(finished)) == 2
    assert all(gone(pid) for pid in pids(finished))


def test_a_program_runs_in_a_session_of_its_own_so_that_ctrl_c_reaches_only_us(tmp_path):
    finished = run("import os; print(os.getpid(), os.getpgid(0), os.getsid(0))", tmp_path)
    pid, group, session = pids(finished)
    assert pid == group == session != os.getsid(0)


def test_nothing_of_ours_is_open_in_the_program(tmp_path):
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no /proc to count open files in")
    finished = run("import os; print(*sorted(os.listdir('/proc/self/fd'), key=int))", tmp_path)
    assert pids(finished)[:3] == [0, 1, 2]
    assert len(pids(finished)) == 4  # and the listing itself


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_program_outlives_us_however_we_are_killed(tmp_path, gone, wait_for, number):
    us = tmp_path / "us.py"
    us.write_text(
        textwrap.dedent(f"""
        import os, sys, threading
        from pathlib import Path
        from cranfield.systems.calls.process import run_process
        child = "import os, time; time.sleep(0.5); open('pid', 'w').write(str(os.getpid()) + ' '); time.sleep(300)"
        run_process([sys.executable, "-I", "-S", "-c", child], cwd=Path({str(tmp_path)!r}), env=os.environ,
                    timeout_s=200, interrupted=threading.Event())
        """),
        encoding="utf-8",
    )
    with subprocess.Popen([sys.executable, str(us)], stderr=subprocess.DEVNULL) as process:
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith(" "))
        process.send_signal(number)
    assert process.returncode != 0
    assert gone(int((tmp_path / "pid").read_text()))
