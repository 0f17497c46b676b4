"""Runs as mappings and lists: of Python, and of JSON files that pytrec_eval, BEIR, ranx, Haystack and LangChain users save.

The answer to a query is a mapping of ids to scores, or a list in order: of ids, of pairs of an id and its score, or of documents.
A document goes by its source where its metadata name one, else by its id; the rest of its metadata are fields of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield.base.errors import SHOWN_PROBLEMS, Problem, ProblemList, RunFormatError, UsageError, shorten
from cranfield.formats.io.delimited import is_id
from cranfield.formats.io.files import shown, stem
from cranfield.formats.io.records import first_of_keys, json_records, load_json_values
from cranfield.formats.runs.record import finite
from cranfield.model import Answer, Hit, Outcome, Run
from cranfield.model.query_ids import text_ids

RUN_QUERY_IDS = ("query_id", "qid", "q_id", "_id", "id")
RUN_QUERY_TEXTS = ("query", "question", "query_text", "user_input", "input", "text")
RESULTS = (
    *("results", "documents", "docs", "hits", "source_documents", "retrieved_documents", "retrieved_docs"),
    *("retrieved_ids", "retrieved_context_ids"),
)
"""Keys of a record of a query and its results, the likeliest first."""
_METADATA = ("metadata", "meta")
_SOURCES = ("source", "file_path", "path", "url")
_DOCUMENT_IDS = ("id", "doc_id", "_id")
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
            problems.add(f"query {shorten(name)} occurs twice", **place, expected="each query once")
            continue
        answers[name] = _answer(name, results, problems, place)
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
        records[str(query_id)] = _answer(str(query_id), documents, problems, {"path": name})
    problems.raise_if_any()
    return Run(name, records, order="descending" if scored == {True} else "given")


def _answer(query_id: str, documents: Any, problems: ProblemList, place: dict[str, Any]) -> Answer:
    where = f"query {shorten(query_id)}"
    if isinstance(documents, Mapping):
        documents = list(documents.items())
    elif isinstance(documents, str | bytes | set | frozenset) or not isinstance(documents, Iterable):
        message = f"the answer to {where} is not a list"
        problems.add(message, **place, expected=f"a list of {_LISTED}; or ids with scores", got=shorten(documents))
        return Answer(Outcome.EMPTY)
    hits = []
    for rank, result in enumerate(documents, start=1):
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
    """A document of LangChain, Haystack or a mapping, by name; None where it is none of them."""
    if isinstance(result, Mapping):
        return result
    metadata = next((getattr(result, name) for name in _METADATA if hasattr(result, name)), None)
    if not isinstance(metadata, Mapping):
        return None
    return {"id": getattr(result, "id", None), "metadata": metadata, "score": getattr(result, "score", None)}


def _hit_of_document(values: Mapping[str, Any]) -> Hit | Problem:
    given: Mapping[str, Any] = next((values[name] for name in _METADATA if isinstance(values.get(name), Mapping)), {})
    own = next((values[name] for name in _DOCUMENT_IDS if is_id(values.get(name)) and str(values[name]).strip()), None)
    source = next((given[name] for name in _SOURCES if is_id(given.get(name)) and str(given[name]).strip()), None)
    if source is None and own is None:
        source = next(
            (values[name] for name in _SOURCES if is_id(values.get(name)) and str(values[name]).strip()), None
        )
    name = own if source is None else source
    if name is None:
        got = shorten(", ".join(map(str, (*values, *(f"metadata.{key}" for key in given)))))
        return Problem("a document without an id", expected="id, or metadata.source", got=got)
    score = values.get("score")
    if score is not None and finite(score) is None:
        return Problem("the score is not a finite number", expected="a number", got=shorten(score))
    fields: dict[str, Any] = {key: value for key, value in given.items() if isinstance(value, str | int | float | bool)}
    if source is not None and own is not None:
        fields["document_id"] = str(own)
    title = values.get("title", given.get("title"))
    span = values.get("span")
    return Hit(
        str(name),
        None if score is None else finite(score),
        title if isinstance(title, str) else None,
        span if isinstance(span, str) else None,
        fields=fields or None,
    )
