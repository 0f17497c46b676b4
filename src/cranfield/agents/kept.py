"""Answers kept in a file as they come, so that a run that was killed goes on without asking for them again.

What a failed request took stands in the file too: it counts in the budget of every later call, and is no answer there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from cranfield.agents.budget import Budget, Spent, estimate
from cranfield.agents.protocol import (
    Backend,
    Failure,
    FailureKind,
    ModelAnswer,
    Request,
    Usage,
    read_answer,
    read_failure,
)
from cranfield.agents.recording import is_lasting, open_whole_lines
from cranfield.base.errors import InputError, ProblemList, shorten

VERSION = 1


class Kept:
    """A backend that takes an answer of its file, and asks only for what the file does not have.

    A line holds the digest of the request and the answer: the requests of an agent repeat the whole conversation, which
    stands in its transcript. The same request sent twice has two answers.
    """

    def __init__(self, path: Path, backend: Backend | None = None, *, keeps_rejections: bool = True) -> None:
        """Open the file.

        Args:
            path: of the answers; made where it is missing and there is a backend.
            backend: None: no request is sent, and nothing is written.
            keeps_rejections: whether a rejection that the same request would get again is an answer; False: such requests
                are sent again. A reply that cannot be read is always one: the conversation went on after it.

        Raises:
            InputError: lines of the file are not of this kind.
        """
        self.path = path
        self.backend = backend
        self.n_kept = 0
        """Answers that came from the file."""
        self._file = None if backend is None else open_whole_lines(path)
        self._keeps_rejections = keeps_rejections
        self._answers: dict[str, list[Mapping[str, Any]]] = {}
        self._failed: list[Mapping[str, Any]] = []
        for line in _read(path):
            if self._is_answer(line["answer"]["failure"]):
                self._answers.setdefault(line["digest"], []).append(line)
            else:
                self._failed.append(line)

    def usages(self) -> list[tuple[str, Usage]]:
        """Model and usage of every line of the file that was not taken yet; what was not reported is what was reserved for it."""
        found = (line for lines in (*self._answers.values(), self._failed) for line in lines)
        return [(str(line["model"]), _counted(line)) for line in found]

    def salted(self, salt: str) -> Backend:
        """A backend over the same file whose answers no other salt gets, also where the requests are the same."""
        return _Salted(self, salt)

    async def ask(self, request: Request, salt: str = "") -> ModelAnswer:
        """The next answer of the file to this request; or ask, and keep the answer."""
        digest = request.digest if not salt else "sha256:" + sha256(f"{salt}\0{request.digest}".encode()).hexdigest()
        if lines := self._answers.get(digest):
            self.n_kept += 1
            return replace(self._answer(lines.pop(0), request), is_kept=True)
        if self.backend is None or self._file is None:
            message = f"{self.path} does not contain this request (digest {digest})"
            failure = Failure(FailureKind.NOT_RECORDED, message)
            return ModelAnswer(failure=failure, usage=Usage(requests=0, input=0, output=0))
        # A replay keeps the answers of salts apart as well.
        backend = self.backend.salted(salt) if salt and isinstance(self.backend, Kept) else self.backend
        answer = await backend.ask(request)
        usage = answer.usage
        if is_lasting(answer) or usage.unmeasured or usage.total:
            line: dict[str, Any] = {
                "cranfield_calls": VERSION,
                "digest": digest,
                "model": request.model,
                "answer": answer.record(),
            }
            if usage.unmeasured or usage.total is None:
                line["reserved"] = asdict(estimate(request))
            self._file.write(json.dumps(line, ensure_ascii=True).encode() + b"\n")
            self._file.flush()
        return answer

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _is_answer(self, failure: Mapping[str, Any] | None) -> bool:
        found = read_failure(failure)
        if found is not None and found.kind is FailureKind.REJECTED and not self._keeps_rejections:
            return False
        return is_lasting(ModelAnswer(failure=found))

    def _answer(self, line: Mapping[str, Any], request: Request) -> ModelAnswer:
        try:
            return read_answer(line["answer"], request)
        except (KeyError, TypeError, ValueError):
            got = shorten(line["digest"])
            raise InputError("an answer is damaged", path=str(self.path), got=got) from None


def charge(budget: Budget, usages: Sequence[tuple[str, Usage]]) -> None:
    """Count what kept answers took."""
    for model, usage in usages:
        budget.spent.add(Spent.of(budget.prices, model, usage))


class _Salted:
    def __init__(self, kept: Kept, salt: str) -> None:
        self._kept = kept
        self._salt = salt

    async def ask(self, request: Request) -> ModelAnswer:
        return await self._kept.ask(request, self._salt)


def _counted(line: Mapping[str, Any]) -> Usage:
    """The usage of a line, as the budget counted it when it was sent: a request that reported none as what was reserved."""
    usage = Usage(**line["answer"]["usage"])
    if not usage.unmeasured and usage.total is not None:
        return usage
    reserved = line["reserved"]
    n = usage.unmeasured or 1
    parts = {part: (getattr(usage, part) or 0) + n * int(reserved[part]) for part in ("input", "output")}
    return replace(usage, **parts)


def _read(path: Path) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    problems = ProblemList(InputError)
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"the answers cannot be read: {error.strerror}", path=str(path)) from None
    for number, text in enumerate(lines, start=1):
        try:
            found.append(_checked(json.loads(text)))
        except (ValueError, KeyError, TypeError):
            problems.add("not a valid line of a file of stored answers", path=str(path), line=number, got=shorten(text))
    problems.raise_if_any()
    return found


def _checked(line: Mapping[str, Any]) -> Mapping[str, Any]:
    if line["cranfield_calls"] != VERSION:
        raise ValueError
    _counted(line)
    read_failure(line["answer"]["failure"])
    hash(line["digest"])
    return line
