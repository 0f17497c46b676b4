"""Recordings: requests with their answers as JSON Lines, and a backend that replays them without a network."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from cranfield.agents.budget import TYPICAL_BYTES, estimate
from cranfield.agents.protocol import (
    TRANSIENT,
    Backend,
    Failure,
    FailureKind,
    ModelAnswer,
    Request,
    Usage,
    read_answer,
    with_output,
)
from cranfield.base.errors import InputError, ProblemList, shorten

VERSION = 1
_OF_THE_CONTENT = frozenset({400, 413, 422})
"""Statuses of HTTP that reject what a request says: another time it is rejected again."""
NOT_AN_ANSWER = TRANSIENT | {FailureKind.BUDGET, FailureKind.NOT_RECORDED}
"""Not recorded: another time the answer would be another."""


class Recording:
    """A backend whose answers are appended to a file as they come."""

    def __init__(self, backend: Backend, path: Path) -> None:
        self.backend = backend
        self._file = open_whole_lines(path)

    async def ask(self, request: Request) -> ModelAnswer:
        """Ask, and record the answer."""
        answer = await self.backend.ask(request)
        if is_lasting(answer):
            line = {
                "cranfield_recording": VERSION,
                "digest": request.digest,
                "request": request.record(),
                "answer": answer.record(),
            }
            self._file.write(json.dumps(line, ensure_ascii=True).encode() + b"\n")
            self._file.flush()
        return answer

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def is_lasting(answer: ModelAnswer) -> bool:
    """Whether the same request would get it again: no failure of a server, of the budget, or of the key and the address."""
    failure = answer.failure
    if failure is None:
        return True
    if failure.kind is FailureKind.REJECTED:
        return failure.status in _OF_THE_CONTENT
    return failure.kind not in NOT_AN_ANSWER


def open_whole_lines(path: Path) -> BinaryIO:
    """For appending; a last line without an end, of a process that was killed, is removed."""
    path.touch()
    file = path.open("r+b")
    file.truncate(file.read().rfind(b"\n") + 1)
    file.seek(0, 2)
    return file


class Replaying:
    """A backend that answers from a recording, and refuses every other request."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[str, list[Mapping[str, Any]]] = {}
        problems = ProblemList(InputError)
        for number, text in enumerate(_lines(path), start=1):
            try:
                line = _checked(json.loads(text))
                self._lines.setdefault(line["digest"], []).append(line)
            except (ValueError, KeyError, TypeError):
                problems.add("not a valid line of a recording", path=str(path), line=number, got=shorten(text))
        problems.raise_if_any()

    async def ask(self, request: Request) -> ModelAnswer:
        """The recorded answer; of several to one request the first, then the second, and the last for ever."""
        lines = self._lines.get(request.digest)
        if not lines:
            failure = Failure(FailureKind.NOT_RECORDED, self._why_not(request))
            return ModelAnswer(failure=failure, usage=Usage(requests=0, input=0, output=0))
        line = lines.pop(0) if len(lines) > 1 else lines[0]
        try:
            return read_answer(line["answer"], request)
        except (KeyError, TypeError, ValueError):
            raise InputError(
                "an answer of the recording is damaged", path=str(self.path), got=shorten(line["digest"])
            ) from None

    def _why_not(self, request: Request) -> str:
        wanted = request.record()
        for recorded in (lines[0]["request"] for lines in self._lines.values()):
            differing = [name for name in wanted if recorded.get(name) != wanted[name]]
            if recorded.get("messages") == wanted["messages"]:
                return f"{self.path} contains this request with a different value of: {', '.join(differing)}"
        return (
            f"{self.path} does not contain this request (digest {request.digest}); {len(self._lines)} requests "
            "are recorded"
        )


def _checked(line: Mapping[str, Any]) -> Mapping[str, Any]:
    if line["cranfield_recording"] != VERSION:
        raise ValueError
    return line


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the recording cannot be read: {error}", path=str(path)) from None


class Scripted:
    """Answers by a function of the request: with text, or with a whole answer."""

    def __init__(self, script: Callable[[Request], str | ModelAnswer]) -> None:
        self.script = script
        self.requests: list[Request] = []

    async def ask(self, request: Request) -> ModelAnswer:
        """The answer of the script; text is validated by the schema as that of a model."""
        self.requests.append(request)
        answer = self.script(request)
        if isinstance(answer, ModelAnswer):
            return answer
        tokens = estimate(request, TYPICAL_BYTES)
        usage = Usage(input=tokens.input, cache_read=0, output=max(1, len(answer) // TYPICAL_BYTES))
        return with_output(ModelAnswer(text=answer, usage=usage, model=request.model), request)
