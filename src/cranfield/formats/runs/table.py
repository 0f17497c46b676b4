"""Runs in a table of text: a header row, then a result a row, in TSV or CSV; and MS MARCO's three columns without a header.

Columns are found by name: the query, the document or the path, the rank or the score; lines, a span, a title where there
are such.
"""

from __future__ import annotations

import re
from pathlib import Path

from cranfield.base.errors import ProblemList, RunFormatError, shorten
from cranfield.formats.io.delimited import (
    RUN_COLUMNS,
    Sheet,
    id_text,
    note_unused,
    number_of,
    read_sheet,
    short,
    write_sheet,
)
from cranfield.formats.io.files import MAX_LINE_BYTES, MAX_PROBLEMS, bounded_lines, opened, shown, stem
from cranfield.model import Answer, Hit, Order, Outcome, Run

_MSMARCO = ("query", "document", "rank")
_RANK = re.compile(r"[0-9]{1,9}")


def read_run_table(path: Path | str) -> Run:
    """Read a run, in the order of its ranks, or by its scores where it has no ranks.

    The lines of a result are its span, as the system counts them: `21-60`.

    Raises:
        RunFormatError: with every bad cell, each at its line and column, and with both lines where two results of a query
            have one rank.
    """
    sheet = read_sheet(Path(path), RunFormatError)
    reader = _Reader(sheet)
    reader.read()
    sheet.problems.raise_if_any()
    note_unused(shown(sheet.path), sheet.others(set(sheet.places(RUN_COLUMNS).values())).values())
    if not reader.hits:
        raise RunFormatError("no result in this file", path=shown(sheet.path), expected="a row per result")
    order: Order = "given" if reader.by_rank else "descending"
    answers = {
        query_id: Answer(Outcome.ANSWERED, tuple(hit for _, (hit, _) in sorted(ranked.items())))
        for query_id, ranked in reader.hits.items()
    }
    return Run(stem(sheet.path), answers, order=order, says_empty=False)


def read_msmarco_run(path: Path | str) -> Run:
    """Read lines `query document rank` without a header, as in MS MARCO.

    Raises:
        RunFormatError: with every line that is none, each rank that a query has twice, and ranks that begin elsewhere than at 0 or 1.
    """
    path = Path(path)
    problems = ProblemList(RunFormatError)
    ranked: dict[str, dict[int, tuple[str, int]]] = {}
    with opened(path, RunFormatError) as stream:
        for number, raw in enumerate(bounded_lines(stream, path, RunFormatError, MAX_LINE_BYTES), start=1):
            cells = [id_text(cell) for cell in raw.split()]
            place = {"path": shown(path), "line": number}
            if not cells:
                continue
            if len(cells) != len(_MSMARCO) or not _RANK.fullmatch(cells[2]):
                expected, got = " ".join(_MSMARCO), shorten(" ".join(cells))
                problems.add("not a query, a document and a rank", **place, expected=expected, got=got)
            elif (first := ranked.setdefault(cells[0], {}).setdefault(int(cells[2]), (cells[1], number)))[1] != number:
                message = f"query {shorten(cells[0])} has two results of rank {int(cells[2])}; the other is on line {first[1]}"
                problems.add(message, **place, expected="each rank once per query")
            if len(problems.problems) >= MAX_PROBLEMS:
                break
    for query_id, by_rank in ranked.items():
        if by_rank and min(by_rank) > 1:
            message = f"the ranks of query {shorten(query_id)} begin at {min(by_rank)}"
            hint = "if the third column is a score, write a table whose first line names its columns"
            line = by_rank[min(by_rank)][1]
            problems.add(message, path=shown(path), line=line, expected="1, 2, …", hint=hint)
            break
    problems.raise_if_any()
    answers = {
        query_id: Answer(Outcome.ANSWERED, tuple(Hit(doc_id) for _, (doc_id, _) in sorted(by_rank.items())))
        for query_id, by_rank in ranked.items()
    }
    return Run(stem(path), answers, says_empty=False)


class _Reader:
    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.hits: dict[str, dict[int, tuple[Hit, int]]] = {}
        """Query id to rank, or to the place in the file, to the result and its line."""
        self._place = sheet.places(RUN_COLUMNS)
        self.by_rank = "rank" in self._place

    def read(self) -> None:
        required = {role: RUN_COLUMNS[role] for role in ("query_id", "doc_id")}
        if not self.by_rank:
            required["score"] = (*RUN_COLUMNS["score"], *RUN_COLUMNS["rank"])
        missing = {role: names for role, names in required.items() if role not in self._place}
        for role, names in missing.items():
            self.sheet.missing_column(role, names)
        for line, cells in () if missing else self.sheet.rows():
            self._row(line, cells)

    def _cell(self, role: str, cells: list[str]) -> str:
        return cells[self._place[role]] if role in self._place else ""

    def _row(self, line: int, cells: list[str]) -> None:
        query_id, doc_id = self._cell("query_id", cells), self._cell("doc_id", cells)
        for role, text in (("query_id", query_id), ("doc_id", doc_id)):
            if not text.strip():
                self.sheet.fault(line, self._place[role], f"no {role}", expected="an id in each row")
        score = self._score(line, cells)
        ranked = self.hits.setdefault(query_id, {})
        rank = self._rank(line, cells) if self.by_rank else len(ranked)
        if rank is None:
            return
        hit = Hit(doc_id, score, self._cell("title", cells) or None, self._span(line, cells))
        earlier = ranked.setdefault(rank, (hit, line))
        if earlier[1] != line:
            message = f"query {shorten(query_id)} has two results of rank {rank}; the other is on line {earlier[1]}"
            self.sheet.fault(line, self._place["rank"], message, expected="each rank once per query")

    def _rank(self, line: int, cells: list[str]) -> int | None:
        text = self._cell("rank", cells).strip()
        if _RANK.fullmatch(text):
            return int(text)
        self.sheet.fault(line, self._place["rank"], "the rank is not a whole number", expected="1, 2, …", got=text)
        return None

    def _score(self, line: int, cells: list[str]) -> float | None:
        text = self._cell("score", cells)
        if "score" not in self._place or (self.by_rank and not text.strip()):
            return None
        score = number_of(text)
        if score is None:
            self.sheet.fault(
                line, self._place["score"], "the score is not a finite number", expected="a number", got=text
            )
        return score

    def _span(self, line: int, cells: list[str]) -> str | None:
        start, end = self._cell("start", cells).strip(), self._cell("end", cells).strip()
        if not start and not end:
            return self._cell("span", cells) or None
        for role, text in (("start", start), ("end", end)):
            if role in self._place and not _RANK.fullmatch(text):
                message = f"the {role} of the lines is not a whole number"
                self.sheet.fault(line, self._place[role], message, expected="the number of a line", got=text)
        return f"{start}-{end}" if end else start


def write_run_table(run: Run, path: Path | str) -> None:
    """Write a run with its ranks, in the order that it declares; queries without a result have no row.

    Raises:
        RunFormatError: a run ordered by score has a result without one.
    """
    path = Path(path)
    problems = ProblemList(RunFormatError)
    rows = []
    for query_id, answer in run.answers.items():
        hits = list(answer.hits)
        if run.order != "given":
            if any(hit.score is None for hit in hits):
                problems.add(f"not written: query {query_id!r} has a result without a score", path=str(path))
            hits.sort(key=lambda hit: hit.score or 0.0, reverse=run.order == "descending")
        for rank, hit in enumerate(hits[: run.depth], start=1):
            score = "" if hit.score is None else short(hit.score)
            rows.append([query_id, str(rank), hit.id, hit.span or "", score, hit.title or ""])
    problems.raise_if_any()
    write_sheet(path, ["query_id", "rank", "doc_id", "span", "score", "title"], rows, RunFormatError)
