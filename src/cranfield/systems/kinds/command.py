"""A system under test that is a command: one call per query, from argv to Answer.

Outcomes: answered, empty, timeout, nonzero exit (or not started), unparsable. The reason of a failure is the same on
every machine; the output of the program goes to the log.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from cranfield.base.concurrency.child_process import (
    MAX_OUTPUT_BYTES,
    NotStartedError,
    TooMuchOutputError,
    child_process,
    exit_reason,
)
from cranfield.config.strict import fill
from cranfield.config.systems import CommandConfig
from cranfield.model import Answer, Outcome, Scalar
from cranfield.systems.calls.stages import CheckFailedError, Step
from cranfield.systems.configured import ConfiguredSystem, Received, Reply

_TERMINATING = frozenset({signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)})
_INTERRUPTION_LAG_S = 0.5
_INTERPRETER = re.compile(r"(python|pypy)[\d.]*|node|ruby|perl|php|bash|sh|zsh|Rscript")
_SCRIPT = re.compile(r"[^{}]+\.(py|js|mjs|cjs|rb|pl|php|sh|bash|zsh|R)")
"""A file name without placeholders."""
_TAKES_CODE = frozenset("cemrp")
"""Letters of options after which an interpreter reads a program text or a module, and no file."""


class CommandSystem(ConfiguredSystem):
    r"""A command of cranfield.yaml.

    Example:
        >>> from cranfield.model import Query
        >>> echo = CommandSystem.of("echo", command=["echo", "doc:{query}"], extract={"regex": r"doc:\S+"})
        >>> answer, log = echo.search(Query("q1", "grid"), k=10)
        >>> answer.outcome.value, [hit.id for hit in answer.hits]
        ('answered', ['doc:grid'])
    """

    kind = "command"
    config: CommandConfig

    async def attempt(self, query: str, k: int, params: Mapping[str, Scalar], received: Received) -> Reply:
        """Run the command once."""
        argv = self._argv(query, k, params)
        answer = None
        try:
            async with child_process(argv, cwd=self.cwd, env=self.environment) as child:
                try:
                    answer = await _answer_of_status(await child.run()) or _unreadable(child.stdout)
                finally:
                    received.output = child.stdout.decode("utf-8", "backslashreplace")
                    received.stderr = child.stderr.decode("utf-8", "replace")
        except NotStartedError as error:
            answer = Answer(Outcome.NONZERO_EXIT, reason=f"could not be started: {error}")
        except TooMuchOutputError:
            answer = Answer(Outcome.UNPARSABLE, reason=f"over {MAX_OUTPUT_BYTES // 1024**2} MB of output")
        return Reply(received.output, received.stderr, answer)

    def request(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """The command line with shell quoting, for display; no shell is used."""
        return shlex.join(self._argv(query, k, params))

    def ready_steps(self) -> Iterator[Step]:
        """Check that the program exists and is executable."""
        yield f"command {self.config.command[0]}", partial(check_command, self, self.config.command)

    def depends_on(self) -> Iterator[Path]:
        """Besides `depends`, the program and every file named by an argument."""
        yield from super().depends_on()
        yield from argument_files(self, self._argv("", 0, {**self.config.params, **self.set_params}))

    def _argv(self, query: str, k: int, params: Mapping[str, Scalar]) -> list[str]:
        return fill(self.config.command, query=query, k=k, python=sys.executable, params=params)


def check_command(system: ConfiguredSystem, command: Sequence[str]) -> str:
    """Check that the program of a command exists, and the script that it interprets.

    Args:
        system: whose working directory and environment count.
        command: as written, with its placeholders.

    Raises:
        CheckFailedError: one of them is missing, or the program is not executable.
    """
    (program,) = fill([command[0]], query="", k=0, python=sys.executable, params={})
    found = check_program(system, program)
    script = _script(Path(program).name, command[1:])
    if script is not None and not (system.cwd / script).exists():
        raise CheckFailedError(f"the file {script}", "nothing there", "the path is relative to the system's cwd.")
    return found


def _script(program: str, arguments: Sequence[str]) -> str | None:
    """The script that an interpreter is started with: its first argument that is no option, where it is a file name."""
    if not _INTERPRETER.fullmatch(program):
        return None
    for argument in arguments:
        if not argument.startswith("-"):
            return argument if _SCRIPT.fullmatch(argument) else None
        if not argument.startswith("--") and set(argument) & _TAKES_CODE:
            return None
    return None


def check_program(system: ConfiguredSystem, program: str) -> str:
    """Check that a program exists and is executable.

    Raises:
        CheckFailedError: it is missing or not executable.
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
        raise CheckFailedError("an executable file", "a file without execute permission", f"chmod +x {program}")
    return "an executable file"


def argument_files(system: ConfiguredSystem, argv: Sequence[str]) -> Iterator[Path]:
    """The program of a command line, and every file named by an argument."""
    if os.sep not in argv[0] and (found := shutil.which(argv[0], path=system.environment.get("PATH"))):
        yield Path(found)
    for argument in argv:
        with suppress(OSError, ValueError):  # not a valid file name
            if argument and (system.cwd / argument).is_file():
                yield system.cwd / argument


async def _answer_of_status(status: int) -> Answer | None:
    """The failure for a nonzero exit status; else None."""
    if -status in _TERMINATING:
        # Our process group may be receiving the same signal. If it is, we are cancelled during this wait, and the
        # call is not counted as a failure of the system.
        await asyncio.sleep(_INTERRUPTION_LAG_S)
    return Answer(Outcome.NONZERO_EXIT, reason=exit_reason(status)) if status else None


def _unreadable(output: bytes | bytearray) -> Answer | None:
    """The failure of output that is not UTF-8, in which two ids could become one; else None."""
    try:
        output.decode("utf-8")
    except UnicodeDecodeError as error:
        return Answer(
            Outcome.UNPARSABLE, reason=f"the output is not UTF-8 (byte 0x{output[error.start]:02x} at {error.start})"
        )
    return None
