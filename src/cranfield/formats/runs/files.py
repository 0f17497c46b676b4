"""Run files of the formats that have a reader, and TREC runs written. TREC files are read in `ranking`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

from cranfield.base.errors import ProblemList, RunFormatError
from cranfield.base.words import printable
from cranfield.formats.io.delimited import WHITE_SPACE, check_column, column_line, id_bytes
from cranfield.formats.io.files import shown, write_bytes
from cranfield.formats.registry import Format
from cranfield.model import Hit, Run


def read_whole(found: Format, path: Path) -> Run:
    """Read a run in a format that has a reader.

    Raises:
        RunFormatError: as the reader; or it is the reader of a package and returns no run.
    """
    run = found.read(path) if found.read is not None else None
    if not isinstance(run, Run):
        message = f"the reader of the format {found.name!r} returned no run"
        raise RunFormatError(message, path=shown(path), expected="a cranfield.Run", got=type(run).__name__)
    return run


def log_notes(run: Run) -> None:
    """Name what the reader of a run chose and left out: on stderr, unless the program logs elsewhere; a report has it as caveats."""
    for note in run.notes:
        import logging

        logging.getLogger("cranfield").warning("note: %s: %s", printable(run.name), printable(note))


def write_trec_run(run: Run, path: Path | str) -> None:
    """Write a collected run so that any TREC tool ranks it as Cranfield does.

    Duplicates are dropped, the depth is cut, and the score column falls from hit to hit: the system's own scores where
    they do so by themselves, else `n, n - 1, …, 1`. Queries without a hit have no line, whatever their outcome.

    Raises:
        RunFormatError: when an id cannot be written to a column, or a run ordered by score has a hit without one.
    """
    path = Path(path)
    problems = ProblemList(RunFormatError)
    tag = WHITE_SPACE.sub("_", run.name) or "run"
    lines: list[bytes] = []
    for query_id, answer in run.answers.items():
        if answer.hits:
            check_column(problems, path, "query", query_id)
        hits = _ranked(query_id, answer.hits, run, problems, path)
        for rank, (hit, score) in enumerate(zip(hits, _falling_scores(hits, run), strict=True), start=1):
            check_column(problems, path, "document", hit.id)
            lines.append(column_line(query_id, "Q0", hit.id, str(rank), repr(score), tag))
    problems.raise_if_any()
    write_bytes(path, lines)


def _ranked(query_id: str, hits: tuple[Hit, ...], run: Run, problems: ProblemList, path: Path) -> list[Hit]:
    """The hits in the order the run declares, ties to the larger id in bytes; first of each id; cut to depth."""
    ordered = list(hits)
    if run.order != "given":
        for position, hit in enumerate(hits, start=1):
            if hit.score is None or not math.isfinite(hit.score):
                problems.add(
                    f"not written: query {query_id!r}, hit {position} has no score",
                    path=str(path),
                    expected=f"a score on every hit, because the run declares order: {run.order}",
                )
        sign = 1.0 if run.order == "descending" else -1.0
        ordered.sort(key=lambda hit: (sign * (hit.score or 0.0), id_bytes(hit.id)), reverse=True)
    first: dict[str, Hit] = {}
    for hit in ordered:
        first.setdefault(hit.id, hit)
    return list(first.values())[: run.depth]


def _falling_scores(hits: Sequence[Hit], run: Run) -> list[float]:
    """Scores by which a TREC tool (score down, then id down) finds the hits in this very order."""
    scores = [hit.score for hit in hits if hit.score is not None and math.isfinite(hit.score)]
    falls = all(before > after for before, after in itertools.pairwise(scores))
    if len(scores) < len(hits) or (run.order == "given" and not falls):
        return [float(score) for score in range(len(hits), 0, -1)]
    return [-score for score in scores] if run.order == "ascending" else scores
