"""How a command ends: its exit code, and lines on stderr for what went wrong. No error and no lost stream is a verdict."""

from __future__ import annotations

import _thread
import functools
import io
import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast, get_type_hints

import typer

from cranfield.concurrency.signals import INTERRUPTED, interrupt
from cranfield.errors import (
    SHOWN_PROBLEMS,
    CranfieldError,
    InternalError,
    Problem,
    Spelling,
    UsageError,
    spell_parameter,
)

EXIT_VERDICT = 1
EXIT_USAGE = UsageError.exit_code
EXIT_SYSTEM = 3
EXIT_INCONCLUSIVE = 4
EXIT_INTERNAL = InternalError.exit_code
EXIT_INTERRUPTED = 130

P = ParamSpec("P")
R = TypeVar("R")


class State:
    """Options of the command itself."""

    debug = False


def handled(command: Callable[P, R]) -> Callable[P, R]:
    """Turn every error of a command into lines on stderr and its exit code; nothing but a verdict gives 1."""

    @functools.wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        INTERRUPTED.clear()  # of an earlier command of this process
        try:
            return command(*args, **kwargs)
        except (typer.Exit, typer.BadParameter):
            raise
        except BaseException as error:  # noqa: BLE001 - a system or a plugin may raise anything, SystemExit(0) too
            raise typer.Exit(report_error(error, command)) from None

    return wrapper


def run_program(make: Callable[[], Callable[..., object]], arguments: list[str]) -> int:
    """Make a program, run it with its arguments, and return its exit code."""
    try:
        status = make()(arguments, prog_name="cranfield", standalone_mode=False)
    except BaseException as error:  # noqa: BLE001 - as in `handled`
        if (show := getattr(error, "show", None)) is None:  # the class of typer's own errors is private
            return report_error(error)
        show()
        return EXIT_USAGE
    return status if isinstance(status, int) else 0


def report_error(error: BaseException, command: Callable[..., object] | None = None) -> int:
    """Write an error to stderr, with its traceback under `--debug`; its exit code."""
    with suppress(OSError, ValueError):  # stderr was closed by a function of the user
        if State.debug:
            traceback.print_exception(error)
        for line in _error_lines(error, command):
            typer.echo(line, err=True)
    if isinstance(error, CranfieldError):
        return error.exit_code
    if _is_interruption(error):
        return EXIT_INTERRUPTED
    return EXIT_USAGE if isinstance(error, OSError) or _is_of_database(error) else EXIT_INTERNAL


def _is_interruption(error: BaseException) -> bool:
    """Whether a signal ended the command, also where a library made another error of it."""
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return True
    return INTERRUPTED.is_set() and not isinstance(error, CranfieldError)


def _is_of_database(error: BaseException) -> bool:
    """Whether a database of books refused, such as on a full disk; SQLAlchemy need not be installed."""
    alchemy = sys.modules.get("sqlalchemy.exc")
    return alchemy is not None and isinstance(error, alchemy.OperationalError)


def _error_lines(error: BaseException, command: Callable[..., object] | None) -> Iterator[str]:
    """An error on stderr: a paragraph for each problem, and the number of those that are not shown."""
    if _is_interruption(error):
        yield (str(error) if isinstance(error, KeyboardInterrupt) else "") or "interrupted"
        return
    problems = error.problems if isinstance(error, CranfieldError) else (_problem(error),)
    spell = _option_spelling(command) if command is not None else spell_parameter
    for problem in problems[:SHOWN_PROBLEMS]:
        yield from (f"error: {line}" for line in problem.sentence(spell).splitlines())
        if problem.hint:
            yield f"Hint: {problem.hint_sentence(spell)}"
    if len(problems) > SHOWN_PROBLEMS:
        yield f"… and {len(problems) - SHOWN_PROBLEMS} more problems."


def _problem(error: BaseException) -> Problem:
    """An error that nothing worded: what the operating system refused, or a bug."""
    if isinstance(error, OSError):
        from cranfield.formats.io.files import refusal

        if error.filename is not None:
            return refusal(Path(os.fsdecode(error.filename)), error)
        return Problem(f"the operating system refused: {(error.strerror or str(error)).lower()}")
    if _is_of_database(error):
        reason = " ".join(str(getattr(error, "orig", "")).split())
        return Problem(f"the database refused, and nothing was changed: {reason}")
    text = type(error).__name__
    with suppress(BaseException):  # the text of a class of the user's
        text = ": ".join(filter(None, (text, " ".join(str(error).split()))))
    hint = "a bug of Cranfield, of a plugin or of a function that it called: `cranfield --debug ...` shows where"
    return Problem(f"internal error: {text}", hint=None if isinstance(error, MemoryError) else hint)


OPTION_PARAMETERS = {
    "format": "testset_format",
    "max_failed_share": "max_failed",
    "min_judged_share": "min_judged",
    "databases": "database",
    "rule": "consensus",
}
"""Parameter of the library to the parameter of a command, where the names differ."""


def _option_spelling(command: Callable[..., object]) -> Spelling:
    """How the command line writes a parameter of the library: `--option value`."""
    options: dict[str, str] = {}
    for name, hint in get_type_hints(command, include_extras=True).items():
        for info in getattr(hint, "__metadata__", ()):
            # In `Annotated` typer takes the first spelling for a default until it makes the command.
            for spelling in (getattr(info, "default", ""), *(getattr(info, "param_decls", None) or ())):
                if isinstance(spelling, str) and spelling.startswith("--"):
                    options[name] = spelling

    def spell(name: str, value: str) -> str:
        option = options.get(OPTION_PARAMETERS.get(name, name)) or options.get(name)
        return " ".join(filter(None, (option, value))) if option else spell_parameter(name, value)

    return spell


class StandardStream(io.FileIO):
    """stdout or stderr. Where writing fails, the error is kept and what follows is dropped: the command goes on."""

    error: OSError | None = None

    def write(self, data: Any) -> int:
        """Write, wait where a pipe is full that does not block, and say that all is written where nothing reads."""
        while self.error is None:
            try:
                if (written := super().write(data)) is not None:
                    return written
                select.select([], [self], [])
            except OSError as error:
                self.error = error
        return len(data)


INTERRUPT_AGAIN_S = 0.02
"""Time until an interrupt that Python ignored comes again: raised at once, it would end the hook and be ignored again."""


def keep_interrupts() -> None:
    """Remember an interrupt, which pydantic may make another error of; raise one again that Python ignores.

    Python ignores, with a traceback, what is raised in a destructor or a callback.
    """
    show = sys.unraisablehook
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)

    def raise_again(ignored: Any) -> None:
        if not issubclass(ignored.exc_type, KeyboardInterrupt):
            show(ignored)
            return
        again = threading.Timer(INTERRUPT_AGAIN_S, _interrupt_main_thread)
        again.daemon = True
        again.start()

    sys.unraisablehook = raise_again


def _interrupt_main_thread() -> None:
    """Interrupt the main thread, and what it waits for where the operating system can."""
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        signal.pthread_kill(cast("int", threading.main_thread().ident), signal.SIGINT)


def keep_streams() -> StandardStream:
    """Put streams that cannot fail in the place of stdout and stderr, closed ones among them; the raw one of stdout."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # a closed stream: no file may get its number
        os.set_inheritable(number, True)
    os.close(number)
    (out, sys.stdout), (_, sys.stderr) = _kept(1, sys.stdout), _kept(2, sys.stderr)
    return out


def _kept(number: int, stream: Any) -> tuple[StandardStream, io.TextIOWrapper]:
    """The stream of a number, with the settings of the one that Python made, which is None where it was closed."""
    raw = StandardStream(number, "w", closefd=False)
    if sys.platform == "win32" and stream is not None:
        if stream.isatty():
            return raw, stream  # a console takes text, and no bytes
        stream.reconfigure(encoding="utf-8")  # the code page of the machine lacks signs of reports
    names = "encoding", "errors", "line_buffering", "write_through"
    settings = {name: getattr(stream, name) for name in names if stream is not None}
    return raw, io.TextIOWrapper(io.BufferedWriter(raw), **settings)


def finish_output(out: StandardStream) -> int:
    """Write what is left of stdout; the exit code of an output that is lost, unless its reader left, as `head` does."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    if out.error is None or isinstance(out.error, BrokenPipeError):
        return 0
    typer.echo(f"error: cannot write to standard output: {(out.error.strerror or str(out.error)).lower()}.", err=True)
    return EXIT_USAGE
