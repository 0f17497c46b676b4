"""A system under test that is a command: one call per query, from argv to Answer.

Each way a call can end is told apart: answered, honestly empty, timed out, ended in error (or not started),
unparsable. The reason given with a failure is the same on every machine; the program's own words go to the log.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event

from cranfield.config.template import fill
from cranfield.model import Outcome, Scalar
from cranfield.systems.calls.process import MAX_OUTPUT_BYTES, End, Finished, run_process
from cranfield.systems.configured import CheckFailedError, ConfiguredSystem, Reply, Step, failed
from cranfield.systems.system import CallInterruptedError

_OURS_PERHAPS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_INTERRUPTION_LAG_S = 0.5


class CommandSystem(ConfiguredSystem):
    r"""A command of cranfield.yaml, ready to be asked.

    Example:
        >>> from cranfield.model import Query
        >>> echo = CommandSystem.of("echo", command=["echo", "doc:{query}"], extract={"regex": r"doc:\S+"})
        >>> answer, log = echo.search(Query("q1", "grid"), k=10)
        >>> answer.outcome.value, [hit.id for hit in answer.hits]
        ('answered', ['doc:grid'])
    """

    def attempt(self, query: str, k: int, params: Mapping[str, Scalar], interrupted: Event) -> Reply:
        """Run the command once."""
        finished = run_process(
            self._argv(query, k, params),
            cwd=self.cwd,
            env=self.environment,
            timeout_s=self.config.timeout_s,
            interrupted=interrupted,
        )
        _raise_if_interrupted(finished, interrupted)
        output, stderr = (stream.decode("utf-8", "replace") for stream in (finished.stdout, finished.stderr))
        return self._reply(finished, output, stderr)

    def request(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """The command line, quoted as a shell would want it; no shell reads it."""
        return shlex.join(self._argv(query, k, params))

    def ready_steps(self) -> Iterator[Step]:
        """That the program is there and may be run."""
        written = (self.config.command or [""])[0]
        (program,) = fill([written], query="", k=0, python=sys.executable, params={})
        yield f"command {written}", partial(found_program, self, program)

    def depends_on(self) -> Iterator[Path]:
        """Besides what is named, the program and every file that an argument names."""
        yield from super().depends_on()
        yield from files_named(self, self._argv("", 0, {**self.config.params, **self.set_params}))

    def _argv(self, query: str, k: int, params: Mapping[str, Scalar]) -> list[str]:
        return fill(self.config.command or [], query=query, k=k, python=sys.executable, params=params)

    def _reply(self, finished: Finished, output: str, stderr: str) -> Reply:
        reply = Reply(output, stderr)
        if finished.end is End.NOT_STARTED:
            reply = failed(f"could not be started: {finished.why}", outcome=Outcome.NONZERO_EXIT)
        elif finished.end is End.TIMEOUT:
            reply = failed(f"no answer in {self.config.timeout_s:g} s", outcome=Outcome.TIMEOUT)
        elif finished.end is End.TOO_MUCH_OUTPUT:
            reply = failed(f"over {MAX_OUTPUT_BYTES // 1024**2} MB of output", outcome=Outcome.UNPARSABLE)
        elif finished.status:
            reply = failed(exit_reason(finished.status), outcome=Outcome.NONZERO_EXIT)
        return Reply(output, stderr, reply.answer)


def found_program(system: ConfiguredSystem, program: str) -> str:
    """Check that a program is there and may be run.

    Raises:
        CheckFailedError: it is not.
    """
    if os.sep not in program:
        if shutil.which(program, path=system.environment.get("PATH")):
            return "on PATH"
        in_cwd = (system.cwd / program).is_file()
        hint = f"a program in the working directory is written ./{program}." if in_cwd else None
        raise CheckFailedError("a program on PATH", "no program of that name", hint)
    path = system.cwd / program
    if path.is_dir():
        raise CheckFailedError("an executable file", "a folder")
    if not path.exists():
        raise CheckFailedError("an executable file", "nothing there", "the path is relative to the system's cwd.")
    if not os.access(path, os.X_OK):
        raise CheckFailedError("an executable file", "a file that may not be executed", f"chmod +x {program}")
    return "an executable file"


def files_named(system: ConfiguredSystem, argv: Sequence[str]) -> Iterator[Path]:
    """The program of a command line, on PATH or by name, and every file that an argument names."""
    if os.sep not in argv[0] and (found := shutil.which(argv[0], path=system.environment.get("PATH"))):
        yield Path(found)
    for argument in argv:
        with suppress(OSError, ValueError):  # too long for a name, or no text that can be one
            if argument and (system.cwd / argument).is_file():
                yield system.cwd / argument


def _raise_if_interrupted(finished: Finished, interrupted: Event) -> None:
    # Whoever ends us often ends our whole tree, children first: a call that died of such a signal says nothing
    # about the system until it is clear that we go on.
    if finished.status is not None and -finished.status in _OURS_PERHAPS:
        interrupted.wait(_INTERRUPTION_LAG_S)
    if interrupted.is_set() and finished.status != 0:
        raise CallInterruptedError


def exit_reason(status: int) -> str:
    """`exit status 3`, `killed by SIGSEGV`."""
    if status > 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
