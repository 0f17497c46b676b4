"""A run file as a system under test: its answers are read from the file."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from cranfield.base.errors import InputError
from cranfield.base.words import count_noun, noun
from cranfield.config.systems import RunConfig
from cranfield.model import Answer, CallLog, Order, Outcome, Query, Run, Scalar
from cranfield.systems.calls.stages import CheckFailedError, Step
from cranfield.systems.configured import ConfiguredSystem, Exchange, Received, Reply

NOT_THERE = "the run file has no answer for it"
MAX_EXTRA = 1000
"""Ids of queries that no test set has, which a collected run keeps."""


def run_file_systems(systems: Iterable[ConfiguredSystem]) -> Iterator[RunFileSystem]:
    """The run files among systems and the parts of fusions."""
    for system in systems:
        if isinstance(system, RunFileSystem):
            yield system
        yield from run_file_systems(system.parts.values())


class RunFileSystem(ConfiguredSystem):
    """A run file of cranfield.yaml. Queries that are not in it are missing; params and k have no effect."""

    kind = "run"
    config: RunConfig
    read: Callable[[Path], Run] | None = None
    """Reads the file for a test set and a convention; None reads every query, as `trec` does."""

    async def ask_async(self, query: Query, k: int, *, is_shown: bool = False) -> Exchange:
        """The answer to a query, by its id."""
        answer = self.run.answers.get(query.id, Answer(Outcome.MISSING, reason=NOT_THERE))
        log = self.run.logs.get(query.id, CallLog(0.0))
        request = self.request(query.id, k, {}) if is_shown else ""
        output = "\n".join(hit.public_id for hit in answer.hits) if is_shown else ""
        return Exchange(request, output, "", answer, replace(log, cached=True))

    async def attempt(self, query: str, k: int, params: Mapping[str, Scalar], received: Received) -> Reply:  # noqa: ARG002
        """Not used: `ask_async` looks answers up by query id."""
        return Reply(answer=Answer(Outcome.MISSING, reason=NOT_THERE))

    def request(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:  # noqa: ARG002
        """The file and the query id."""
        return f"{self.config.run}: query {query}"

    def ready_steps(self) -> Iterator[Step]:
        """Check that the file is a valid run."""
        yield f"run {self.config.run}", self._check

    def depends_on(self) -> Iterator[Path]:
        """Besides `depends`, the file."""
        yield from super().depends_on()
        yield self.path

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / self.config.run

    @property
    def order(self) -> Order:
        """The order of the run; of a table of scores, highest first."""
        return self.run.order

    @property
    def list_order(self) -> Order:
        """Best first: ties are broken as where the file is scored."""
        return "ascending" if self.order == "ascending" else "given"

    @cached_property
    def run(self) -> Run:
        """The run; read on first use.

        Raises:
            InputError: with every problem of the file; or it answers no query of the test set.
        """
        if self.read is not None:
            return self.read(self.path)
        from cranfield.ranking.collected import read_run_file

        return read_run_file(self.path)

    @property
    def says_empty(self) -> bool:
        """Whether the file can state that a query was answered with nothing: no table of results can."""
        return self.run.says_empty

    def extra_queries(self, known: Container[str]) -> tuple[str, ...]:
        """The first ids of the file that no query has."""
        found = (*self.run.extra_queries, *(query_id for query_id in self.run.answers if query_id not in known))
        return tuple(dict.fromkeys(found))[:MAX_EXTRA]

    @property
    def machine(self) -> str | None:
        """Machine of the collection of the run."""
        return self.run.machine

    @property
    def is_pilot(self) -> bool:
        """Whether the run is marked as a pilot."""
        return self.run.pilot

    def _check(self) -> str:
        try:
            n_answers = len(self.run.answers)
        except InputError as error:
            first = error.problems[0]
            where = f"line {first.line}: " if first.line is not None else ""
            others = len(error.problems) - 1
            more = f" (and {others} more {noun(others, 'problems')})" if others else ""
            found = f"{where}{first.message}{more}"
            hint = None if first.parameters else first.hint  # those are of a call, and no keys of a config
            raise CheckFailedError(first.expected or "a run file", found, hint) from None
        return count_noun(n_answers, "answers")
