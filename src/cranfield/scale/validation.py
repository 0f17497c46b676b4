"""Validation of test sets of millions of queries: their judgments and texts are columns, and the checks go over these.

A set that is read so holds graded document ids, texts and strata, so only the checks about these can find anything. Their findings
are those of `evaluation.testset.validate`, where the set is small enough to compare.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cranfield.app.loading import named_testset
from cranfield.base.words import count_noun
from cranfield.evaluation.options.blocks import NO_OPTIONS, TestSetOptions
from cranfield.evaluation.testset.check_judgments import Complaint, unknown_task_types
from cranfield.evaluation.testset.check_queries import NO_TEXTS, near_duplicates, small_strata, too_many_met, words_of
from cranfield.evaluation.testset.validate import CHECKS, Validation, ValidationFinding, checks
from cranfield.formats.io.files import STDIN
from cranfield.model import Absence, Meta, Query, TestSet
from cranfield.model.note import info
from cranfield.model.results import TestSetRecord

if TYPE_CHECKING:
    import pyarrow as pa

    from cranfield.scale.judgment_files import JudgmentSource
    from cranfield.scale.judgment_rows import Progress
    from cranfield.scale.judgments import JudgmentTable
    from cranfield.scale.query_texts import OwnTexts


LARGE_BYTES = 1 << 25
"""Bytes of the files of a large test set; a smaller one is read whole."""
MAX_NEAR = 100_000
"""Texts of which each is compared with others that are nearly the same; of more, those of the same words are found."""
MAX_FINDINGS = 10_000
"""Most findings of a check; the others are counted."""


@dataclass(frozen=True)
class _LargeSet:
    table: JudgmentTable
    texts: pa.LargeStringArray | None
    with_strata: TestSet
    """The queries that have strata, without judgments."""


def size_of(path: Path) -> int:
    """Bytes of a test set on disk; 0 of what is no file or folder."""
    if str(path) == STDIN:
        return 0
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file() and file.name != "corpus.jsonl")
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.parent.glob(path.name) if file.is_file())


def validate_with_progress(path: Path, format: str | None, options: TestSetOptions) -> Validation | None:  # noqa: A002
    """The findings of a large set, with progress on stderr; None where it has to be read whole."""
    from cranfield.scale.commands import RowProgress

    progress = RowProgress(sys.stderr)
    try:
        return validate_large(path, format, options, progress.count)
    finally:
        progress.finish()


def validate_large(
    path: Path,
    format: str | None = None,  # noqa: A002 - as `load`
    options: TestSetOptions = NO_OPTIONS,
    progress: Progress | None = None,
) -> Validation | None:
    """Everything the checks find in a large test set, in bounded memory.

    Args:
        path: as of `load`.
        format: name of its format, where the content does not tell.
        options: what is done to it.
        progress: see `scale.judgment_rows.Progress`.

    Returns:
        The findings, and notes of the test set about them; None where the set is not large, or has to be read whole: it is in another format, other options than
        `queries` are given, a package adds checks of its own, or the texts are of no query of the set.

    Raises:
        TestSetError: with everything that is wrong with its files.
    """
    path = named_testset(path)
    if size_of(path) < LARGE_BYTES or replace(options, queries=None) != NO_OPTIONS or len(checks()) > len(CHECKS):
        return None
    try:
        from cranfield.scale.judgment_files import find_source
        from cranfield.scale.query_texts import NotUnicodeError
    except ImportError:  # without pyarrow
        return None
    source = find_source(path, format)
    if source is None:
        return None
    try:
        read = _read(source, options.queries, progress)
    except NotUnicodeError:
        return None
    if read is None:
        return None
    notes = info(*_notes(read))
    testset = TestSetRecord(
        source.name, "", read.table.digest, read.table.n_queries, notes=notes, refresh_days=Meta().refresh_days
    )
    found = [
        ValidationFinding(name, CHECKS[name].level, *complaint)
        for name, find in _CHECKS.items()
        for complaint in _some(find, read)
    ]
    found.sort(key=lambda finding: list(CHECKS).index(finding.check))
    return Validation.of(testset, found, with_runs=False)


def _read(source: JudgmentSource, queries: Path | None, progress: Progress | None) -> _LargeSet | None:
    from cranfield.scale.judgment_files import read_set
    from cranfield.scale.judgments import digest_of
    from cranfield.scale.query_texts import read_text_file

    table, texts = read_set(source, progress)
    own = None if texts is None else texts.of(table.query_ids)
    if queries is not None:
        texts = read_text_file(queries, progress)
        other = None if texts is None else texts.of(table.query_ids)
        if other is None or other.n_missing == table.n_queries:
            return None
        own = _with_texts(own, other)
    strata = {} if own is None else own.strata
    digest = digest_of(table, None if own is None else own.texts, strata)
    ids = ((table.query_ids[place].as_py(), strata[place]) for place in sorted(strata))
    with_strata = tuple(Query(query_id, "", values) for query_id, values in ids if values)
    table = replace(table, digest=digest)
    return _LargeSet(table, None if own is None else own.texts, TestSet(table.name, with_strata))


def _with_texts(own: OwnTexts | None, other: OwnTexts) -> OwnTexts:
    """Texts of another file in the place of a set's own, as `formats.testsets.overlay.with_queries` takes them."""
    import pyarrow.compute as pc

    if own is None:
        return other
    return replace(own, texts=pc.if_else(pc.equal(other.texts, ""), own.texts, other.texts))


def _some(find: Callable[[_LargeSet], Iterator[Complaint]], read: _LargeSet) -> Iterator[Complaint]:
    """The first complaints of a check, and the number of the others."""
    n_more = 0
    for number, complaint in enumerate(find(read)):
        if number < MAX_FINDINGS:
            yield complaint
        else:
            n_more += 1
    if n_more:
        yield "", f"{n_more} more of this kind"


def _without_relevant(read: _LargeSet) -> Iterator[Complaint]:
    table = read.table
    # The documents of a query stand by falling grade: the first has the highest.
    n_judged = np.diff(table.start)
    highest = np.full(table.n_queries, -1.0)
    highest[n_judged > 0] = table.grade[table.start[:-1][n_judged > 0]]
    for place in np.flatnonzero(highest <= 0).tolist():
        absent = f"{Absence.NONE_RELEVANT} ({n_judged[place]} judged)"
        yield table.query_ids[place].as_py(), f"{absent}, and it is not declared negative"


def _texts(read: _LargeSet) -> Iterator[tuple[int, str]]:
    """Place and text of each query."""
    if read.texts is None:
        return
    for first in range(0, len(read.texts), 1 << 16):
        yield from enumerate(read.texts[first : first + (1 << 16)].to_pylist(), start=first)


def _missing_texts(read: _LargeSet) -> Iterator[Complaint]:
    blank = [place for place, text in _texts(read) if not text.strip()]
    if read.texts is None or len(blank) == read.table.n_queries:
        yield "", NO_TEXTS
    else:
        yield from ((read.table.query_ids[place].as_py(), "it has no text") for place in blank)


def _near_repeats(read: _LargeSet) -> Iterator[Complaint]:
    ids = read.table.query_ids
    if read.table.n_queries <= MAX_NEAR:
        texts = {ids[place].as_py(): text for place, text in _texts(read)}
        pairs, n_cut = near_duplicates(texts.items())
        for earlier, query_id in pairs:
            yield (
                query_id,
                f"its text is nearly the same as that of query {earlier}: {texts[query_id]!r}, {texts[earlier]!r}",
            )
        if n_cut:
            yield "", too_many_met(n_cut)
        return
    if read.texts is None:
        return
    for place, first in _same_words(read):
        text, other = (read.texts[row].as_py() for row in (place, first))
        if words_of(text) == words_of(other):
            yield ids[place].as_py(), f"it has the same words as query {ids[first].as_py()}: {text!r}, {other!r}"


def _same_words(read: _LargeSet) -> list[tuple[int, int]]:
    """Places of texts whose words are, by their keys, those of an earlier one, and the place of that one."""
    keys = np.zeros(read.table.n_queries, dtype=np.uint64)
    filled = np.zeros(read.table.n_queries, dtype=np.bool_)
    for place, text in _texts(read):
        if text.strip():
            words = " ".join(sorted(words_of(text)))
            digest = blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            keys[place], filled[place] = int.from_bytes(digest, "big"), True
    rows = np.flatnonzero(filled)
    _, first, own = np.unique(keys[rows], return_index=True, return_inverse=True)
    earliest = rows[first[own]]
    again = earliest != rows
    return list(zip(rows[again].tolist(), earliest[again].tolist(), strict=True))


def _notes(read: _LargeSet) -> Iterator[str]:
    if read.texts is not None and read.table.n_queries > MAX_NEAR:
        n = count_noun(read.table.n_queries, "queries", "{:,}".format)
        yield f"near duplicates: of {n}, only texts with the same words were searched for"


_CHECKS: dict[str, Callable[[_LargeSet], Iterator[Complaint]]] = {
    "relevant": _without_relevant,
    "task types": lambda read: unknown_task_types(read.with_strata),
    "near duplicates": _near_repeats,
    "texts": _missing_texts,
    "small strata": lambda read: small_strata(read.with_strata),
}
"""The checks that can find something, by their names in `testsets.validate.CHECKS`."""
