"""Answer each connection with a fork that runs one command line of cranfield or of pytest: see `client.py`.

`server.py ADDRESS` ends when its socket is removed, or after ten minutes without a request.
"""

import array
import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a process with threads must not fork

import cranfield
from cranfield.cli import main as command_line
from cranfield.config.load import load_config
from cranfield.reporting.renderers import html

IDLE_S = 600
LIBRARIES = (
    "scipy.special",
    "scipy.stats",
    "narwhals",
    "jinja2",
    "rich.progress",
    "yaml",
    "httpx2",
    "jmespath",
    "pytest",
)


def import_everything():
    for found in pkgutil.walk_packages(cranfield.__path__, "cranfield."):
        if found.name not in {"cranfield.__main__", "cranfield.pytest_plugin"}:
            try_import(found.name)
    for name in LIBRARIES:
        try_import(name)


def try_import(name):
    try:
        importlib.import_module(name)
    except ImportError as missing:  # an extra that is not installed: commands say so themselves
        print(f"{name}: {missing}")


def prepare(address):
    """Make what nearly every command makes when it starts: the models of the config, the template of the page."""
    with contextlib.suppress(ImportError):  # an extra that is not installed
        from drawing import draw_in_one_process

        draw_in_one_process(f"{address}.drawing")
        html._template()
    with tempfile.NamedTemporaryFile(suffix=".yaml", mode="w") as config:
        config.write('testset: t.yaml\nsystems:\n  a: {command: [a, "{query}"], extract: {json: hits}}\n')
        config.flush()
        load_config(config.name)


def receive(connection):
    """Arguments, folder, environment and standard streams of a request."""
    streams = array.array("i")
    _, ancillary, _, _ = connection.recvmsg(1, socket.CMSG_LEN(3 * streams.itemsize))
    streams.frombytes(ancillary[0][2][: 3 * streams.itemsize])
    with connection.makefile("rb") as stream:
        request = json.loads(stream.readline())
    return request, streams


def become(request, streams):
    """Take over the standard streams, folder, environment and arguments of the client."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    sys.argv = [request["program"], *request["arguments"]]


def wait_for_request(address):
    """Return in a child process for each request; in the server's own process never."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    listener.settimeout(1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    last = time.monotonic()
    while Path(address).exists() and time.monotonic() < last + IDLE_S:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        last = time.monotonic()
        if os.fork():
            connection.close()
            continue
        listener.close()
        connection.settimeout(None)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        request, streams = receive(connection)
        child = os.fork()
        if not child:
            connection.close()
            return become(request, streams)
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        os._exit(0)
    os._exit(0)


def run_pytest():
    """Run `python -m pytest`, but for the import of pytest and of cranfield."""
    import pytest

    sys.path.insert(0, str(Path.cwd()))
    sys.exit(pytest.console_main())


PROGRAMS = {"cranfield": command_line.main, "quick-pytest": run_pytest}


def run():
    """Run the command line, and end the process without taking the modules apart, which takes longer than most commands."""
    status = 0
    try:
        PROGRAMS[sys.argv[0]]()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else bool(ended.code)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        status = 120  # as the interpreter
    os._exit(status & 0xFF)


if __name__ == "__main__":
    import_everything()
    prepare(sys.argv[1])
    sys.path[0] = str(Path(sys.executable).parent)  # as where the console script is run
    gc.freeze()
    wait_for_request(sys.argv[1])
    run()
