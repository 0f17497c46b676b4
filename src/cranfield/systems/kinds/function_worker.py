"""The process of a function: `python -P -m cranfield.systems.kinds.function_worker`, started by `function_process`.

Reads the source of the function and then calls from its stdin, a line of JSON each, and writes a line for each answer. Both
streams are moved to other file descriptors before the function is loaded: the function finds an empty stdin, and what it
prints goes to stderr.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import RunFormatError
from cranfield.model import Outcome
from cranfield.systems.calls.stages import CheckFailedError
from cranfield.systems.configured import Reply, failed
from cranfield.systems.kinds.function import LocalFunction, ResultReading
from cranfield.systems.kinds.function_record import failed_check, reply_record
from cranfield.systems.kinds.sources import source_from_record

_CLOSE_S = 3600.0
"""The process is ended when its time to close is over."""


class FunctionWorker:
    """Serves the calls of one function; several may be under way."""

    def __init__(self, function: LocalFunction, answers: BinaryIO) -> None:
        self._function = function
        self._answers = answers
        self._tasks: set[asyncio.Task[None]] = set()

    def serve(self, request: Mapping[str, Any]) -> None:
        """Begin to answer a call."""
        event_loop().post(lambda: self._begin(request))

    async def answer(self, request: Mapping[str, Any]) -> None:
        """Make one call, and write its answer."""
        try:
            reply = await self._reply(request)
        except CheckFailedError as error:
            reply = failed_check(error)
        try:
            text = json.dumps({"id": request["id"], **reply_record(reply)})
        except (RunFormatError, TypeError, ValueError):
            wrong = failed("what it returned cannot be written as JSON", outcome=Outcome.UNPARSABLE)
            text = json.dumps({"id": request["id"], **reply_record(wrong)})
        try:
            self._answers.write(text.encode() + b"\n")
            self._answers.flush()
        except (OSError, ValueError):  # the function closed it, or the other end is closed
            os._exit(1)

    def _begin(self, request: Mapping[str, Any]) -> None:
        task = asyncio.get_running_loop().create_task(self.answer(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reply(self, request: Mapping[str, Any]) -> Reply:
        match request["do"]:
            case "ask":
                reading = ResultReading(request["order"], request["form"])
                return await self._function.ask(request["query"], request["k"], request["params"], reading)
            case "check":
                return Reply(await self._function.check(request["params"]))
            case "show":
                return Reply(await self._function.shown_request(request["query"], request["k"], request["params"]))
            case "close":
                await self._function.close(_CLOSE_S)
            case _:
                await self._function.load()
        return Reply()


def main() -> None:
    """Serve calls until the function is closed, or stdin ends."""
    requests, answers = _private_streams()
    first = json.loads(requests.readline() or "{}")
    if not first:
        return
    sys.path[:] = first["path"]
    worker = FunctionWorker(LocalFunction(source_from_record(first["source"])), answers)
    for line in requests:
        request = json.loads(line)
        if request["do"] == "close":
            event_loop().run(worker.answer(request))
            return
        worker.serve(request)


def _private_streams() -> tuple[BinaryIO, BinaryIO]:
    """Stdin and stdout under other numbers; in their place an empty stdin and our stderr."""
    try:
        os.fstat(2)
    except OSError:  # closed
        os.open(os.devnull, os.O_WRONLY)
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, answers


if __name__ == "__main__":
    main()
