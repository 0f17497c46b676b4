"""How the ids of a version of a test set are replaced by those that the set has now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cranfield.errors import InputError, TestSetError
from cranfield.model import IdRule, TestSet
from cranfield.model.query_ids import id_of
from cranfield.model.renaming import fitting_rule, renamed, rule_of_digest
from cranfield.words import first_of


@dataclass(frozen=True)
class Renaming:
    """Ids of an earlier version of a set, under each rule, to the ids of the set."""

    old: TestSet
    """The earlier version with the ids of the set, which is the set itself where nothing was edited."""
    names: dict[IdRule, dict[str, str]]
    known: frozenset[str]
    """Ids of the set."""

    def rule_of(self, given: Iterable[str]) -> IdRule | None:
        """The rule that ids of a file follow; None where they are those of the set.

        Raises:
            InputError: they follow none.
        """
        ids = list(dict.fromkeys(given))
        own = {*self.old.query_ids, *self.known}
        if not ids or any(query_id in own for query_id in ids):
            return None
        rule = fitting_rule(self.names, ids)
        if rule is not None:
            return rule
        raise InputError(
            "its queries are not those of the test set under any rule of ids",
            expected=f"such as {first_of(self.old.query_ids[:2])}, or rows from 1 to {len(self.old.queries)}",
            got=first_of(ids),
            hint="{old=FILE} names the version of the test set that it was made with",
            parameters=("old",),
        )

    def rule_of_digest(self, digest: str | None) -> IdRule | None:
        """The rule under which a recorded digest is that of the earlier version; None: of another set, or of its own ids."""
        return None if digest is None else rule_of_digest(self.old, digest)


def renaming(testset: TestSet, old: TestSet | None = None) -> Renaming:
    """How ids of a set are replaced by those that it has now.

    Args:
        testset: the set, with the ids that files get. Its ids are made by a rule.
        old: the version that the files were made with; None: the set itself.

    Raises:
        TestSetError: the ids of one of them stand in its file, or the sets share no question.
    """
    before = testset if old is None else old
    for given in (testset, before):
        if given.id_rules is None:
            hint = "files of a set with ids of its own name queries by them"
            raise TestSetError(f"the ids of test set {given.name!r} stand in its file", expected="made ids", hint=hint)
    now = {id_of(query): query.id for query in testset.queries}
    names = {query.id: now.get(id_of(query), id_of(query)) for query in before.queries}
    if not set(names.values()) & set(testset.query_ids):
        raise TestSetError(f"test sets {before.name!r} and {testset.name!r} share no question")
    same = renamed(before, names, testset.meta.ids or None)
    rules = same.id_rules.names if same.id_rules is not None else {}
    return Renaming(same, {rule: dict(by_name) for rule, by_name in rules.items()}, frozenset(testset.query_ids))
