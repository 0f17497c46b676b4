"""BEIR folders: `queries.jsonl`, `qrels/*.tsv` with a header, and `corpus.jsonl`, which is not loaded.

A folder stands for its split `test`; naming a file in `qrels` takes another one.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cranfield.base.errors import Problem, ProblemList, TestSetError, shorten
from cranfield.base.words import count_noun
from cranfield.formats.io.delimited import read_sheet, short, write_sheet, write_unicode
from cranfield.formats.io.files import BYTE_ORDER_MARK, opened, shown, stem
from cranfield.formats.io.json_text import json_objects
from cranfield.formats.testsets.judgment_table import read_judgment_table
from cranfield.formats.testsets.trec import UnknownFields, check_graded
from cranfield.model import Note, Query, TestSet
from cranfield.model.note import info

HEADER = ("query-id", "corpus-id", "score")
QUERIES, CORPUS, QRELS = "queries.jsonl", "corpus.jsonl", "qrels"
SPLIT = "test"
PACKED = ("", ".gz", ".zst")
TREC_QRELS = ("qrels.tsv", "qrels.txt", "qrels.trec")
"""Qrels beside the queries, where there is no folder of splits."""
SMALL_CORPUS_BYTES = 200_000_000
"""A larger corpus is not looked through for the ids that are judged."""


def read_beir(path: Path | str) -> TestSet:
    """Read a BEIR folder, or the qrels of one split (with the texts of the folder that it lies in).

    Queries that the split does not judge are left out, and counted. `metadata.strata` of a query are its strata; other
    metadata are where two queries say the same.

    Raises:
        TestSetError: with every bad line, each with its number.
    """
    path = Path(path)
    files = beir_files(path)
    qrels, splits, folder = files.qrels, files.splits, files.folder
    texts = _Texts(files.queries)
    found: list[Problem] = []
    try:
        judged = _judgments(qrels)
    except TestSetError as error:
        found, judged = [*error.problems], TestSet(stem(path), ())
    try:
        texts.read(judged.query_ids)
    except TestSetError as error:
        found += error.problems
    if found:
        raise TestSetError(found)
    notes = list(judged.notes)
    if splits:
        others = ", ".join(sorted(other.name for other in splits))
        notes += info(f"judgments are of {qrels.name}; naming {others} in {QRELS} takes another split")
    notes += texts.notes(judged.query_ids)
    notes += info(*_unknown_documents(judged, _file(folder, CORPUS) if folder is not None else None))
    queries = tuple(texts.query(query_id) for query_id in judged.query_ids)
    return replace(judged, name=files.name, queries=queries, notes=tuple(notes))


@dataclass(frozen=True, slots=True)
class BeirFiles:
    """Which files a folder, or the qrels of one of its splits, stand for."""

    qrels: Path
    splits: tuple[Path, ...]
    """The qrels of other splits, where a folder was named."""
    folder: Path | None
    queries: Path | None
    name: str


def beir_files(path: Path) -> BeirFiles:
    """The files of a folder, or of its split.

    Raises:
        TestSetError: no qrels stand for the folder.
    """
    if path.is_dir():
        qrels, splits = _split_of(path)
        folder: Path | None = path
    else:
        qrels, splits = path, ()
        folder = path.absolute().parent.parent if path.absolute().parent.name == QRELS else None
        folder = folder if folder is not None and _file(folder, QUERIES) else None
    queries = _file(folder, QUERIES) if folder is not None else None
    if folder is None:
        return BeirFiles(qrels, splits, folder, queries, stem(path))
    name = folder.resolve().name
    is_main = path.is_dir() or stem(qrels) == SPLIT
    return BeirFiles(qrels, splits, folder, queries, name if is_main else f"{name}-{stem(qrels)}")


def _file(folder: Path, name: str) -> Path | None:
    """A file of a folder, packed or not; None where it is not there."""
    return next((folder / (name + packed) for packed in PACKED if (folder / (name + packed)).is_file()), None)


def _split_of(folder: Path) -> tuple[Path, tuple[Path, ...]]:
    """The qrels that stand for a folder, and those of its other splits."""
    splits = [file for packed in PACKED for file in (folder / QRELS).glob(f"*.tsv{packed}")]
    chosen = [file for file in splits if stem(file) == SPLIT] or splits
    if len(chosen) == 1:
        return chosen[0], tuple(file for file in splits if file != chosen[0])
    others = [file for name in TREC_QRELS if (file := _file(folder, name)) is not None]
    if not splits and len(others) == 1:
        return others[0], ()
    found = ", ".join(sorted(file.name for file in (*splits, *others))) or "none"
    raise TestSetError(
        "no default judgments in this folder",
        path=shown(folder),
        expected=f"{QRELS}/{SPLIT}.tsv, or one file of judgments",
        got=found,
        hint="name the file of a split" if splits else None,
    )


def _judgments(qrels: Path) -> TestSet:
    """Judgments of a split: with BEIR's header, or TREC qrels."""
    if is_trec(qrels):
        from cranfield.formats.testsets.trec import read_qrels

        return read_qrels(qrels)
    sheet = read_sheet(qrels)
    if sheet.names[:3] != HEADER:
        sheet.fault(
            sheet.line, None, "not a header of BEIR qrels", expected="\t".join(HEADER), got=", ".join(sheet.names)
        )
        sheet.problems.raise_if_any()
    return read_judgment_table(qrels)


def is_trec(qrels: Path) -> bool:
    """Whether the judgments are TREC qrels, and no table with a header."""
    with opened(qrels, TestSetError) as stream:
        first = stream.readline(1000).removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    return len(first.split()) == 4 and not first.startswith(HEADER[0])


@dataclass
class _Texts:
    """What `queries.jsonl` says of the judged queries."""

    path: Path | None
    texts: dict[str, str] = field(default_factory=dict)
    strata: dict[str, dict[str, str]] = field(default_factory=dict)
    n_others: int = 0
    """Queries without judgments."""
    unknown_fields: UnknownFields = field(default_factory=UnknownFields)

    def read(self, wanted: tuple[str, ...]) -> None:
        """Read it, for some queries."""
        problems = ProblemList(TestSetError)
        wanted_ids, lines = set(wanted), dict[str, int]()
        for line, record in query_objects(self.path, problems) if self.path is not None else ():
            query_id, text = record["_id"], record.get("text")
            where = {"path": shown(self.path) if self.path else None, "line": line}
            if lines.setdefault(query_id, line) != line:
                problems.add(
                    f"query {query_id!r} occurs twice",
                    **where,
                    expected=f"one line per query; the first is line {lines[query_id]}",
                )
            elif not isinstance(text, str):
                problems.add(f"query {query_id!r} has no text", **where, expected='a key "text"', got=shorten(text))
            elif query_id in wanted_ids:
                self.texts[query_id] = text
                strata = describe_query(query_id, record, self.unknown_fields)
                if strata:
                    self.strata[query_id] = strata
            else:
                self.n_others += 1
        problems.raise_if_any()

    def query(self, query_id: str) -> Query:
        """A query with its text and strata."""
        strata = {**self.unknown_fields.strata(query_id), **self.strata.get(query_id, {})}
        return Query(query_id, self.texts.get(query_id, ""), strata)

    def notes(self, judged: tuple[str, ...]) -> tuple[Note, ...]:
        """Notes on the texts, and on keys that have no field."""
        return (*info(*self._notes(judged)), *self.unknown_fields.notes())

    def _notes(self, judged: tuple[str, ...]) -> Iterator[str]:
        """What was noticed."""
        if self.path is None:
            yield f"{QUERIES} is missing: the queries have no text"
            return
        missing = sum(query_id not in self.texts for query_id in judged)
        if missing:
            yield f"without a text: {count_noun(missing, 'judged queries')} not in {self.path.name}"
        if self.n_others:
            yield f"left out: {count_noun(self.n_others, 'queries')} of {self.path.name} that these qrels do not judge"


def describe_query(query_id: str, record: Mapping[str, Any], unknown_fields: UnknownFields) -> dict[str, str]:
    """The strata that a line names; what else it says goes to `unknown_fields`."""
    metadata = record.get("metadata")
    more_fields = dict(metadata) if isinstance(metadata, dict) else {}
    own = more_fields.pop("strata", None)
    more = {key: value for key, value in record.items() if key not in {"_id", "text", "metadata"}}
    is_named = isinstance(own, dict) and all(isinstance(value, str) for value in own.values())
    if own and not is_named:
        more_fields["strata"] = own
    unknown_fields.take(query_id, {**more, **more_fields})
    return own if isinstance(own, dict) and is_named else {}


def query_objects(path: Path, problems: ProblemList) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line and object of each line that is one and has an `_id`; the others are problems."""
    expected = '{"_id": …}'
    with opened(path, TestSetError) as stream:
        for number, record in json_objects(_without_mark(stream), shown(path), problems, expected=expected):
            if isinstance(record.get("_id"), str) and record["_id"]:
                yield number, record
            else:
                got = shorten(record)
                problems.add("no object with an _id", path=shown(path), line=number, expected=expected, got=got)


def _without_mark(lines: Iterable[bytes]) -> Iterator[bytes]:
    for number, line in enumerate(lines):
        yield line if number else line.removeprefix(BYTE_ORDER_MARK)


def _unknown_documents(judged: TestSet, corpus: Path | None) -> Iterator[str]:
    """Count the judged ids that the corpus does not hold, where it is small enough to look."""
    if corpus is None:
        return
    if corpus.stat().st_size >= SMALL_CORPUS_BYTES:
        yield f"{corpus.name} is large: it was not searched for the judged documents"
        return
    problems = ProblemList(TestSetError)
    missing = {doc_id for grades in judged.grades.values() for doc_id in grades}
    missing.difference_update(record["_id"] for _, record in query_objects(corpus, problems))
    if problems.problems:
        yield f"{corpus.name}: {count_noun(len(problems.problems), 'bad lines')}, the first {problems.problems[0].line}"
    if missing:
        least = min(missing)
        yield f"not in {corpus.name}: {count_noun(len(missing), 'judged documents')}, {shorten(least)}" + (
            ", …" if len(missing) > 1 else ""
        )


def write_beir(testset: TestSet, path: Path | str) -> None:
    """Write a folder of `queries.jsonl` and `qrels/test.tsv`, all of it or nothing; there is no corpus to write.

    Raises:
        TestSetError: the folder is there already and not empty, or the set holds what BEIR does not.
    """
    path = Path(path)
    problems = ProblemList(TestSetError)
    check_graded(testset, path, problems)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        problems.add(
            "not written: the folder already exists",
            path=str(path),
            expected="a folder that does not exist or is empty",
        )
    problems.raise_if_any()
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name[:100]}.", suffix=".part", dir=path.parent))
    try:
        folder = temporary / path.name
        (folder / QRELS).mkdir(parents=True)
        write_unicode(folder / QUERIES, (_line(query) for query in testset.queries))
        rows = (
            [query.id, doc_id, short(grade)]
            for query in testset.queries
            for doc_id, grade in testset.grades.get(query.id, {}).items()
        )
        write_sheet(folder / QRELS / f"{SPLIT}.tsv", HEADER, rows)
        folder.replace(path)
    except TestSetError as error:
        error.hide_folder(temporary)
        raise
    finally:
        shutil.rmtree(temporary)


def _line(query: Query) -> str:
    metadata = {"strata": dict(query.strata)} if query.strata else {}
    return json.dumps({"_id": query.id, "text": query.text, "metadata": metadata}, ensure_ascii=False) + "\n"
