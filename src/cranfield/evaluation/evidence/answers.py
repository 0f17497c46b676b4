"""The check of answers by the rules that the config of their system declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cranfield.evaluation.evidence.values import Found, Scored
from cranfield.words import n_of

if TYPE_CHECKING:
    from cranfield.model.answer_rule import AnswerRule


def broken_answer_rules(system: Scored, limit: float) -> Iterator[Found]:
    """A sentence for each declared rule that a larger share of the answers breaks than the limit."""
    run = system.run
    if run is None:
        return
    rules = declared_rules(run.config)
    if not rules:
        return
    from cranfield.model.answer_rule import answers_with_fields, some_broken, violations

    known = set(system.query_ids)
    total = sum(query_id in known for query_id, _ in answers_with_fields(run))
    for rule in rules:
        broken = {query_id: why for query_id, why in violations(rule, run).items() if query_id in known}
        if broken and len(broken) / total > limit:
            verb = "breaks" if len(broken) == 1 else "break"
            yield Found.of(
                f"{len(broken)} of {n_of(total, 'answers')} {verb} the rule that its config declares for "
                f"every answer, {rule}: {some_broken(broken)}",
                broken,
                total,
            )


def declared_rules(config: Mapping[str, Any]) -> list[AnswerRule]:
    """The rules in the `preflight` of a system's configuration.

    Raises:
        UsageError: one of them is not a rule.
    """
    checks = config.get("preflight") or ()
    written = [check.get("every_answer") for check in checks if isinstance(check, Mapping)]
    if not any(written):
        return []
    from cranfield.model.answer_rule import parse_answer_rule

    return list(dict.fromkeys(parse_answer_rule(text) for text in written if isinstance(text, str)))
