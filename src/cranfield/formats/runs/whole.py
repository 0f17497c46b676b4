"""A run file of any format as a whole: every answer of it, in memory, as the file has it.

Scoring a large TREC file goes another way, in one pass (see `ranking`); this module is for callers that need the answers.
"""

from __future__ import annotations

from pathlib import Path

from cranfield.errors import ProblemList, RunFormatError, shorten
from cranfield.formats.io.cells import id_text, number_of
from cranfield.formats.io.files import MAX_PROBLEMS, opened, shown, stem
from cranfield.formats.registry import Format
from cranfield.formats.sniff import sniff_run
from cranfield.model import Answer, Hit, Outcome, Run

RUN_LINE = "query Q0 document rank score tag"
_COLUMNS = 6


def read_run_file(path: Path | str) -> Run:
    """Read a run of any format; a table of scores (TREC, Parquet) is ordered by them, highest first.

    Raises:
        RunFormatError: it cannot be read, is no run, or with every line that is malformed.
    """
    path = Path(path)
    found = sniff_run(path)
    if found.read is not None:
        return read_whole(found, path)
    return _read_parquet_run(path) if found.name == "parquet" else read_trec_run(path)


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


def read_trec_run(path: Path) -> Run:
    """Read a TREC run; the rank column is not looked at, as everywhere, and ids that are not UTF-8 keep their bytes.

    Raises:
        RunFormatError: with every line that is malformed.
    """
    problems = ProblemList(RunFormatError)
    hits: dict[str, list[Hit]] = {}
    with opened(path, RunFormatError) as stream:
        for number, line in enumerate(stream, start=1):
            columns = line.split(None, _COLUMNS - 1)
            if not columns:
                continue
            score = number_of(columns[4]) if len(columns) == _COLUMNS else None
            if score is None:
                is_short = len(columns) < _COLUMNS
                message = f"{len(columns)} columns" if is_short else "the score is not a finite number"
                got = shorten(line.decode("utf-8", "replace").strip())
                problems.add(message, path=shown(path), line=number, expected=f"{_COLUMNS}: {RUN_LINE}", got=got)
                if len(problems.problems) >= MAX_PROBLEMS:
                    break
                continue
            hits.setdefault(id_text(columns[0]), []).append(Hit(id_text(columns[2]), score))
    problems.raise_if_any()
    return _by_score(path, hits)


def _read_parquet_run(path: Path) -> Run:
    from cranfield.formats.io.table import read_table

    table = read_table(path, ("query_id", "doc_id", "score"), RunFormatError)
    hits: dict[str, list[Hit]] = {}
    queries, docs = (table.ids[role].text(0, table.n_rows) for role in ("query_id", "doc_id"))
    for query_id, doc_id, score in zip(queries, docs, table.numbers["score"].tolist(), strict=True):
        hits.setdefault(query_id, []).append(Hit(doc_id, score))
    return _by_score(path, hits)


def _by_score(path: Path, hits: dict[str, list[Hit]]) -> Run:
    answers = {query_id: Answer(Outcome.ANSWERED, tuple(of_query)) for query_id, of_query in hits.items()}
    return Run(stem(path), answers, order="descending", says_empty=False)
