"""How a command ends: nothing but a verdict gives 1, nothing but a report 0, and no error shows a traceback."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from cranfield.base.concurrency.interrupts import INTERRUPTED, interrupts_prevail, sigterm_interrupts
from cranfield.base.errors import InternalError, PreflightError, UsageError
from cranfield.cli.ending import StandardStream, finish_output, handled, keep_interrupts, run_program

Call = Callable[..., subprocess.CompletedProcess[str]]


class NoTextError(Exception):
    """What a user's class may do."""

    def __str__(self) -> str:
        raise SystemExit(0)


class OddError(BaseException):
    """No exception that `except Exception` knows."""


ENDS: list[tuple[BaseException, int, str]] = [
    (typer.Exit(0), 0, ""),
    (typer.Exit(1), 1, ""),
    (UsageError("no such thing"), 2, "error: no such thing."),
    (typer.BadParameter("no number"), 2, "no number"),
    (PreflightError("no index"), 3, "error: no index."),
    (InternalError("impossible"), 70, "error: impossible."),
    (KeyboardInterrupt(), 130, "interrupted"),
    (typer.Abort(), 130, "interrupted"),
    (SystemExit(0), 70, "internal error: SystemExit: 0"),
    (SystemExit(1), 70, "internal error: SystemExit: 1"),
    (SystemExit("passed"), 70, "internal error: SystemExit: passed"),
    (GeneratorExit(), 70, "internal error: GeneratorExit"),
    (OddError("one\ntwo"), 70, "internal error: OddError: one two."),
    (NoTextError(), 70, "internal error: NoTextError"),
    (RecursionError("too deep"), 70, "internal error: RecursionError: too deep"),
    (MemoryError(), 70, "internal error: MemoryError."),
    (ZeroDivisionError("x"), 70, "run `cranfield --debug ...` to see where"),
    (BrokenPipeError(errno.EPIPE, "Broken pipe"), 2, "error: the operating system reported an error: broken pipe."),
    (OSError(errno.ENAMETOOLONG, "File name too long", "a" * 300), 2, f"error: {'a' * 300}: file name too long."),
    (OSError(errno.ENOSPC, "No space left on device"), 2, "no space left on device."),
    (PermissionError(errno.EACCES, "Permission denied", b"x"), 2, "error: x: permission denied."),
]


def program_of(end: BaseException, wrap: Callable[[Callable[[], None]], Callable[[], None]]) -> typer.Typer:
    def command() -> None:
        raise end

    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(wrap(command))
    return app


@pytest.fixture(autouse=True)
def forgotten_interrupts() -> Iterator[None]:
    """No test leaves one to the next."""
    yield
    INTERRUPTED.clear()


@pytest.mark.parametrize(("end", "status", "text"), ENDS, ids=lambda value: type(value).__name__)
def test_every_exception_of_a_command_has_an_exit_code_and_no_traceback(
    end: BaseException, status: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_program(lambda: program_of(end, handled), []) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert text in err
    assert "Traceback" not in err


def test_so_has_one_of_the_options_or_of_the_imports(capsys: pytest.CaptureFixture[str]) -> None:
    """Outside of a command: `SystemExit` of an import, and errors of typer's own."""

    def no_module() -> Callable[..., object]:
        raise SystemExit(0)

    assert run_program(no_module, []) == 70
    assert run_program(lambda: program_of(BrokenPipeError(errno.EPIPE, "gone"), lambda command: command), []) == 70
    assert "Traceback" not in capsys.readouterr().err


class Interrupted:
    """Ctrl-C comes while its destructor runs, where Python ignores it."""

    def __del__(self) -> None:
        raise KeyboardInterrupt


class Broken:
    """Its destructor fails."""

    def __del__(self) -> None:
        raise ValueError


def test_an_interrupt_in_a_destructor_ends_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    shown: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda ignored: shown.append(ignored.exc_type))
    keep_interrupts()
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, signal.default_int_handler))

    def command() -> None:
        Broken()
        Interrupted()
        time.sleep(5)

    assert run_program(lambda: program_of(UsageError("the command went on"), lambda _: handled(command)), []) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert shown == [ValueError]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupt_that_a_library_made_another_error_of(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> None:
        with sigterm_interrupts():
            try:
                os.kill(os.getpid(), number)
                time.sleep(5)
            except KeyboardInterrupt:
                raise ValueError("a validator could not be built") from None

    assert run_program(lambda: program_of(UsageError("the command went on"), lambda _: handled(command)), []) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}


HOSTILE = {"300 characters": "a" * 300, "no UTF-8": "b\udcff"}
CALLS = [
    ["gate", "{}"],
    ["gate", "config.yaml", "--from", "{}"],
    ["gate", "config.yaml", "--run", "{}"],
    ["gate", "config.yaml", "--out", "{}/x/" + "y" * 300],
    ["gate", "config.yaml", "--baseline-ref", "{}"],
    ["run", "{}"],
    ["run", "config.yaml", "--out", "{}/x/" + "y" * 300],
    ["evaluate", "{}", "a.run"],
    ["evaluate", "qrels", "{}"],
    ["evaluate", "qrels", "a.run", "--html", "{}/" + "y" * 300 + ".html"],
    ["evaluate", "qrels", "a.run", "--means", "{}/" + "y" * 300 + ".csv"],
    ["compare", "qrels", "a.run", "{}"],
    ["baseline", "accept", "{}"],
    ["baseline", "show", "{}"],
    ["components", "{}"],
    ["grid", "{}"],
    ["power", "{}", "a.run", "a.run"],
    ["history", "{}"],
    ["ci", "comment", "{}"],
    ["system", "test", "{}", "a"],
    ["testset", "validate", "{}"],
    ["testset", "show", "{}"],
    ["testset", "diff", "qrels", "{}"],
    ["agreement", "{}", "{}"],
    ["explain", "qrels", "{}", "q1"],
    ["trec_eval", "qrels", "{}"],
]
CONFIG = """\
testset: qrels
gate: {rules: [floor: {measure: RR, at_least: 0}]}
systems:
  a: {run: a.run}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "qrels").write_text("q1 0 d 1\nq2 0 d 1\n")
    (tmp_path / "a.run").write_text("q1 Q0 d 1 1 a\nq2 Q0 x 1 1 a\n")
    (tmp_path / "config.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("path", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("words", CALLS, ids=lambda words: " ".join(words)[:40])
@pytest.mark.usefixtures("folder")
def test_a_path_that_cannot_be_is_a_mistake_of_the_call(call: Call, words: list[str], path: str) -> None:
    done = call(*(word.format(path) for word in words))
    assert done.returncode == 2, done.stderr
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("status", [0, 1])
def test_the_status_is_of_the_gate_where_the_reader_of_stdout_left(folder: Path, status: int) -> None:
    (folder / "config.yaml").write_text(CONFIG.replace("0}", "1}" if status else "0}"))
    command = "cranfield gate config.yaml | true; exit ${PIPESTATUS[0]}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stderr
    assert (folder / "cranfield-gate" / "gate.json").stat().st_size > 1000


def test_a_stream_without_a_reader_takes_all_and_keeps_the_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    stream = StandardStream(writer, "w")
    assert [stream.write(b"one"), stream.write(b"two")] == [3, 3]
    assert isinstance(stream.error, BrokenPipeError)
    assert finish_output(stream) == 0
    stream.close()


def test_output_that_a_full_disk_does_not_take_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with StandardStream("/dev/full", "w") as stream:
        assert stream.write(b"one") == 3
        assert finish_output(stream) == 2
    assert capsys.readouterr().err == "error: cannot write to standard output: no space left on device.\n"


def test_a_pipe_that_does_not_block_is_waited_for() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    data = b"x" * 300_000
    received: list[bytes] = []

    def read() -> None:
        with os.fdopen(reader, "rb") as source:
            received.append(source.read())

    thread = threading.Thread(target=read)
    thread.start()
    with StandardStream(writer, "w") as stream:
        left: Any = memoryview(data)
        while left:
            left = left[stream.write(left) :]
    thread.join()
    assert received == [data]


@pytest.mark.usefixtures("folder")
def test_debug_shows_the_traceback_and_keeps_the_exit_code(call: Call) -> None:
    for options, shown in (["--debug"], True), ([], False):
        done = call(*options, "evaluate", "qrels", "none")
        assert done.returncode == 2
        assert ("Traceback" in done.stderr) is shown


def test_an_interruption_of_an_earlier_command_of_the_process_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    INTERRUPTED.set()
    assert run_program(lambda: program_of(PermissionError(errno.EACCES, "Permission denied", b"x"), handled), []) == 2
    assert "permission denied" in capsys.readouterr().err


def test_an_interrupt_before_anything_hears_signals_that_a_library_made_another_error_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    keep_interrupts()
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, signal.default_int_handler))

    def command() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ValueError("a model could not be built") from None

    assert run_program(lambda: program_of(UsageError("the command went on"), lambda _: handled(command)), []) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("comes", [True, False])
def test_an_interrupt_prevails_over_the_error_of_a_call_that_it_cuts_off(
    request: pytest.FixtureRequest, *, comes: bool
) -> None:
    heard = []
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    signal.signal(signal.SIGINT, lambda *_: heard.append("by the library"))
    library = signal.getsignal(signal.SIGINT)

    def job() -> None:
        with interrupts_prevail():
            if comes:
                signal.raise_signal(signal.SIGINT)
            raise UsageError("the job failed")

    with pytest.raises(KeyboardInterrupt if comes else UsageError):
        job()
    assert heard == ["by the library"] * comes
    assert signal.getsignal(signal.SIGINT) is library
