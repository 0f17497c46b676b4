"""Child processes: bounded in time and output, ended with their group, and with us."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from cranfield.base.concurrency import child_process as child_processes
from cranfield.base.concurrency.child_process import (
    ChildProcess,
    TooMuchOutputError,
    child_process,
    end_all,
    orphan_guard,
)
from cranfield.base.concurrency.loop import CallInterruptedError, event_loop
from cranfield.base.concurrency.orphans import MARK_NAME

PARENT = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", {child!r}])
print(os.getpid(), child.pid, flush=True)
{then}
"""
SLEEP = "import time; time.sleep(300)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)"


@dataclass
class Finished:
    """What became of a program: its exit status, or the exception that ended it."""

    status: int | None = None
    error: type[BaseException] | None = None
    stdout: bytes = b""


def run(source, tmp_path, *, timeout_s=20.0, cancelled_after_s=None, **options) -> Finished:
    argv = [sys.executable, "-I", "-S", "-c", textwrap.dedent(source)]
    finished = Finished()

    async def follow():
        if cancelled_after_s is not None:
            asyncio.get_running_loop().call_later(cancelled_after_s, asyncio.current_task().cancel)
        async with child_process(argv, cwd=tmp_path, env=os.environ, **options) as child:
            try:
                async with asyncio.timeout(timeout_s):
                    finished.status = await child.run()
            finally:
                finished.stdout = bytes(child.stdout)

    try:
        event_loop().run(follow())
    except (TimeoutError, TooMuchOutputError, CallInterruptedError) as error:
        finished.error = type(error)
    return finished


def pids(finished):
    return [int(word) for word in finished.stdout.split()]


@pytest.mark.parametrize("child", [SLEEP, STUBBORN])
def test_a_timeout_kills_grandchildren_too(tmp_path, gone, child):
    began = time.monotonic()
    finished = run(PARENT.format(child=child, then="time.sleep(300)"), tmp_path, timeout_s=0.7)
    assert finished.error is TimeoutError
    assert time.monotonic() - began < 4
    assert all(gone(pid) for pid in pids(finished))
    assert len(pids(finished)) == 2


def test_a_parent_that_ignores_the_polite_signal_is_killed(tmp_path, gone):
    source = (
        "import signal, os, time; signal.signal(15, signal.SIG_IGN); print(os.getpid(), flush=True); time.sleep(300)"
    )
    finished = run(source, tmp_path, timeout_s=0.5)
    assert finished.error is TimeoutError
    assert gone(pids(finished)[0])


def test_what_a_program_leaves_behind_is_ended_with_it_and_not_waited_for(tmp_path, gone, monkeypatch):
    monkeypatch.setattr("cranfield.base.concurrency.child_process._LINGER_S", 0.1)
    began = time.monotonic()
    finished = run(PARENT.format(child=SLEEP, then=""), tmp_path)
    assert finished.status == 0
    assert time.monotonic() - began < 6
    assert gone(pids(finished)[1])


def test_too_much_output_ends_the_program(tmp_path, gone):
    source = "import os\nprint(os.getpid(), flush=True)\nwhile True: print('x' * 1000)"
    finished = run(source, tmp_path, max_output_bytes=100_000)
    assert finished.error is TooMuchOutputError
    assert 100_000 < len(finished.stdout) < 300_000
    assert gone(int(finished.stdout.split()[0]))


def test_output_up_to_the_limit_is_kept_whole(tmp_path):
    finished = run("print('x' * 99_999)", tmp_path, max_output_bytes=100_000)
    assert (finished.status, len(finished.stdout)) == (0, 100_000)


def test_a_flood_on_stderr_holds_nothing_up(tmp_path):
    finished = run("import sys; sys.stderr.write('e' * 5_000_000); print('done')", tmp_path)
    assert (finished.status, finished.stdout) == (0, b"done\n")


def test_an_interruption_ends_the_program_and_its_children(tmp_path, gone):
    finished = run(PARENT.format(child=SLEEP, then="time.sleep(300)"), tmp_path, cancelled_after_s=0.5)
    assert finished.error is CallInterruptedError
    assert len(pids(finished)) == 2
    assert all(gone(pid) for pid in pids(finished))


def test_the_last_program_may_end_before_all_are_ended(monkeypatch):
    monkeypatch.setattr(child_processes, "_running", set())
    event_loop().run(end_all())


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
        import os, sys
        from pathlib import Path
        from cranfield.base.concurrency.child_process import child_process
        from cranfield.base.concurrency.loop import event_loop
        source = "import os, time; open('pid', 'w').write(str(os.getpid()) + ' '); time.sleep(300)"
        async def run():
            argv = [sys.executable, "-I", "-S", "-c", source]
            async with child_process(argv, cwd=Path({str(tmp_path)!r}), env=os.environ) as child:
                Path({str(tmp_path)!r}, "started").touch()
                await child.run()
        event_loop().run(run())
        """),
        encoding="utf-8",
    )
    with subprocess.Popen([sys.executable, str(us)], stderr=subprocess.DEVNULL) as process:
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith(" "))
        wait_for((tmp_path / "started").exists)  # the guard has the process group
        process.send_signal(number)
    assert process.returncode != 0
    assert gone(int((tmp_path / "pid").read_text()))


DAEMON = """
import os, subprocess, sys, time
daemon = ("import os, sys, time\\n"
    "if os.fork(): os._exit(0)\\n"
    "os.setsid()\\n"
    "if os.fork(): os._exit(0)\\n"
    "print(os.getpid(), flush=True)\\n"
    "os.close(1); os.close(2)\\n"
    "time.sleep(300)")
subprocess.run([sys.executable, "-I", "-S", "-c", daemon])
{then}
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the environment of processes is shown by Linux only")
class TestProcessesThatLeaveTheirGroup:
    def test_that_of_a_program_that_is_cut_short_is_ended_with_it(self, tmp_path, gone):
        finished = run(DAEMON.format(then=SLEEP), tmp_path, timeout_s=0.5)
        assert (finished.error, len(pids(finished))) == (TimeoutError, 1)
        assert gone(*pids(finished))

    def test_that_of_a_program_with_input_is_ended_with_it(self, tmp_path, gone):
        async def converse():
            argv = [sys.executable, "-I", "-S", "-c", DAEMON.format(then="input()")]
            child = await ChildProcess.start(argv, cwd=tmp_path, env=os.environ, stdin=True)
            line = await child.read_line()
            await child.end()
            return int(line)

        assert gone(event_loop().run(converse()))

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, None])
    def test_that_of_a_command_is_ended_with_us_however_we_end(self, tmp_path, gone, wait_for, number):
        us = f"""
            import asyncio, os, sys
            from pathlib import Path
            from cranfield.base.concurrency.child_process import child_process
            from cranfield.base.concurrency.loop import event_loop

            async def run():
                async with child_process([sys.executable, "-I", "-S", "-c", {DAEMON.format(then="")!r}],
                                         cwd=Path("."), env=os.environ) as child:
                    await child.run()
                    print(child.stdout.decode(), flush=True)

            event_loop().run(run())
            if {number is not None}:
                input()
            """
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(us)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        daemon = int(process.stdout.readline())
        if number is not None:
            process.send_signal(number)
        process.communicate()
        wait_for(lambda: gone(daemon))

    def test_a_mark_names_every_process_that_it_is_under(self, monkeypatch):
        monkeypatch.setenv(MARK_NAME, "outer outer.1 ")
        mark, value = orphan_guard().mark()
        assert value == f"outer outer.1 {mark.rpartition('.')[0]} {mark} "
