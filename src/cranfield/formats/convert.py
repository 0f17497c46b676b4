"""Writing a test set in another format: what the format cannot hold is taken out first, counted, and reported."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Literal

from cranfield.base.errors import Problem, ProblemList, RunFormatError, TestSetError, UnknownNameError, shorten
from cranfield.base.words import count_noun, is_formula, join_first
from cranfield.formats.features import FEATURES, QUIET, is_judged, only_grades
from cranfield.formats.io.delimited import WHITE_SPACE
from cranfield.formats.io.files import decode, read_bytes, suffix_of, unpacked_name
from cranfield.formats.registry import ANY_GRADE, NO_SUBGROUP, Format, Kind
from cranfield.formats.sniff import FORMATS, WHAT
from cranfield.model import Entity, Run, Span, Target, TestSet
from cranfield.model.query_ids import id_of

_ENCODED = re.compile(f"%|{WHITE_SPACE.pattern}")
CHEAP = 100_000
"""A written set of so many judgments is read back."""
FORMULA = "would run as a formula in a spreadsheet (=, +, - or @ first): open the file there as text only"
EQUAL_QUESTIONS = "queries with one text: Cranfield cannot read the new file, because it would give them the same id"


def write_testset(testset: TestSet, path: Path | str, format: str | None = None) -> tuple[str, ...]:  # noqa: A002  the option's own name
    """Write a test set in a format by name, or in the one that the file's name ends in.

    Args:
        testset: what is written. A query that loses all that is expected for it is left out.
        path: replaced at the end; for formats that are a folder, the folder.
        format: a name of a format with a writer; None takes it from the end of `path`.

    Returns:
        A sentence for each thing that the file does not hold.

    Raises:
        TestSetError: nothing that is expected would be left, queries lack what the format needs, or ids cannot stand in it.
        UnknownNameError: there is no such format.
    """
    return convert(testset, Path(path), format)[1]


def convert(testset: TestSet, path: Path, format: str | None = None) -> tuple[TestSet, tuple[str, ...]]:  # noqa: A002  as above
    """As `write_testset`, with the test set that was written: of `CHEAP` judgments at most, as it reads back."""
    entry = chosen_format(path, format)
    fitting, sentences = fitted(testset, entry, path)
    write, read = entry.write, entry.read
    if write is None:
        raise TestSetError("not written: this format is only read", path=str(path), got=entry.name)
    write(fitting, path)
    sentences = (*sentences, *formula_notes(path))
    texts = [id_of(query) for query in fitting.queries] if entry.by_text else []
    if len(set(texts)) < len(texts):
        return fitting, (*sentences, EQUAL_QUESTIONS)
    again = read(path) if read is not None and _size(fitting) <= CHEAP else None
    return again if isinstance(again, TestSet) else fitting, sentences


def formula_notes(path: Path) -> tuple[str, ...]:
    """How many cells of a written table a spreadsheet would run; they are left as they are, so that the file reads back as it was."""
    separator = {".csv": ",", ".tsv": "\t"}.get(suffix_of(path))
    if separator is None:
        return ()
    quoting: Literal[0, 3] = csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL
    text = io.StringIO(decode(read_bytes(path, TestSetError), path, TestSetError), newline="")
    n = 0
    with suppress(csv.Error):  # a cell that csv does not read: over 128 kB
        for cell in chain.from_iterable(csv.reader(text, delimiter=separator, quoting=quoting)):
            n += is_formula(cell)
    return (f"{count_noun(n, 'cells')} {FORMULA}",) if n else ()


def write_run(run: Run, path: Path | str, format: str | None = None) -> tuple[str, ...]:  # noqa: A002  as above
    """Write a run in a format by name, or in the one that the file's name ends in: `.jsonl`, `.run` (TREC) or `.csv`.

    Only `.jsonl` holds reasons, fields, latencies and queries without results.

    Returns:
        Sentences about the file, for people.

    Raises:
        RunFormatError: a score is not finite or is missing where the order needs it, or an id cannot stand in the format.
        UnknownNameError: there is no such format.
    """
    entry = chosen_format(Path(path), format, "run")
    notes: tuple[str, ...] = ()
    if entry.name == "trec":
        run, notes = _without_white_space(run)
    if entry.write is not None:
        entry.write(run, Path(path))
    return (*notes, *formula_notes(Path(path)))


def _without_white_space(run: Run) -> tuple[Run, tuple[str, ...]]:
    """The run with ids that a column can hold, and a sentence where that changed them.

    White space, and `%`, become percent-encoded bytes; only where an id has white space, so that usual ids stay.
    """
    ids = {**dict.fromkeys(run.answers), **dict.fromkeys(hit.id for a in run.answers.values() for hit in a.hits)}
    spaced = [each for each in ids if WHITE_SPACE.search(each)]
    if not spaced:
        return run, ()
    to = {each: _ENCODED.sub(lambda found: f"%{ord(found[0]):02X}", each) for each in ids}
    answers = {
        to[query_id]: replace(answer, hits=tuple(replace(hit, id=to[hit.id]) for hit in answer.hits))
        for query_id, answer in run.answers.items()
    }
    changed = f"{count_noun(len(spaced), 'ids')} with white space are percent-encoded, because a column cannot contain white space: "
    return replace(run, answers=answers), (changed + join_first(f"{shorten(each)} is {to[each]}" for each in spaced),)


def format_after(source: Format, path: Path, out: Path) -> Format:
    """The format of a changed copy: that of its source, where it is written and the names end alike; else that of the name."""
    alike = suffix_of(path) == suffix_of(out)
    return source if alike and source.writer else chosen_format(out, None)


def written_formats(kind: Kind = "testset") -> dict[str, Format]:
    """Formats that can be written, by name."""
    return {name: entry for name, entry in FORMATS.items() if entry.kind == kind and entry.writer}


def fitting_formats(testset: TestSet) -> list[str]:
    """Names of the formats that can hold something of what a test set expects."""
    found = []
    for name, entry in sorted(written_formats().items()):
        with suppress(TestSetError):
            fitted(testset, entry, Path(name))
            found.append(name)
    return found


OTHER_ENDS: Mapping[Kind, Mapping[str, str]] = {
    "testset": {".yml": "yaml", ".json": "yaml", ".csv": "table", ".tsv": "table", ".jsonl": "table"},
    "run": {".trec": "trec", ".txt": "trec", ".tsv": "run-table"},
}
"""Ends of names that formats have beside their usual one."""


def chosen_format(path: Path, name: str | None, kind: Kind = "testset") -> Format:
    """The format of a new file: by name, or by the end of its name.

    Raises:
        UnknownNameError: there is no such format that is written.
        TestSetError: the end of the name is of no format; `RunFormatError` for a run.
    """
    known = written_formats(kind)
    if name is not None:
        if name not in known:
            raise UnknownNameError.among(f"written {WHAT[kind]} format", name, known)
        return known[name]
    by_end = dict(OTHER_ENDS[kind]) | {entry.suffix: key for key, entry in reversed(known.items()) if entry.suffix}
    end = max((end for end in by_end if unpacked_name(path).lower().endswith(end)), key=len, default=None)
    if end is None:
        ends = ", ".join(f"{end} ({key})" for end, key in sorted(by_end.items()))
        error = RunFormatError if kind == "run" else TestSetError
        raise error(
            "not written: the format cannot be derived from the file name",
            path=str(path),
            expected=f"a name that ends in one of {ends}",
            hint="or name the format: " + ", ".join(known),
        )
    return known[by_end[end]]


def fitted(testset: TestSet, entry: Format, path: Path) -> tuple[TestSet, tuple[str, ...]]:
    """A test set without what a format cannot hold, and a sentence for each thing that was taken out."""
    sentences: list[str] = []
    bare = {query.id for query in testset.queries if not is_judged(testset, query)}
    given = testset
    testset = _by_lines(testset, entry, sentences)
    if entry.grouping is not None:
        testset = _in_groups(testset, entry, path, sentences)
    for name, feature in FEATURES.items():
        if name == "barren":
            testset = _in_bounds(testset, entry, sentences)
            stripped = [query.id for query in testset.queries if not is_judged(testset, query) and query.id not in bare]
            if stripped:
                sentences.append(
                    f"left out: {count_noun(len(stripped), 'queries')} with judgments that the format cannot store ({join_first(stripped)})"
                )
                testset = _without_queries(testset, stripped)
        if name not in entry.holds:
            n = feature.count(testset)
            if n and name not in QUIET:
                sentences.append(f"not carried over: {count_noun(n, feature.noun)}")
            testset = feature.without(testset) if n else testset
    testset = _with_room_for_strata(testset, entry, sentences)
    if not any(is_judged(testset, query) for query in testset.queries):
        holds = ", ".join(FEATURES[name].noun for name in FEATURES if name in entry.holds and FEATURES[name].is_truth)
        has = ", ".join(count_noun(f.count(given), f.noun) for f in FEATURES.values() if f.is_truth and f.count(given))
        raise TestSetError(
            f"not written: the format {entry.name} cannot store any of the expected results",
            path=str(path),
            expected=holds,
            got=has or "a set without judgments",
        )
    _refuse_bare(testset, entry, path)
    _refuse_doubled(testset, path)
    if entry.by_text:
        named = sum(query.id not in {query.text, id_of(query)} for query in testset.queries)
        if named:
            sentences.append(
                f"not carried over: {count_noun(named, 'ids of queries')}; the format identifies a query by its text"
            )
    ids = {query.id for query in testset.queries}
    fields = ("files", "legacy", "ratings", "groups", "labels")
    kept = {name: {q: value for q, value in getattr(testset, name).items() if q in ids} for name in fields}
    return replace(testset, **kept), tuple(sentences)  # type: ignore[arg-type]  # each is a mapping of its own field


def _by_lines(testset: TestSet, entry: Format, sentences: list[str]) -> TestSet:
    """Entities whose lines are known, as spans of the same grade; of the same lines twice, the higher grade.

    Only for a format that holds spans, and no entities.
    """
    found = [target for targets in testset.targets.values() for target in targets]
    n = sum(isinstance(target, Entity) and bool(target.lines) for target in found)
    if not n or "entities" in entry.holds or "spans" not in entry.holds:
        return testset
    sentences.append(f"{count_noun(n, 'entities')} written as lines")
    targets: dict[str, tuple[Target, ...]] = {}
    for query_id, expected in testset.targets.items():
        parts: dict[str, Target] = {}
        for target in expected:
            for part in _spans(target) if isinstance(target, Entity) and target.lines else (target,):
                known = parts.get(part.label)
                if not (isinstance(part, Span) and isinstance(known, Span) and known.grade >= part.grade):
                    parts[part.label] = part
        targets[query_id] = tuple(parts.values())
    return replace(testset, targets=targets)


def _spans(entity: Entity) -> tuple[Target, ...]:
    return tuple(replace(span, grade=entity.grade) for span in entity.spans)


def _refuse_doubled(testset: TestSet, path: Path) -> None:
    """Refuse two ratings of one document by one rater."""
    problems = ProblemList(TestSetError)
    for query in testset.queries:
        ratings = Counter((rating.doc_id, rating.rater) for rating in testset.ratings.get(query.id, ()))
        for doc_id, rater in (pair for pair, n in ratings.items() if n > 1):
            message = f"not written: query {shorten(query.id)}: {rater} rates document {shorten(doc_id)} twice"
            problems.add(message, path=str(path), expected="one rating")
    problems.raise_if_any()


def _in_groups(testset: TestSet, entry: Format, path: Path, sentences: list[str]) -> TestSet:
    """Only what is judged by group, where the format's lines are judgments by group."""
    if testset.grouping != entry.grouping:
        raise TestSetError(
            f"not written: {entry.name} stores judgments by {entry.grouping}",
            path=str(path),
            got="no groups" if testset.grouping is None else f"judgments by {testset.grouping}",
        )
    if entry.grouping == "preference" and not all(
        judgment.subgroup for judgments in testset.groups.values() for judgment in judgments
    ):
        sentences.append(f"preferences without a subgroup are written with the subgroup {NO_SUBGROUP}")
    return replace(testset, grades={q: grades for q, grades in testset.grades.items() if testset.groups.get(q)})


def _in_bounds(testset: TestSet, entry: Format, sentences: list[str]) -> TestSet:
    if entry.grades == ANY_GRADE:
        return testset
    low, high = entry.grades
    kept = only_grades(testset, lambda grade: low <= grade <= high)
    lost = _size(testset) - _size(kept)
    if lost:
        sentences.append(
            f"not carried over: {count_noun(lost, 'judgments')} whose grade is not within {low:g} to {high:g}"
        )
    return kept


def _size(testset: TestSet) -> int:
    return sum(map(len, testset.grades.values())) + sum(map(len, testset.targets.values()))


def _without_queries(testset: TestSet, left_out: Sequence[str]) -> TestSet:
    gone = set(left_out)
    return replace(testset, queries=tuple(query for query in testset.queries if query.id not in gone))


def _with_room_for_strata(testset: TestSet, entry: Format, sentences: list[str]) -> TestSet:
    if entry.strata is None or "strata" not in entry.holds:
        return testset
    room = entry.strata
    lost = sorted({key for query in testset.queries for key in query.strata if key not in room})
    if not lost:
        return testset
    sentences.append(f"not carried over: the strata {join_first(lost)}; it has room for {', '.join(sorted(room))}")
    kept = (
        replace(query, strata={key: value for key, value in query.strata.items() if key in room})
        for query in testset.queries
    )
    return replace(testset, queries=tuple(kept))


def _refuse_bare(testset: TestSet, entry: Format, path: Path) -> None:
    """What the format cannot do without."""
    if "texts" not in entry.needs:
        return
    bare = [query.id for query in testset.queries if not query.text.strip()]
    if bare:
        problem = Problem(
            f"not written: {len(bare)} of {len(testset.queries)} queries have no text",
            path=str(path),
            expected=f"texts, which {entry.name} needs",
            got=shorten(join_first(bare)),
            hint="`cranfield testset convert IN OUT --queries FILE` takes texts by query id, topics, TSV or JSONL; qrels and CSV "
            "need none",
        )
        raise TestSetError(problem)
