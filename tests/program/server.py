"""Answer each connection with a fork that runs one command line of cranfield, of pytest or of Python: see `client.py`.

`server.py ADDRESS` ends when its socket is removed, or after ten minutes without a request.
"""

import array
import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import io
import marshal
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a process with threads must not fork

import typer.main
from pydantic import BaseModel

import cranfield
from cranfield.cli import main as command_line
from cranfield.evaluation.history import HistoryPoint
from cranfield.evaluation.latency import CallsResult
from cranfield.evaluation.result import ComparisonResult, EvaluationResult
from cranfield.gate.result import GateReport
from cranfield.model.results import adapter_of

IDLE_S = 600
LEFT_OUT = ("cranfield.__main__", "cranfield.pytest_plugin", "cranfield.scale.")
"""Modules that are not imported: a fork copies the map of all memory, and those of `scale` bring 70 MB."""
HUGE_PAGE = 2 << 20
MADV_COLLAPSE = 25
LIBRARIES = (
    "scipy.special",
    "scipy.stats",
    "narwhals",
    "jinja2",
    "rich.progress",
    "yaml",
    "httpx2",
    "jmespath",
    "mcp.server.mcpserver",
    "pytest",
)

FILES = {
    "set.yaml": "cranfield_testset: 1\nname: t\nqueries:\n"
    + "".join(
        f"  - {{id: q{n}, text: red shoe {n}, strata: {{kind: a}}, judgments: {{a: 1, b: 2}}}}\n" for n in range(9)
    ),
    "t.qrels": "".join(f"q{n} 0 a 1\n" for n in range(9)),
    "a.run": "".join(f"q{n} Q0 {'abc'[n % 3]} 1 {n} x\n" for n in range(9)),
    "b.run": "".join(f"q{n} Q0 b 1 {n} x\n" for n in range(9)),
    "cranfield.yaml": "testset: set.yaml\nprimary: RR\n"
    "systems: {old: {run: a.run}, new: {run: b.run}, x: {command: [sh, s.sh, '{query}'], extract: {json: hits}}}\n"
    "gate: {system: new, rules: [{floor: {measure: RR, at_least: 0.1}}]}\n",
}
FIRST_CALLS = (
    "--help",
    "evaluate set.yaml a.run",
    "compare set.yaml a.run b.run --html r.html",
    "compare set.yaml a.run b.run --format markdown",
    "compare set.yaml a.run b.run a.run --format json",
    "testset validate set.yaml",
    "system list",
    "measures",
    "trec_eval t.qrels a.run",
)
"""Commands of which none starts a thread: a process with threads must not fork."""


def import_everything():
    for found in pkgutil.walk_packages(cranfield.__path__, "cranfield."):
        if not found.name.startswith(LEFT_OUT):
            try_import(found.name)
    for name in LIBRARIES:
        try_import(name)


def try_import(name):
    try:
        importlib.import_module(name)
    except ImportError as missing:  # an extra that is not installed: commands say so themselves
        print(f"{name}: {missing}")


def prepare(address):
    """Make what commands make at their first call: models of the config, options, templates, tables of functions."""
    with contextlib.suppress(ImportError):  # an extra that is not installed
        from drawing import draw_in_one_process

        draw_in_one_process(f"{address}.drawing")
    for model in models(BaseModel):
        model.model_rebuild(raise_errors=False)
    typer.main.get_command = functools.cache(typer.main.get_command)
    typer.main.get_command(command_line.command_line())  # that of completions, with every command
    for kind in (ComparisonResult, EvaluationResult, CallsResult, HistoryPoint, GateReport):
        adapter_of(kind)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, text in FILES.items():
            Path(name).write_text(text, encoding="utf-8")
        for words in FIRST_CALLS:
            printed = io.TextIOWrapper(io.BytesIO(), "utf-8")
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                status = command_line.run_command_line(words.split())
            if status or threading.active_count() > 1:
                printed.seek(0)
                print(f"cranfield {words}: {status}, {threading.enumerate()}", printed.read(), sep="\n")


def use_huge_pages():
    """Put the memory into pages of 2 MB, where the kernel can: a fork copies one entry of its map for each page."""
    if sys.platform != "linux":
        return
    advise = ctypes.CDLL(None).madvise
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, rights, _, _, _, *name = line.split(maxsplit=5)
        if rights.startswith("rw") and name in ([], ["[heap]"]):
            start, end = (int(number, 16) for number in place.split("-"))
            start = -(-start // HUGE_PAGE) * HUGE_PAGE
            if (size := end // HUGE_PAGE * HUGE_PAGE - start) > 0:
                advise(ctypes.c_void_p(start), ctypes.c_size_t(size), MADV_COLLAPSE)  # what fails stays as it is


def models(kind):
    """Ours, which are built on their first use."""
    for model in kind.__subclasses__():
        if model.__module__.startswith("cranfield."):
            yield model
        yield from models(model)


def receive(connection):
    """Arguments, folder, environment and standard streams of a request."""
    streams = array.array("i")
    _, ancillary, _, _ = connection.recvmsg(1, socket.CMSG_LEN(3 * streams.itemsize))
    streams.frombytes(ancillary[0][2][: 3 * streams.itemsize])
    with connection.makefile("rb") as stream:
        request = stream.read(int.from_bytes(stream.read(4), sys.byteorder))
    return dict(zip(("program", "arguments", "folder", "environment"), marshal.loads(request), strict=True)), streams


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
    ended, waking = socket.socketpair()
    for one in (ended, waking):
        one.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking.fileno(), warn_on_full_buffer=False)
    running, last = {}, time.monotonic()
    while Path(address).exists() and (running or time.monotonic() < last + IDLE_S):
        ready, _, _ = select.select([listener, ended], [], [], 1)
        if ended in ready:
            ended.recv(4096)
            answer_ended(running)
        if listener not in ready:
            continue
        last = time.monotonic()
        connection, _ = listener.accept()
        if child := os.fork():
            running[child] = connection
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for one in (listener, ended, waking, *running.values()):
            one.close()
        request, streams = receive(connection)
        connection.close()
        return become(request, streams)
    os._exit(0)


def answer_ended(running):
    """Send the exit codes of the children that have ended; the process that draws is none of them."""
    while running and (child := os.waitpid(-1, os.WNOHANG))[0]:
        if connection := running.pop(child[0], None):
            with connection, contextlib.suppress(OSError):  # the client may be gone
                connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(child[1]))


def run_pytest():
    """Run `python -m pytest`, but for the import of pytest and of cranfield."""
    import pytest

    sys.path.insert(0, str(Path.cwd()))
    sys.exit(pytest.console_main())


def run_script():
    """Run `python SCRIPT ARGUMENT ...`, but for the import of the libraries."""
    sys.argv.pop(0)
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


PROGRAMS = {"cranfield": command_line.main, "quick-pytest": run_pytest, "quick-python": run_script}


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
    use_huge_pages()
    wait_for_request(sys.argv[1])
    run()
