"""The rule of a gate on the fields of answers."""

from __future__ import annotations

from fractions import Fraction

from cranfield.base.numbers import format_count
from cranfield.base.words import count_noun
from cranfield.gate.config import EveryAnswer
from cranfield.gate.gate_input import GateInput, named
from cranfield.gate.result import RuleResult, Status
from cranfield.model.answer_rule import answers_with_fields, parse_answer_rule, some_broken, violations


def every_answer(terms: EveryAnswer, given: GateInput) -> RuleResult:
    """A rule on a field, over the answers of the queries that it is about."""
    rule, run = parse_answer_rule(terms.rule), given.evaluation.run
    expected, of = str(rule), _of(terms)
    queries = set(given.queries(terms.where))
    answered = [query for query, _ in answers_with_fields(run) if query in queries] if run is not None else []
    words = every_answer_words(terms)
    if run is None or not answered:
        why = (
            "a run file of another tool has no answer fields"
            if run is None
            else f"none of {count_noun(len(queries), 'queries')} was answered"
        )
        sentence = f"the rule applies to no answer{of} ({why}): it was not tested"
        return RuleResult("every_answer", words, "failed", "no answer", expected, sentence)
    broken = {query: why for query, why in violations(rule, run).items() if query in queries}
    allowed = Fraction(0) if terms.at_most is None else terms.at_most.of(Fraction(len(answered)))
    kept = len(broken) <= allowed
    counted = f"{format_count(len(broken))} of {count_noun(len(answered), 'answers', format_count)}"
    sentence = f"{counted}{of} {'breaks' if len(broken) == 1 else 'break'} the rule {rule}"
    if broken:
        sentence += f": {some_broken(broken)}"
    if terms.at_most is not None:
        sentence += f"; at most {terms.at_most} may"
    status: Status = "passed" if kept else "failed"
    named_queries = () if kept else tuple(broken)
    return RuleResult("every_answer", words, status, counted, expected, sentence, named_queries, broken)


def every_answer_words(terms: EveryAnswer) -> str:
    """`every answer: mode = semantic`."""
    allowed = f"; at most {terms.at_most} may break it" if terms.at_most is not None else ""
    return f"every answer{_of(terms)}: {parse_answer_rule(terms.rule)}{allowed}"


def _of(terms: EveryAnswer) -> str:
    """` of difficulty: easy`; empty for all queries."""
    label = named(terms.where)
    return f" of {label}" if label else ""
