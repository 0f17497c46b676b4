"""The same test set under the ids of another rule.

A set whose ids were made knows what each other rule calls its queries, so that runs, baselines and judgments made under
another rule are still matched.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from cranfield.model.query_ids import ID_RULES, IdRule
from cranfield.model.testset import TestSet

T = TypeVar("T")


@dataclass(frozen=True)
class IdMatch:
    """Ids of another rule, matched with the queries of a set."""

    rule: IdRule
    names: Mapping[str, str]
    """Given id to the id of the query in the set."""

    @property
    def sentence(self) -> str:
        """What was matched, to go on after a subject: "run old …"."""
        return f"names queries by the rule `{self.rule}` ({ID_RULES[self.rule]}); they were matched with the ids of the set"


def match_ids(testset: TestSet, given: Collection[str]) -> IdMatch | None:
    """Find the rule under which given ids are those of a set; None where one of them is an id of the set, or none fits."""
    if testset.id_rules is None or not given or any(name in testset.by_id for name in given):
        return None
    rule = fitting_rule(testset.id_rules.names, set(given))
    if rule is None:
        return None
    names = testset.id_rules.names[rule]
    return IdMatch(rule, {name: names[name] for name in given if name in names})


def fitting_rule(names: Mapping[IdRule, Mapping[str, str]], given: Collection[str]) -> IdRule | None:
    """The first rule under which given ids name queries; None where none does.

    Row numbers fit only where every given id is a row: a number beyond the last row means that the rows are others.
    """
    for rule, known in names.items():
        n = sum(name in known for name in given)
        if n and (rule != "row" or n == len(given)):
            return rule
    return None


def ids_by_content(testset: TestSet) -> Mapping[str, str]:
    """Ids of the queries by content to those of the set; empty where its ids stand in the file, or content cannot name all."""
    return {} if testset.id_rules is None else testset.id_rules.names.get("content", {})


def own_id(testset: TestSet, given: str) -> str:
    """The id in a set of a query that is given by the id of another rule; the given id where there is no such query."""
    match = match_ids(testset, [given])
    return given if match is None else match.names[given]


def under_rule(testset: TestSet, rule: IdRule) -> TestSet:
    """The same set with the ids that another rule gives its queries."""
    if testset.id_rules is None:
        return testset
    return renamed(testset, {own: name for name, own in testset.id_rules.names[rule].items()}, rule)


def renamed(testset: TestSet, names: Mapping[str, str], rule: IdRule | None = None) -> TestSet:
    """A set with other ids.

    Args:
        testset: judgments, targets, ratings, the split: what is known by query id is kept.
        names: id of a query to its new id; others keep theirs.
        rule: the rule that made the new ids; None: unchanged.
    """

    def moved(values: Mapping[str, T]) -> dict[str, T]:
        return {names.get(query_id, query_id): value for query_id, value in values.items()}

    meta, ids = testset.meta, testset.id_rules
    stored = meta.split
    if stored is not None:
        stored = replace(stored, held_out=tuple(names.get(query_id, query_id) for query_id in stored.held_out))
    if ids is not None:
        known = {r: {name: names.get(own, own) for name, own in by_name.items()} for r, by_name in ids.names.items()}
        ids = replace(ids, names=known)
    return replace(
        testset,
        queries=tuple(replace(query, id=names.get(query.id, query.id)) for query in testset.queries),
        grades=moved(testset.grades),
        targets=moved(testset.targets),
        groups=moved(testset.groups),
        files=moved(testset.files),
        legacy=moved(testset.legacy),
        ratings=moved(testset.ratings),
        labels=moved(testset.labels),
        meta=replace(meta, split=stored, ids=rule or meta.ids),
        id_rules=ids,
    )


def rule_of_digest(testset: TestSet, digest: str) -> IdRule | None:
    """The rule under which a set has a digest; None where it has it under none, or under its own."""
    if testset.id_rules is None or digest == testset.digest:
        return None
    as_read = next((rule for rule, known in testset.id_rules.digests.items() if known == digest), None)
    if as_read is not None:
        return None if as_read == testset.meta.ids else as_read
    others = (rule for rule in testset.id_rules.names if rule != testset.meta.ids)
    return next((rule for rule in others if under_rule(testset, rule).digest == digest), None)
