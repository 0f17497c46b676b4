"""Asking a system in a process of its own, which a cancelled call interrupts as Ctrl-C does; nothing is kept but its answers.

`python -m cranfield.mcp_server.collecting` reads a request from its input, and prints its progress, then the problems or `{}`. It is
interrupted where its input ends: with the process that started it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.errors import CranfieldError, InternalError, Problem

if TYPE_CHECKING:
    from anyio.abc import Process

    from cranfield.model import Answer, Query
    from cranfield.model.run import CallLog

SECONDS_TO_END = 10
"""Until a process that was interrupted is killed."""
Report = Callable[[int, int], Awaitable[None]]
"""Is passed the number of answers, and of all."""


@dataclass(frozen=True)
class Request:
    """What is asked."""

    config: str
    """Path of cranfield.yaml."""
    testset: str
    """Its key there."""
    system: str
    k: int | None
    folder: str
    """For the answers: `run.jsonl`, and what a collection keeps meanwhile."""
    keeps_answers: bool
    """Whether the answer cache next to the config is used."""


async def ask_system(request: Request, report: Report) -> Path:
    """Send every query of a test set to a system; the file of its answers.

    Raises:
        CranfieldError: as the collection does.
    """
    import anyio

    command = [sys.executable, "-m", "cranfield.mcp_server.collecting"]
    async with await anyio.open_process(command, stdin=subprocess.PIPE, stderr=None) as process:
        try:
            if process.stdin is not None:
                await process.stdin.send(json.dumps(asdict(request)).encode() + b"\n")
            problems = await _read(process, report)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _interrupt(process)
            raise
    if problems is None:
        raise InternalError(f"asking {request.system} ended with exit code {process.returncode}")
    if problems:
        raise CranfieldError([Problem(**problem) for problem in problems])
    return Path(request.folder) / "run.jsonl"


async def _read(process: Process, report: Report) -> list[dict[str, Any]] | None:
    from anyio.streams.text import TextReceiveStream

    rest, problems = "", None
    if process.stdout is None:
        return None
    async for text in TextReceiveStream(process.stdout):
        *lines, rest = (rest + text).split("\n")
        for line in lines:
            record = json.loads(line)
            problems = record.get("problems")
            if problems is None:
                await report(record["n"], record["all"])
    await process.wait()
    return problems


async def _interrupt(process: Process) -> None:
    import anyio

    if process.returncode is not None:
        return
    process.send_signal(signal.SIGINT)
    with anyio.move_on_after(SECONDS_TO_END):
        await process.wait()
    if process.returncode is None:
        process.kill()


def _print(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


class _Lines:
    """Progress of a collection, as lines on the output."""

    def __init__(self) -> None:
        self.n = self.all = 0

    def start(self, system: str, total: int, done: int) -> None:  # noqa: ARG002 - the protocol's
        self.n, self.all = done, total

    def advance(self, system: str, query: Query, answer: Answer, log: CallLog) -> None:  # noqa: ARG002
        self.n += 1
        _print({"n": self.n, "all": self.all})

    def note(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")

    def finish(self) -> None:
        """Print nothing."""


def collect(request: Request) -> None:
    """Collect, and write the answers."""
    from cranfield.config import load_config
    from cranfield.formats.runs.jsonl import write_run
    from cranfield.project.experiment import AnswerCache, prepare

    config = load_config(Path(request.config))
    cache: AnswerCache = "use" if request.keeps_answers else "off"
    experiment = prepare(config, request.testset, [request.system], cache=cache)
    if request.k is not None:
        from dataclasses import replace

        experiment = replace(experiment, k=request.k)
    folder = Path(request.folder)
    with experiment.collected(folder / "collected", progress=_Lines()) as runs:
        write_run(runs[request.system], folder / "run.jsonl")


def main() -> None:
    """Collect as standard input says."""
    line = sys.stdin.readline()
    request = Request(**json.loads(line))

    def end_with_the_parent() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=end_with_the_parent, daemon=True).start()
    problems: list[dict[str, object]] = []
    try:
        collect(request)
    except CranfieldError as error:
        names = ("message", "path", "line", "column", "expected", "got", "hint")
        problems = [{name: getattr(problem, name) for name in names} for problem in error.problems]
    except KeyboardInterrupt:
        sys.exit(130)
    _print({"problems": problems})


if __name__ == "__main__":
    main()
