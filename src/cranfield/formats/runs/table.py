"""Runs in a table of text: a header row, then a result a row, in TSV or CSV; and MS MARCO's three columns without a header.

Columns are found by name: the query, the document or the path, the rank or the score; lines, a span, a title where there
are such.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield.base.errors import SHOWN_PROBLEMS, Problem, ProblemList, RunFormatError, UsageError, shorten
from cranfield.formats.io.delimited import (
    RUN_COLUMNS,
    Sheet,
    id_text,
    is_id,
    note_unused,
    number_of,
    read_sheet,
    short,
    write_sheet,
)
from cranfield.formats.io.files import MAX_LINE_BYTES, MAX_PROBLEMS, bounded_lines, opened, shown, stem
from cranfield.formats.io.records import first_of_keys, json_records, load_json_values
from cranfield.formats.runs.record import finite
from cranfield.formats.testsets.names import LINE_PAIRS, OF_DOCUMENT, OF_FIELD, OF_LINES, plain
from cranfield.model import Answer, Hit, Order, Outcome, Run
from cranfield.model.query_ids import text_ids
from cranfield.model.texts import ENDS, STARTS, char_range

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


RUN_QUERY_IDS = ("query_id", "qid", "q_id", "_id", "id")
RUN_QUERY_TEXTS = ("query", "question", "query_text", "user_input", "input", "text")
RESULTS = (
    "results", "documents", "docs", "hits", "source_documents", "retrieved_documents", "retrieved_docs",
    "retrieved_ids", "retrieved_context_ids",
)  # fmt: skip
"""Keys of a record of a query and its results, the likeliest first."""
_METADATA = ("metadata", "meta")
_SOURCES = ("source", "file_path", "path", "url")
_DOCUMENT_IDS = ("id", "doc_id", "_id")
_PARENTS = ("ref_doc_id", "source_id")
"""Names of the id of the document that a passage is of: LlamaIndex's and Haystack's."""
_OBJECT_IDS = ("id", "node_id")
_TEXTS = ("text", "page_content", "content")
_PAGES = ("page_label", "page_number")
_NAMES_OF_DOCUMENTS = (*OF_DOCUMENT, *(name for name, field in OF_FIELD.items() if field in {"path ends", "url"}))
_RANKS = ("rank", "position")
_LISTED = "ids, pairs of an id and its score, or documents with an id or a source"
_PAIR = 2


def read_id_mapping(path: Path | str) -> Run:
    """Read a JSON file that maps query ids to answers, see `run_of_mapping`.

    Raises:
        RunFormatError: it is no such file, or with the first answers, ids and scores that are none.
    """
    path = Path(path)
    top = load_json_values(path, RunFormatError)
    if not isinstance(top, dict) or not top:
        raise RunFormatError("no query in this file", path=shown(path), expected="`{query id: {document id: score}}`")
    return run_of_mapping(top, stem(path), RunFormatError)


def read_document_run(path: Path | str) -> Run:
    """Read records of a query and its results: JSON Lines, a JSON list, or a JSON object of query to documents.

    Raises:
        RunFormatError: with every record without a query or results, and every result without an id.
    """
    path = Path(path)
    problems = ProblemList(RunFormatError)
    records = list(json_records(path, problems))
    if len(records) == 1 and first_of_keys(records[0][1], RESULTS) is None:
        return run_of_mapping(records[0][1], stem(path), RunFormatError)
    found: list[tuple[int, str | None, str, Any]] = []
    for line, record in records:
        id_key, text_key = first_of_keys(record, RUN_QUERY_IDS), first_of_keys(record, RUN_QUERY_TEXTS)
        key = first_of_keys(record, RESULTS)
        if key is None or (id_key is None and text_key is None):
            what, names = ("query", (*RUN_QUERY_IDS, *RUN_QUERY_TEXTS)) if key else ("results", RESULTS)
            problems.add(
                f"no {what}", path=shown(path), line=line, expected=" or ".join(names), got=shorten(", ".join(record))
            )
            continue
        query_id = None if id_key is None else str(record[id_key])
        found.append((line, query_id, str(record.get(text_key or "", "")), record[key]))
    by_texts = text_ids([text for _, _, text, _ in found])
    answers: dict[str, Answer] = {}
    for (line, query_id, _, results), by_text in zip(found, by_texts, strict=True):
        name = by_text if query_id is None else query_id
        place: dict[str, Any] = {"path": shown(path), "line": line}
        if name in answers:
            problems.add(f"query {shorten(name)} is there twice", **place, expected="each query once")
            continue
        answers[name] = answer_of(name, results, problems, place)
    problems.raise_if_any()
    return Run(stem(path), answers)


def run_of_mapping(answers: Mapping[Any, Any], name: str, error: type[UsageError | RunFormatError] = UsageError) -> Run:
    """Make a run of a mapping of query id to an answer.

    Scores of mappings order a run, best first. A list is in the order of its results, whatever their scores.

    Raises:
        CranfieldError: of type `error`: mappings and lists are mixed; or with the first answers, ids and scores that are none.
    """
    scored = {isinstance(documents, Mapping) for documents in answers.values()}
    if len(scored) > 1:
        raise error("the run mixes lists of ids and ids with scores", expected="one kind for all queries")
    problems = ProblemList(error)
    records: dict[str, Answer] = {}
    for query_id, documents in answers.items():
        if len(problems.problems) >= SHOWN_PROBLEMS:
            break
        if not is_id(query_id):
            problems.add(f"{shorten(query_id)} is not a query id", path=name, expected="text or whole numbers")
            continue
        records[str(query_id)] = answer_of(str(query_id), documents, problems, {"path": name})
    problems.raise_if_any()
    return Run(name, records, order="descending" if scored == {True} else "given")


def answer_of(query_id: str, documents: Any, problems: ProblemList, place: dict[str, Any]) -> Answer:
    """An answer of ids with scores, or of a list of results; every result without an id is added to the problems.

    Args:
        query_id: for messages.
        documents: the results. A list is in their order, or in that of their ranks, where each has one.
        problems: gets what is wrong.
        place: of the answer, for problems.
    """
    where = f"query {shorten(query_id)}"
    if isinstance(documents, Mapping):
        documents = list(documents.items())
    elif isinstance(documents, str | bytes | set | frozenset) or not isinstance(documents, Iterable):
        message = f"the answer to {where} is not a list"
        problems.add(message, **place, expected=f"a list of {_LISTED}; or ids with scores", got=shorten(documents))
        return Answer(Outcome.EMPTY)
    hits = []
    for rank, result in enumerate(_by_rank(documents), start=1):
        hit = hit_of(result)
        if isinstance(hit, Problem):
            problems.add(
                f"{where}, result {rank}: {hit.message}", **place, expected=hit.expected, got=hit.got, hint=hit.hint
            )
            if len(problems.problems) >= SHOWN_PROBLEMS:
                break
        else:
            hits.append(hit)
    if not hits and isinstance(documents, Iterator):
        message = f"the answer to {where} is an empty iterator; it may have been read before"
        problems.add(message, **place, expected=f"a list of {_LISTED}", hint="`list(...)` can be read more than once")
    return Answer(Outcome.ANSWERED if hits else Outcome.EMPTY, tuple(hits))


def _by_rank(documents: Iterable[Any]) -> Iterable[Any]:
    """Results in the order of their ranks, where each has another one."""
    if not isinstance(documents, list) or not all(isinstance(each, Mapping) for each in documents):
        return documents
    found = [next((each[name] for name in _RANKS if name in each), None) for each in documents]
    ranks = [rank for rank in found if isinstance(rank, int) and not isinstance(rank, bool)]
    if len(ranks) < len(found) or len({*ranks}) < len(ranks):
        return documents
    order = sorted(range(len(ranks)), key=ranks.__getitem__)
    return [documents[place] for place in order]


def hit_of(result: Any) -> Hit | Problem:
    """A result of an id, of a pair of an id or document and its score, or of a document; the problem of anything else."""
    if is_id(result):
        return Hit(str(result))
    if isinstance(result, Hit):
        return result
    if isinstance(result, tuple | list):
        return _hit_of_pair(result)
    values = document_values(result)
    if values is None:
        return Problem("the document id is neither text nor a whole number", expected=_LISTED, got=shorten(result))
    return _hit_of_document(values)


def _hit_of_pair(pair: Sequence[Any]) -> Hit | Problem:
    if len(pair) != _PAIR or isinstance(pair[0], tuple | list):
        return Problem("no pair", expected="an id and its score", got=shorten(pair))
    score, hit = finite(pair[1]), hit_of(pair[0])
    if score is None:
        return Problem("the score is not a finite number", expected="a number", got=shorten(pair[1]))
    return replace(hit, score=score) if isinstance(hit, Hit) else hit


def document_values(result: Any) -> Mapping[str, Any] | None:
    """A document of LangChain, LlamaIndex, Haystack or a mapping, by name; None where it is none of them."""
    if isinstance(result, Mapping):
        return result
    document = getattr(result, "node", result)  # LlamaIndex returns nodes with their scores
    metadata = next((getattr(document, name) for name in _METADATA if hasattr(document, name)), None)
    if not isinstance(metadata, Mapping):
        return None
    found = {name: getattr(document, name, None) for name in (*_PARENTS[:1], *STARTS[:2], *ENDS)}
    found["id"] = next((own for name in _OBJECT_IDS if (own := getattr(document, name, None)) is not None), None)
    found["text"] = next((text for name in _TEXTS if isinstance(text := getattr(document, name, None), str)), None)
    found["score"] = getattr(result, "score", None)
    return {"metadata": metadata, **{name: value for name, value in found.items() if value is not None}}


def _lines(values: Mapping[str, Any]) -> str | None:
    """First and last line of a result, as `10-20`; None where it does not say them."""
    by_name = {plain(key): value for key, value in values.items()}
    for names in OF_LINES[:LINE_PAIRS]:
        lines = [by_name.get(name) for name in names]
        if all(isinstance(line, int) and not isinstance(line, bool) for line in lines):
            return "-".join(map(str, lines))
    return None


def _hit_of_document(values: Mapping[str, Any]) -> Hit | Problem:
    given: Mapping[str, Any] = next((values[name] for name in _METADATA if isinstance(values.get(name), Mapping)), {})

    def first(where: Mapping[str, Any], names: Iterable[str]) -> Any:
        return next((where[name] for name in names if is_id(where.get(name)) and str(where[name]).strip()), None)

    own = first(values, _DOCUMENT_IDS)
    # An id in the metadata was given; the own id may be made by a vector store, and differs after the next indexing.
    written = (first(given, _SOURCES), first(given, _DOCUMENT_IDS), first({**given, **values}, _PARENTS))
    source = next((name for name in written if name is not None), None)
    if own is None and source is None:  # the same in the spelling of others
        own = first({plain(key): value for key, value in {**given, **values}.items()}, _NAMES_OF_DOCUMENTS)
    if source is None and own is None:
        source = first(values, _SOURCES)
    name = own if source is None else source
    if name is None:
        got = shorten(", ".join(map(str, (*values, *(f"metadata.{key}" for key in given)))))
        return Problem("a document without an id", expected="id, or metadata.source", got=got)
    score = values.get("score", values.get("_score"))
    if score is not None and finite(score) is None:
        return Problem("the score is not a finite number", expected="a number", got=shorten(score))
    kept = {key: value for key, value in values.items() if key not in {*_DOCUMENT_IDS, "score", "title", "span"}}
    fields: dict[str, Any] = {
        key: value for key, value in {**kept, **given}.items() if isinstance(value, str | int | float | bool)
    }
    if own is not None and str(own) != str(name):
        fields["document_id"] = str(own)
    merged = {**given, **values}
    text = next((merged[name] for name in _TEXTS if isinstance(merged.get(name), str)), None)
    if (characters := char_range(merged, text)) is not None:
        fields |= {"start_char": characters[0], "end_char": characters[1]}
    page = next((fields[name] for name in _PAGES if name in fields), None)
    if page is not None:
        fields.setdefault("page", page)
    title = values.get("title", given.get("title"))
    span = values.get("span", _lines({**given, **values}))
    return Hit(
        str(name),
        None if score is None else finite(score),
        title if isinstance(title, str) else None,
        span if isinstance(span, str) else None,
        fields=fields or None,
    )
