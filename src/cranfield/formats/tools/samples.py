"""Samples and datasets of RAG evaluation: Ragas, DeepEval, LlamaIndex. They hold texts where others have ids.

A context goes by its id where the sample has ids, else by the digest of its text. One file of samples gives the test set (what
should be found: the reference contexts) and the run (what was found). Answers and references are not judged here.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cranfield.base.errors import ProblemList, RunFormatError, TestSetError, shorten
from cranfield.base.words import count_noun
from cranfield.formats.io.delimited import is_id
from cranfield.formats.io.files import shown, stem
from cranfield.formats.io.records import first_of_keys, json_records, load_json
from cranfield.formats.testsets.trec import TestSetBuilder
from cranfield.formats.tools.by_text import TextBuilder
from cranfield.model import Answer, Hit, Outcome, Query, Run, TestSet
from cranfield.model.note import info, not_carried
from cranfield.model.query_ids import text_ids

SAMPLE_TEXTS = ("user_input", "question", "input", "query")
REFERENCE_IDS = ("reference_context_ids",)
REFERENCES = ("reference_contexts", "ground_truth_contexts", "context", "expected_context")
RETRIEVED_IDS = ("retrieved_context_ids",)
RETRIEVED = ("retrieved_contexts", "retrieval_context", "retrievalContext", "contexts")
"""Keys of a sample, the likeliest first."""
CONTEXT_ID_CHARS = 12
_TITLE_CHARS = 80


def context_id(text: str) -> str:
    """The id of a context without one: the beginning of the SHA-256 of its text, without the blanks around it."""
    return hashlib.sha256(text.strip().encode("utf-8", "surrogatepass")).hexdigest()[:CONTEXT_ID_CHARS]


def read_samples(path: Path | str) -> TestSet:
    """Read samples of Ragas or DeepEval as a test set: what the reference contexts are has the grade 1.

    Raises:
        TestSetError: with every sample without a text, and every context that is none; or no sample has reference contexts.
    """
    path = Path(path)
    problems = ProblemList(TestSetError)
    builder = TextBuilder(path, problems=problems)
    others: Counter[str] = Counter()
    n_without = 0
    for line, text, record in _samples(path, problems):
        key = text
        builder.query(key, Query("", text))
        contexts = _contexts(record, REFERENCE_IDS, REFERENCES, problems, {"path": shown(path), "line": line})
        n_without += not contexts
        for doc_id, _ in contexts:
            builder.judge(key, doc_id, 1.0, line)
        known = {*SAMPLE_TEXTS, *REFERENCE_IDS, *REFERENCES, *RETRIEVED_IDS, *RETRIEVED}
        others.update(name for name in record if name not in known and record[name] not in (None, "", [], {}))
    problems.raise_if_any()
    if builder.queries and not builder.grades.values:
        raise TestSetError(
            "no sample has reference contexts",
            path=shown(path),
            expected=" or ".join((*REFERENCE_IDS, *REFERENCES)),
            hint="samples with only retrieved contexts are a run: pass a test set with the judgments first",
        )
    notes = [*not_carried(f"{count_noun(n, 'values')} of {name!r}" for name, n in others.items())]
    if n_without:
        notes += info(f"without reference contexts: {count_noun(n_without, 'samples')}")
    return builder.testset(notes)


def read_samples_run(path: Path | str) -> Run:
    """Read samples of Ragas or DeepEval as a run: the retrieved contexts, in order.

    Raises:
        RunFormatError: with every sample without a text, and every context that is none; or none has retrieved contexts.
    """
    path = Path(path)
    problems = ProblemList(RunFormatError)
    found: dict[str, list[Hit]] = {}
    for line, text, record in _samples(path, problems):
        if text in found:
            problems.add(f"query {shorten(text)} occurs twice", path=shown(path), line=line, expected="each query once")
        if first_of_keys(record, (*RETRIEVED_IDS, *RETRIEVED)) is not None:
            contexts = _contexts(record, RETRIEVED_IDS, RETRIEVED, problems, {"path": shown(path), "line": line})
            found[text] = [Hit(doc_id, title=title) for doc_id, title in contexts]
    problems.raise_if_any()
    if not found:
        expected = " or ".join((*RETRIEVED_IDS, *RETRIEVED))
        raise RunFormatError("no sample has retrieved contexts", path=shown(path), expected=expected)
    answers = {
        query_id: Answer(Outcome.ANSWERED if hits else Outcome.EMPTY, tuple(hits))
        for query_id, hits in zip(text_ids(list(found)), found.values(), strict=True)
    }
    return Run(stem(path), answers)


def _samples(path: Path, problems: ProblemList) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Line, text of the query and record of each sample."""
    for line, record in json_records(path, problems):
        key = first_of_keys(record, SAMPLE_TEXTS)
        text = record[key] if key else None
        if isinstance(text, list) and text and isinstance(text[-1], Mapping):  # several turns of Ragas: the last counts
            text = text[-1].get("content")
        if isinstance(text, str) and text.strip():
            yield line, text, record
        else:
            got = shorten(", ".join(record)) if key is None else shorten(text)
            problems.add(
                "a sample without a text", path=shown(path), line=line, expected=" or ".join(SAMPLE_TEXTS), got=got
            )


def _contexts(
    record: Mapping[str, Any],
    of_ids: tuple[str, ...],
    of_texts: tuple[str, ...],
    problems: ProblemList,
    place: Mapping[str, Any],
) -> list[tuple[str, str | None]]:
    """Id and beginning of each context, in order."""
    ids, texts = first_of_keys(record, of_ids), first_of_keys(record, of_texts)
    values = record[ids] if ids else record[texts] if texts else []
    listed = [values] if isinstance(values, str) else values
    right = is_id if ids else lambda value: isinstance(value, str)
    if not isinstance(listed, list) or not all(map(right, listed)):
        expected = "a list of ids" if ids else "a list of texts"
        problems.add(f"{ids or texts} is not such a list", **place, expected=expected, got=shorten(values))
        return []
    if ids:
        return [(str(value), None) for value in listed]
    return [(context_id(text), " ".join(text.split())[:_TITLE_CHARS]) for text in listed]


def read_llama_index(path: Path | str) -> TestSet:
    """Read a dataset of LlamaIndex: `queries` (id to text), `relevant_docs` (id to ids) and `corpus` (id to text).

    Raises:
        TestSetError: with every text and list that is none, and every relevant document that the corpus does not hold.
    """
    path = Path(path)
    located = load_json(path)
    top = located.top
    builder = TestSetBuilder(path, located.mark)
    parts: dict[str, Mapping[str, Any]] = {}
    for key in ("queries", "relevant_docs", "corpus"):
        value = top.get(key, {})
        if not isinstance(value, Mapping) or (key not in top and key != "corpus"):
            message = f"{key} is not an object" if key in top else f"missing key {key!r}"
            builder.problem(message, (key,), expected="`{id: …}`", got=shorten(value) if key in top else None)
        parts[key] = value if isinstance(value, Mapping) else {}
    for query_id, text in parts["queries"].items():
        if isinstance(text, str) and text.strip():
            builder.queries[query_id] = Query(query_id, text)
        else:
            builder.problem(f"query {shorten(query_id)} has no text", ("queries", query_id), expected="a text")
    corpus = parts["corpus"]
    _judge(builder, parts)
    unknown = [doc_id for judged in builder.grades.values.values() for doc_id in judged if doc_id not in corpus]
    notes = [*builder.repeated()]
    if unknown and corpus:
        notes += info(f"not in the corpus: {count_noun(len(unknown), 'relevant documents')}, {shorten(unknown[0])}")
    if corpus:
        notes += info(
            f"texts of {count_noun(len(corpus), 'documents')}: a source `corpus: {{path: {path.name}}}` shows them"
        )
    lost = [key for key in top if key not in {*parts, "mode"}]
    return builder.testset((*notes, *not_carried(f"the key {key!r} of the file" for key in lost)), noun="query")


def _judge(builder: TestSetBuilder, parts: Mapping[str, Mapping[str, Any]]) -> None:
    for query_id, relevant in parts["relevant_docs"].items():
        place = ("relevant_docs", query_id)
        if query_id not in parts["queries"]:
            builder.problem(
                f"query {shorten(query_id)} is not one of the queries", place, expected="a query with a text"
            )
        elif not isinstance(relevant, list) or not all(map(is_id, relevant)):
            message = f"query {shorten(query_id)} has no list of documents"
            builder.problem(message, place, expected="a list of ids", got=shorten(relevant))
        else:
            for index, doc_id in enumerate(map(str, relevant)):
                builder.judge(query_id, doc_id, 1.0, (*place, index))
