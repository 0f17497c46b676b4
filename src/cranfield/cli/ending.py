"""How a command ends: its report, its exit code, and lines on stderr for what went wrong. No error and no lost stream is a verdict."""

from __future__ import annotations

import _thread
import functools
import io
import os
import select
import shlex
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, get_type_hints

import typer

from cranfield.app.command import Output, OutputFormat, Report, Status, note
from cranfield.base.concurrency.interrupts import INTERRUPTED, interrupt
from cranfield.base.errors import (
    SHOWN_PROBLEMS,
    CranfieldError,
    InternalError,
    Problem,
    Spelling,
    UsageError,
    spell_parameter,
)
from cranfield.base.words import and_list, join_first

if TYPE_CHECKING:
    from cranfield.reporting.document import Document, Tone


EXIT_VERDICT = 1
EXIT_USAGE = UsageError.exit_code
EXIT_SYSTEM = 3
EXIT_INCONCLUSIVE = 4
EXIT_INTERNAL = InternalError.exit_code
EXIT_INTERRUPTED = 130

P = ParamSpec("P")
R = TypeVar("R")


class CommandState:
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
        if CommandState.debug:
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
        return Problem(f"the operating system reported an error: {(error.strerror or str(error)).lower()}")
    if _is_of_database(error):
        reason = " ".join(str(getattr(error, "orig", "")).split())
        return Problem(f"the database reported an error, and nothing was changed: {reason}")
    text = type(error).__name__
    with suppress(BaseException):  # the text of a class of the user's
        text = ": ".join(filter(None, (text, " ".join(str(error).split()))))
    hint = "this is a bug in Cranfield, in a plugin or in a function that it called; run `cranfield --debug ...` to see where"
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


MAX_NAMED = 3
"""Systems in the stamp."""
_STALE: ContextVar[tuple[str, ...]] = ContextVar("stale", default=())


@contextmanager
def warning_once_of_stale_runs() -> Iterator[None]:
    """One command: what is noted inside is stamped on its report."""
    token = _STALE.set(())
    try:
        yield
    finally:
        _STALE.reset(token)


def note_stale(system: str, changed: Sequence[str]) -> None:
    """Say on stderr what changed since the run of a system was saved, and keep it for the report."""
    what = f"the saved run of {system} is stale: {and_list(changed)} changed since"
    note(f"warning: {what}; update it with `cranfield run`")
    _STALE.set((*_STALE.get(), system))


def stamped(document: Document) -> Document:
    """The document with a stamp where a run of it is stale."""
    systems = _STALE.get()
    if not systems:
        return document
    stamp = f"STALE: saved before the config or test set changed: {join_first(systems, MAX_NAMED)}"
    return replace(document, stamps=(*document.stamps, stamp))


def present(report: Report, output: Output) -> None:
    """Print a report in its form, write it as HTML where that was requested, name the files written, and leave with its status."""
    if report.record is not None and output.format is OutputFormat.JSON and not (output.html or output.save):
        from cranfield.model.results import to_json

        show([to_json(report.record())])
    else:
        document = report.document() if callable(report.document) else report.document
        print_and_save_report(document, output.with_full(report.full), written=report.written)
    for line in report.notes:
        note(line)
    if report.void:
        # Say on stderr that scores do not count, and why where the report on stdout does not.
        void = report.void
        if output.format not in {OutputFormat.JSON, OutputFormat.CSV}:
            note(f"error: void: the scores of {and_list([*void])} do not count; see the report for the reason")
        else:
            for sentence in (sentence for found in void.values() for sentence in found):
                note(f"error: void: {sentence}")
        raise typer.Exit(Status.VOID)
    if report.status:
        raise typer.Exit(report.status)


def print_and_save_report(document: Document, output: Output, *, written: Sequence[Path] = ()) -> None:
    """Print the document on stdout in its form, write it as HTML where that was requested for, and name the files written.

    Args:
        document: the report.
        output: what the options say.
        written: files that the command wrote, the page of the report among them.
    """
    from cranfield.reporting import save_report

    document = stamped(document)
    if output.html is not None and output.html.suffix.lower() != ".html":
        raise UsageError("--html writes HTML", path=str(output.html), expected="a file whose name ends in .html")
    requested = [*([output.html] if output.html is not None else []), *(output.save or [])]
    for path in requested:
        save_report(document, path)
    written = [*requested, *written]
    if output.format is OutputFormat.XLSX:
        _show_workbook(document)
    else:
        show([rendered(document, output)])
    for line in _written_lines(written):
        note(line)
    page = min((path for path in written if path.suffix == ".html"), key=lambda path: len(path.parts), default=None)
    if output.open:
        _open(document, page)
    elif page is not None and page not in requested and output.format is OutputFormat.TEXT:
        from cranfield.base.installation import this_installation

        note(f"to see it: {this_installation().command(shlex.join(['view', str(page.parent)]))}")


def _show_workbook(document: Document) -> None:
    """Write a workbook on stdout, unless that is a terminal."""
    from cranfield.reporting.renderers.data import RENDERERS

    if sys.stdout.isatty():
        raise UsageError(
            "an Excel workbook cannot be shown on a terminal",
            expected="--save report.xlsx, or stdout redirected to a file",
        )
    sys.stdout.flush()
    sys.stdout.buffer.write(RENDERERS["xlsx"].content(document))
    sys.stdout.buffer.flush()


def _written_lines(written: Sequence[Path]) -> Iterable[str]:
    """`wrote out/report.html`, or `wrote report.html, report.md in out`: a line for each folder."""
    folders: dict[Path, list[Path]] = {}
    for path in dict.fromkeys(written):
        folders.setdefault(path.parent, []).append(path)
    for folder, paths in folders.items():
        names = ", ".join(path.name for path in paths)
        yield f"wrote {paths[0]}" if len(paths) == 1 else f"wrote {names}" + (f" in {folder}" if folder.name else "")


def _open(document: Document, report: Path | None) -> None:
    """Show the page in the browser; one that no option named is written to a folder for temporary files."""
    import tempfile

    from cranfield.reporting import save_report

    if report is None:
        report = Path(tempfile.mkdtemp(prefix="cranfield-")) / "report.html"
        save_report(document, report)
    open_in_browser(report)


def open_in_browser(path: Path) -> None:
    """Open a file in the browser; where there is none, say so with its address."""
    import webbrowser

    address = path.resolve().as_uri()
    if not webbrowser.open(address):
        note(f"no browser was found: open {address}")


def rendered(document: Document, output: Output) -> str:
    """The document in the form that was asked for: text in colour and as wide as the terminal, where it goes to one."""
    from cranfield.reporting import render
    from cranfield.reporting.renderers.text import COLUMNS, LINE, brief_of, no_colour, render_brief, render_text

    if output.format is not OutputFormat.TEXT:
        return render(document, output.format.value)
    terminal = sys.stdout.isatty()
    line = min(max(COLUMNS, shutil.get_terminal_size().columns), LINE) if terminal else None
    if output.full or brief_of(document) is None:
        return render_text(document, line or LINE)
    return render_brief(document, line=line or COLUMNS, paint=painted if has_colour(terminal=terminal) else no_colour)


def has_colour(*, terminal: bool) -> bool:
    """Whether stdout gets colours: on a terminal; `FORCE_COLOR` asks for them elsewhere, `NO_COLOR` declines them."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (terminal and os.environ.get("TERM") != "dumb")


COLOURS: Mapping[str, str] = {"good": "green", "bad": "red", "open": "yellow", "void": "magenta"}
"""Tone to colour on a terminal; the words say the same."""


def painted(text: str, tone: Tone) -> str:
    """Text in the colour of its tone."""
    return typer.style(text, fg=COLOURS[tone], bold=True) if COLOURS.get(tone) else text


def show(parts: Iterable[str]) -> None:
    """Write the result on stdout."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 has no minus sign
    sys.stdout.writelines(parts)
    sys.stdout.flush()
