"""Facts about a golden set, in a file beside it (`golden.meta.json`): review, commit, hashes of sources, counts of strata.

Facts that the harness has no key for stand under `cranfield`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue

from cranfield.base.errors import TestSetError, shorten
from cranfield.formats.io.delimited import write_unicode
from cranfield.formats.io.files import META_SUFFIX, STDIN, meta_path, stem, unpacked_name
from cranfield.formats.io.located import load_located
from cranfield.formats.io.records import OpenModel, StrictRecord
from cranfield.formats.io.validation import load_model
from cranfield.formats.testsets.native import plain
from cranfield.formats.testsets.vocabulary import version_problems
from cranfield.model import MatchingRules, Meta, Note, NoteKind, TestSet
from cranfield.model.kinds import Text
from cranfield.model.note import info

STRATA = ("task_type", "difficulty")
"""Strata that have keys of their own; counts are by both: `debug:easy`."""
RULES = MatchingRules(roots=("src", "tests"))
"""As the harness compares: a path begins at its first `src` or `tests`, and `::2` at the end of an id is of a chunk."""
COUNTED_REVIEW = re.compile(r"\d+ of \d+ records reviewed by a person")
"""Review that the records themselves tell: it is not written."""
REVIEWED = "reviewed by a person"
"""Name of a count."""


class _More(StrictRecord):
    """What the harness has no key for."""

    name: Text = ""
    description: Text = ""
    meta: Meta | None = None
    matching: MatchingRules | None = None


class _Facts(OpenModel):
    """The keys of the file; others are reported as not carried over."""

    uncommitted_changes: Text = ""
    dataset_status: Text = ""
    source_sha: Text = ""
    commit: Text = ""
    created_at: Text = ""
    version: Text = ""
    query_count: int | None = None
    human_reviewed_count: int | None = None
    strata_counts: dict[str, int] = Field(default_factory=dict)
    source_file_hashes: dict[str, str] = Field(default_factory=dict)
    task_types: list[Text] = Field(default_factory=list)
    known_limitations: list[Text] = Field(default_factory=list)
    assembly: dict[str, JsonValue] = Field(default_factory=dict)
    cranfield: _More | None = None


def files_of_set(path: Path) -> tuple[Path, ...]:
    """The file of a set, and those that may stand beside it."""
    return path, meta_path(path), facts_path(path)


def facts_path(path: Path) -> Path:
    """Where the facts about a set lie: `golden.meta.json` beside `golden.json`, packed or not."""
    name = unpacked_name(path)
    return path.with_name(re.sub(r"(?<=.)\.json$", "", name) + META_SUFFIX)


def with_facts(testset: TestSet, path: Path, n_reviewed: int | None) -> TestSet:
    """The test set with the facts of the file beside it, and the rules by which the harness matches.

    Args:
        testset: as its own file has it.
        path: of that file.
        n_reviewed: records that say a person reviewed them; None where none says.
    """
    n = len(testset.queries)
    facts_file = facts_path(path)
    review = "" if n_reviewed is None else f"{n_reviewed} of {n} records reviewed by a person"
    if str(path) == STDIN or not facts_file.is_file():
        return replace(testset, matching=RULES, meta=Meta(review=review))
    located = load_located(facts_file, TestSetError)
    if problems := list(version_problems(located)):
        raise TestSetError(problems)
    facts = load_model(facts_file, _Facts, TestSetError)
    more = facts.cranfield or _More()
    given = located.sourced["cranfield"]["meta"] if more.meta is not None else ()
    return replace(
        testset,
        name=more.name or testset.name,
        description=more.description,
        version=facts.version,
        matching=more.matching or RULES,
        meta=_about(facts, more, given, review),
        notes=(*testset.notes, *_notes(testset, facts, facts_file)),
    )


def _about(facts: _Facts, more: _More, given: Iterable[str], review: str = "") -> Meta:
    """The facts under the harness's own keys, and over them those that are given under `cranfield`."""
    own = Meta(
        uncommitted=facts.uncommitted_changes,
        review=facts.dataset_status or review,
        made=facts.created_at[: len("2026-11-21")],
        commit=facts.source_sha or facts.commit,
        source_files=dict(facts.source_file_hashes),
        counts=_marginals(facts),
        task_types=tuple(facts.task_types),
        assembly=dict(facts.assembly),
    )
    return replace(own, **{name: getattr(more.meta, name) for name in given})


def _marginals(facts: _Facts) -> dict[str, int]:
    """Counts as a test set has them: of all queries, and of each value of each stratum."""
    counts: Counter[str] = Counter()
    for cell, n in facts.strata_counts.items():
        for key, value in zip(STRATA, cell.split(":"), strict=False):
            if value:
                counts[f"{key}={value}"] += n
    values = {} if facts.query_count is None else {"queries": int(facts.query_count)}
    reviewed = {} if facts.human_reviewed_count is None else {REVIEWED: int(facts.human_reviewed_count)}
    return {**values, **{key: int(n) for key, n in counts.items()}, **reviewed}


def _notes(testset: TestSet, facts: _Facts, facts_file: Path) -> list[Note]:
    """What the facts get wrong, what the makers warn of, and what has no place."""
    notes: list[Note] = []
    if facts.query_count is not None and facts.query_count != len(testset.queries):
        notes += info(f"{facts_file.name} counts {facts.query_count} queries; the file has {len(testset.queries)}")
    if facts.strata_counts:
        true = _cells(testset)
        wrong = [
            cell for cell in {**facts.strata_counts, **true} if facts.strata_counts.get(cell, 0) != true.get(cell, 0)
        ]
        if wrong:
            there = facts.strata_counts.get(wrong[0], 0)
            what = f"{there} {shorten(wrong[0])} where there are {true.get(wrong[0], 0)}"
            notes += info(f"{facts_file.name} counts {len(wrong)} strata wrong: {what}")
    notes += [
        Note(NoteKind.NOT_CARRIED, f"statement of its authors: {sentence}") for sentence in facts.known_limitations
    ]
    unknown = sorted(facts.model_extra or {})
    if unknown:
        notes.append(Note(NoteKind.NOT_CARRIED, f"not carried over from {facts_file.name}: {', '.join(unknown)}"))
    return notes


def _cells(testset: TestSet) -> dict[str, int]:
    return dict(Counter(":".join(query.strata.get(key, "") for key in STRATA) for query in testset.queries))


def write_facts(testset: TestSet, path: Path) -> None:
    """Write the facts about a set beside its file; counts are those of its content."""
    meta = testset.meta
    if COUNTED_REVIEW.fullmatch(meta.review):
        testset = replace(testset, meta=(meta := replace(meta, review="")))
    facts: dict[str, Any] = {
        "uncommitted_changes": meta.uncommitted,
        "dataset_status": meta.review,
        "source_sha": meta.commit,
        "created_at": meta.made,
        "version": testset.version,
    }
    facts = {key: value for key, value in facts.items() if value}
    facts["query_count"] = len(testset.queries)
    if any(key in query.strata for query in testset.queries for key in STRATA):
        facts["strata_counts"] = dict(sorted(_cells(testset).items()))
    if REVIEWED in meta.counts:
        facts["human_reviewed_count"] = meta.counts[REVIEWED]
    if meta.task_types:
        facts["task_types"] = list(meta.task_types)
    if meta.source_files:
        facts["source_file_hashes"] = dict(meta.source_files)
    if meta.assembly:
        facts["assembly"] = dict(meta.assembly)
    if more := _more(testset, path, facts):
        facts["cranfield"] = more
    write_unicode(facts_path(path), [json.dumps(facts, indent=2, ensure_ascii=False) + "\n"])


def with_counts_of(text: str, written: str) -> str:
    """Facts as they are written, with the counts of a text, which need not be those of the set.

    Args:
        text: the file as it stands.
        written: what `write_facts` wrote of the set in it.
    """
    there, facts = json.loads(text), json.loads(written)
    return json.dumps(facts | {key: there[key] for key in ("query_count", "strata_counts") if key in there})


def _more(testset: TestSet, path: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What has no key of the harness's own, or would be read from it otherwise."""
    written = plain(testset.meta)
    read = _about(_Facts.model_construct(**facts), _More(), ())
    differs = {name: value for name, value in asdict(testset.meta).items() if getattr(read, name) != value}
    meta = {
        name: written.get(name, {})
        for name, value in differs.items()
        if value != getattr(Meta(), name) or name == "counts"
    }
    more: dict[str, Any] = {"meta": meta} if meta else {}
    if testset.name != stem(path):
        more["name"] = testset.name
    if testset.description:
        more["description"] = testset.description
    if testset.matching != RULES:
        more["matching"] = plain(testset.matching)
    return more
