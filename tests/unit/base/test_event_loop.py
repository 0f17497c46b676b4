"""The event loop that other threads wait for."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import textwrap

import pytest

from cranfield.base.concurrency.loop import CallInterruptedError, event_loop


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), KeyboardInterrupt()])
def test_what_a_coroutine_raises_is_raised_where_it_is_waited_for_and_the_loop_goes_on(error):
    async def fail():
        raise error

    async def answer():
        return 7

    with pytest.raises(type(error)):
        event_loop().run(fail())
    assert event_loop().run(answer()) == 7


def test_a_cancelled_coroutine_was_interrupted():
    async def cancel():
        import asyncio

        asyncio.current_task().cancel()
        await asyncio.sleep(60)

    with pytest.raises(CallInterruptedError):
        event_loop().run(cancel())


def test_exit_codes_of_programs_are_seen_where_the_end_of_children_was_ignored(tmp_path):
    """As under a launcher that ignores SIGCHLD, which a new program inherits."""
    import subprocess

    code = (
        "from cranfield import CommandSystem\n"
        "from cranfield.model import Query\n"
        "system = CommandSystem.of('x', command=['echo', 'd:1 {query}'], extract={'regex': 'd:[0-9]'})\n"
        "print(system.search(Query('q', 'q'), 1)[0].outcome.value)\n"
    )
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    argv = [sys.executable, "-c", ignoring, sys.executable, "-c", code]
    printed = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, check=True, env=os.environ).stdout
    assert printed.strip() == "answered"
    assert signal.getsignal(signal.SIGCHLD) is not signal.SIG_IGN


def test_a_look_up_that_hangs_delays_neither_the_interruption_nor_the_end_of_the_process():
    source = """
        import asyncio, socket, threading
        from cranfield.base.concurrency.loop import event_loop

        began = threading.Event()
        def hang(*_, **__):
            began.set()
            threading.Event().wait(60)
        socket.getaddrinfo = hang

        async def look_up():
            await asyncio.get_running_loop().getaddrinfo("search.example", 80)

        async def look_up_in_time():
            async with asyncio.timeout(0.01):
                await look_up()

        try:
            event_loop().run(look_up_in_time())
        except TimeoutError:
            print(began.is_set(), flush=True)
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True, timeout=20, check=False
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_failed_look_up_raises_its_error():
    async def look_up():
        return await asyncio.get_running_loop().getaddrinfo("256.256.256.256", 80, flags=socket.AI_NUMERICHOST)

    with pytest.raises(socket.gaierror):
        event_loop().run(look_up())
