"""One pass over the lines of a run file: what is whole is settled, what is not is carried along.

Files, ranges of them and digests are the business of `streaming`.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cranfield.errors import SHOWN_PROBLEMS, Problem, ProblemList, RunFormatError
from cranfield.ranking.columns import Columns, Ints, split, split_good
from cranfield.ranking.lines import good_lines, n_lines_of, plainer, tag_of
from cranfield.ranking.settle import Part, Settler

HELD_BYTES = 1 << 20
"""Queries that were held are settled so many bytes at a time, or one by one where they are larger."""
AT_THE_END = math.inf


class InterleavedError(Exception):
    """A query came back after another had begun."""


@dataclass
class Reading:
    """Takes lines as they come, and settles each query when the next one begins, or all of them at the end."""

    settler: Settler
    hold: bool = False
    """Keep the lines of all judged queries until the end: they may be interleaved."""
    parts: list[Part] = field(default_factory=list)
    met: dict[bytes, None] = field(default_factory=dict)
    """Every query that has begun."""
    n_lines: int = 0
    tag: bytes | None = None
    carry: bytes = b""
    """Lines of the query that is not known to be over."""
    problems: list[tuple[float, Problem]] = field(default_factory=list)
    """Each with the line that brought it to light."""
    _carried: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _held: dict[int, tuple[bytearray, array[int]]] = field(default_factory=dict)
    _next_line: int = 1

    def take(self, raw: bytes) -> None:
        """Take whole lines, of which there is at least one.

        Raises:
            InterleavedError: a query came back, and lines are not held.
            RunFormatError: as many problems were met as are reported.
        """
        columns = self._columns(raw)
        if columns is not None:
            if self.hold:
                self._keep(columns)
            else:
                self._settle_all_but_the_last(columns)
        if len(self.problems) >= SHOWN_PROBLEMS:
            self.refuse()

    def finish(self) -> None:
        """Settle what is left.

        Raises:
            RunFormatError: there was a problem, here or before.
        """
        if self.hold:
            self._settle_held()
        elif self.carry:
            self._settle_text((self.carry,), self._carried)
        self.refuse()

    def refuse(self) -> None:
        """Raise the first problems that came to light, if any did."""
        found = ProblemList(RunFormatError)
        found.problems += [problem for _, problem in sorted(self.problems, key=lambda entry: entry[0])[:SHOWN_PROBLEMS]]
        found.raise_if_any()

    def _columns(self, raw: bytes) -> Columns | None:
        """The lines that are left over and those of `raw`, in columns; None where there is none."""
        order = self.settler.options.order
        new = n_lines_of(raw)
        line = np.concatenate((self._carried, np.arange(self._next_line, self._next_line + new)))
        columns = split((self.carry, raw), line, order)
        if columns is None and (plain := plainer(raw)) is not raw:
            columns = split((self.carry, plain), line, order)
        if columns is None:
            good = good_lines(raw, self._next_line, self.settler.path, order)
            self.problems += [(problem.line or 0, problem) for problem in good.problems]
            if len(good.line):
                line = np.concatenate((self._carried, good.line))
                columns = split_good((self.carry, good.body), line, order)
        if columns is not None:
            if self.tag is None:
                self.tag = tag_of(raw, int(columns.line[0]) - self._next_line)
            self.n_lines += len(columns.line) - len(self._carried)
        self._next_line += new
        return columns

    def _settle_all_but_the_last(self, columns: Columns) -> None:
        begun = columns.line[columns.run_start[:-1]]
        last, comes_back = columns.n_runs - 1, False
        for run, query_id in enumerate(columns.query_ids()):
            if query_id in self.met and (run or not self.carry):
                last, comes_back = run, True
                break
            self.met[query_id] = None
        if last:
            self._settle(columns.first_runs(last), begun[1 : last + 1].astype(np.float64))
        if comes_back:
            if sum(line <= begun[last] for line, _ in self.problems) >= SHOWN_PROBLEMS:
                self.refuse()
            raise InterleavedError
        self.carry, self._carried = columns.text_from(last), columns.line[int(columns.run_start[last]) :]

    def _settle(self, columns: Columns, over: NDArray[np.float64]) -> None:
        """Settle runs, given the line at which each was known to be over."""
        queries = np.array([self.settler.place.get(query_id, -1) for query_id in columns.query_ids()], dtype=np.int64)
        judged = queries >= 0
        if not judged.any():
            return
        if not judged.all():
            columns, queries, over = columns.runs(judged), queries[judged], over[judged]
        part, found = self.settler.settle(columns, queries)
        self.parts.append(part)
        for line, said in zip(over.tolist(), found, strict=True):
            self.problems += [(line, problem) for problem in said]

    def _settle_text(self, bodies: Iterable[bytes], line: Ints) -> None:
        """Settle lines that were found good, and whose queries are over with the file."""
        columns = split_good(bodies, line, self.settler.options.order)
        self._settle(columns, np.full(columns.n_runs, AT_THE_END))

    def _keep(self, columns: Columns) -> None:
        query_ids = columns.query_ids()
        self.met.update(dict.fromkeys(query_ids))
        places = np.array([self.settler.place.get(query_id, -1) for query_id in query_ids], dtype=np.int64)
        place = np.repeat(places, np.diff(columns.run_start))
        order = np.argsort(place, kind="stable")
        starts = np.flatnonzero(np.diff(place[order], prepend=-1))
        bodies = columns.text_from(0).split(b"\n")
        for start, end in itertools.pairwise([*starts.tolist(), len(order)]):
            rows = order[start:end]
            body, line = self._held.setdefault(int(place[rows[0]]), (bytearray(), array("q")))
            body += b"\n".join([*(bodies[row] for row in rows.tolist()), b""])
            line.frombytes(columns.line[rows].tobytes())

    def _settle_held(self) -> None:
        """Settle the queries as they were met, some at a time."""
        bodies: list[bytes] = []
        lines: list[Ints] = []
        for query_id in self.met:
            if query_id not in self.settler.place:
                continue
            body, line = self._held.pop(self.settler.place[query_id])
            bodies.append(bytes(body))
            lines.append(np.frombuffer(line, dtype=np.int64))
            if not self._held or sum(map(len, bodies)) >= HELD_BYTES:
                self._settle_text(bodies, np.concatenate(lines))
                bodies, lines = [], []
