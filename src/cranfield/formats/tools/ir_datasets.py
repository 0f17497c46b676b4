"""Test sets of the catalogue of ir_datasets, asked for by name: `ir_datasets:cranfield`.

That library fetches the data from the places where their owners keep them, and holds them in its own folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield.base.errors import CranfieldError, MissingExtraError, TestSetError, UnknownNameError, shorten
from cranfield.base.words import count_noun
from cranfield.formats.io.delimited import as_number
from cranfield.formats.registry import CATALOGUE
from cranfield.formats.testsets.judgments import JudgmentRow, qrels_from_rows
from cranfield.model import Query, TestSet
from cranfield.model.note import info

_ADDRESS = re.compile(r"https?://[^\s'\"),]+")
SHOWN = 12
"""So many names are listed."""


def read_dataset(path: Path | str) -> TestSet:
    """Read a test set by its name. A document judged several times has its highest grade.

    Raises:
        MissingExtraError: ir_datasets is not installed.
        UnknownNameError: there is no such name.
        TestSetError: it has no queries or no judgments, or the data cannot be had.
    """
    where = str(path)
    name = where.removeprefix(CATALOGUE)
    dataset = _dataset(name)
    try:
        _check(name, where, dataset)
        texts = {query.query_id: _text(query) for query in dataset.queries_iter()}
        judgments = [(j.query_id, j.doc_id, j.relevance, getattr(j, "subtopic_id", "")) for j in dataset.qrels_iter()]
    except CranfieldError:
        raise
    except Exception as cause:  # whatever a download, an archive or a parser raises
        raise TestSetError(
            f"the data of {name!r} could not be {_reason(cause)}",
            path=where,
            hint="ir_datasets downloads them from their owners; see its documentation for the requirements",
        ) from cause
    return _testset(name, where, texts, judgments)


def _reason(cause: Exception) -> str:
    """What went wrong: the addresses that were asked in vain, or the library's own words."""
    request = getattr(cause, "request", None)
    places = list(dict.fromkeys(_ADDRESS.findall(f"{cause} {getattr(request, 'url', '')}")))
    if places:
        return f"fetched from {' or '.join(places)}"
    return f"fetched or read: {shorten(' '.join(str(cause).split()) or type(cause).__name__)}"


def _dataset(name: str) -> Any:
    try:
        import ir_datasets  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise MissingExtraError.for_extra(f"{CATALOGUE}{name}", "datasets") from None
    try:
        return ir_datasets.load(name)
    except KeyError:
        raise UnknownNameError.among("ir_datasets name", name, ir_datasets.registry) from None


def _check(name: str, where: str, dataset: Any) -> None:
    """Refuse a data set that is no test set, and name those below it that may be one."""
    lacking = [noun for part, noun in (("queries", "queries"), ("qrels", "judgments")) if not dataset.has(part)]
    if not lacking:
        return
    import ir_datasets

    below = sorted(other for other in ir_datasets.registry if other.startswith(f"{name}/"))
    hint = f"below it: {', '.join(below[:SHOWN])}" + ("…" if len(below) > SHOWN else "") if below else None
    message = f"{name!r} has no {' and no '.join(lacking)}"
    raise TestSetError(message, path=where, expected="a data set with queries and judgments", hint=hint)


def _text(query: Any) -> str:
    """What the library takes for the text of a query, or its first field that is text and no id."""
    if hasattr(query, "default_text"):
        return str(query.default_text())
    named = getattr(query, "text", None) or getattr(query, "title", None)
    others = (value for value in tuple(query)[1:] if isinstance(value, str))
    return str(named) if named else next(others, "")


def _testset(name: str, where: str, texts: Mapping[str, str], judgments: Iterable[JudgmentRow]) -> TestSet:
    best: dict[tuple[str, str, str], float] = {}
    lowered = 0
    for query_id, doc_id, relevance, subtopic in judgments:
        grade = as_number(relevance)
        if grade is None:
            message = f"query {shorten(query_id)}, document {shorten(doc_id)}: the grade is not a finite number"
            raise TestSetError(message, path=where, expected="a number", got=shorten(relevance))
        earlier = best.setdefault((query_id, doc_id, subtopic), grade)
        lowered += earlier != grade
        best[query_id, doc_id, subtopic] = max(earlier, grade)
    rows = ((query_id, doc_id, grade, subtopic) for (query_id, doc_id, subtopic), grade in best.items())
    made = qrels_from_rows(rows, name=name, by_subtopic=any(subtopic for _, _, subtopic in best))
    ids = [query_id for query_id in texts if query_id in made.grades]
    ids += [query_id for query_id in made.grades if query_id not in texts]
    return replace(
        made,
        queries=tuple(Query(query_id, texts.get(query_id, "")) for query_id in ids),
        notes=info(*_notes(texts, made, lowered)),
    )


def _notes(texts: Mapping[str, str], made: TestSet, lowered: int) -> Iterator[str]:
    counts = {
        "unjudged queries, left out": sum(query_id not in made.grades for query_id in texts),
        "judged queries without a text": sum(query_id not in texts for query_id in made.grades),
        "judgments that contradict an earlier one: the highest grade is used": lowered,
    }
    yield from (count_noun(n, what) for what, n in counts.items() if n)
