"""Changing a test set while its metadata stays true: counts, date and history are written by the tool."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from cranfield.base.errors import Problem, UsageError
from cranfield.base.words import count_noun
from cranfield.evaluation.testset.declared import undeclared
from cranfield.evaluation.testset.expected import plain_label
from cranfield.model import Entity, File, Negative, Query, Target, TestSet, class_named, content_id
from cranfield.model.judging import lines_of_targets
from cranfield.model.query import negative_of
from cranfield.model.query_ids import question_of

_DATE = re.compile(r"\d{4}-\d{2}(-\d{2})?")
_LAST_NUMBER = re.compile(r"\d+(?=\D*$)")


def counts_of(testset: TestSet) -> dict[str, int]:
    """Counts that metadata hold: `queries`, and `key=value` of each stratum, sorted."""
    counts: dict[str, int] = {}
    for query in testset.queries:
        for key, value in query.strata.items():
            name = f"{key}={value}"
            counts[name] = counts.get(name, 0) + 1
    return {"queries": len(testset.queries), **dict(sorted(counts.items()))}


def recorded(testset: TestSet, sentence: str, today: date) -> TestSet:
    """The same content with counts and date set right, and a sentence added to its history."""
    meta = replace(
        testset.meta,
        counts=counts_of(testset),
        made=today.isoformat(),
        history=(*testset.meta.history, f"{today.isoformat()}: {sentence}"),
    )
    return replace(testset, meta=meta)


def next_version(version: str, today: date) -> str:
    """The version after this one: its last number and one; of a date, today in the same form; `2` of none.

    Example:
        >>> next_version("v1", date(2026, 11, 21)), next_version("2026-08", date(2026, 11, 21))
        ('v2', '2026-11')
    """
    if _DATE.fullmatch(version):
        later = today.isoformat()[: len(version)]
        return later if later != version else f"{version}.2"
    if not version:
        return "2"
    found = _LAST_NUMBER.search(version)
    if found is None:
        return f"{version}-2"
    return version[: found.start()] + str(int(found[0]) + 1) + version[found.end() :]


@dataclass(frozen=True)
class Addition:
    """What is added to one query, or as one."""

    query_id: str
    text: str = ""
    strata: Mapping[str, str] = field(default_factory=dict)
    query_class: str = ""
    negative: bool = False
    grades: Mapping[str, float] = field(default_factory=dict)
    targets: Sequence[Target] = ()


def added(testset: TestSet, addition: Addition, today: date) -> TestSet:
    """The set with a query more, or with judgments more of a query it has.

    Raises:
        UsageError: with everything that does not fit: a query without a text or anything expected, judgments that are
            there already, graded ids beside targets, a graded file beside entities, a negative query that expects
            something, a grade off the scale.
    """
    problems = list(_problems(testset, addition))
    if problems:
        raise UsageError(problems)
    old = testset.by_id.get(addition.query_id)
    name = class_named(addition.query_class).name if addition.query_class else ""
    query = old or Query(addition.query_id)
    is_same = bool(testset.made_ids) and question_of(addition.text) == question_of(query.text)
    query = replace(
        query,
        text=query.text if is_same else addition.text or query.text,  # other white space is no other question
        strata={**query.strata, **addition.strata},
        query_class=name or query.query_class,
        negative=query.negative or (Negative() if addition.negative else None),
    )
    queries = tuple(query if q.id == query.id else q for q in testset.queries) + (() if old else (query,))
    changed = replace(testset, queries=queries)
    if addition.grades:
        together = {**testset.grades.get(query.id, {}), **addition.grades}
        changed = replace(changed, grades={**testset.grades, query.id: together})
    new = tuple(addition.targets)
    if (files := _expected_files(testset, addition)) is not None:
        new = tuple(target for target in new if not isinstance(target, File))
        changed = replace(changed, files={**testset.files, query.id: files})
    if new:
        targets = (*testset.targets.get(query.id, ()), *new)
        changed = replace(changed, targets={**testset.targets, query.id: targets})
        if (label := testset.labels.get(query.id)) is not None:
            lines = (lines for lines in lines_of_targets(new) if lines not in label.line_ranges)
            label = replace(label, line_ranges=(*label.line_ranges, *lines))
            changed = replace(changed, labels={**testset.labels, query.id: label})
    wrong = [found for found in undeclared(changed) if found.query_id == query.id]
    if wrong:
        raise UsageError(
            [Problem(each.sentence, expected=each.expected, got=each.got, hint=each.hint) for each in wrong]
        )
    if old is not None and changed == testset:
        raise UsageError(
            f"nothing to add: query {query.id!r} is in the test set as given", expected="judgments, a text or a stratum"
        )
    return recorded(changed, sentence_of(old, query, addition), today)


def _expected_files(testset: TestSet, addition: Addition) -> tuple[str, ...] | None:
    """The files that results of the query should cover, where it expects entities: a file of an entity is no second target."""
    entities = [*testset.targets.get(addition.query_id, ()), *addition.targets]
    given = [target.path for target in addition.targets if isinstance(target, File)]
    if not given or not any(isinstance(target, Entity) for target in entities):
        return None
    return tuple(dict.fromkeys((*testset.files.get(addition.query_id, ()), *given)))


def sentence_of(old: Query | None, query: Query, addition: Addition) -> str:
    """What an addition does, for history and messages: `changed query q1 (2 judgments added, text)`.

    Args:
        old: the query as it was; None: it is new.
        query: the query as it is.
        addition: what is added.
    """
    n = len(addition.grades) + len(addition.targets)
    if old is None:
        return f"added query {query.id} ({'negative' if addition.negative else count_noun(n, 'judgments')})"
    parts = [f"{count_noun(n, 'judgments')} added"] if n else []
    named = {"text": "text", "strata": "strata", "query_class": "class", "negative": "negative"}
    parts += [name for field, name in named.items() if getattr(old, field) != getattr(query, field)]
    return f"changed query {query.id} ({', '.join(parts)})"


def id_for(testset: TestSet, given: str, text: str) -> str:
    """The id of a query to be added: the one that is given; where the format has none, the one made from the text.

    Args:
        testset: the set as it is.
        given: the id that was asked for; empty where none was.
        text: of the query.

    Raises:
        UsageError: the id would not be the query's when the file is read again, or is missing.
    """
    if not testset.made_ids and not given:
        raise UsageError("no id of the query", expected="{query_id=ID}", parameters=("query_id",))
    made = content_id(text)
    if testset.made_ids and given and given not in testset.by_id and given != made:
        raise UsageError(
            f"the file has no query ids, so {given!r} cannot be written",
            got=given,
            expected=f"an id of the set; a new query gets the id {made}",
            hint="leave {query_id} out",
            parameters=("query_id",),
        )
    return given or made


def _problems(testset: TestSet, addition: Addition) -> list[Problem]:
    query_id, old = addition.query_id, testset.by_id.get(addition.query_id)
    expects = bool(addition.grades or addition.targets)
    grades, targets = testset.grades.get(query_id, {}), testset.targets.get(query_id, ())
    found = []
    if old is None and not addition.text.strip():
        hint = '{text="what a user types"}'
        found.append(Problem(f"query {query_id!r} is new and has no text", hint=hint, parameters=("text",)))
    if old is None and not expects and not addition.negative:
        found.append(
            Problem(
                f"query {query_id!r} is new and has no expected results",
                expected="judgments or targets; or {negative}, if nothing should be found",
                parameters=("negative",),
            )
        )
    is_negative = addition.negative or (old is not None and negative_of(old) is not None)
    if is_negative and (expects or grades or targets):
        found.append(Problem(f"query {query_id!r} is negative but has expected results", expected="one of the two"))
    if (addition.grades or grades) and (addition.targets or targets):
        found.append(
            Problem(
                f"query {query_id!r} would have both graded documents and targets",
                expected="documents, or targets: entities, spans, patterns, files",
            )
        )
    known = {plain_label(target) for target in targets} | set(grades)
    given = [*addition.grades, *map(plain_label, addition.targets)]
    found += [Problem(f"query {query_id!r} is judged on {label!r} already") for label in given if label in known]
    found += [Problem(f"{label!r} is given twice") for place, label in enumerate(given) if label in given[:place]]
    if _expected_files(testset, addition) is not None:
        found += [_graded_file(target) for target in addition.targets if isinstance(target, File) and target.grade != 1]
    return found


def _graded_file(file: File) -> Problem:
    """The problem of a grade that would be lost: files to cover have none."""
    return Problem(
        f"file {file.path!r} has a grade, but the query also expects symbols; files of such a query have no grade",
        expected=f"{{files={file.path}}}",
        got=f"grade {file.grade:g}",
        hint="only a query without symbols can have files with grades",
        parameters=("files",),
    )
