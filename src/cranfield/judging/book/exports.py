"""What leaves a book in other formats: its judgments as a test set, and the pooled results of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cranfield.base.errors import InputError, ProblemList, UnknownNameError, UsageError
from cranfield.base.words import command_word, join_first, or_list
from cranfield.books.store.book_records import KINDS, BookDump, BookHeader, BookLine
from cranfield.formats.io.files import MAX_RECORD_BYTES, bounded_lines, opened, shown, write_text
from cranfield.formats.io.json_text import json_objects
from cranfield.judging.book.freeze import rater_names, renamed
from cranfield.judging.book.grades import BookContents, rated_book
from cranfield.judging.book.onto import left_out
from cranfield.model import Answer, GroupedJudgment, Hit, Outcome, Run, TestSet
from cranfield.model.note import info

JUDGES = "judges"


def judgments_of(
    contents: BookContents,
    *,
    rule: str | None = None,
    models: bool = False,
    pseudonyms: bool = False,
    by_judge: bool = False,
) -> TestSet:
    """The judgments of a book with raters, reasons and times; -1 for what is pooled and unjudged.

    A note, and the history of the test set, say that judgments of the test set of the pool are not in it.

    Args:
        contents: the book.
        rule: consensus rule; None is that of the book.
        models: whether a model's grade counts where nothing else gives one.
        pseudonyms: whether raters are called `rater 1`, ...
        by_judge: judgments by group, for qrels by judge, in the place of ratings; an adjudicator is a judge too.
    """
    names = rater_names(contents, pseudonyms=pseudonyms)
    testset = renamed(rated_book(contents, rule=rule, models=models, reasons=True).testset, names)
    without = ""
    if sentence := left_out(contents.info):
        onto = "" if contents.info.source.get("testset_file") else " --onto SET"
        freeze = f"cranfield book freeze {command_word(contents.info.name)}{onto} --out FILE"
        without = f"{sentence}; `{freeze}` writes the next version of that test set with both"
        testset = replace(testset, meta=replace(testset.meta, history=(*testset.meta.history, without)))
    if not by_judge:
        return replace(testset, notes=info(*filter(None, [without])))
    raters = sorted({r.rater for given in testset.ratings.values() for r in given})
    labels = _without_spaces(raters)
    groups = {
        query_id: tuple(
            GroupedJudgment(rating.doc_id, labels[rating.rater], rating.grade)
            for rating in given
            if rating.grade is not None
        )
        for query_id, given in testset.ratings.items()
    }
    groups = {query_id: given for query_id, given in groups.items() if given}
    spaced = [rater for rater in raters if " " in rater]
    names_note = f"spaces in the names of judges are written as _: {join_first(spaced)}" if spaced else ""
    if not groups:
        raise UsageError(f"book {contents.info.name!r} has no grades")
    return replace(
        testset,
        ratings={},
        consensus="",
        groups=groups,
        grouping="judge",
        notes=info(*filter(None, [without, names_note])),
    )


def _without_spaces(raters: Sequence[str]) -> dict[str, str]:
    """Rater to a name without spaces, which no other rater has: one that has none stays as it is."""
    labels = {rater: rater for rater in raters if " " not in rater}
    for rater in raters:
        label = rater.replace(" ", "_")
        while rater not in labels and label in labels.values():
            label += "_"
        labels.setdefault(rater, label)
    return labels


def pooled_run(contents: BookContents, name: str) -> Run:
    """The results of a run that are in the pool, in its order.

    Raises:
        UnknownNameError: no result of the pool is of this run.
    """
    ranks: dict[str, list[tuple[int, str]]] = {}
    known: set[str] = set()
    for item in contents.items:
        known |= set(item.runs)
        rank = item.runs.get(name)
        if isinstance(rank, int):
            ranks.setdefault(item.query, []).append((rank, item.doc))
    if name not in known:
        raise UnknownNameError.among("run", name, sorted(known))
    answers = {
        query.name: Answer(Outcome.ANSWERED, tuple(Hit(doc) for _, doc in sorted(ranks.get(query.name, []))))
        for query in contents.queries
        if query.name in ranks
    }
    return Run(name, answers)


BOOK_KEY = "cranfield_book"


class BookFileError(InputError):
    """A file that is no book."""


def write_book(dump: BookDump, path: Path) -> None:
    """Write a book; the same book gives the same bytes. Readable by its owner alone."""
    lines = [_line(dump.book)]
    lines += [_line(record, kind) for kind in KINDS for record in getattr(dump, kind)]
    write_text(path, lines, errors="surrogatepass", private=True)


def _line(record: BookLine, kind: str = "") -> str:
    values = record.model_dump(mode="json", exclude_none=True)
    return json.dumps({kind: values} if kind else values, ensure_ascii=False, separators=(",", ":")) + "\n"


def is_book(path: Path) -> bool:
    """Whether the first line is that of a book."""
    with opened(path, BookFileError) as stream:
        return f'"{BOOK_KEY}"'.encode() in stream.read(100)


def read_book(path: Path) -> BookDump:
    """Read a book.

    Raises:
        BookFileError: with every line that is malformed.
    """
    problems = ProblemList(BookFileError)
    header: BookHeader | None = None
    found: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    with opened(path, BookFileError) as stream:
        lines = bounded_lines(stream, path, BookFileError, MAX_RECORD_BYTES)
        for line, values in json_objects(lines, shown(path), problems):
            kind = "" if header is None else next(iter(values), "")
            if header is not None and (len(values) != 1 or kind not in KINDS):
                problems.add(
                    "not a valid line of a book file",
                    path=shown(path),
                    line=line,
                    expected=f"one of {or_list(list(KINDS))}",
                )
                continue
            model = KINDS.get(kind, BookHeader)
            try:
                record = model.model_validate(values[kind] if kind else values)
            except ValidationError as error:
                for each in error.errors(include_url=False):
                    where = ".".join(map(str, each["loc"]))
                    problems.add(f"{where}: {each['msg']}", path=shown(path), line=line)
                if header is None:
                    break
                continue
            if isinstance(record, BookHeader):
                header = record
            else:
                found[kind].append(record)
    problems.raise_if_any()
    if header is None:
        raise BookFileError(
            "not a book file: the file is empty", path=shown(path), expected=f'a header with "{BOOK_KEY}": 1'
        )
    return BookDump(book=header, **found)
