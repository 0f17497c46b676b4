"""A run as scored answers: a field as confidence, a measure as correctness."""

from __future__ import annotations

from cranfield.calibration.answers import Correctness, ScoredAnswer, ScoredAnswers, score_problem
from cranfield.calibration.table import SCORE_COLUMNS
from cranfield.errors import InputError, Problem, UsageError, shorten
from cranfield.evaluation.values import Evaluation
from cranfield.gate.confidence import confidence_of
from cranfield.gate.gate_input import GateInput
from cranfield.measures.threshold import Threshold
from cranfield.model import query_strata
from cranfield.model.answer_rule import answers_with_fields, field_of, is_absent
from cranfield.words import or_list

SCORE_FIELDS = ("confidence", *(name for name in SCORE_COLUMNS if name != "confidence"))
"""The usual names of a confidence, as of a table; `score` is also the name of other things."""


def answers_of_run(evaluation: Evaluation, field: str | None, rule: Threshold) -> ScoredAnswers:
    """The confidence that each answer of a run states, and whether it is correct by a measure.

    A query for which the measure has no value, such as one without relevant documents, has no correctness.

    Args:
        evaluation: of a collected run.
        field: of the answers, with dots where it is inside an object; None: the first of `SCORE_FIELDS` that an answer has.
        rule: a measure with its bound: `Success@5 >= 1`.

    Raises:
        UsageError: the run has no such field.
        InputError: with every confidence that is no number from 0 to 1.
    """
    answers = {} if evaluation.run is None else dict(answers_with_fields(evaluation.run))
    wanted = (field,) if field else SCORE_FIELDS
    columns = {name: {query: field_of(answer.fields, name) for query, answer in answers.items()} for name in wanted}
    field = next((name for name, values in columns.items() if not all(map(is_absent, values.values()))), None)
    if field is None:
        names = dict.fromkeys(name for answer in answers.values() for name in answer.fields)
        got = f"fields {', '.join(names)}" if names else "answers without fields"
        hint = "`extract: {fields: {confidence: PATH}}` in the config keeps a field of the output."
        raise UsageError(f"no answer has the field {or_list(wanted)}", path=evaluation.name, got=got, hint=hint)
    stated, problems = columns[field], []
    outcomes = _outcomes(evaluation, rule)
    found = []
    for query in evaluation.testset.queries:
        if query.id not in evaluation.query_ids:
            continue
        value = stated.get(query.id)
        known = query.id in stated and not is_absent(value) and value is not None
        score = confidence_of(value) if known else None
        if known and score is None:
            problems.append(_problem(value, query.id, evaluation.name))
        correctness = {} if query.id not in outcomes else {Correctness.STRUCTURAL: outcomes[query.id]}
        is_failed = query.id not in answers
        found.append(ScoredAnswer(query.id, score, correctness, query_strata(query), is_failed=is_failed))
    if problems:
        raise InputError(problems)
    judged = evaluation.testset
    about = ", ".join(filter(None, (f"{judged.name} {judged.version}".strip(), judged.meta.review)))
    return ScoredAnswers(evaluation.name, field, {Correctness.STRUCTURAL: str(rule)}, found, about)


def _outcomes(evaluation: Evaluation, rule: Threshold) -> dict[str, bool]:
    """Query id to whether its answer is correct; an answer that finds nothing is not, whatever the convention."""
    given, name = GateInput(evaluation), str(rule.measure)
    values = given.values(name)
    found = {query: rule.holds(value) for query, value in values.items()}
    return found | dict.fromkeys(
        given.lost(name, (query for query in evaluation.query_ids if query not in values)), False
    )


def _problem(value: object, query_id: str, path: str) -> Problem:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return score_problem(float(value), query_id, {"path": path})
    return Problem(f"the confidence of {query_id} is no number", path=path, got=shorten(value))
