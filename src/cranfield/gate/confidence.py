"""The rules of a gate on a stated confidence (ECE, correctness from a threshold on) and on predicted strata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from cranfield.base.numbers import format_count, format_interval, format_p
from cranfield.base.words import count_noun, join_first
from cranfield.evaluation.confusion import Confusion, confusion
from cranfield.gate.config import Accuracy, CorrectAt, Ece
from cranfield.gate.decimals import as_text
from cranfield.gate.gate_input import GateInput, Where, named
from cranfield.gate.result import RuleResult, Status
from cranfield.measures.threshold import parse_threshold
from cranfield.model.answer_rule import answers_with_fields, field_of, is_absent
from cranfield.stats import calibration as stats
from cranfield.stats.confusion import wilson_interval

FEWEST = 20
"""With fewer answers the ECE is not judged: the rule is inconclusive."""
SHOWN = 10
"""Ids that a sentence names."""


@dataclass(frozen=True, slots=True)
class StatedConfidence:
    """The confidence of the answers to some queries, and whether they are correct."""

    scores: Mapping[str, float]
    """Query id to confidence, of every answer that has one and is known to be right or wrong."""
    correct: Mapping[str, bool]
    """The same queries."""
    without_score: tuple[str, ...]
    """Answers without the field, or with what is no number from 0 to 1."""
    without_value: tuple[str, ...]
    """Answers for which the measure has no value."""
    unanswered: tuple[str, ...]
    """Queries that failed or have no answer: nothing was stated."""

    def arrays(self) -> tuple[stats.Floats, stats.Bools]:
        """Scores and outcomes in one order."""
        return np.array(list(self.scores.values())), np.array(
            [self.correct[query] for query in self.scores], dtype=bool
        )


def stated_confidence(field: str, correct: str, where: Where, given: GateInput) -> StatedConfidence:
    """Read a field of the answers as confidence, and judge them by a measure."""
    rule, run = parse_threshold(correct), given.evaluation.run
    values, queries = given.values(str(rule.measure)), given.queries(where)
    answers = {} if run is None else dict(answers_with_fields(run))
    scores, right, unscored, unknown = {}, {}, [], []
    for query in (query for query in queries if query in answers):
        score = confidence_of(field_of(answers[query].fields, field))
        if score is None:
            unscored.append(query)
        elif query not in values and query not in given.lost(str(rule.measure), [query]):
            unknown.append(query)
        else:
            scores[query] = score
            right[query] = query in values and rule.holds(values[query])
    missing = tuple(query for query in queries if query not in answers)
    return StatedConfidence(scores, right, tuple(unscored), tuple(unknown), missing)


def confidence_of(value: object) -> float | None:
    """The value of a field as a confidence; None where it is no number from 0 to 1."""
    if is_absent(value) or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if stats.is_finite_share(float(value)) else None


def ece(rule: Ece, given: GateInput) -> RuleResult:
    """The expected calibration error of a confidence, in bins of equal width."""
    stated = stated_confidence(rule.field, rule.correct, rule.where, given)
    words, expected = ece_words(rule), f"at most {rule.at_most:f}"
    if (refused := _refused("ece", words, expected, rule.field, stated)) is not None:
        return refused
    scores, correct = stated.arrays()
    bins = stats.equal_width_bins(scores)
    found = Fraction(repr(round(stats.expected_calibration_error(scores, correct, bins), 12)))
    got, n = as_text(found, Fraction(rule.at_most)), len(scores)
    sentence = f"the ECE of {rule.field}{_of(rule.where)} is {got}, {expected} is required (n = {_n_text(n, stated)})"
    status: Status = "passed" if found <= Fraction(rule.at_most) else "failed"
    if n < FEWEST:
        status, sentence = "inconclusive", f"{sentence}; fewer than {FEWEST} answers are not enough"
    elif status == "failed" and rule.significant:
        _, null = stats.null_tests(scores, correct, [bins], seed=given.seed, draws=given.n_draws)
        alpha = given.alpha if rule.alpha is None else rule.alpha
        status = "failed" if null.p <= alpha else "inconclusive"
        chance = f"a calibrated score has {null.null_mean:.4f} on average with these scores, p {format_p(null.p)}"
        sentence = f"{sentence}; {chance}"
    return RuleResult("ece", words, status, got, expected, sentence)


def ece_words(rule: Ece) -> str:
    """`ECE of confidence (correct: Success@5 >= 1) is at most 0.1`."""
    beyond = ", significantly" if rule.significant else ""
    return f"ECE of {rule.field}{_of(rule.where)} (correct: {parse_threshold(rule.correct)}) is at most {rule.at_most:f}{beyond}"


def correct_at(rule: CorrectAt, given: GateInput) -> RuleResult:
    """The share of correct answers among those with a confidence from a threshold on."""
    stated = stated_confidence(rule.field, rule.correct, rule.where, given)
    words, expected = correct_at_words(rule), f"at least {rule.at_least:f}"
    if (refused := _refused("correct_at", words, expected, rule.field, stated)) is not None:
        return refused
    n, right = stats.routed(*stated.arrays(), float(rule.threshold))
    of = f"of the answers with {rule.field} >= {rule.threshold:f}{_of(rule.where)}"
    if not n:
        sentence = f"none {of} (n = {_n_text(len(stated.scores), stated)}): the rule was not tested"
        return RuleResult("correct_at", words, "failed", "no answer", expected, sentence)
    share, bound = Fraction(right, n), Fraction(rule.at_least)
    low, high = wilson_interval(right, n, 1 - (given.alpha if rule.alpha is None else rule.alpha))
    status: Status = "passed" if share >= bound else "failed"
    if rule.significant:
        status = "passed" if low >= bound else "failed" if high < bound else "inconclusive"
    got = as_text(share, bound)
    sentence = (
        f"{format_count(right)} of {count_noun(n, 'answers', format_count)} with {rule.field} >= {rule.threshold:f}"
        f"{_of(rule.where)} are correct: {got} (CI {format_interval((low, high))}), {expected} is required"
        f"{' of the lower bound' if rule.significant else ''} (n = {_n_text(len(stated.scores), stated)})"
    )
    wrong = [query for query in stated.scores if not stated.correct[query]]
    chosen = [query for query in wrong if stated.scores[query] >= float(rule.threshold) - stats.EDGE]
    return RuleResult("correct_at", words, status, got, expected, sentence, () if status == "passed" else tuple(chosen))


def correct_at_words(rule: CorrectAt) -> str:
    """`at least 0.7 of the answers with confidence >= 0.8 are correct (Success@5 >= 1)`."""
    bound = " by the lower bound" if rule.significant else ""
    of = f"of the answers with {rule.field} >= {rule.threshold:f}{_of(rule.where)}"
    return f"at least {rule.at_least:f}{bound} {of} are correct ({parse_threshold(rule.correct)})"


def accuracy(rule: Accuracy, given: GateInput) -> RuleResult:
    """How often a field of the answers is the stratum of the query, over all and for each expected value."""
    table = confusion(given.evaluation, rule.field, rule.expected_stratum)
    words, expected = accuracy_words(rule), _accuracy_bounds(rule)
    if not table.is_prediction:
        why = f"no answer has a value of {rule.expected_stratum} in {rule.field}"
        sentence = f"{rule.field} predicts nothing ({why}): the rule was not tested"
        return RuleResult("accuracy", words, "failed", "no prediction", expected, sentence)
    share, bound = Fraction(table.n_right, table.n), _fraction(rule.at_least)
    low = _low_recalls(table, _fraction(rule.each_at_least))
    is_kept = (bound is None or share >= bound) and not low
    got = as_text(share, bound)
    unanswered = f"; {count_noun(table.n_unanswered, 'queries')} without an answer" if table.n_unanswered else ""
    sentence = (
        f"{rule.field} is {rule.expected_stratum} in {got} of the answers (CI {format_interval(table.interval)}), "
        f"{expected} is required (n = {format_count(table.n)}{unanswered})"
    )
    if low:
        sentence += f"; less for {join_first(low, SHOWN)}"
    if is_kept:
        return RuleResult("accuracy", words, "passed", got, expected, sentence)
    reasons = {query: f"{predicted} instead of {wanted}" for query, (wanted, predicted) in table.wrong.items()}
    return RuleResult("accuracy", words, "failed", got, expected, sentence, tuple(table.wrong), reasons)


def _low_recalls(table: Confusion, bound: Fraction | None) -> list[str]:
    """Expected values whose share of right predictions is under a bound, with that share."""
    wrong = Counter(expected for expected, _ in table.wrong.values())
    totals = {label: sum(row) for label, row in zip(table.expected, table.counts, strict=True)}
    recalls = {label: Fraction(n - wrong[label], n) for label, n in totals.items()}
    return [
        f"{label} {as_text(recall, bound)}" for label, recall in recalls.items() if bound is not None and recall < bound
    ]


def _fraction(bound: Decimal | None) -> Fraction | None:
    return None if bound is None else Fraction(bound)


def accuracy_words(rule: Accuracy) -> str:
    """`accuracy of routed as task_type is at least 0.8 and at least 0.5 of each expected value`."""
    return f"accuracy of {rule.field} as {rule.expected_stratum} is {_accuracy_bounds(rule)}"


def _accuracy_bounds(rule: Accuracy) -> str:
    of_all = [] if rule.at_least is None else [f"at least {rule.at_least:f}"]
    of_each = [] if rule.each_at_least is None else [f"at least {rule.each_at_least:f} of each expected value"]
    return " and ".join((*of_all, *of_each))


def _refused(kind: str, words: str, expected: str, field: str, stated: StatedConfidence) -> RuleResult | None:
    """The failed result where answers state no confidence, or there is nothing to judge."""
    if stated.without_score:
        total = len(stated.scores) + len(stated.without_score) + len(stated.without_value)
        counted = f"{format_count(len(stated.without_score))} of {count_noun(total, 'answers', format_count)}"
        ids = join_first(list(stated.without_score), SHOWN)
        sentence = f"{counted} without a number from 0 to 1 as {field}: {ids}"
        return RuleResult(kind, words, "failed", "no confidence", expected, sentence, stated.without_score)
    if stated.scores:
        return None
    sentence = f"no answer has a {field} and a value of the measure: the rule was not tested"
    return RuleResult(kind, words, "failed", "no answer", expected, sentence)


def _n_text(n: int, stated: StatedConfidence) -> str:
    """`57; 2 queries failed or have no answer, 1 has no value`."""
    left = [
        f"{count_noun(len(ids), 'queries', format_count)} {what}"
        for ids, what in (
            (stated.unanswered, "without an answer"),
            (stated.without_value, "without a value of the measure"),
        )
        if ids
    ]
    return "; ".join([format_count(n), *left])


def _of(where: Where) -> str:
    return f" of {label}" if (label := named(where)) else ""
