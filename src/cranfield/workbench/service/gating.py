"""The rules of the config's gate on an evaluation of the server; those that compare do so with the pinned evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cranfield.app.evaluate import with_measure
from cranfield.base.errors import CranfieldError
from cranfield.books.database.engine import day_of
from cranfield.config import Config
from cranfield.evaluation.classes import deciding_key
from cranfield.evaluation.values import Evaluation
from cranfield.gate.baseline import Baseline, baseline_of, misfits
from cranfield.gate.config import gate_of
from cranfield.gate.gate_input import GateInput
from cranfield.gate.result import STATES
from cranfield.gate.rules import RULES, compared_measures, configured_rules, in_classes, words

if TYPE_CHECKING:
    from cranfield.app.experiment import Experiment
    from cranfield.workbench.service.service import Service


Gate = dict[str, bool | None]


def rules_kept(
    service: Service,
    config: Config | None,
    key: str | None,
    experiment: Experiment,
    evaluation: Evaluation,
    testset: str,
) -> tuple[Gate | None, tuple[str, ...]]:
    """Each rule of the gate for a test set, in words, and whether it holds; and why the others were not decided.

    Args:
        service: has the pinned evaluation.
        config: of the operator.
        key: of the test set in the config; None: it has none, so no rules.
        experiment: what was declared.
        evaluation: on the test set.
        testset: its name in the service.
    """
    gate = None if config is None else gate_of(config)
    if config is None or gate is None or key is None:
        return None, ()
    rules = configured_rules(gate, key, evaluation.testset)
    baseline, why = None, ""
    if any(rule.needs_baseline for rule in rules):
        baseline, why = _pinned(service, testset, experiment.k, evaluation, compared_measures(rules))
    declared = config.comparing()
    given = GateInput(evaluation, baseline, declared.test, declared.alpha, n_draws=declared.draws)
    found: Gate = {}
    reasons = []
    for rule in rules:
        state, reason = None, why
        if baseline is not None or not rule.needs_baseline:
            try:
                ruled = in_classes(rule, deciding_key(experiment.testset, experiment.declared))
                result = RULES[rule.kind].judge(ruled.terms, given)
                state, reason = STATES[result.status], result.sentence
            except CranfieldError as error:  # a measure that the test set does not allow: `cranfield gate` reports it
                reason = error.problems[0].message
        found[words(rule)] = state
        if state is None:
            reasons.append(f"Gate rule not decided: {words(rule)}: {reason}")
    return found or None, tuple(reasons)


def _pinned(
    service: Service, testset: str, k: int, evaluation: Evaluation, measures: Sequence[str]
) -> tuple[Baseline | None, str]:
    """The pinned evaluation of a test set as a baseline; or why there is none."""
    info = service.evaluations.baseline(testset)
    if info is None:
        return None, f"no evaluation is pinned as the baseline of {testset}"
    name = f"pinned evaluation {info.id}"
    if info.void or info.book_id is not None:
        return None, f"the {name} is {'void' if info.void else 'being judged'}"
    try:
        pinned = service.evaluations.rescore(info.id)
        for spelling in measures:
            pinned = with_measure(pinned, spelling)
    except CranfieldError as error:
        return None, f"the {name}: {error.problems[0].message}"
    baseline = baseline_of(
        pinned,
        k=service.evaluations.settings(info.id).k,
        accepted=day_of(info.at).isoformat(),
        commit="",
        reason=name,
        config_digest=info.config_digest,
    )
    problems = misfits(baseline, evaluation, k=k, measures=measures, name=name)
    return (None, f"the {name}: {problems[0].message}") if problems else (baseline, "")
