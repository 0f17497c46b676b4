"""Evaluate Parquet files on this machine, in memory that does not grow with them.

All rows are read twice, in any order, by several threads; see `kernel.Passes`. Where the judgments and what is counted
at them do not fit the memory, the queries are divided into parts, and every part reads all rows twice. An interrupted
evaluation goes on where it was last saved.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cranfield.base.errors import SHOWN_PROBLEMS, ProblemList, RunFormatError
from cranfield.formats.io.files import new_part, remove_parts
from cranfield.ranking.counting import Counting, TooManySuspectsError, new_seed
from cranfield.ranking.engine import kernel_requested, requested_jobs
from cranfield.scale.checkpoint import (
    Arrays,
    Checkpoint,
    OnProgress,
    Pace,
    arrays_of_count,
    arrays_of_find,
    order_of,
    restore_count,
    restore_find,
    signature,
    silent,
)
from cranfield.scale.judgments import JudgmentTable
from cranfield.scale.kernel import DUPLICATES_HINT, Passes, RowProblem
from cranfield.scale.plan import Size
from cranfield.scale.scoring import Scoring
from cranfield.scale.source import Chunk, ParquetRuns

Step = Literal["find", "count"]
Look = Callable[[pa.RecordBatch, int, int | None], None]
"""What is done with rows: their number, and the system where it is one."""
SAVED_EVERY_S = 20.0
SHOWN_EVERY_S = 0.2
LOOKED_FOR = 1000
"""Repeated rows of which both places are looked for, where there are too many to hold."""
RESULTS = "_unfinished-{:04d}.arrow"
"""Results of a part that is done."""


@dataclass(eq=False)
class Counted:
    """What the rows were, besides their values."""

    unjudged: NDArray[np.int64]
    """int64[S]: rows of queries that have no judgment."""
    n_duplicates: int = 0
    extra_queries: tuple[str, ...] = ()
    """Some queries that have no judgment."""
    runs: dict[str, str] = field(default_factory=dict)
    """Name of each run to its digest."""


@dataclass(eq=False)
class LocalEvaluation:
    """One evaluation of Parquet files."""

    runs: ParquetRuns
    judgments: JudgmentTable
    scoring: Scoring
    memory: int
    """Bytes that it may take, about."""
    folder: Path | None = None
    """Where an interrupted evaluation is saved; None: it is not."""
    on_progress: OnProgress = silent
    saved_every_s: float = SAVED_EVERY_S
    _done: NDArray[np.bool_] = field(init=False)
    """bool: which row groups were read in this pass; then, which files have their digest."""

    def __post_init__(self) -> None:
        self.jobs = requested_jobs()
        self.chunks = self.runs.chunks()
        judgments = self.judgments
        size = Size(self.runs.n_rows, judgments.n_queries, len(judgments), len(self.scoring.systems), self.jobs)
        self.n_parts = size.n_parts(self.memory)
        self.pace = Pace(2 * self.n_parts * self.runs.n_rows)
        edges = np.linspace(0, judgments.n_queries, self.n_parts + 1).astype(int).tolist()
        self._parts = list(itertools.pairwise(edges))
        self._done = np.zeros(len(self.chunks) + len(self.runs.files), dtype=np.bool_)
        self._digests = [""] * len(self.runs.files)
        self._stopped = Event()
        names = self.runs.systems() if not self.runs.has_systems else ()
        self._places = [self.scoring.systems.index(name) for name in names]
        self._checkpoint: Checkpoint | None = None
        if self.folder is not None and kernel_requested():  # the stand-in of the kernel keeps what cannot be saved
            parts = (judgments.digest, order_of(judgments), self.scoring, self.n_parts, *self.runs.reading)
            self._checkpoint = Checkpoint(self.folder, signature(self.runs.files, parts))

    def run(self, write: Callable[[pa.RecordBatch], None]) -> Counted:
        """Evaluate, and write the results.

        Raises:
            RunFormatError: with the first problems of the rows.
            KeyboardInterrupt: it was interrupted, and saved where there is a folder.
        """
        state = None if self._checkpoint is None else self._checkpoint.load()
        counted = Counted(np.zeros(len(self.scoring.systems), dtype=np.int64))
        begin = 0
        if state is not None:
            self._digests = state["digests"].tolist()
            begin = int(state["part"][0])
            counted.unjudged[:], counted.n_duplicates = state["unjudged"], int(state["n_duplicates"][0])
            counted.extra_queries = tuple(state["extra_queries"].tolist()) if begin else ()
            self.pace.done = self.pace.resumed = begin * 2 * self.runs.n_rows
        for part in range(begin, self.n_parts):
            self._evaluate_part(part, counted, state if part == begin else None, write)
        for batch in self._stored():
            write(batch)
        counted.runs = self.runs.run_digests(self._digests)
        if self._checkpoint is not None:
            self._checkpoint.remove()
            remove_parts(self._checkpoint.path.parent, "_unfinished-*.arrow")
        for path in self._result_files():
            path.unlink(missing_ok=True)
        return counted

    def _evaluate_part(
        self, part: int, counted: Counted, state: Arrays | None, write: Callable[[pa.RecordBatch], None]
    ) -> None:
        judgments = self.judgments if self.n_parts == 1 else self.judgments.part(*self._parts[part])
        everything = self.judgments if self.n_parts > 1 else None
        seed = new_seed() if state is None else state["seed"].tobytes()
        passes = Passes(
            judgments,
            self.scoring,
            self.runs.n_rows // self.n_parts,
            everything=everything,
            with_examples=part == 0,
            seed=seed,
        )
        self._begin_pass(with_digests=part == 0)
        step = self._restore(passes, state)
        if step == "find":
            try:
                self._read_all(passes.find, step, lambda: self._save(part, passes, counted, arrays_of_find), passes)
            except TooManySuspectsError:
                raise self._too_many_found(passes) from None
            self._refuse(passes.problems)
            self._begin_pass()
        found = {} if self._checkpoint is None else arrays_of_find(passes.counting) | {"filter": np.zeros(0, np.uint64)}
        passes.turn()
        if state is not None and "counts" in state:
            restore_count(passes.counting, state)
        if state is not None:
            state.clear()  # what was saved is as large as what it became
        try:
            save = partial(self._save, part, passes, counted, lambda counting: found | arrays_of_count(counting))
            self._read_all(passes.count, "count", save, passes)
        except TooManySuspectsError:
            raise self._too_many_duplicates(passes) from None
        self._refuse(passes.finish())
        self._keep_results(part, passes, counted, write)

    def _restore(self, passes: Passes, state: Arrays | None) -> Step:
        """Take over what was saved of a part; the pass that it was in."""
        if state is None or "found" not in state:
            return "find"
        restore_find(passes.counting, state)
        passes.unjudged_rows_of[:], passes.examples = state["part_unjudged"], state["extra_queries"].tolist()
        self._done[:] = state["done"]
        step: Step = "count" if "counts" in state else "find"
        self.pace.done += sum(self._n_rows(place) for place in np.flatnonzero(self._done).tolist())
        self.pace.done += self.runs.n_rows if step == "count" else 0
        self.pace.resumed = self.pace.done
        return step

    def _save(self, part: int, passes: Passes, counted: Counted, arrays: Callable[[Counting], Arrays]) -> None:
        if self._checkpoint is None or passes.problems:  # rows that are wrong are met again, and named
            return
        state = {
            "unjudged": counted.unjudged,
            "n_duplicates": np.array([counted.n_duplicates]),
            "extra_queries": np.array(counted.extra_queries or passes.examples, dtype=np.str_),
            "part": np.array([part]),
            "part_unjudged": passes.unjudged_rows_of,
            "seed": np.frombuffer(passes.counting.seed, np.uint8),
            "done": self._done,
            "digests": np.array(self._digests, dtype=np.str_),
        }
        self._checkpoint.save(state | arrays(passes.counting))

    def _keep_results(
        self, part: int, passes: Passes, counted: Counted, write: Callable[[pa.RecordBatch], None]
    ) -> None:
        """Count what the part was, and keep its results: those of a part that others follow, in a file."""
        if part == 0:
            counted.unjudged += passes.unjudged_rows_of
        else:  # what the first part took for unjudged rows
            counted.unjudged -= passes.judged_rows_of()
        counted.n_duplicates += len(passes.counting.duplicates)
        counted.extra_queries = counted.extra_queries or tuple(passes.examples)
        if self.n_parts == 1 or self._checkpoint is None:
            for batch in passes.results():
                write(batch)
            return
        path = self._checkpoint.path.parent / RESULTS.format(part)
        batches = passes.results()
        first = next(batches, None)
        if first is not None:
            with (
                new_part(path) as written,
                pa.OSFile(str(written), "wb") as stream,
                pa.ipc.new_file(stream, first.schema) as writer,
            ):
                writer.write(first)
                for batch in batches:
                    writer.write(batch)
        self._save(part + 1, passes, counted, lambda _: {})

    def _result_files(self) -> list[Path]:
        if self.n_parts == 1 or self._checkpoint is None:
            return []
        return [self._checkpoint.path.parent / RESULTS.format(part) for part in range(self.n_parts)]

    def _stored(self) -> Iterator[pa.RecordBatch]:
        for path in filter(Path.exists, self._result_files()):
            with pa.OSFile(str(path)) as stream, pa.ipc.open_file(stream) as file:
                for number in range(file.num_record_batches):
                    yield file.get_batch(number)

    def _read_all(
        self,
        look: Look,
        step: Step,
        save: Callable[[], None],
        passes: Passes,
    ) -> None:
        """Give all rows that are not done to `look`, by several threads; saves from time to time, and when interrupted."""
        self.pace.step = step
        waiting = np.flatnonzero(~self._done)[::-1].tolist()
        running: dict[Future[None], int] = {}
        saved = shown = time.monotonic()
        with ThreadPoolExecutor(self.jobs) as pool:
            try:
                while (waiting or running) and len(passes.problems) < SHOWN_PROBLEMS:
                    now = time.monotonic()
                    is_due = self._checkpoint is not None and now > saved + self.saved_every_s
                    while waiting and len(running) <= self.jobs and not is_due:
                        place = waiting.pop()
                        running[pool.submit(self._work, place, look)] = place
                    self._collect(running, wait(running, SHOWN_EVERY_S, FIRST_COMPLETED).done)
                    if is_due and not running:
                        save()
                        saved = time.monotonic()
                    if now > shown + SHOWN_EVERY_S:
                        shown = now
                        self.on_progress(self.pace)
                self.on_progress(self.pace)
            except KeyboardInterrupt:
                self._stopped.set()
                self._collect(running, wait(running).done)
                save()
                raise

    def _work(self, place: int, look: Look) -> None:
        """Read a row group, or take the digest of a file."""
        if place < len(self.chunks):
            self._read(self.chunks[place], look)
            return
        digest = self.runs.digest(place - len(self.chunks), self._stopped.is_set)
        self._digests[place - len(self.chunks)] = "" if self._stopped.is_set() else digest

    def _n_rows(self, place: int) -> int:
        return self.chunks[place].n_rows if place < len(self.chunks) else 0

    def _begin_pass(self, *, with_digests: bool = False) -> None:
        self._done[:] = False
        self._done[len(self.chunks) :] = not with_digests

    def _read(self, chunk: Chunk, look: Look) -> None:
        ordinal, system = chunk.ordinal, None if chunk.run is None else self._places[chunk.run]
        for batch in self.runs.batches(chunk):
            look(batch, ordinal, system)
            ordinal += batch.num_rows
        if ordinal != chunk.ordinal + chunk.n_rows:
            path = str(self.runs.files[chunk.file])
            raise RunFormatError("this Parquet file changed while it was read", path=path, hint="evaluate again")

    def _collect(self, running: dict[Future[None], int], finished: Iterable[Future[None]]) -> None:
        for future in finished:
            place = running.pop(future)
            future.result()
            self._done[place] = place < len(self.chunks) or bool(self._digests[place - len(self.chunks)])
            self.pace.done += self._n_rows(place)

    def _refuse(self, found: Iterable[RowProblem]) -> None:
        """Raise the problems of rows, each at its file and row."""
        problems = ProblemList(RunFormatError)
        for problem in sorted(found, key=lambda each: each.ordinal)[:SHOWN_PROBLEMS]:
            path, row = self.runs.place(problem.ordinal)
            where, fields = f"row {row}", {}
            if problem.repeats is not None:
                first, first_row = self.runs.place(problem.repeats)
                where = (
                    f"rows {first_row} and {row}"
                    if first == path
                    else f"row {row}, and row {first_row} of {first.name}"
                )
                fields = {"expected": "each document once per query", "hint": DUPLICATES_HINT}
            problems.add(f"{where}: {problem.text}", path=str(path), **fields)
        problems.raise_if_any()

    def _too_many_found(self, passes: Passes) -> RunFormatError:
        """The error where the first pass found that many: some are looked for, to name both places of each."""
        some = np.concatenate(passes.counting.repeated)[-LOOKED_FOR:]
        passes.counting.repeated = [some if self.scoring.duplicates == "error" else some[:0]]
        passes.turn()
        if self.scoring.duplicates == "error":
            self._begin_pass()
            with contextlib.suppress(TooManySuspectsError):
                self._read_all(passes.count, "count", lambda: None, passes)
        return self._too_many_duplicates(passes)

    def _too_many_duplicates(self, passes: Passes) -> RunFormatError:
        """The error where so many rows may be repetitions that they are not held: the first that are."""
        passes.counting.finish()
        if self.scoring.duplicates == "error" and passes.counting.duplicates:
            try:
                self._refuse(map(passes.repetition, passes.counting.duplicates))
            except RunFormatError as error:
                return error
        return RunFormatError(
            "millions of rows repeat a document of their query",
            path=str(self.runs.files[0].parent),
            expected="each document once per query",
            hint="check that no file is passed twice, and drop the repeated rows first; or lower --memory, for more parts with fewer rows each",
        )
