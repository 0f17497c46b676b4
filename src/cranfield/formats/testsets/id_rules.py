"""Ids of queries for formats that have none: readers give each query its row or its text, and one rule is applied here."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield.errors import Problem, TestSetError, UnknownNameError, UsageError, shorten
from cranfield.formats.io.files import STDIN, meta_path, shown
from cranfield.formats.io.validation import load_model
from cranfield.formats.testsets.native_models import MetaModel
from cranfield.model import ID_RULES, IdRule, Meta, Query, TestSet
from cranfield.model.note import info
from cranfield.model.query_ids import DEFAULT_ID_RULE, QueryIds, id_of, question_of
from cranfield.model.renaming import match_ids, under_rule
from cranfield.words import first_of

_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What no id has."""
NO_META = Meta()
HINTS = {
    "row": "write them as one query, give the file a column of ids, or keep the ids by row: {ids=row}",
    "text": "write them as one query, or name the queries by their texts, numbered: {ids=text}",
}
"""Rule of the reader of a format to what may be done about equal questions."""


def text_ids(texts: Sequence[str]) -> list[str]:
    """Ids of queries under the rule `text`, in order; each one once."""
    ids: dict[int, str] = {}
    taken: set[str] = set()
    for number, text in enumerate(texts):
        if text not in taken and not is_unfit(text):
            ids[number] = text
            taken.add(text)
    for number, text in enumerate(texts):
        if number not in ids:
            base = f"q{number + 1}" if is_unfit(text) else text
            names = itertools.chain([base], (f"{base} ({n})" for n in itertools.count(2)))
            ids[number] = next(name for name in names if name not in taken)
            taken.add(ids[number])
    return [ids[number] for number in range(len(texts))]


def made_by(rule: IdRule, meta: Meta = NO_META) -> dict[str, Any]:
    """Fields of a test set whose reader named the queries by a rule, because the file has no ids."""
    return {"meta": replace(meta, ids=rule), "id_rules": QueryIds()}


def is_unfit(text: str) -> bool:
    """Whether a text has line breaks or control characters, so that it is no id."""
    return bool(_UNFIT.search(text))


def with_id_rule(testset: TestSet, path: Path | str, rule: str | None = None) -> TestSet:
    """A set as its reader made it, with the ids of a rule; unchanged where the ids stand in the file.

    Args:
        testset: what a reader returned; `id_rules` is None where the file has ids; else `meta.ids` is the rule of the reader.
        path: the file, beside which metadata may name the rule.
        rule: a name in `ID_RULES`; None: the rule of the metadata, or `content`.

    Raises:
        TestSetError: two queries have one question, so that its content does not tell them apart.
        UsageError: a rule is requested, and the ids stand in the file.
        UnknownNameError: there is no such rule.
    """
    if rule is not None and rule not in ID_RULES:
        raise UnknownNameError.among("rule of ids", rule, list(ID_RULES))
    made_by = testset.meta.ids
    if not made_by or testset.id_rules is None:
        if rule is not None:
            raise UsageError(
                f"ids is {rule}, and the ids of the queries stand in the file",
                path=shown(Path(path)),
                hint="leave {ids} out",
                parameters=("ids",),
            )
        return testset
    chosen = _rule_named(rule) if rule is not None else _stored_rule(Path(path)) or DEFAULT_ID_RULE
    ids = _ids_by_rule(testset.queries, testset.query_ids, made_by)
    contents = ids.pop("content")
    if len(set(contents)) == len(contents):
        ids = {"content": contents, **ids}
    elif chosen == "content":
        raise TestSetError(_equal_questions(testset.queries, contents, Path(path), HINTS[made_by]))
    names = {r: dict(zip(made, testset.query_ids, strict=True)) for r, made in ids.items()}
    known = replace(testset, id_rules=QueryIds(names))
    digests = {r: under_rule(known, r).digest for r in names}
    note = info(f"the file has no ids of queries; rule `{chosen}`: {ID_RULES[chosen]}")
    known = replace(known, id_rules=QueryIds(names, digests), notes=(*note, *testset.notes))
    return known if chosen == made_by else under_rule(known, chosen)


def _rule_named(rule: str) -> IdRule:
    return next(known for known in ID_RULES if known == rule)


def _stored_rule(path: Path) -> IdRule | None:
    """The rule that the metadata beside a file name."""
    if str(path) == STDIN or not meta_path(path).is_file():
        return None
    return load_model(meta_path(path), MetaModel, TestSetError).ids or None


def _ids_by_rule(queries: Sequence[Query], given: Sequence[str], made_by: IdRule) -> dict[IdRule, list[str]]:
    """Rule to the ids of the queries, in order."""
    ids: dict[IdRule, list[str]] = {
        "content": [id_of(query) for query in queries],
        "row": [str(number) for number in range(1, len(queries) + 1)],
        "text": text_ids([query.text for query in queries]),
    }
    ids[made_by] = list(given)
    return ids


def _equal_questions(queries: Sequence[Query], contents: Sequence[str], path: Path, hint: str) -> list[Problem]:
    """A problem for each question that several queries have."""
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(contents, start=1):
        rows.setdefault(name, []).append(row)
    return [
        Problem(
            f"the question {shorten(question_of(queries[same[0] - 1].text))} is that of queries {first_of(map(str, same))}",
            path=shown(path),
            expected="each question once: an id is made from it",
            hint=hint,
            parameters=("ids",),
        )
        for same in rows.values()
        if len(same) > 1
    ]


def with_stored_split(testset: TestSet) -> TestSet:
    """A set whose stored split names its queries by its own ids, where it was drawn under another rule.

    Raises:
        TestSetError: the split names rows, and the counts stored with it are those of another number of queries.
    """
    stored = testset.meta.split
    match = None if stored is None else match_ids(testset, stored.held_out)
    if stored is None or match is None:
        return testset
    counted = testset.meta.counts.get("queries", len(testset.queries))
    if match.rule == "row" and counted != len(testset.queries):
        raise TestSetError(
            f"the held-out queries are named by row, and were drawn from {counted} queries",
            expected=f"{len(testset.queries)} queries, as the set has now",
            hint="`cranfield testset migrate-ids SET FILE --old OLD` carries a split over from the version that it was drawn from",
        )
    held_out = tuple(match.names.get(name, name) for name in stored.held_out)
    return replace(testset, meta=replace(testset.meta, split=replace(stored, held_out=held_out)))


def has_made_ids(testset: TestSet) -> bool:
    """Whether a format without ids needs no column of them: reading makes the same ids again."""
    if [query.id for query in testset.queries] == [id_of(query) for query in testset.queries]:
        return True
    rows = [str(number) for number in range(1, len(testset.queries) + 1)]
    return testset.meta.ids == "row" and list(testset.query_ids) == rows
